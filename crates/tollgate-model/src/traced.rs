//! Where a command's time went, as it was followed: one execution, its system calls and how each of them passed its time.
//!
//! What is kept here was added up while the command ran, by the kernel or by who followed it: single events are never
//! kept, so that following costs little and nothing can be lost unseen. Times are whole nanoseconds. Sums over several
//! threads exceed the real time where threads ran side by side.

use serde::{Deserialize, Serialize};

use crate::bounded;

pub mod blame;

/// The most different calls, processes or files of an execution that are kept or read.
pub const MOST_ENTRIES: usize = 65_536;

/// One execution of a command, from the moment it was let go to the end of what it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// Its arguments, the program first.
    #[serde(deserialize_with = "bounded::texts")]
    pub command: Vec<String>,
    /// Who followed it.
    pub backend: Backend,
    /// How the command itself ended.
    pub ended: Ended,
    /// Processors that it was allowed to use when it began.
    pub processors: u32,
    /// Real time until the command itself ended.
    pub wall_ns: u64,
    /// Time of its processes in user mode, as wait4(2) tells it.
    pub user_ns: u64,
    /// Time of its processes in the kernel, as wait4(2) tells it.
    pub sys_ns: u64,
    /// Real time in which none of its threads was on a processor, by what they waited for then. None where the backend
    /// cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// Processes that were followed, the command itself included.
    pub processes: u64,
    /// Threads that were followed, each process's first one included.
    pub threads: u64,
    /// By system call, those that took longest first.
    #[serde(deserialize_with = "bounded::entries")]
    pub calls: Vec<Call>,
    /// What its threads did outside of system calls. None where the backend cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Parts>,
    /// By process, in the order in which they were first seen: a parent stands before its children. Empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub tree: Vec<Process>,
    /// By file, those that took longest first. Empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub files: Vec<FileTime>,
    /// What following adds to one call, in nanoseconds, as measured here just before; None where that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_call_ns: Option<f64>,
    /// What was not counted because a limit was reached, such as `threads that could not be followed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub missed: Vec<Missed>,
    /// What else is to be known of this execution, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::texts")]
    pub notes: Vec<String>,
}

/// Who followed a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Programs of ours at the kernel's tracepoints, which add up inside the kernel.
    Bpf,
    /// ptrace(2): each call stops its thread twice.
    Ptrace,
    /// Nobody: what wait4(2) tells of a process that has ended.
    Rusage,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It exited with this status.
    Exit(i32),
    /// It was killed by this signal.
    Signal(i32),
}

/// Real time in which no thread of the tree was on a processor, by what they waited for. Where they waited for
/// several things at once, the first of the three counts: a processor, a disk, something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// At least one was ready to run and had no processor.
    pub runqueue_ns: u64,
    /// Otherwise, at least one waited for a disk or another wait that signals do not end (state D of proc(5)).
    pub disk_ns: u64,
    /// All slept.
    pub sleep_ns: u64,
}

impl Idle {
    /// All of it.
    pub fn total_ns(self) -> u64 {
        self.runqueue_ns.saturating_add(self.disk_ns).saturating_add(self.sleep_ns)
    }
}

/// How threads passed their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// On a processor, with the interrupts that came meanwhile and what a hypervisor stole.
    pub on_cpu_ns: u64,
    /// Asleep until something happens (state S).
    pub sleep_ns: u64,
    /// Waiting for a disk, or in another wait that signals do not end (state D).
    pub disk_ns: u64,
    /// Ready to run and without a processor.
    pub runqueue_ns: u64,
    /// Off the processor, and the backend cannot tell why.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold_ns: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Parts {
    /// All of it.
    pub fn total_ns(self) -> u64 {
        let Self { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, untold_ns } = self;
        [sleep_ns, disk_ns, runqueue_ns, untold_ns].into_iter().fold(on_cpu_ns, u64::saturating_add)
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            on_cpu_ns: self.on_cpu_ns.saturating_add(other.on_cpu_ns),
            sleep_ns: self.sleep_ns.saturating_add(other.sleep_ns),
            disk_ns: self.disk_ns.saturating_add(other.disk_ns),
            runqueue_ns: self.runqueue_ns.saturating_add(other.runqueue_ns),
            untold_ns: self.untold_ns.saturating_add(other.untold_ns),
        }
    }
}

/// One system call, over all threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "CallFields")]
pub struct Call {
    /// As in the kernel's table: `openat`; of the 32-bit table `openat (32-bit)`; of a number without a name `call 999`.
    pub name: String,
    /// Calls that returned.
    pub count: u64,
    /// Those of them that returned an error.
    pub errors: u64,
    /// Calls that never returned: their thread ended in them, or was still in them at the end.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// From entry to return, all that returned together.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// What `total_ns` was passed with; they sum to it.
    #[serde(flatten)]
    pub parts: Parts,
    /// How long single calls took: `(bucket, calls)`, ascending, without empty ones; see [`bucket`]. Empty where it was
    /// not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u32, u64)>,
}

