//! Messages in one direction: lmbench's bw_pipe, bw_unix and bw_tcp, perf bench sched messaging.

use super::cases::{CROSSED, PROCESSES, crossed_in, is_one_of, of_throughput, timed};
use super::peer::Part;
use super::talk::{COUNTERS, Talk};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/throughput",
    operation: "One message of this many bytes, of many that a peer takes one by one without an answer; the time ends when it has all. By UDP it answers every 16th, or datagrams would be dropped.",
    avoid: "Send larger messages, up to what the channel holds, and pass large data in shared memory.",
    source: "pipe(7); unix(7); tcp(7); mq_overview(7); McVoy and Staelin, lmbench, USENIX 1996 (bw_pipe, bw_unix, bw_tcp)",
    crosses: CROSSED,
    crossed_in,
    timed,
    counters: COUNTERS,
    bytes: |params| Some(number(params, "bytes")),
    cases: |machine| of_throughput(machine).0,
    thorough_cases: |machine| of_throughput(machine).1,
    in_everything: |params, _| {
        is_one_of(params, 64 << 10, &[("pipe", PROCESSES, false), ("tcp", PROCESSES, false)])
    },
    kind: Kind::Instance(|_, params, context| {
        let messages = messages(number(params, "bytes"));
        let (mut talk, note) = Talk::of_case(params, Part::Take, messages, context)?;
        talk.batch(Clock::Kernel, Order::new(FIRST))?;
        Ok(Instance::new(talk).with_ops(messages).with_notes(note))
    }),
    // Its threads share the descriptors of their process.
    company: Company::Own,
    uses_files: true,
    ..PLAIN
};

/// Iterations before the first batch. The first mebibytes of a connection take longer, while its buffers grow (tcp(7), tcp_rmem).
const FIRST: u64 = 4;

/// Messages per iteration: the wake-up at the end takes a few percent of the time, and a batch some hundred microseconds.
fn messages(bytes: u64) -> u64 {
    match bytes {
        0..1024 => 512,
        1024..65536 => 128,
        _ => 16,
    }
}
