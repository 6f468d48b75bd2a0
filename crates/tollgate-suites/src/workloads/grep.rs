use std::io::{BufRead, BufReader, Read};
use std::{fs::File, path::PathBuf};

use super::COMMAND;
use super::command::{Command, left, on_files};
use super::fixture::{Program, Tree};
use super::source::MARK;
use super::work::{Work, Workload};
use crate::prelude::*;

pub(super) static WORKLOAD: Workload = Workload {
    benchmark: Benchmark {
        name: "workloads/grep",
        operation: "One grep -rn through the source tree for an expression that a few hundred lines match.",
        avoid: "Search an index, or only tracked files (git grep).",
        source: "grep(1); git-grep(1)",
        crosses: &[
            KernelEntry,
            SystemCall,
            KernelCode,
            UserCopy,
            PathLookup,
            PageCache,
            BlockRead,
            ReadAhead,
            IdleExit,
        ],
        timed: |_| Timed::Whole("grep -rn"),
        ..COMMAND
    },
    ready,
};

const GREP: Program = Program { name: "grep", package: "GNU grep", debian: "grep" };

/// Limit of the output that is read.
const MOST_BYTES: u64 = 1 << 24;

struct Grep;

fn ready(fixture: &mut Tree, _: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    fixture.needs(&GREP, context)?;
    Ok(Box::new(Grep))
}

impl Work for Grep {
    fn reads(&self, fixture: &Tree) -> Vec<PathBuf> {
        // Without a build's output.
        vec![fixture.tree().join("src"), fixture.tree().join("include")]
    }

    /// Writes to a file: with /dev/null GNU grep stops at the first match.
    fn command(&self, fixture: &Tree) -> Command {
        let expression = format!("{MARK}([a-z]*)");
        Command {
            output: Some(fixture.path_of("found")),
            ..Command::new(&fixture.tree(), ["grep", "-rn", &expression, "src", "include"])
        }
    }

    fn check(&self, fixture: &Tree, _: &mut RunContext) -> Step<String> {
        let found = on_files("open(2)", File::open(fixture.path_of("found")))?;
        let found = BufReader::new(found.take(MOST_BYTES)).split(b'\n').count() as u64;
        let expected = fixture.truth.marks;
        let wrong = format!("found {found} lines instead of {expected}");
        let check = format!("it found the {expected} matching lines");
        left(&self.command(fixture).line(), found == expected, check, &wrong)
    }
}