/// The fields of a call as they stand in a document. serde would hold flattened fields in memory before it reads them.
#[derive(Deserialize)]
struct CallFields {
    name: String,
    count: u64,
    errors: u64,
    #[serde(default)]
    unfinished: u64,
    total_ns: u64,
    max_ns: u64,
    on_cpu_ns: u64,
    sleep_ns: u64,
    disk_ns: u64,
    runqueue_ns: u64,
    #[serde(default)]
    untold_ns: u64,
    #[serde(default, deserialize_with = "bounded::histogram")]
    histogram: Vec<(u32, u64)>,
}

impl From<CallFields> for Call {
    fn from(fields: CallFields) -> Self {
        let CallFields { name, count, errors, unfinished, total_ns, max_ns, histogram, .. } = fields;
        let CallFields { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, untold_ns, .. } = fields;
        let parts = Parts { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, untold_ns };
        Self { name, count, errors, unfinished, total_ns, max_ns, parts, histogram }
    }
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number in the tree, from 0; the command itself is 0. Process numbers of the kernel are used again.
    pub id: u32,
    /// The `id` of who started it.
    pub parent: Option<u32>,
    /// Its number in the kernel's first namespace (bpf) or in the tracer's (ptrace).
    pub pid: u32,
    /// The name of the program that it executed last (comm of proc(5)).
    pub name: String,
    /// Programs that it executed.
    pub execs: u32,
    /// Threads that it had, the first included.
    pub threads: u64,
    /// When it was first seen, since the command was let go.
    pub began_ns: u64,
    /// When its last thread ended; None where it was still there at the end.
    pub ended_ns: Option<u64>,
    /// What its threads did outside of calls.
    pub outside: Parts,
    /// By system call, without histograms, those that took longest first.
    #[serde(deserialize_with = "bounded::entries")]
    pub calls: Vec<Call>,
}

/// One file, over all threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTime {
    /// From the root, as it was called when it was opened or named; or such as `pipe`, `socket`.
    pub path: String,
    /// By operation (`open`, `read`, `write`, `sync`, `stat`, `close`, `unlink`, `fault`), those that took longest first.
    #[serde(deserialize_with = "bounded::entries")]
    pub operations: Vec<FileOperation>,
}

/// What was done with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OperationFields")]
pub struct FileOperation {
    /// `open`, `read`, `write`, `sync`, `stat`, `close`, `unlink`, `fault`, or another call's name.
    pub operation: String,
    /// How often.
    pub count: u64,
    /// How often with an error.
    pub errors: u64,
    /// How that time was passed.
    #[serde(flatten)]
    pub parts: Parts,
    /// Bytes that were moved, where it moves bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
}

/// The fields of an operation as they stand in a document, as [`CallFields`] are those of a call.
#[derive(Deserialize)]
struct OperationFields {
    operation: String,
    count: u64,
    errors: u64,
    on_cpu_ns: u64,
    sleep_ns: u64,
    disk_ns: u64,
    runqueue_ns: u64,
    #[serde(default)]
    untold_ns: u64,
    #[serde(default)]
    bytes: u64,
}

impl From<OperationFields> for FileOperation {
    fn from(fields: OperationFields) -> Self {
        let OperationFields { operation, count, errors, bytes, .. } = fields;
        let OperationFields { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, untold_ns, .. } = fields;
        let parts = Parts { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, untold_ns };
        Self { operation, count, errors, parts, bytes }
    }
}

/// What was not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// Of what, in the plural.
    pub what: String,
    /// How many.
    pub number: u64,
}

/// Buckets in an octave.
pub const BUCKETS_PER_OCTAVE: u32 = 8;
/// The number of buckets: times of 2^40 ns (18 minutes) and more are in the last.
pub const BUCKETS: u32 = 38 * BUCKETS_PER_OCTAVE;

/// The bucket of a time: 0 to 7 ns have one each, and from there on each octave is divided into
/// [`BUCKETS_PER_OCTAVE`] of the same width. So a bucket's bounds differ by an eighth at the most.
pub fn bucket(ns: u64) -> u32 {
    if ns < u64::from(BUCKETS_PER_OCTAVE) {
        return ns as u32;
    }
    let octave = ns.ilog2();
    let within = (ns >> (octave - 3)) as u32 & (BUCKETS_PER_OCTAVE - 1);
    ((octave - 2) * BUCKETS_PER_OCTAVE + within).min(BUCKETS - 1)
}

/// The shortest time in a bucket, in nanoseconds.
pub fn bucket_low(bucket: u32) -> u64 {
    if bucket < BUCKETS_PER_OCTAVE {
        return u64::from(bucket);
    }
    let octave = bucket / BUCKETS_PER_OCTAVE + 2;
    let within = u64::from(bucket % BUCKETS_PER_OCTAVE);
    (u64::from(BUCKETS_PER_OCTAVE) + within) << (octave - 3).min(60)
}

