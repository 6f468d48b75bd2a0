//! One execution of a command: how to execute it, and its result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::Traced;
use tollgate_model::traced::Ended;

/// An order to execute a command once. By default, only its times are requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments: a shell, `-c` and the line, or the command itself. If empty, the process ends at once, without
    /// execve(2).
    pub words: Vec<String>,
    /// Its standard input.
    pub input: Input,
    /// Its standard output. Standard error goes there too, unless it is a file.
    pub output: Output,
    /// The processors that it may use; empty for all that the executor may use.
    pub processors: Vec<usize>,
    /// The existing control group (cgroups(7), version 2) that it is executed in.
    pub cgroup: Option<PathBuf>,
    /// The most bytes that it may write to its output file before it is killed; `None` for any number.
    #[serde(default)]
    pub most_output: Option<u64>,
    /// Environment variables, in addition to those of the executor.
    pub variables: Vec<(String, String)>,
    /// Whether it has only these variables. Its working directory is then that of `PWD`.
    #[serde(default)]
    pub is_alone: bool,
    /// The measurement.
    pub how: How,
    /// The time after which it is killed; `None` waits forever.
    pub within: Option<Duration>,
    /// Whether processes that it leaves behind are kept, such as a server that a preparation starts.
    pub keeps: bool,
}

impl Order {
    /// The working directory, if it has only its own variables.
    pub fn directory(&self) -> Option<&Path> {
        let (_, directory) = self.variables.iter().find(|(name, _)| self.is_alone && name == "PWD")?;
        Some(Path::new(directory))
    }

    /// Returns the end of a command that has written more than it may.
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
    /// A file in the environment of the command, opened anew for each execution.
    File(PathBuf),
}

/// The standard output of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// /dev/null. The end of standard error is kept.
    #[default]
    Null,
    /// A pipe whose bytes are discarded, except for the last ones.
    Pipe,
    /// The standard output of this program. An agent cannot use it, because it sends its messages there.
    Inherit,
    /// A file, truncated before each execution. The end of standard error is kept.
    File(PathBuf),
}

/// The measurement of an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Its times and its resources, by wait4(2). Nothing is traced.
    #[default]
    Timed,
    /// Its system calls, by the best backend.
    Traced {
        /// Whether the files that it reads are traced too.
        files: bool,
    },
    /// Its instructions, in a guest whose clock advances by one tick per instruction.
    Counted,
    /// Nothing is executed. The result is one that `/init` of a guest wrote to the input file before the agent began.
    Recalled {
        /// The execution's number, from 0.
        number: usize,
    },
}

/// The result of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// How it ended.
    pub end: End,
    /// Real time from its release until its first process ended, in nanoseconds; instructions if those are counted.
    pub wall_ns: u64,
    /// Time of its processes on a processor in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Time of its processes on a processor in the kernel, in nanoseconds.
    pub sys_ns: u64,
    /// The most memory that one of its processes had at a time, in bytes; `None` if the copy of this program that became the command
    /// had at least as much.
    pub memory: Option<u64>,
    /// Page faults without and with input or output.
    pub faults: u64,
    /// Kernel ticks during the execution, if instructions were counted.
    #[serde(default)]
    pub ticks: u32,
    /// How often another thread took the processor, if instructions were counted.
    #[serde(default)]
    pub switches: u32,
    /// Its trace, if requested.
    pub traced: Option<Traced>,
    /// The end of what it wrote to standard error, and to a pipe.
    pub said: String,
    /// The number of processes that it left behind and that were killed.
    pub left: u32,
}

impl Execution {
    /// Returns an execution of which only the end is known.
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
            said: String::new(),
            left: 0,
        }
    }
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It ended by itself.
    Ended(Ended),
    /// It was killed when its time was over.
    OutOfTime,
    /// It was killed when its output had more bytes than these.
    Full(u64),
    /// It was not started; a sentence that names the program.
    NotStarted(String),
    /// It killed its process group, including its tracer, with this signal.
    KilledGroup(i32),
}

/// Files whose pages were dropped from the page cache, and those whose pages stayed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooled {
    /// The number of files that have pages.
    pub files: u32,
    /// The files whose pages stayed.
    pub stayed: Vec<String>,
    /// The call that reports which pages are cached; `None` if no call does.
    pub certified_by: Option<String>,
}
