use std::io::{BufRead, BufReader, Read};
use std::{fs::File, path::PathBuf};

use super::COMMAND;
use super::command::{Command, failed, is_here, left, removed};
use super::fixture::{Program, Tree};
use super::work::{Work, Workload};
use crate::prelude::*;

pub(super) static WORKLOAD: Workload = Workload {
    benchmark: Benchmark {
        name: "workloads/tags",
        operation: "One index of all definitions in a source tree, by Universal Ctags, or by cscope if that is missing.",
        avoid: "Index only what changed.",
        source: "ctags(1)",
        crosses: &[
            KernelEntry,
            SystemCall,
            KernelCode,
            UserCopy,
            PathLookup,
            PageCache,
            PageFault,
            MemoryAccess,
            BlockRead,
            ReadAhead,
            IdleExit,
        ],
        timed: |_| Timed::Whole("ctags -R"),
        ..COMMAND
    },
    ready,
};

const CSCOPE: Program = Program { name: "cscope", package: "cscope", debian: "cscope" };
/// Its names in packages.
const CTAGS: [&str; 3] = ["ctags", "universal-ctags", "ctags-universal"];

/// Limit of the index that is read, in bytes.
const MOST_BYTES: u64 = 1 << 28;

enum Tags {
    Ctags(&'static str),
    Cscope,
}

fn ready(fixture: &mut Tree, _: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    for name in CTAGS.into_iter().filter(|name| is_here(name)) {
        // Emacs has a program of this name with other arguments.
        let version = fixture.ask_version(name, context)?;
        if version.starts_with("Universal Ctags") || version.starts_with("Exuberant Ctags") {
            return Ok(Box::new(Tags::Ctags(name)));
        }
    }
    if !is_here(CSCOPE.name) {
        let what = match CTAGS.iter().find(|name| is_here(name)) {
            Some(name) => format!("{name} is not Universal Ctags, and cscope is missing"),
            None => "ctags and cscope are missing".to_owned(),
        };
        let remedy = "install Universal Ctags or cscope (in Debian the packages universal-ctags and cscope)";
        return Err(skip!("{what}: {remedy}").into());
    }
    fixture.needs(&CSCOPE, context)?;
    Ok(Box::new(Tags::Cscope))
}

impl Tags {
    fn table(fixture: &Tree) -> PathBuf {
        fixture.path_of("tags")
    }

    /// Counts the functions in the index. In a ctags file, `f` is the kind after a pattern and a tab. In cscope's, a
    /// line that begins with a tab and `$` defines a function (cscope's sources, invlib and build).
    fn functions(&self, fixture: &Tree) -> std::io::Result<u64> {
        let mut lines = BufReader::new(File::open(Self::table(fixture))?.take(MOST_BYTES));
        let (mut line, mut functions) = (Vec::new(), 0);
        while lines.read_until(b'\n', &mut line)? > 0 {
            functions += u64::from(match self {
                Self::Ctags(_) => line.windows(5).any(|part| part == b";\"\tf\t" || part == b";\"\tf\n"),
                Self::Cscope => line.starts_with(b"\t$"),
            });
            line.clear();
        }
        Ok(functions)
    }
}

impl Work for Tags {
    fn reset(&self, fixture: &Tree, _: &mut RunContext) -> Step<()> {
        removed("unlink(2)", std::fs::remove_file(Self::table(fixture)))
    }

    fn command(&self, fixture: &Tree) -> Command {
        match self {
            Self::Ctags(name) => Command::new(
                &fixture.tree(),
                [name, "--options=NONE", "-R", "-f", "../tags", "src", "include"],
            ),
            Self::Cscope => Command::new(&fixture.tree(), [CSCOPE.name, "-b", "-k", "-R", "-f", "../tags"]),
        }
    }

    fn check(&self, fixture: &Tree, _: &mut RunContext) -> Step<String> {
        let command = self.command(fixture).line();
        let Ok(found) = self.functions(fixture) else {
            return failed(format!("{command} exited with status 0 and wrote no index"));
        };
        let expected = fixture.truth.functions;
        let wrong = format!("its index has {found} functions instead of {expected}");
        left(&command, found == expected, format!("its index has the {expected} defined functions"), &wrong)
    }
}
