//! The user's commands whose executions alternated, each in an environment: `tollgate versus`.
//!
//! Each command in each environment is a run of a session, and its executions are processes of one round each: the executions of
//! one number in two runs are neighbours in time. The same holds for each build of `versus --bench`, where an execution is that
//! of one bench.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::measurement::{Case, ParamValue};
use crate::traced::Ended;

/// Real time from the release of the command to its end, less what surrounds it if [`Command::is_corrected`].
pub const REAL: &str = "versus/real";

/// Processor time of all its processes in user mode, by wait4(2).
pub const USER: &str = "versus/user";

/// Processor time of all its processes in the kernel, by wait4(2).
pub const SYS: &str = "versus/sys";

/// The largest memory of one of its processes at any time: `ru_maxrss` of getrusage(2).
pub const MEMORY: &str = "versus/memory";

/// Page faults of all its processes, with input or output and without.
pub const FAULTS: &str = "versus/faults";

/// Instructions of an execution, by a guest's counter that advances one tick per instruction: of the program, and of the kernel
/// for it.
pub const INSTRUCTIONS: &str = "versus/instructions";

/// Instructions that the program executed itself.
pub const USER_INSTRUCTIONS: &str = "versus/user-instructions";

/// Instructions that the kernel executed: the rest.
pub const KERNEL_INSTRUCTIONS: &str = "versus/kernel-instructions";

/// Iterations of repeating instructions (`rep`), which both of these include: each counts as an instruction. They come from one watched
/// execution.
pub const ITERATIONS: &str = "versus/rep-iterations";

/// Like [`INSTRUCTIONS`], for the first execution after the start of the guest.
pub const FIRST: &str = "versus/first-instructions";

/// System calls of an execution.
pub const CALLS: &str = "versus/calls";

/// Ticks of the kernel during an execution.
pub const TICKS: &str = "versus/ticks";

/// The cases of a command whose instructions are counted, in the order of documents; [`FAULTS`] is also one.
pub const COUNTED: [&str; 8] =
    [INSTRUCTIONS, USER_INSTRUCTIONS, KERNEL_INSTRUCTIONS, ITERATIONS, FIRST, CALLS, FAULTS, TICKS];

/// The cases of a command that is timed, in the order of documents.
pub const CASES: [&str; 5] = [REAL, USER, SYS, MEMORY, FAULTS];

/// The fact that says why commands were executed in turn; without it the order of each round is drawn.
pub const IN_TURN: &str = "run.in_turn";

/// The fact that says how many programs each side has, linked with their functions in another order. Execution n executes the
/// program n modulo this number.
pub const LAYOUTS: &str = "run.layouts";

/// The most programs of a side.
pub const MOST_LAYOUTS: usize = 64;

/// The group of the measurements of benches, whose cases are named `HARNESS/BENCH`.
pub const BENCHES: &str = "benches";

/// The relative difference up to which counts of two boots are the same. Images that differ in nothing relevant, such as by an
/// unread file or by the size of the memory, place the kernel's objects elsewhere, so the kernel takes some more or fewer steps; the
/// program's own counts do not change. Iterations are known for one execution, which is not the same one at each boot.
pub fn least_difference(case: &Case) -> f64 {
    match case.benchmark.as_str() {
        _ if is_part_of_bench(case) => 0.002,
        INSTRUCTIONS | KERNEL_INSTRUCTIONS | FIRST => 0.002,
        ITERATIONS => 0.01,
        _ => 0.0,
    }
}

/// Kernel instructions by which two executions without a relevant difference differ: up to 2,749 of `ls -l` in images with
/// another file or more memory.
pub const KERNEL_NOISE: f64 = 4e3;

/// The absolute difference up to which counts are the same, for samples of this many iterations; 0 for the program's own counts.
pub(crate) fn least_adds(case: &Case, iterations: u64) -> f64 {
    if is_part_of_bench(case) { KERNEL_NOISE / iterations as f64 } else { 0.0 }
}

/// The case of instructions of a bench other than the program's own: `divan/ops::sum{of=kernel}`.
pub fn part_of_bench(bench: &str, part: &str) -> Case {
    let params = [("of".to_owned(), ParamValue::Word(part.to_owned()))];
    Case { params: params.into(), ..Case::plain(bench) }
}

pub(crate) fn is_part_of_bench(case: &Case) -> bool {
    is_bench(&case.benchmark) && !case.params.is_empty()
}

/// The names of harnesses.
pub const HARNESSES: [&str; 5] = ["criterion", "divan", "go", "gbench", "custom"];

/// Whether a case of this name is a bench.
pub fn is_bench(name: &str) -> bool {
    name.split_once('/').is_some_and(|(harness, _)| HARNESSES.contains(&harness))
}

/// Most bytes of a command line: that of an argument of a program (`MAX_ARG_STRLEN` of include/uapi/linux/binfmts.h).
pub const MAX_LINE: usize = 128 << 10;

/// A command as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Command {
    /// The command line, with the values of its parameters. It may have several lines.
    pub line: String,
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The values of its parameters, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The shell that executed the line, such as `sh -c`; None if the program was executed directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Whether the median time of `bench/start`, an empty command, is subtracted from the samples of `versus/real`.
    #[serde(default)]
    pub is_corrected: bool,
    /// The executions that did not exit with status 0, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub failed: Vec<Failed>,
    /// Pages that the drop of the page cache left, for the files that it reads, before each execution; None if it was not
    /// dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<Cold>,
    /// The harness of the compared benches, such as `divan`; the line is then the path of a build with benches. None if whole
    /// commands were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
}

/// An execution that did not exit with status 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failed {
    /// Its number among the timed ones, from 0.
    pub execution: u32,
    /// How it ended.
    pub ended: Ended,
}

/// Files whose pages were dropped from the page cache before each execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cold {
    /// Files that the command reads.
    pub files: u32,
    /// Files with pages that stayed before some execution, such as libraries that other processes have mapped; the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::texts")]
    pub stayed: Vec<String>,
    /// How many stayed.
    pub stayed_files: u32,
    /// The call that says which pages are cached: `cachestat(2)` or `mincore(2)`; None if neither does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certified_by: Option<String>,
}

impl Command {
    /// Whether it is a whole command, not a build with benches.
    pub fn is_whole(&self) -> bool {
        self.harness.is_none()
    }

    /// The name, or else the line.
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.line)
    }

    /// Whether both are the same command line with the same name and shell.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { line, name, parameters, shell, harness, .. } = self;
        (line, name, parameters, shell, harness)
            == (&other.line, &other.name, &other.parameters, &other.shell, &other.harness)
    }

    /// Checks a command of an untrusted document. The error is the predicate of a sentence whose subject is the command.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let texts = [&self.line].into_iter().chain(&self.name).chain(&self.shell).chain(&self.harness);
        let texts = texts.chain(self.parameters.iter().flat_map(|(name, value)| [name, value]));
        if texts.chain(self.cold.iter().flat_map(|cold| &cold.stayed)).any(|text| text.len() > MAX_LINE) {
            return Err(format!("has a text of more than {} KiB", MAX_LINE >> 10));
        }
        if self.line.is_empty() {
            return Err("has an empty line".to_owned());
        }
        Ok(())
    }
}
