//! Round trips of a message: lmbench's lat_pipe, lat_unix, lat_tcp and lat_udp, perf bench sched pipe.

use super::channel;
use super::talk::{COUNTERS, Talk, processors};
use crate::prelude::*;

/// Round trips in one iteration.
const TRIPS: u64 = 8;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/round-trip",
    operation: "One message of so many bytes to a peer and its answer, the same message: both ends sleep until theirs comes.",
    avoid: "Send several messages at a time, share memory, and keep both ends on one processor or let them spin.",
    source: "pipe(7); unix(7); tcp(7); lmbench, lat_pipe.c and lat_unix.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, WakeUp, ContextSwitch],
    timed: |_| Timed::Whole("write(2), read(2)"),
    counters: COUNTERS,
    bytes: |params| Some(2 * number(params, "bytes")),
    cases,
    kind: Kind::Instance(|_, params, context| {
        let ends = channel::ends(word(params, "by"))?;
        let (talk, note) = Talk::new(ends, params, TRIPS, context)?;
        Ok(Instance::new(talk).with_ops(TRIPS).with_notes(note))
    }),
    ..PLAIN
};

fn cases() -> Vec<Params> {
    let mut cases = Vec::new();
    for cpus in processors() {
        for between in ["threads", "processes"] {
            for bytes in [1, 4 << 10, 64 << 10] {
                cases.push(params(&[
                    ("by", "pipe".into()),
                    ("bytes", bytes.into()),
                    ("between", between.into()),
                    ("cpus", cpus.clone()),
                ]));
            }
        }
    }
    cases
}
