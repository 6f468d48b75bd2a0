//! Traces a command and prints the result, a line for each call: for tests, which need a process of its own.
//!
//! `trace [ptrace|bpf|best] [only=A,B] [tree] [files] [events=N] [linger=SECONDS] [user=NUMBER] [out=FILE] -- COMMAND…`, or `trace calibrate`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use tollgate_os::identity::Identity;
use tollgate_trace::{Choice, Request, TraceError, calibrate, end_like, trace};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let mut request = Request::new(Vec::new());
    let mut out = None;
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
            ("files", _) => request.files = true,
            ("events", number) => request.events = number.parse().unwrap_or(0),
            ("linger", seconds) => request.linger = Duration::from_secs_f64(seconds.parse().unwrap_or(0.0)),
            ("user", number) => {
                request.identity = number.parse().ok().map(|id| Identity { uid: id, gid: id });
            }
            ("out", path) => out = Some(path.to_owned()),
            _ => eprintln!("{text} is not known"),
        }
    }
    request.command = arguments.collect::<Vec<OsString>>();
    let trace = match trace(&request) {
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
            "call {} count={} errors={} unfinished={} total={} max={} on={} sleep={} disk={} ready={} unknown={} p50={}",
            call.name.replace(' ', "_"),
            call.count,
            call.errors,
            call.unfinished,
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