impl Call {
    /// The time that a share `q` of the calls took no longer than, from the histogram: the middle of the bucket it
    /// falls into, never above the longest call; that one itself where it is alone in its bucket. None without a histogram.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let all: u64 = self.histogram.iter().map(|(_, calls)| *calls).sum();
        let wanted = ((all as f64 * q).ceil() as u64).max(1);
        let mut seen = 0u64;
        for &(bucket, calls) in &self.histogram {
            seen = seen.saturating_add(calls);
            if seen >= wanted {
                let (low, next) = (bucket_low(bucket), bucket_low(bucket + 1));
                if calls == 1 && seen == all && self::bucket(self.max_ns) == bucket {
                    return Some(self.max_ns);
                }
                return Some((low + (next - low) / 2).min(self.max_ns.max(low)));
            }
        }
        None
    }

    /// The mean of the calls that returned, in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64)
    }
}

impl Traced {
    /// Calls that returned.
    pub fn count(&self) -> u64 {
        self.calls.iter().map(|call| call.count).fold(0, u64::saturating_add)
    }

    /// The rule of the published comparison of 2017 (Satoru Takeuchi, "WSL vs VM"): real - (user + sys) / cores, in nanoseconds. It
    /// charges idle cores of a serial stretch as waiting, and may be negative.
    pub fn wait_by_rule_ns(&self, cores: u32) -> f64 {
        self.wall_ns as f64 - (self.user_ns as f64 + self.sys_ns as f64) / f64::from(cores.max(1))
    }

    /// Checks what a document that anybody may have written says.
    ///
    /// # Errors
    /// The predicate of a sentence whose subject is the execution.
    pub fn validate(&self) -> Result<(), String> {
        let entries =
            [self.calls.len(), self.tree.len(), self.files.len(), self.command.len(), self.notes.len()];
        if entries.into_iter().any(|entries| entries > MOST_ENTRIES) {
            return Err(format!("has more than {MOST_ENTRIES} entries of a kind"));
        }
        if self.cost_per_call_ns.is_some_and(|cost| !cost.is_finite()) {
            return Err("has a cost that is not a finite number".to_owned());
        }
        for (at, process) in self.tree.iter().enumerate() {
            if process.id as usize != at || process.parent.is_some_and(|parent| parent as usize >= at) {
                return Err("has processes whose parents do not stand before them".to_owned());
            }
        }
        let histograms = self.calls.iter().map(|call| &call.histogram);
        for histogram in histograms {
            let ascending = histogram.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if !ascending || histogram.last().is_some_and(|(bucket, _)| *bucket >= BUCKETS) {
                return Err("has a histogram whose buckets are not ascending".to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_hold_what_falls_into_them() {
        for bucket_number in 0..BUCKETS - 1 {
            let (low, next) = (bucket_low(bucket_number), bucket_low(bucket_number + 1));
            assert!(low < next, "{bucket_number}");
            assert_eq!(bucket(low), bucket_number);
            assert_eq!(bucket(next - 1), bucket_number);
            assert!(low < 8 || (next - low) * 8 <= low);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_call_that_was_made_once_took_what_it_took() {
        let of = |histogram: Vec<(u32, u64)>| Call {
            name: "clock_nanosleep".to_owned(),
            count: 1,
            errors: 0,
            unfinished: 0,
            total_ns: 1_000_090_554,
            max_ns: 1_000_090_554,
            parts: Parts::default(),
            histogram,
        };
        let once = of(vec![(bucket(1_000_090_554), 1)]);
        assert_eq!((once.quantile_ns(0.5), once.quantile_ns(0.99)), (Some(once.max_ns), Some(once.max_ns)));
        // Of two in one bucket the shorter one is not known.
        assert!(of(vec![(once.histogram[0].0, 2)]).quantile_ns(0.5) < Some(once.max_ns));
        // A document may say what it likes.
        assert!(of(vec![(3, 1)]).quantile_ns(0.5) < Some(8));
    }

    #[test]
    fn a_quantile_is_within_an_eighth_of_the_truth() {
        let times: Vec<u64> = (1..=1000).map(|n| n * 37).collect();
        let mut histogram = std::collections::BTreeMap::<u32, u64>::new();
        for &time in &times {
            *histogram.entry(bucket(time)).or_default() += 1;
        }
        let call = Call {
            name: "read".to_owned(),
            count: 1000,
            errors: 0,
            unfinished: 0,
            total_ns: times.iter().sum(),
            max_ns: 37_000,
            parts: Parts::default(),
            histogram: histogram.into_iter().collect(),
        };
        for (q, truth) in [(0.5, 18_500.0), (0.99, 36_630.0)] {
            let found = call.quantile_ns(q).expect("a histogram") as f64;
            assert!((found / truth - 1.0).abs() < 0.125, "{q}: {found}");
        }
        assert!(call.quantile_ns(1.0).is_some_and(|longest| longest <= call.max_ns));
    }
}
