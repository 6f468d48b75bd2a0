//! One execution of a command: how it is to be executed, and what it gave.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::Traced;
use tollgate_model::traced::{CodeMap, Ended};

/// One execution of a command. By default nothing but its times is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments: those of a shell with its `-c` and the line, or those of the command itself. Empty: a process
    /// that ends at once, without execve(2).
    pub words: Vec<String>,
    /// Its standard input.
    pub input: Input,
    /// Its standard output. Standard error goes with it, but to a file.
    pub output: Output,
    /// The processors that it may use; empty for all that the executor may.
    pub processors: Vec<usize>,
    /// The control group (cgroups(7), version 2) that it is executed in, which exists.
    pub cgroup: Option<PathBuf>,
    /// It is ended where a file for its output has more bytes than these; None for any number.
    #[serde(default)]
    pub most_output: Option<u64>,
    /// Variables of its environment, beside those of the executor.
    pub variables: Vec<(String, String)>,
    /// Whether these are all that it has. Its working directory is that of `PWD` then.
    #[serde(default)]
    pub is_alone: bool,
    /// What is measured.
    pub how: How,
    /// It is killed after so long; None waits for ever.
    pub within: Option<Duration>,
    /// Whether processes that it leaves stay: a server that a preparation starts.
    pub keeps: bool,
}

impl Order {
    /// The end of a command that has written more than it may.
    pub fn full(&self) -> Option<End> {
        let (Output::File(path), Some(most)) = (&self.output, self.most_output) else { return None };
        path.metadata().is_ok_and(|about| about.len() > most).then_some(End::Full(most))
    }
}

/// The standard input of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// /dev/null.
    #[default]
    Null,
    /// A file, opened anew for each execution, in the environment that the command is executed in.
    File(PathBuf),
}

/// The standard output of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// /dev/null. The end of standard error is kept.
    #[default]
    Null,
    /// A pipe that is read and thrown away. The end of what it said is kept.
    Pipe,
    /// That of this program. Not in an agent, which speaks there.
    Inherit,
    /// A file, truncated before each execution. The end of standard error is kept.
    File(PathBuf),
}

/// What is measured of an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Its times and what it used, by wait4(2). Nothing is traced.
    #[default]
    Timed,
    /// Its system calls, by the best backend.
    Traced {
        /// Also the files that it reads.
        files: bool,
    },
    /// Its system calls by ptrace(2), and the code that its processes had mapped.
    Mapped,
    /// Its instructions, in a guest whose clock goes one tick an instruction.
    Counted,
    /// Nothing is executed: what `/init` of a guest found of this execution before the agent began, in the file that is the input.
    Recalled {
        /// The execution's number, from 0.
        number: usize,
    },
}

/// What an execution gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// How it ended.
    pub end: End,
    /// Real time from the moment it was let go until its first process ended, in nanoseconds: instructions, where those are counted.
    pub wall_ns: u64,
    /// Time of its processes on a processor in user mode.
    pub user_ns: u64,
    /// Time of its processes on a processor in the kernel.
    pub sys_ns: u64,
    /// The most memory that one of its processes had at a time, in bytes; None where that is no more than what the copy of this program
    /// had that became the command.
    pub memory: Option<u64>,
    /// Page faults without and with input or output.
    pub faults: u64,
    /// Ticks of the kernel meanwhile, where instructions were counted.
    #[serde(default)]
    pub ticks: u32,
    /// How often another thread took the processor, likewise.
    #[serde(default)]
    pub switches: u32,
    /// Its trace, where it was asked for.
    pub traced: Option<Traced>,
    /// The code that its processes had mapped, likewise.
    #[serde(default)]
    pub code: CodeMap,
    /// The end of what it wrote to standard error, and to a pipe.
    pub said: String,
    /// How many processes it left, which were ended.
    pub left: u32,
}

impl Execution {
    /// One of which only the end is known.
    pub const fn ended(end: End) -> Self {
        Self {
            end,
            wall_ns: 0,
            user_ns: 0,
            sys_ns: 0,
            memory: None,
            faults: 0,
            ticks: 0,
            switches: 0,
            traced: None,
            code: CodeMap { programs: 0, program: None, has_conflict: false, code: Vec::new() },
            said: String::new(),
            left: 0,
        }
    }
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// By itself.
    Ended(Ended),
    /// It was killed when its time was over.
    OutOfTime,
    /// It was killed when its output had more bytes than these.
    Full(u64),
    /// It was not started: a sentence that names the program.
    NotStarted(String),
    /// It killed its process group, which its tracer was in, by this signal.
    KilledGroup(i32),
}

/// What became of the pages of some files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooled {
    /// The files that have pages.
    pub files: u32,
    /// Those of which pages stayed.
    pub stayed: Vec<String>,
    /// The call that says which pages are cached; None where none does.
    pub certified_by: Option<String>,
}
