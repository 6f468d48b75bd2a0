//! The execution of a traced command: its system calls and the parts of their time.
//!
//! The kernel or the tracer adds up these sums while the command runs. Single events are not kept, so tracing is fast, and every
//! lost event is counted. Times are whole nanoseconds. Sums over threads exceed the real time if threads ran in parallel.

use serde::{Deserialize, Deserializer, Serialize};

use crate::bounded;

mod attached;
pub mod blame;
mod blocked;
mod misaligned;

pub use crate::bounded::MOST_ENTRIES;
pub use attached::{Attached, Until};
pub use blocked::{Blocked, WokenBy};
pub use misaligned::{Misaligned, Misfit, Needs};

/// One execution of a command, from its start to the end of its last process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Execution"))]
pub struct Traced {
    /// Its arguments, the program first.
    #[serde(deserialize_with = "bounded::texts")]
    pub command: Vec<String>,
    /// The tracer.
    pub backend: Backend,
    /// For processes that ran before they were traced: the processes, and the end of the trace. Absent for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
    /// How the command itself ended. None if a log of strace(1) does not say it, and for processes that ran before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Processors of its affinity mask when it began; 0 if they are not known.
    pub processors: u32,
    /// Real time until the command itself ended; 0 if a log of strace(1) has no time stamps.
    pub wall_ns: u64,
    /// Time of its threads on a processor in user mode, by `times_from`.
    pub user_ns: u64,
    /// Time of its threads on a processor in the kernel, by `times_from`.
    pub sys_ns: u64,
    /// Source of these two.
    #[serde(default)]
    pub times_from: TimesFrom,
    /// Real time in which at least one of its threads was on a processor. None if the backend does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Real time in which none of its threads was on a processor, by the cause of their waiting. None if the backend does not
    /// know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// Traced processes, including the command itself; 0 if they are not known.
    pub processes: u64,
    /// Traced threads, including each process's first one; 0 if they are not known.
    pub threads: u64,
    /// Whether the time of no call is known, as in a log of strace(1) without -T. Such an execution is shown but not kept.
    #[serde(skip)]
    pub is_untimed: bool,
    /// System calls, those that took longest first.
    #[serde(deserialize_with = "bounded::entries")]
    pub calls: Vec<Call>,
    /// The time of its threads outside of system calls. None if the backend does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Parts>,
    /// The wakers of sleeping threads, the longest sleeps first. Empty unless requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub blocked: Vec<Blocked>,
    /// Processes, in the order of their start: a parent before its children. Empty unless requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub tree: Vec<Process>,
    /// Files, those that took longest first. Empty unless requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub files: Vec<FileTime>,
    /// Direct I/O that failed with EINVAL, by file and call. Empty unless files were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub misaligned: Vec<Misaligned>,
    /// The overhead of tracing per call, in nanoseconds, as measured just before; None if that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_call_ns: Option<f64>,
    /// The overhead per call, in nanoseconds, of every process that was not traced meanwhile; None if that failed, and with
    /// ptrace(2), which adds nothing to other processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_to_others_ns: Option<f64>,
    /// Things that were not counted because a limit was reached, such as `threads that could not be traced`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::entries")]
    pub missed: Vec<Missed>,
    /// Notes on this execution, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::texts")]
    pub notes: Vec<String>,
}

/// The tracer of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// BPF programs at the kernel's tracepoints, which add up inside the kernel.
    Bpf,
    /// ptrace(2): each call stops its thread twice.
    Ptrace,
    /// No tracer: the resource usage of ended processes, by wait4(2).
    Rusage,
    /// strace(1), whose log was read. It knows how long calls took, but neither the parts of that time nor user and system time.
    Strace,
}

/// The source of a command's user and system time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TimesFrom {
    /// The scheduler's events, to the nanosecond: system time is the time in system calls that returned, user time all outside of
    /// calls, including page faults and interrupts.
    Trace,
    /// wait4(2). Most kernels measure the sum of both and divide it by samples of their clock tick, see `cputime_adjust` in
    /// kernel/sched/cputime.c: for a command of few ticks the division is arbitrary.
    #[default]
    Rusage,
    /// Neither is known: both are 0.
    Unknown,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It exited with this status.
    Exit(i32),
    /// This signal killed it.
    Signal(i32),
}

