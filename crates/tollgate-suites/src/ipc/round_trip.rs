//! Round trips of a message: lmbench's lat_pipe, lat_unix, lat_tcp and lat_udp, perf bench sched pipe.

use super::cases::{CROSSED, PROCESSES, SAME, crossed_in, is_one_of, of_round_trips, timed};
use super::peer::Part;
use super::talk::{COUNTERS, Talk};
use crate::prelude::*;

const TRIPS: u64 = 8;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/round-trip",
    operation: "One message of this many bytes to a peer and its answer, the same message. Each end sleeps until its message comes; with by=shm-spin it polls.",
    avoid: "Send several messages at a time, share memory, keep both ends on one processor or let them poll on two.",
    source: "pipe(7); unix(7); tcp(7); mq_overview(7); McVoy and Staelin, lmbench, USENIX 1996 (lat_pipe, lat_unix, lat_tcp, lat_udp)",
    crosses: CROSSED,
    crossed_in,
    timed,
    counters: COUNTERS,
    bytes: |params| Some(2 * number(params, "bytes")),
    cases: |machine| of_round_trips(machine).0,
    thorough_cases: |machine| of_round_trips(machine).1,
    headlines: &[Headline::of(
        Section::Processes,
        "TCP round trip, loopback",
        &[("by", "tcp"), ("bytes", "1"), ("between", PROCESSES), ("cpus", SAME)],
    )],
    in_everything: |params, _| {
        let on_one = ["pipe", "unix", "tcp", "shm-futex"].map(|by| (by, PROCESSES, true));
        is_one_of(params, 1, &on_one)
            || is_one_of(params, 1, &[("shm-spin", PROCESSES, false)])
            || is_one_of(params, 8, &[("eventfd", PROCESSES, true)])
    },
    kind: Kind::Instance(|_, params, context| {
        let (talk, note) = Talk::of_case(params, Part::Answer, TRIPS, context)?;
        Ok(Instance::new(talk).with_ops(TRIPS).with_notes(note))
    }),
    // Its threads share the descriptors of their process.
    company: Company::Own,
    uses_files: true,
    ..PLAIN
};
