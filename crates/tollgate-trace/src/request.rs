//! What to trace, how closely, and by which backend.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::{collections::BTreeSet, ffi::OsString, path::PathBuf, time::Duration};

/// A command and how to trace it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command and its arguments; the first is looked for in PATH, as a shell does.
    pub command: Vec<OsString>,
    /// Variables that it gets beside those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// The terminal that it has in place of this process's streams, as the leader of a session of its own.
    pub terminal: Option<Arc<OwnedFd>>,
    /// The backend.
    pub by: Choice,
    /// Only these system calls, by their names; None for all.
    pub only: Option<BTreeSet<String>>,
    /// Add up by process as well.
    pub tree: bool,
    /// Add up by file as well.
    pub files: bool,
    /// With `files`, also the paths by which files were opened, as the operation `named`: a path may lead over links to the file. By ptrace(2)
    /// only.
    pub paths: bool,
    /// Keep what code each process has mapped when it ends. By ptrace(2) only.
    pub code: bool,
    /// Keep at most so many single calls with their times, for a timeline; 0 for none.
    pub events: usize,
    /// Add up what sleeping threads were woken by.
    pub blocked: bool,
    /// Add up the stacks with which they went to sleep.
    pub stacks: bool,
    /// Processes that run already are traced, by [`attach`](crate::attach()), and not a command.
    pub running: bool,
    /// With `running`, processes that come into this control group are traced as well.
    pub cgroup: Option<Group>,
    /// When the command itself has ended, so long is waited for the processes that it left.
    pub linger: Duration,
}

/// A control group, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The number of its hierarchy, see cgroups(7); 0 is that of version 2.
    pub hierarchy: u32,
    /// Its number there, which is also the inode of its directory.
    pub id: u64,
}

/// Processes that run already, and how long they are traced.
#[derive(Debug, Clone, Default)]
pub struct Running {
    /// The numbers of processes.
    pub processes: Vec<u32>,
    /// The directory of a control group, with all that is below it.
    pub cgroup: Option<PathBuf>,
    /// So long at most; None until they end or a signal comes.
    pub time: Option<Duration>,
    /// A summary is given each time that so much is over.
    pub every: Option<Duration>,
}

/// The choice of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The best that there is here: BPF, else ptrace, else rusage only, each with the reason.
    #[default]
    Best,
    /// BPF or nothing.
    Bpf,
    /// ptrace(2) or nothing.
    Ptrace,
    /// No tracing: rusage only.
    Rusage,
}

impl Request {
    /// A request for a command, traced by the best that there is.
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
            code: false,
            events: 0,
            blocked: false,
            stacks: false,
            running: false,
            cgroup: None,
            linger: Self::LINGER,
        }
    }

    /// Processes that a command leaves are waited for so long, by default: enough for processes that are about to end,
    /// and a daemon never does.
    pub const LINGER: Duration = Duration::from_secs(2);
}