/// Real time in which no thread of the tree was on a processor, by the cause of their waiting. If there are several causes at
/// once, the first of these three counts: a processor, a disk, another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Idle {
    /// At least one was ready to run, without a processor.
    pub runqueue_ns: u64,
    /// Otherwise, at least one waited for a disk or another wait that signals do not end (state D of proc(5)).
    pub disk_ns: u64,
    /// All slept.
    pub sleep_ns: u64,
}

impl Idle {
    /// The sum.
    pub fn total_ns(self) -> u64 {
        self.runqueue_ns.saturating_add(self.disk_ns).saturating_add(self.sleep_ns)
    }
}

/// The time of threads, by their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parts {
    /// On a processor, including interrupts and steal time.
    pub on_cpu_ns: u64,
    /// Asleep until something happens (state S).
    pub sleep_ns: u64,
    /// Waiting for a disk, or in another wait that signals do not end (state D).
    pub disk_ns: u64,
    /// Ready to run, without a processor.
    pub runqueue_ns: u64,
    /// Off the processor, for a reason that the backend does not know; with `strace` all of the time, on a processor or off it.
    /// Absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_ns: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Parts {
    /// All of it.
    pub fn total_ns(self) -> u64 {
        let Self { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, unknown_ns } = self;
        [sleep_ns, disk_ns, runqueue_ns, unknown_ns].into_iter().fold(on_cpu_ns, u64::saturating_add)
    }

    /// Adds both, field by field.
    pub fn plus(self, other: Self) -> Self {
        Self {
            on_cpu_ns: self.on_cpu_ns.saturating_add(other.on_cpu_ns),
            sleep_ns: self.sleep_ns.saturating_add(other.sleep_ns),
            disk_ns: self.disk_ns.saturating_add(other.disk_ns),
            runqueue_ns: self.runqueue_ns.saturating_add(other.runqueue_ns),
            unknown_ns: self.unknown_ns.saturating_add(other.unknown_ns),
        }
    }
}

/// One system call, over all threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!from))]
#[serde(from = "CallFields")]
pub struct Call {
    /// As in the kernel's table: `openat`; in the 32-bit table `openat (32-bit)`; for a number without a name `call 999`.
    pub name: String,
    /// Calls that returned.
    pub count: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// Calls that did not return: their thread ended in them, or was still in them at the end. Absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// Calls of `count` that were stopped before they began, as by a filter of seccomp(2): their time is not known, and in none
    /// of the fields below. Always 0 with `ptrace` and `strace`, which know the time of every call. Absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub stopped: u64,
    /// From entry to return, the sum over the calls that returned.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The parts of `total_ns`.
    #[serde(flatten)]
    pub parts: Parts,
    /// The latencies of single calls: `[bucket, calls]`, ascending, without empty ones, eight buckets per octave. Absent if it
    /// was not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u32, u64)>,
}

