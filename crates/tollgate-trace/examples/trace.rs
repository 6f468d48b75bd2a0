//! Traces a command and prints the result, one line per call, for tests that need a process of their own.
//!
//! `trace [ptrace|bpf|best] [only=A,B] [tree] [files] [events=N] [linger=SECONDS] [blocked] [stacks] [out=FILE] -- COMMAND…`, or
//! `trace calibrate`. Without a command, `[pid=A,B] [cgroup=PATH] [for=SECONDS] [every=SECONDS]` traces running processes: each
//! interval is a line of standard output.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use tollgate_trace::{Choice, Interval, Request, Running, TraceError, attach, calibrate, end_like, trace};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let mut request = Request::new(Vec::new());
    let mut out = None;
    let mut running = Running::default();
    let time = |seconds: &str| Some(Duration::from_secs_f64(seconds.parse().unwrap_or(0.0)));
    for argument in arguments.by_ref() {
        let text = String::from_utf8_lossy(argument.as_bytes()).into_owned();
        match text.split_once('=').unwrap_or((&text, "")) {
            ("--", _) => break,
            ("calibrate", _) => return println!("{:#?}", calibrate()),
            ("ptrace", _) => request.by = Choice::Ptrace,
            ("bpf", _) => request.by = Choice::Bpf,
            ("best", _) => request.by = Choice::Best,
            ("only", names) => request.only = Some(names.split(',').map(str::to_owned).collect()),
            ("tree", _) => request.tree = true,
            ("blocked", _) => request.blocked = true,
            ("stacks", _) => request.stacks = true,
            ("pid", pids) => running.processes = pids.split(',').filter_map(|pid| pid.parse().ok()).collect(),
            ("cgroup", path) => running.cgroup = Some(path.into()),
            ("for", seconds) => running.time = time(seconds),
            ("every", seconds) => running.every = time(seconds),
            ("files", _) => request.files = true,
            ("events", number) => request.events = number.parse().unwrap_or(0),
            ("linger", seconds) => request.linger = Duration::from_secs_f64(seconds.parse().unwrap_or(0.0)),
            ("out", path) => out = Some(path.to_owned()),
            _ => eprintln!("{text} is not known"),
        }
    }
    request.command = arguments.collect::<Vec<OsString>>();
    let attaches = !running.processes.is_empty() || running.cgroup.is_some();
    let trace = match if attaches { attach(&request, &running, show) } else { trace(&request) } {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(match error {
                TraceError::NotFound(_) => 127,
                TraceError::NotExecutable(_) => 126,
                _ => 2,
            })
        }
    };
    let t = &trace.traced;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "backend={:?} wall={} user={} sys={} processes={} threads={} processors={} cost={:?}",
        t.backend, t.wall_ns, t.user_ns, t.sys_ns, t.processes, t.threads, t.processors, t.cost_per_call_ns
    );
    for call in &t.calls {
        let p = call.parts;
        let _ = writeln!(
            text,
            "call {} count={} errors={} unfinished={} stopped={} total={} max={} on={} sleep={} disk={} ready={} unknown={} p50={}",
            call.name.replace(' ', "_"),
            call.count,
            call.errors,
            call.unfinished,
            call.stopped,
            call.total_ns,
            call.max_ns,
            p.on_cpu_ns,
            p.sleep_ns,
            p.disk_ns,
            p.runqueue_ns,
            p.unknown_ns,
            call.quantile_ns(0.5).unwrap_or(0)
        );
    }
    for process in &t.tree {
        let calls: u64 = process.calls.iter().map(|call| call.count).sum();
        let _ = writeln!(
            text,
            "process {} parent={:?} pid={} name={} execs={} threads={} calls={calls} ended={:?}",
            process.id,
            process.parent,
            process.pid,
            process.name,
            process.execs,
            process.threads,
            process.ended_ns
        );
    }
    for file in &t.files {
        for operation in &file.operations {
            let o = operation;
            let total = o.parts.total_ns();
            let _ = writeln!(
                text,
                "file {} {} count={} errors={} bytes={} total={total}",
                file.path, o.operation, o.count, o.errors, o.bytes
            );
        }
    }
    for event in &trace.events {
        let total = event.parts.total_ns();
        let _ = writeln!(
            text,
            "event {} process={} began={} total={total} result={}",
            event.call, event.process, event.began_ns, event.result
        );
    }
    let _ = writeln!(text, "outside={:?} idle={:?} missed={:?}", t.outside, t.idle, t.missed);
    if let Some(attached) = &t.attached {
        let _ = writeln!(text, "until {:?}", attached.until);
    }
    for b in &t.blocked {
        let (call, channel) = (b.call.as_deref().unwrap_or("-"), b.channel.as_deref().unwrap_or("-"));
        let _ = writeln!(
            text,
            "blocked {call} {channel} by={:?} thread={} count={} total={}",
            b.by, b.thread, b.count, b.total_ns
        );
    }
    for (frames, ns) in &trace.stacks {
        let _ = writeln!(text, "stack {frames} {ns}");
    }
    for note in &t.notes {
        let _ = writeln!(text, "note {note}");
    }
    if let Err(why) = t.validate() {
        let _ = writeln!(text, "invalid {why}");
    }
    match out {
        Some(path) => {
            if let Err(error) = std::fs::write(&path, text) {
                eprintln!("{path}: {error}");
            }
        }
        None => eprint!("{text}"),
    }
    end_like(trace.ended)
}

fn show(interval: Interval) {
    let calls =
        interval.traced.calls.iter().map(|call| format!("{}={}:{}", call.name, call.count, call.total_ns));
    println!(
        "interval {} wall={} {}",
        interval.number,
        interval.traced.wall_ns,
        calls.collect::<Vec<_>>().join(" ")
    );
}
