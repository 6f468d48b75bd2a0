//! A traced command as JSON.

use serde::Serialize;
use tollgate_model::Traced;
use tollgate_model::traced::{
    Attached, Backend, Blocked, Call, Ended, FileOperation, FileTime, Misaligned, Missed, Parts, Process,
    TimesFrom, Until, WokenBy, blame::Account,
};

use super::{calls, page};

/// One execution. Every field is always there; null is unknown, or was not asked for.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    command: &'a [String],
    attached: Option<AttachedRecord<'a>>,
    ended: Option<Ended>,
    wall_s: Option<f64>,
    user_s: Option<f64>,
    sys_s: Option<f64>,
    times_from: TimesFrom,
    wait_s: Option<f64>,
    idle: Option<Idle>,
    unaccounted_s: Option<f64>,
    backend: Backend,
    processes: Option<u64>,
    threads: Option<u64>,
    processors: Option<u32>,
    calls: Vec<CallRecord<'a>>,
    outside: Option<Split>,
    blocked: Vec<BlockedRecord<'a>>,
    rule: Rule,
    cost: Cost,
    missed: &'a [Missed],
    notes: &'a [String],
    tree: Option<Vec<ProcessRecord<'a>>>,
    files: Option<Vec<FileRecord<'a>>>,
    misaligned: Option<&'a [Misaligned]>,
}

/// Real time in which no thread was on a processor.
#[derive(Debug, Serialize)]
struct Idle {
    runqueue_s: f64,
    disk_s: f64,
    sleep_s: f64,
}

/// How threads passed their time. Kinds that the backend does not know are null, and in `unknown_s`.
#[derive(Debug, Serialize)]
pub(crate) struct Split {
    on_cpu_s: Option<f64>,
    sleep_s: Option<f64>,
    disk_s: Option<f64>,
    runqueue_s: Option<f64>,
    unknown_s: f64,
}

#[derive(Debug, Serialize)]
struct CallRecord<'a> {
    name: &'a str,
    count: u64,
    errors: u64,
    unfinished: u64,
    stopped: u64,
    total_s: f64,
    #[serde(flatten)]
    split: Split,
    mean_s: Option<f64>,
    p50_s: Option<f64>,
    p99_s: Option<f64>,
    max_s: Option<f64>,
    blocking: bool,
}

/// Processes that ran before they were traced.
#[derive(Debug, Serialize)]
struct AttachedRecord<'a> {
    processes: &'a [u32],
    cgroup: Option<&'a str>,
    until: Option<Until>,
}

impl<'a> AttachedRecord<'a> {
    fn of(attached: &'a Attached) -> Self {
        let Attached { processes, cgroup, until } = attached;
        Self { processes, cgroup: cgroup.as_deref(), until: *until }
    }
}

/// Sleeps that one thread or interrupt ended.
#[derive(Debug, Serialize)]
struct BlockedRecord<'a> {
    call: Option<&'a str>,
    channel: Option<&'a str>,
    by: WokenBy,
    name: &'a str,
    thread: Option<u32>,
    count: u64,
    total_s: f64,
}

impl<'a> BlockedRecord<'a> {
    fn of(blocked: &'a Blocked) -> Self {
        Self {
            call: blocked.call.as_deref(),
            channel: blocked.channel.as_deref(),
            by: blocked.by,
            name: &blocked.name,
            thread: (blocked.thread > 0).then_some(blocked.thread),
            count: blocked.count,
            total_s: seconds(blocked.total_ns),
        }
    }
}

/// Waiting by the published rule.
#[derive(Debug, Serialize)]
struct Rule {
    one_core_s: Option<f64>,
    all_cores_s: Option<f64>,
}

/// The overhead of tracing.
#[derive(Debug, Serialize)]
struct Cost {
    per_call_ns: Option<f64>,
    calls: u64,
    share: Option<f64>,
    others_per_call_ns: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ProcessRecord<'a> {
    id: u32,
    parent: Option<u32>,
    pid: u32,
    name: &'a str,
    execs: u32,
    threads: u64,
    began_s: f64,
    ended_s: Option<f64>,
    outside: Option<Split>,
    calls: Vec<CallRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct FileRecord<'a> {
    path: &'a str,
    operations: Vec<OperationRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct OperationRecord<'a> {
    operation: &'a str,
    count: u64,
    errors: u64,
    bytes: u64,
    total_s: f64,
    #[serde(flatten)]
    split: Split,
}