/// serde would buffer flattened fields before it reads a type with [`Parts`] among them.
macro_rules! with_parts {
    ($type:ident as $fields:ident { $($(#[$attribute:meta])? $field:ident: $of:ty,)+ }) => {
        #[derive(Deserialize)]
        struct $fields {
            $($(#[$attribute])? $field: $of,)+
            on_cpu_ns: u64,
            sleep_ns: u64,
            disk_ns: u64,
            runqueue_ns: u64,
            #[serde(default)]
            unknown_ns: u64,
        }

        impl From<$fields> for $type {
            fn from(fields: $fields) -> Self {
                let $fields { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, unknown_ns, $($field,)+ } = fields;
                Self { parts: Parts { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, unknown_ns }, $($field,)+ }
            }
        }
    };
}

with_parts! {
    Call as CallFields {
        name: String,
        count: u64,
        errors: u64,
        #[serde(default)] unfinished: u64,
        #[serde(default)] stopped: u64,
        total_ns: u64,
        max_ns: u64,
        #[serde(default, deserialize_with = "histogram")] histogram: Vec<(u32, u64)>,
    }
}

with_parts! {
    FileOperation as OperationFields {
        operation: String,
        count: u64,
        errors: u64,
        #[serde(default)] bytes: u64,
    }
}

fn histogram<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u32, u64)>, D::Error> {
    bounded::list(deserializer, bounded::at_most(BUCKETS as usize, "buckets in a histogram"))
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// Its number in the tree, from 0; the command itself is 0. The kernel reuses process IDs.
    pub id: u32,
    /// The `id` of its parent.
    pub parent: Option<u32>,
    /// Its process ID in the kernel's first namespace (bpf) or in the tracer's (ptrace).
    pub pid: u32,
    /// The name of the program that it executed last (comm of proc(5)).
    pub name: String,
    /// Number of its successful execve(2) calls.
    pub execs: u32,
    /// Its threads, including the first.
    pub threads: u64,
    /// Its start, since the start of the command.
    pub began_ns: u64,
    /// The end of its last thread; None if it outlived the trace.
    pub ended_ns: Option<u64>,
    /// The time of its threads outside of calls.
    pub outside: Parts,
    /// System calls, without histograms, those that took longest first.
    #[serde(deserialize_with = "bounded::entries")]
    pub calls: Vec<Call>,
}

/// One file, over all threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileTime {
    /// Its path from the root when it was opened or named; or its kind, such as `pipe` or `socket`.
    pub path: String,
    /// Operations (`open`, `read`, `write`, `sync`, `stat`, `close`, `unlink`, `fault`), those that took longest first.
    #[serde(deserialize_with = "bounded::entries")]
    pub operations: Vec<FileOperation>,
}

/// An operation on a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!from))]
#[serde(from = "OperationFields")]
pub struct FileOperation {
    /// `open`, `read`, `write`, `sync`, `stat`, `close`, `unlink`, `fault`, or another call's name.
    pub operation: String,
    /// The number of calls.
    pub count: u64,
    /// The number of calls that returned an error.
    pub errors: u64,
    /// The parts of their time.
    #[serde(flatten)]
    pub parts: Parts,
    /// Bytes that it moved. Absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
}

/// Things that were not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missed {
    /// Their name, in the plural.
    pub what: String,
    /// Their number.
    pub number: u64,
}

/// Buckets in an octave.
pub const BUCKETS_PER_OCTAVE: u32 = 8;
/// The number of buckets: times of 2^40 ns (18 minutes) and more are in the last.
pub const BUCKETS: u32 = 38 * BUCKETS_PER_OCTAVE;

/// The bucket of a time: 0 to 7 ns have one each, and from there on each octave is divided into [`BUCKETS_PER_OCTAVE`] of equal
/// width. So a bucket's bounds differ by an eighth at most.
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
    /// Whether it waits for a child of its process, by wait(2) or as vfork(2) does. If the child is traced, its own calls show
    /// what it did in that time.
    pub fn waits_for_child(&self) -> bool {
        let name = self.name.split(' ').next().unwrap_or_default();
        ["wait4", "waitid", "waitpid", "vfork"].contains(&name)
    }

    /// The quantile `q` of the calls, from the histogram: the middle of its bucket, at most the longest call; that call itself if
    /// it is alone in the last bucket. `None` without a histogram.
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

    /// Calls whose time is known: those that returned and were not stopped.
    pub fn timed(&self) -> u64 {
        self.count.saturating_sub(self.stopped)
    }

    /// The mean of the calls whose time is known, in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.timed() > 0).then(|| self.total_ns as f64 / self.timed() as f64)
    }
}

impl Traced {
    /// Whether its children were traced too: those of a process that ran before may not have been.
    pub fn has_children(&self) -> bool {
        self.processes > 1 && self.attached.is_none()
    }

