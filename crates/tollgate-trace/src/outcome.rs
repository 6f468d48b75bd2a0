//! The result of tracing a command.

use tollgate_model::Traced;
use tollgate_model::traced::{
    Backend, Blocked, Call, Ended, FileOperation, FileTime, Idle, Misaligned, Missed, Parts, Process,
};

/// A traced execution of a command.
#[derive(Debug)]
pub struct Trace {
    /// The part that runs keep.
    pub traced: Traced,
    /// Resources other than time that its processes used.
    pub used: Used,
    /// Single calls, ordered by when they began, if requested.
    pub events: Vec<Event>,
    /// When the command was released, by CLOCK_MONOTONIC in nanoseconds: the zero of events. 0 if nothing was traced.
    pub began_ns: u64,
    /// Stacks in which threads slept, if requested: the thread's name, its user frames and its kernel frames, from the root,
    /// separated by `;`; and the nanoseconds in total.
    pub stacks: Vec<(String, u64)>,
    /// How this process is to end: like the command, whose core was dumped if possible; or by a signal to this process that
    /// arrived just after the command had ended.
    pub ended: Ended,
}

/// The resources that the processes of a command used, by wait4(2), as far as they have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// The largest peak memory of a process, in bytes; `None` if hardly more than that of the fork that became the command.
    pub memory: Option<u64>,
    /// Page faults, minor and major, less those of that fork.
    pub faults: u64,
}

/// One system call of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The process's number in the tree, see [`Process::id`].
    pub process: u32,
    /// The thread id.
    pub thread: u32,
    /// The call's name.
    pub call: String,
    /// Nanoseconds since the command was released.
    pub began_ns: u64,
    /// How its time passed.
    pub parts: Parts,
    /// Its result; negative errors, from -4095.
    pub result: i64,
    /// Its first argument: for read(2) and write(2) the descriptor. 0 if unknown, as in a log.
    pub argument: u64,
}

impl Event {
    /// Returns when the call returned, in nanoseconds like [`Self::began_ns`].
    pub fn ended_ns(&self) -> u64 {
        self.began_ns.saturating_add(self.parts.total_ns())
    }
}

/// The reason why a command was not traced, or not started, as a sentence that names it.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no such program: a shell exits with 127.
    #[error("{0}")]
    NotFound(String),
    /// It exists but cannot be executed: a shell exits with 126.
    #[error("{0}")]
    NotExecutable(String),
    /// The requested backend cannot work here.
    #[error("{0}")]
    Unavailable(String),
    /// The request is wrong in another way, such as a call that no table has.
    #[error("{0}")]
    Request(String),
    /// A system call of ours, such as `fork(2)`, failed.
    #[error("{}: {}", .0, tollgate_model::text::said_by(.0, .1))]
    System(&'static str, std::io::Error),
}

impl TraceError {
    /// The error for a trace that file capabilities do not permit: it would follow or reveal processes of other users.
    pub(crate) fn of_other_users(what: &str) -> Self {
        Self::Unavailable(format!(
            "{what} for root only: the capabilities of this program's file belong to every user who executes it, so they trace only the command that it starts"
        ))
    }
}

/// The overhead of tracing on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Nanoseconds that BPF adds to each traced call, or why it is unknown.
    pub bpf: Result<f64, String>,
    /// Nanoseconds that ptrace(2) adds to each traced call, or why it is unknown.
    pub ptrace: Result<f64, String>,
    /// Nanoseconds that BPF adds to each call of an untraced process while another is traced, or why it is unknown.
    pub bpf_others: Result<f64, String>,
    /// Nanoseconds of an untraced call (getppid(2)).
    pub untraced: f64,
}

/// The totals of a backend. The rest of [`Traced`] does not depend on it.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub idle: Option<Idle>,
    pub began_ns: u64,
    /// When tracing stopped, by CLOCK_MONOTONIC.
    pub stopped_ns: u64,
    pub busy_ns: Option<u64>,
    pub processes: u64,
    pub threads: u64,
    pub calls: Vec<Call>,
    pub outside: Option<Parts>,
    pub blocked: Vec<Blocked>,
    pub stacks: Vec<(String, u64)>,
    pub tree: Vec<Process>,
    pub files: Vec<FileTime>,
    pub misaligned: Vec<Misaligned>,
    pub missed: Vec<Missed>,
    pub notes: Vec<String>,
    pub events: Vec<Event>,
}

impl Collected {
    /// Returns user and system time as in `TimesFrom::Trace`; `None` if the trace is incomplete, or not by BPF and so inexact.
    pub fn processor_time(&self, backend: Backend) -> Option<(u64, u64)> {
        let is_whole = backend == Backend::Bpf && self.missed.is_empty();
        let outside = self.outside.filter(|_| is_whole)?;
        let in_calls = self.calls.iter().map(|call| call.parts.on_cpu_ns).fold(0, u64::saturating_add);
        Some((outside.on_cpu_ns, in_calls))
    }
}

impl Collected {
    /// Converts to a result; the caller fills in what was traced, how it ended, its times and its cost.
    pub fn into_traced(self, backend: Backend, wall_ns: u64) -> Traced {
        Traced {
            busy_ns: self.busy_ns,
            idle: self.idle,
            processes: self.processes,
            threads: self.threads,
            calls: self.calls,
            outside: self.outside,
            blocked: self.blocked,
            tree: self.tree,
            files: self.files,
            misaligned: self.misaligned,
            missed: self.missed,
            notes: self.notes,
            ..Traced::new(backend, wall_ns)
        }
    }
}

/// Sorts calls by time, then by count if times are equal or unknown.
pub(crate) fn slowest_first(calls: &mut [Call]) {
    let key = |call: &Call| (call.total_ns, call.count);
    calls.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name)));
}

pub(crate) fn earliest_first(events: &mut [Event]) {
    events.sort_by_key(|event| event.began_ns);
}

#[derive(Debug, Default)]
pub(crate) struct Operations(Vec<FileOperation>);

impl Operations {
    /// Returns the sums of an operation, which start at zero.
    pub fn by_name(&mut self, name: &str) -> &mut FileOperation {
        let at = self.0.iter().position(|known| known.operation == name).unwrap_or(self.0.len());
        if at == self.0.len() {
            let parts = Parts::default();
            self.0.push(FileOperation { operation: name.to_owned(), count: 0, errors: 0, parts, bytes: 0 });
        }
        &mut self.0[at]
    }
}

/// Returns the files with operations, and the operations of each, slowest first.
pub(crate) fn slowest_files(sums: impl IntoIterator<Item = (String, Operations)>) -> Vec<FileTime> {
    let file = |(path, Operations(mut operations)): (String, Operations)| {
        operations.sort_by_key(|operation| std::cmp::Reverse(operation.parts.total_ns()));
        FileTime { path, operations }
    };
    let mut files: Vec<FileTime> = sums.into_iter().map(file).collect();
    files.retain(|file| !file.operations.is_empty());
    let total = |file: &FileTime| {
        file.operations.iter().map(|operation| operation.parts.total_ns()).fold(0, u64::saturating_add)
    };
    files.sort_by(|a, b| total(b).cmp(&total(a)).then_with(|| a.path.cmp(&b.path)));
    files
}

pub(crate) struct Finished {
    pub ended: Ended,
    pub wall_ns: u64,
    pub notes: Vec<String>,
}
