use serde::Serialize;
use tollgate_model::Traced;
use tollgate_model::traced::{
    Attached, Backend, Blocked, Call, Ended, FileOperation, FileTime, Misaligned, Missed, Process, TimesFrom,
    Until, WokenBy, blame::Account,
};

use tollgate_output::json::Record;

use super::columns::{self, Known, Line};
use super::screen;
use super::text::seconds;

/// One execution. Every field is always present; null means unknown or not requested.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedCommand<'a> {
    /// Its arguments, the program first. For processes that already ran: those of a single process; empty if there are several.
    command: &'a [String],
    /// The traced processes if they already ran (`-p`, `--cgroup`); null for a command.
    attached: Option<AttachedRecord<'a>>,
    /// How the command ended; null for processes that already ran, and if a log of strace(1) does not show it.
    ended: Option<Ended>,
    /// Real time until the command ended.
    wall_s: Option<f64>,
    /// Time of its threads on processors in user mode, measured by `times_from`; null with `strace`.
    user_s: Option<f64>,
    /// Time of its threads on processors in the kernel, measured by `times_from`; null with `strace`.
    sys_s: Option<f64>,
    /// The source of `user_s` and `sys_s`.
    times_from: TimesFrom,
    /// Real time in which none of its threads was on a processor; null if the backend does not know it.
    wait_s: Option<f64>,
    /// The parts of `wait_s`; null if the backend does not know them.
    idle: Option<Idle>,
    /// The rest of the real time: before the first event, after the last one, and in calls that did not return. If one thread ran at a
    /// time, `user_s`, `sys_s`, `wait_s` and this sum to `wall_s`. If the backend does not know `wait_s`, that time is in here too.
    unaccounted_s: Option<f64>,
    /// The tracer. With a log of strace(1), `user_s`, `sys_s`, `processors` and the parts of each call other than `unknown_s` are unknown
    /// and null; so are `ended`, `wall_s`, `processes` and `threads` if the log does not show them.
    backend: Backend,
    /// The number of traced processes.
    processes: Option<u64>,
    /// The number of traced threads.
    threads: Option<u64>,
    /// The number of processors in its affinity mask.
    processors: Option<u32>,
    /// One entry per system call; those that took longest come first.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<columns::schema::TracedCall>"))]
    calls: Vec<Record>,
    /// The time of the threads outside of calls, or null.
    #[cfg_attr(feature = "schema", schemars(with = "Option<columns::schema::PartsOfTime>"))]
    outside: Option<Record>,
    /// With `--blocked`, the sleeps and what ended them, the longest first; else empty.
    blocked: Vec<BlockedRecord<'a>>,
    /// Waiting time by the published rule: real - (user + sys) / cores.
    rule: Rule,
    /// The overhead of tracing.
    cost: Cost,
    /// Things that were not counted because a limit was reached.
    missed: &'a [Missed],
    /// Notes, one sentence each.
    notes: &'a [String],
    /// One entry per process, in the order of their start; null unless requested.
    tree: Option<Vec<ProcessRecord<'a>>>,
    /// One entry per file; null unless requested. `copy_file_range`, `sendfile` and `splice` count for the file of their first descriptor.
    files: Option<Vec<FileRecord<'a>>>,
    /// With `--by file`, calls of direct I/O that failed with EINVAL; null unless files were requested.
    misaligned: Option<&'a [Misaligned]>,
}

/// Real time in which no thread was on a processor.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IdleTime"))]
struct Idle {
    /// Time in which at least one thread was ready to run and had no processor.
    runqueue_s: f64,
    /// Other time in which at least one thread waited for a disk, or in another wait that signals do not end.
    disk_s: f64,
    /// Time in which all threads slept.
    sleep_s: f64,
}

/// Processes that ran before they were traced.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedProcesses"))]
struct AttachedRecord<'a> {
    /// Their process IDs.
    processes: &'a [u32],
    /// The control group that they were found in, or null.
    cgroup: Option<&'a str>,
    /// The reason why the trace ended; null in an interval.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Sleep"))]
struct BlockedRecord<'a> {
    /// The call that the thread slept in; null outside of calls.
    call: Option<&'a str>,
    /// The kernel function that it slept in; null if it is unknown.
    channel: Option<&'a str>,
    /// The kind of thing that woke it.
    by: WokenBy,
    /// The name of the thread that woke it, or the function that served the interrupt.
    name: &'a str,
    /// The ID of that thread, or null.
    thread: Option<u32>,
    /// The number of sleeps that ended so.
    count: u64,
    /// The time of these sleeps.
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

