//! A timeline for existing viewers: the JSON of the Trace Event Format (Google, "Trace Event Format", section JSON Object
//! Format), which Chrome's tracing page, Perfetto and speedscope read.

use std::io::{self, BufWriter, Write};

use crate::Event;
use serde::Serialize;
use tollgate_model::traced::Process;

/// The most single calls that are kept; a viewer could not show more.
pub const MOST_EVENTS: usize = 1_000_000;

/// A complete event (ph X), or the name of a process (ph M).
#[derive(Serialize)]
struct Entry<'a, A> {
    name: &'a str,
    cat: &'static str,
    ph: char,
    /// Microseconds.
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    pid: u32,
    tid: u32,
    args: A,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Called {
    result: i64,
    on_cpu_us: f64,
    sleep_us: f64,
    disk_us: f64,
    runqueue_us: f64,
    unknown_us: f64,
}

/// Writes the events of an execution, one per line.
///
/// # Errors
/// If writing to the stream fails.
pub fn write(stream: impl Write, processes: &[Process], events: &[Event]) -> io::Result<()> {
    let mut stream = BufWriter::with_capacity(1 << 18, stream);
    stream.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut between: &[u8] = b"\n";
    for process in processes {
        stream.write_all(between)?;
        between = b",\n";
        let named = Named { name: &process.name };
        let (pid, tid) = (process.pid, process.pid);
        let entry = Entry {
            name: "process_name",
            cat: "__metadata",
            ph: 'M',
            ts: 0.0,
            dur: None,
            pid,
            tid,
            args: named,
        };
        serde_json::to_writer(&mut stream, &entry)?;
    }
    for event in events {
        stream.write_all(between)?;
        between = b",\n";
        // An event whose process is not in the tree is shown under its thread.
        let pid = processes.get(event.process as usize).map_or(event.thread, |process| process.pid);
        let entry = Entry {
            name: &event.call,
            cat: "syscall",
            ph: 'X',
            ts: us(event.began_ns),
            dur: Some(us(event.parts.total_ns())),
            pid,
            tid: event.thread,
            args: Called {
                result: event.result,
                on_cpu_us: us(event.parts.on_cpu_ns),
                sleep_us: us(event.parts.sleep_ns),
                disk_us: us(event.parts.disk_ns),
                runqueue_us: us(event.parts.runqueue_ns),
                unknown_us: us(event.parts.unknown_ns),
            },
        };
        serde_json::to_writer(&mut stream, &entry)?;
    }
    stream.write_all(b"\n]}\n")?;
    stream.flush()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use tollgate_model::traced::Parts;

    use super::*;
    use crate::output::examples;

    #[test]
    fn a_viewer_finds_events_in_microseconds_and_processes_by_name() {
        let mut traced = examples::build();
        traced.tree[1].name = "cc \"1\"\n\u{1b}".to_owned();
        let event = |process: u32, began_ns: u64| Event {
            process,
            thread: 4711,
            call: "openat".to_owned(),
            began_ns,
            parts: Parts { on_cpu_ns: 1_500, disk_ns: 2_000_000, ..Parts::default() },
            result: -2,
            argument: 0,
        };
        let mut text = Vec::new();
        write(&mut text, &traced.tree, &[event(1, 12_345), event(99_999, 20_000)]).expect("written");
        let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let entries = document["traceEvents"].as_array().expect("events");
        assert_eq!(entries.len(), traced.tree.len() + 2);
        assert_eq!(
            (&entries[1]["ph"], &entries[1]["args"]["name"]),
            (&"M".into(), &"cc \"1\"\n\u{1b}".into())
        );
        let first = &entries[traced.tree.len()];
        assert_eq!((&first["ph"], &first["name"]), (&"X".into(), &"openat".into()));
        assert_eq!((first["ts"].as_f64(), first["dur"].as_f64()), (Some(12.345), Some(2001.5)));
        assert_eq!(first["pid"].as_u64(), Some(traced.tree[1].pid.into()));
        assert_eq!((&first["args"]["result"], &first["args"]["disk_us"]), (&(-2).into(), &2000.0.into()));
        assert_eq!(entries[traced.tree.len() + 1]["pid"], 4711);
    }

    #[test]
    fn nothing_is_a_timeline_too() {
        let mut text = Vec::new();
        write(&mut text, &[], &[]).expect("written");
        let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(document["traceEvents"], serde_json::json!([]));
    }
}
