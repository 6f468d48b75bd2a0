//! The result of tracing a command.

use tollgate_model::Traced;
use tollgate_model::traced::{
    Backend, Blocked, Call, CodeMap, Ended, FileOperation, FileTime, Idle, Misaligned, Missed, Parts, Process,
};

/// An execution of a command that was traced.
#[derive(Debug)]
pub struct Trace {
    /// The part that runs keep.
    pub traced: Traced,
    /// What its processes used beside time.
    pub used: Used,
    /// Single calls, in the order of their beginnings, where they were asked for.
    pub events: Vec<Event>,
    /// When the command was let go, by CLOCK_MONOTONIC, in nanoseconds: where events have their zero. 0 where nothing was traced.
    pub began_ns: u64,
    /// Where threads slept, where that was asked for: the thread's name, its user frames and those of the kernel, from the root, with `;` between
    /// them; and for how many nanoseconds in all.
    pub stacks: Vec<(String, u64)>,
    /// The code that its processes had mapped, where it was asked for.
    pub code: CodeMap,
    /// How this process is to end: as the command did, whose core was dumped where it could be; or by a signal that was sent to this
    /// process when the command had just ended.
    pub ended: Ended,
}

/// What the processes of a command used, by wait4(2), as far as they have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// The most memory that one of them had at a time, in bytes. None where that is hardly more than the copy of this process had that
    /// became the command.
    pub memory: Option<u64>,
    /// Page faults without and with input or output, less those of that copy.
    pub faults: u64,
}

/// One system call of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The process's number in the tree, see [`Process::id`].
    pub process: u32,
    /// The thread's number in the kernel.
    pub thread: u32,
    /// The call's name.
    pub call: String,
    /// Since the command was let go, in nanoseconds.
    pub began_ns: u64,
    /// How its time passed.
    pub parts: Parts,
    /// Its result: a negative error number from -4095, or the result.
    pub result: i64,
    /// Its first argument: of read(2) and write(2) the descriptor. 0 where it is not known, as in a log.
    pub argument: u64,
}

impl Event {
    /// When it returned, as [`Self::began_ns`].
    pub fn ended_ns(&self) -> u64 {
        self.began_ns.saturating_add(self.parts.total_ns())
    }
}

/// Why a command was not traced, or not started. Each is a sentence that names it.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no such program: a shell ends with 127.
    #[error("{0}")]
    NotFound(String),
    /// It is there and cannot be executed: a shell ends with 126.
    #[error("{0}")]
    NotExecutable(String),
    /// The backend that was asked for cannot work here.
    #[error("{0}")]
    Unavailable(String),
    /// Something else of the request is wrong, such as a call that no table has.
    #[error("{0}")]
    Request(String),
    /// A call of ours, such as `fork(2)`, failed.
    #[error("{}: {}", .0, tollgate_model::text::said_by(.0, .1))]
    System(&'static str, std::io::Error),
}

impl TraceError {
    /// What is not traced by capabilities of this program's file, since it is or shows what other users do.
    pub(crate) fn of_other_users(what: &str) -> Self {
        Self::Unavailable(format!(
            "{what} for root only: the capabilities of this program's file are those of each user who executes it, and trace only the command that it starts"
        ))
    }
}

/// The overhead of tracing here.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Added to each call, in nanoseconds, or why it is unknown.
    pub bpf: Result<f64, String>,
    /// Added to each call by ptrace(2).
    pub ptrace: Result<f64, String>,
    /// Added by BPF to each call of a process that is not traced, while another one is.
    pub bpf_others: Result<f64, String>,
    /// A call by itself (getppid(2)), in nanoseconds.
    pub untraced: f64,
}

/// The totals of a backend. The rest of [`Traced`] is the same for all of them.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub idle: Option<Idle>,
    /// See [`Trace::began_ns`].
    pub began_ns: u64,
    /// When tracing stopped, by CLOCK_MONOTONIC.
    pub stopped_ns: u64,
    /// See [`Traced::busy_ns`].
    pub busy_ns: Option<u64>,
    pub processes: u64,
    pub threads: u64,
    pub calls: Vec<Call>,
    pub outside: Option<Parts>,
    pub blocked: Vec<Blocked>,
    /// See [`Trace::stacks`].
    pub stacks: Vec<(String, u64)>,
    pub code: CodeMap,
    pub tree: Vec<Process>,
    pub files: Vec<FileTime>,
    pub misaligned: Vec<Misaligned>,
    pub missed: Vec<Missed>,
    pub notes: Vec<String>,
    pub events: Vec<Event>,
}

impl Collected {
    /// User and system time as `TimesFrom::Trace` has them; None where the trace misses a part of it. `backend` tells time on
    /// a processor exactly, or by wait4(2).
    pub fn processor_time(&self, backend: Backend) -> Option<(u64, u64)> {
        let is_whole = backend == Backend::Bpf && self.missed.is_empty();
        let outside = self.outside.filter(|_| is_whole)?;
        let in_calls = self.calls.iter().map(|call| call.parts.on_cpu_ns).fold(0, u64::saturating_add);
        Some((outside.on_cpu_ns, in_calls))
    }
}

impl Collected {
    /// The result with these totals, of a trace by a backend that took so long. What was traced, how it ended, its times and its
    /// cost are for the caller to say.
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

/// Sorts calls by their time, and by their number where that is the same or not known.
pub(crate) fn slowest_first(calls: &mut [Call]) {
    let key = |call: &Call| (call.total_ns, call.count);
    calls.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name)));
}

/// Sorts calls of threads by their beginnings.
pub(crate) fn earliest_first(events: &mut [Event]) {
    events.sort_by_key(|event| event.began_ns);
}

/// The operations on a file, added up.
#[derive(Debug, Default)]
pub(crate) struct Operations(Vec<FileOperation>);

impl Operations {
    /// The sums of one, which are zero at first.
    pub fn by_name(&mut self, name: &str) -> &mut FileOperation {
        let at = self.0.iter().position(|known| known.operation == name).unwrap_or(self.0.len());
        if at == self.0.len() {
            let parts = Parts::default();
            self.0.push(FileOperation { operation: name.to_owned(), count: 0, errors: 0, parts, bytes: 0 });
        }
        &mut self.0[at]
    }
}

/// The files that there were operations on, and of each the operations, by their time.
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

/// How the command itself ended, and after how long.
pub(crate) struct Finished {
    pub ended: Ended,
    pub wall_ns: u64,
    /// Remarks for people.
    pub notes: Vec<String>,
}
