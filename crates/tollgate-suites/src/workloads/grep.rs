//! A search through all lines.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use tollgate_model::Boundary::{
    BlockRead, IdleExit, KernelCode, KernelEntry, PageCache, PathLookup, ReadAhead, SystemCall, UserCopy,
};
use tollgate_model::Params;

use tollgate_engine::benchmark::{Benchmark, PLAIN};
use tollgate_engine::{RunContext, Timed};

use super::command::{Command, Step, failed, on_files, open};
use super::fixture::Tree;
use super::source::MARK;
use super::work::{Program, Work};
use super::{cases, crossed_in};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "workloads/grep",
    operation: "One grep -rn through the source tree for an expression that a few hundred lines match.",
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
    crossed_in,
    timed: |_| Timed::Whole("grep -rn"),
    cases: || cases(&[Params::new()]),
    ..PLAIN
};

const GREP: Program = Program { name: "grep", package: "GNU grep", debian: "grep" };

/// More of what it found is not counted: hundreds of times what matches.
const MOST_BYTES: u64 = 1 << 24;

struct Grep;

pub(super) fn ready(ground: &mut Tree, _: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    ground.needs(&GREP, context)?;
    Ok(Box::new(Grep))
}

impl Work for Grep {
    fn reset(&self, _: &Tree, _: &mut RunContext) -> Step<()> {
        Ok(())
    }

    fn reads(&self, ground: &Tree) -> Vec<PathBuf> {
        // What a build left there is none of it.
        vec![ground.tree().join("src"), ground.tree().join("include")]
    }

    /// To a file: where its output is /dev/null, GNU grep ends at the first line that matches.
    fn command(&self, ground: &Tree) -> Command {
        let expression = format!("{MARK}([a-z]*)");
        Command {
            output: Some(ground.contended("found")),
            ..Command::new(&ground.tree(), ["grep", "-rn", &expression, "src", "include"])
        }
    }

    fn check(&self, ground: &Tree, _: &mut RunContext) -> Step<String> {
        let found = on_files("open(2)", open(&ground.contended("found")))?;
        let found = BufReader::new(found.take(MOST_BYTES)).split(b'\n').count() as u64;
        let expected = ground.truth.marks;
        match found == expected {
            true => Ok(format!("it found the {expected} lines that match")),
            false => failed(format!(
                "{} ended well, but it found {found} lines and {expected} match",
                self.command(ground).line()
            )),
        }
    }
}