    /// An execution by this tracer with only the real time known.
    pub fn new(backend: Backend, wall_ns: u64) -> Self {
        Self {
            command: Vec::new(),
            backend,
            attached: None,
            ended: None,
            processors: 0,
            wall_ns,
            user_ns: 0,
            sys_ns: 0,
            times_from: TimesFrom::Unknown,
            busy_ns: None,
            idle: None,
            processes: 0,
            threads: 0,
            is_untimed: false,
            calls: Vec::new(),
            outside: None,
            blocked: Vec::new(),
            tree: Vec::new(),
            files: Vec::new(),
            misaligned: Vec::new(),
            cost_per_call_ns: None,
            cost_to_others_ns: None,
            missed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Calls that returned.
    pub fn count(&self) -> u64 {
        self.calls.iter().map(|call| call.count).fold(0, u64::saturating_add)
    }

    /// Whether only some calls were requested, while the others take longer as well (BPF). The number of the others is not known.
    pub fn leaves_calls_out(&self) -> bool {
        self.backend == Backend::Bpf && self.outside.is_none()
    }

    /// The rule of the published comparison of 2017 (Satoru Takeuchi, "WSL vs VM"): real - (user + sys) / cores, in nanoseconds.
    /// It counts idle cores of a serial stretch as waiting, and may be negative.
    pub fn wait_by_rule_ns(&self, cores: u32) -> f64 {
        self.wall_ns as f64 - (self.user_ns as f64 + self.sys_ns as f64) / f64::from(cores.max(1))
    }

    /// Calls that were stopped before they began, see [`Call::stopped`].
    pub fn stopped(&self) -> u64 {
        self.calls.iter().map(|call| call.stopped).fold(0, u64::saturating_add)
    }

    /// Checks an execution of an untrusted document.
    ///
    /// # Errors
    /// The predicate of a sentence whose subject is the execution.
    pub fn validate(&self) -> Result<(), String> {
        let entries = [
            self.calls.len(),
            self.tree.len(),
            self.files.len(),
            self.blocked.len(),
            self.misaligned.len(),
            self.command.len(),
            self.notes.len(),
            self.attached.as_ref().map_or(0, |attached| attached.processes.len()),
        ];
        if entries.into_iter().any(|entries| entries > MOST_ENTRIES) {
            return Err(format!("has more than {MOST_ENTRIES} entries of a kind"));
        }
        let costs = [self.cost_per_call_ns, self.cost_to_others_ns];
        if costs.into_iter().flatten().any(|cost| !cost.is_finite()) {
            return Err("has an overhead per call that is not a finite number".to_owned());
        }
        for (at, process) in self.tree.iter().enumerate() {
            if process.id as usize != at || process.parent.is_some_and(|parent| parent as usize >= at) {
                return Err("has processes whose parents do not come before them".to_owned());
            }
        }
        for histogram in self.calls.iter().map(|call| &call.histogram) {
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

    fn call(max_ns: u64, histogram: Vec<(u32, u64)>) -> Call {
        let (name, parts) = ("read".to_owned(), Parts::default());
        Call {
            name,
            count: 1,
            errors: 0,
            unfinished: 0,
            stopped: 0,
            total_ns: max_ns,
            max_ns,
            parts,
            histogram,
        }
    }

    #[test]
    fn the_quantile_of_a_single_call_is_exact() {
        let of = |histogram| call(1_000_090_554, histogram);
        let once = of(vec![(bucket(1_000_090_554), 1)]);
        assert_eq!((once.quantile_ns(0.5), once.quantile_ns(0.99)), (Some(once.max_ns), Some(once.max_ns)));
        assert!(of(vec![(once.histogram[0].0, 2)]).quantile_ns(0.5) < Some(once.max_ns));
        // A document may contradict itself.
        assert!(of(vec![(3, 1)]).quantile_ns(0.5) < Some(8));
    }

    #[test]
    fn a_quantile_is_within_an_eighth_of_the_truth() {
        let times: Vec<u64> = (1..=1000).map(|n| n * 37).collect();
        let mut histogram = std::collections::BTreeMap::<u32, u64>::new();
        for &time in &times {
            *histogram.entry(bucket(time)).or_default() += 1;
        }
        let call = call(37_000, histogram.into_iter().collect());
        for (q, truth) in [(0.5, 18_500.0), (0.99, 36_630.0)] {
            let found = call.quantile_ns(q).expect("a histogram") as f64;
            assert!((found / truth - 1.0).abs() < 0.125, "{q}: {found}");
        }
        assert!(call.quantile_ns(1.0).is_some_and(|longest| longest <= call.max_ns));
    }
}