/// Nanoseconds in seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl<'a> Record<'a> {
    /// The record of an execution.
    pub fn of(traced: &'a Traced) -> Self {
        let kinds = Known::of(traced);
        let real = |ns: u64| (traced.wall_ns > 0).then(|| seconds(ns));
        let processor = |ns: u64| (traced.times_from != TimesFrom::Unknown).then(|| seconds(ns));
        let by_rule = |cores: u32| {
            let is_known = traced.wall_ns > 0 && traced.times_from != TimesFrom::Unknown && cores > 0;
            is_known.then(|| traced.wait_by_rule_ns(cores) / 1e9)
        };
        let call = |call: &'a Call| CallRecord::of(call, kinds);
        let process = |process: &'a Process| ProcessRecord::of(process, kinds);
        let file = |file: &'a FileTime| FileRecord::of(file, kinds);
        Self {
            command: &traced.command,
            attached: traced.attached.as_ref().map(AttachedRecord::of),
            ended: traced.ended,
            wall_s: real(traced.wall_ns),
            user_s: processor(traced.user_ns),
            sys_s: processor(traced.sys_ns),
            times_from: traced.times_from,
            wait_s: traced.idle.map(|idle| seconds(idle.total_ns())),
            idle: traced.idle.map(|idle| Idle {
                runqueue_s: seconds(idle.runqueue_ns),
                disk_s: seconds(idle.disk_ns),
                sleep_s: seconds(idle.sleep_ns),
            }),
            unaccounted_s: real(Account::of(traced).unaccounted),
            backend: traced.backend,
            processes: Some(traced.processes).filter(|&number| number > 0),
            threads: Some(traced.threads).filter(|&number| number > 0),
            processors: Some(traced.processors).filter(|&number| number > 0),
            calls: traced.calls.iter().map(call).collect(),
            outside: traced.outside.map(|parts| Split::of(parts, kinds)),
            blocked: traced.blocked.iter().map(BlockedRecord::of).collect(),
            rule: Rule { one_core_s: by_rule(1), all_cores_s: by_rule(traced.processors) },
            cost: Cost {
                per_call_ns: traced.cost_per_call_ns,
                calls: traced.count(),
                share: page::cost_share(traced),
                others_per_call_ns: page::cost_to_others(traced),
            },
            missed: &traced.missed,
            notes: &traced.notes,
            tree: (!traced.tree.is_empty()).then(|| traced.tree.iter().map(process).collect()),
            misaligned: (!traced.files.is_empty()).then_some(traced.misaligned.as_slice()),
            files: (!traced.files.is_empty()).then(|| traced.files.iter().map(file).collect()),
        }
    }
}

/// The parts that a backend knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    cpu: bool,
    kinds: bool,
}

impl Known {
    pub(crate) fn of(traced: &Traced) -> Self {
        Self { cpu: calls::knows_cpu(traced), kinds: calls::knows_kinds(traced) }
    }
}

impl Split {
    pub(crate) fn of(parts: Parts, known: Known) -> Self {
        let kind = |ns: u64| known.kinds.then(|| seconds(ns));
        Self {
            on_cpu_s: known.cpu.then(|| seconds(parts.on_cpu_ns)),
            sleep_s: kind(parts.sleep_ns),
            disk_s: kind(parts.disk_ns),
            runqueue_s: kind(parts.runqueue_ns),
            unknown_s: seconds(parts.unknown_ns),
        }
    }
}

impl<'a> CallRecord<'a> {
    fn of(call: &'a Call, kinds: Known) -> Self {
        Self {
            name: &call.name,
            count: call.count,
            errors: call.errors,
            unfinished: call.unfinished,
            stopped: call.stopped,
            total_s: seconds(call.total_ns),
            split: Split::of(call.parts, kinds),
            mean_s: call.mean_ns().map(|mean| mean / 1e9),
            p50_s: call.quantile_ns(0.5).map(seconds),
            p99_s: call.quantile_ns(0.99).map(seconds),
            max_s: (call.max_ns > 0 || (call.total_ns == 0 && call.stopped == 0))
                .then(|| seconds(call.max_ns)),
            blocking: calls::is_blocking(call),
        }
    }
}

impl<'a> ProcessRecord<'a> {
    fn of(process: &'a Process, kinds: Known) -> Self {
        Self {
            id: process.id,
            parent: process.parent,
            pid: process.pid,
            name: &process.name,
            execs: process.execs,
            threads: process.threads,
            began_s: seconds(process.began_ns),
            ended_s: process.ended_ns.map(seconds),
            outside: kinds.cpu.then(|| Split::of(process.outside, kinds)),
            calls: process.calls.iter().map(|call| CallRecord::of(call, kinds)).collect(),
        }
    }
}

impl<'a> FileRecord<'a> {
    fn of(file: &'a FileTime, kinds: Known) -> Self {
        let operation = |operation: &'a FileOperation| OperationRecord {
            operation: &operation.operation,
            count: operation.count,
            errors: operation.errors,
            bytes: operation.bytes,
            total_s: seconds(operation.parts.total_ns()),
            split: Split::of(operation.parts, kinds),
        };
        Self { path: &file.path, operations: file.operations.iter().map(operation).collect() }
    }
}