/// Waiting time by the published rule.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rule {
    /// The result for one core.
    one_core_s: Option<f64>,
    /// The result for all cores of the affinity mask.
    all_cores_s: Option<f64>,
}

/// The overhead of tracing.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Cost {
    /// The time added to each call.
    per_call_ns: Option<f64>,
    /// The number of traced calls.
    calls: u64,
    /// The share of the real time, for calls in sequence; null if BPF left calls out (`--only`), because those take longer too.
    share: Option<f64>,
    /// The time added to each call of every other process during the trace: 0 with ptrace(2), null if unknown.
    others_per_call_ns: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedProcess"))]
struct ProcessRecord<'a> {
    /// Its index in the tree, from 0; the command itself is 0.
    id: u32,
    /// The `id` of its parent.
    parent: Option<u32>,
    /// Its process ID.
    pid: u32,
    /// The name of the program that it executed last.
    name: &'a str,
    /// The number of its successful execve(2) calls.
    execs: u32,
    /// The number of its threads, including the first.
    threads: u64,
    /// When it started, since the start of the command.
    began_s: f64,
    /// When its last thread ended, since the start of the command; null if it outlived the trace.
    ended_s: Option<f64>,
    /// The time of its threads outside of calls, or null.
    #[cfg_attr(feature = "schema", schemars(with = "Option<columns::schema::PartsOfTime>"))]
    outside: Option<Record>,
    /// One entry per system call; those that took longest come first.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<columns::schema::TracedCall>"))]
    calls: Vec<Record>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedFile"))]
struct FileRecord<'a> {
    /// Its path, or its kind, such as `pipe` or `socket`.
    path: &'a str,
    /// One entry per operation; those that took longest come first.
    operations: Vec<OperationRecord<'a>>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedOperation"))]
struct OperationRecord<'a> {
    /// `open`, `read`, `write`, `sync`, `stat`, `close`, `unlink`, `fault`, or another call's name.
    operation: &'a str,
    /// The number of calls.
    count: u64,
    /// Calls that returned an error.
    errors: u64,
    /// The bytes that the calls moved.
    bytes: u64,
    /// Time from entry to return; the five parts sum to it.
    total_s: f64,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "columns::schema::PartsOfTime"))]
    parts: Record,
}

fn of_calls(calls: &[Call], known: Known) -> Vec<Record> {
    let columns = columns::columns();
    calls.iter().map(|call| Record::from_row(&columns, &Line::of(call, known))).collect()
}

impl<'a> TracedCommand<'a> {
    /// Builds the record of an execution.
    pub fn of(traced: &'a Traced) -> Self {
        let kinds = Known::of(traced);
        let real = |ns: u64| (traced.wall_ns > 0).then(|| seconds(ns));
        let processor = |ns: u64| (traced.times_from != TimesFrom::Unknown).then(|| seconds(ns));
        let by_rule = |cores: u32| {
            let is_known = traced.wall_ns > 0 && traced.times_from != TimesFrom::Unknown && cores > 0;
            is_known.then(|| traced.wait_by_rule_ns(cores) / 1e9)
        };
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
            unaccounted_s: real(Account::from_traced(traced).unaccounted),
            backend: traced.backend,
            processes: Some(traced.processes).filter(|&number| number > 0),
            threads: Some(traced.threads).filter(|&number| number > 0),
            processors: Some(traced.processors).filter(|&number| number > 0),
            calls: of_calls(&traced.calls, kinds),
            outside: traced.outside.map(|parts| columns::parts(parts, kinds)),
            blocked: traced.blocked.iter().map(BlockedRecord::of).collect(),
            rule: Rule { one_core_s: by_rule(1), all_cores_s: by_rule(traced.processors) },
            cost: Cost {
                per_call_ns: traced.cost_per_call_ns,
                calls: traced.count(),
                share: screen::cost_share(traced),
                others_per_call_ns: screen::cost_to_others(traced),
            },
            missed: &traced.missed,
            notes: &traced.notes,
            tree: (!traced.tree.is_empty()).then(|| traced.tree.iter().map(process).collect()),
            misaligned: (!traced.files.is_empty()).then_some(traced.misaligned.as_slice()),
            files: (!traced.files.is_empty()).then(|| traced.files.iter().map(file).collect()),
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
            outside: kinds.cpu.then(|| columns::parts(process.outside, kinds)),
            calls: of_calls(&process.calls, kinds),
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
            parts: columns::parts(operation.parts, kinds),
        };
        Self { path: &file.path, operations: file.operations.iter().map(operation).collect() }
    }
}
