//! The command to trace, how closely, and by which backend.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::{collections::BTreeSet, ffi::OsString, path::PathBuf, time::Duration};

/// A command and how to trace it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command and its arguments; the first is searched for in PATH, as in a shell.
    pub command: Vec<OsString>,
    /// Variables to add to the environment of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// The terminal to use instead of this process's streams; the command leads a session of its own.
    pub terminal: Option<Arc<OwnedFd>>,
    /// The backend.
    pub by: Choice,
    /// Trace only the system calls with these names; `None` for all.
    pub only: Option<BTreeSet<String>>,
    /// Add up by process as well.
    pub tree: bool,
    /// Add up by file as well.
    pub files: bool,
    /// With `files`, keep also the paths by which files were opened, as the operation `named`: a path may lead to the file
    /// over symbolic links. One that led to a file older than the trace has the operation `present` as well. Only with ptrace(2).
    pub paths: bool,
    /// The most single calls to keep with their times, for a timeline; 0 for none.
    pub events: usize,
    /// Add up what wakes sleeping threads.
    pub blocked: bool,
    /// Add up the stacks with which threads go to sleep.
    pub stacks: bool,
    /// Trace running processes, by [`attach`](crate::attach()), not a command.
    pub running: bool,
    /// With `running`, trace processes that enter this control group as well.
    pub cgroup: Option<Group>,
    /// How long to wait for the processes that the command left after it has ended.
    pub linger: Duration,
}

/// A control group, as the kernel identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The number of its hierarchy, see cgroups(7); 0 is that of version 2.
    pub hierarchy: u32,
    /// Its id in the hierarchy, which is also the inode of its directory.
    pub id: u64,
}

/// Running processes, and how long to trace them.
#[derive(Debug, Clone, Default)]
pub struct Running {
    /// The process ids.
    pub processes: Vec<u32>,
    /// The directory of a control group, which includes the groups below it.
    pub cgroup: Option<PathBuf>,
    /// The longest time; `None` until they end or a signal arrives.
    pub time: Option<Duration>,
    /// The interval between summaries.
    pub every: Option<Duration>,
}

/// The choice of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The best backend that works here: BPF, else ptrace, else rusage only, each with the reason.
    #[default]
    Best,
    /// BPF or an error.
    Bpf,
    /// ptrace(2) or an error.
    Ptrace,
    /// No tracing: rusage only.
    Rusage,
}

impl Request {
    /// Creates a request for a command, traced by the best backend.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            variables: Vec::new(),
            terminal: None,
            by: Choice::Best,
            only: None,
            tree: false,
            files: false,
            paths: false,
            events: 0,
            blocked: false,
            stacks: false,
            running: false,
            cgroup: None,
            linger: Self::LINGER,
        }
    }

    /// The default of [`Request::linger`]: enough for processes that are about to end, which a daemon never does.
    pub const LINGER: Duration = Duration::from_secs(2);
}
