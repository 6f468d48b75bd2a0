//! A table of what is defined where.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use tollgate_model::Boundary::{
    BlockRead, IdleExit, KernelCode, KernelEntry, MemoryAccess, PageCache, PageFault, PathLookup, ReadAhead,
    SystemCall, UserCopy,
};
use tollgate_model::Params;

use tollgate_engine::benchmark::{Benchmark, PLAIN};
use tollgate_engine::{Refusal, RunContext, Timed};

use super::command::{Command, Step, failed, is_here, on_files, open};
use super::fixture::Tree;
use super::work::{Program, Work};
use super::{cases, crossed_in};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "workloads/tags",
    operation: "One table of all definitions in a source tree, by Universal Ctags, or by cscope where that is not here.",
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
    crossed_in,
    timed: |_| Timed::Whole("ctags -R"),
    cases: || cases(&[Params::new()]),
    ..PLAIN
};

const CSCOPE: Program = Program { name: "cscope", package: "cscope", debian: "cscope" };
/// The names that packages give it.
const CTAGS: [&str; 3] = ["ctags", "universal-ctags", "ctags-universal"];

/// A table that is longer is not read to its end: tens of times what a large tree has.
const MOST_BYTES: u64 = 1 << 28;

/// By which program, under its name here.
enum Tags {
    Ctags(&'static str),
    Cscope,
}

pub(super) fn ready(ground: &mut Tree, _: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    for name in CTAGS.into_iter().filter(|name| is_here(name)) {
        // Emacs has a program of this name that understands other arguments.
        let version = ground.ask_version(name, context)?;
        if version.starts_with("Universal Ctags") || version.starts_with("Exuberant Ctags") {
            return Ok(Box::new(Tags::Ctags(name)));
        }
    }
    if !is_here(CSCOPE.name) {
        let what = match CTAGS.iter().find(|name| is_here(name)) {
            Some(name) => format!("{name} is here and is not Universal Ctags, and there is no cscope"),
            None => "there is neither ctags nor cscope here".to_owned(),
        };
        let remedy = "install Universal Ctags or cscope (in Debian the packages universal-ctags and cscope)";
        return Err(Refusal::Skip(format!("{what}: {remedy}")).into());
    }
    ground.needs(&CSCOPE, context)?;
    Ok(Box::new(Tags::Cscope))
}

impl Tags {
    fn table(ground: &Tree) -> PathBuf {
        ground.contended("tags")
    }

    /// Functions in the table. In that of ctags, `f` is the kind behind the second tab that follows a pattern; in that of
    /// cscope a line that begins with a tab and `$` (its source, invlib and build) defines a function.
    fn functions(&self, ground: &Tree) -> std::io::Result<u64> {
        let mut lines = BufReader::new(open(&Self::table(ground))?.take(MOST_BYTES));
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
    fn reset(&self, ground: &Tree, _: &mut RunContext) -> Step<()> {
        match std::fs::remove_file(Self::table(ground)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => on_files("unlink(2)", Err(error)),
            _ => Ok(()),
        }
    }

    fn reads(&self, ground: &Tree) -> Vec<PathBuf> {
        vec![ground.tree()]
    }

    fn command(&self, ground: &Tree) -> Command {
        match self {
            Self::Ctags(name) => Command::new(
                &ground.tree(),
                [name, "--options=NONE", "-R", "-f", "../tags", "src", "include"],
            ),
            Self::Cscope => Command::new(&ground.tree(), [CSCOPE.name, "-b", "-k", "-R", "-f", "../tags"]),
        }
    }

    fn check(&self, ground: &Tree, _: &mut RunContext) -> Step<String> {
        let command = self.command(ground).line();
        let Ok(found) = self.functions(ground) else {
            return failed(format!("{command} ended well and wrote no table"));
        };
        let expected = ground.truth.functions;
        match found == expected {
            true => Ok(format!("its table has the {expected} functions that are defined")),
            false => failed(format!(
                "{command} ended well, but its table has {found} functions and there are {expected}"
            )),
        }
    }
}
