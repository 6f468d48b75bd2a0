//! The engine's own benchmarks, which run in every group's rounds.

use std::time::Duration;

use crate::cases::benchmark::{Benchmark, Kind, PLAIN};
use crate::loops::instance::{Instance, Loop};
use crate::loops::runner::{Batch, Order, Runner};
use crate::loops::timed::{LoopContext, Timed, TimedLoop, run_empty};
use crate::{machine::clock::Clock, machine::cpu, refusal::Result};
use tollgate_model::Boundary::{
    ClockSource, KernelCode, KernelEntry, SystemCall, TimeStampCounter, VdsoClock,
};
use tollgate_model::own;

crate::timed_loop! {
    /// No system call has number -1. The latency of this call is the unit in which crossings are shown.
    refused_call: called "mov rax, -1", "syscall"; aarch64 "mov x8, -1", "svc 0"
}

/// The simplest kernel entry.
pub const REFUSED_CALL: Timed = Timed::once("syscall/svc", TimedLoop::Long(refused_call));

/// The benchmarks that are added to every group: detection limit, loop overhead, timer overhead, and the canary.
pub static OWN_BENCHMARKS: &[&Benchmark] = &[&EMPTY_LOOP, &EMPTY_LOOP_RAW, &CLOCK_PAIR, &CANARY];

/// The empty loop minus the empty loop: the result is only noise.
static EMPTY_LOOP: Benchmark = Benchmark {
    name: own::EMPTY_LOOP,
    operation: "Nothing: an empty loop less another empty loop, which gives the detection limit.",
    kind: Kind::Instance(|timed, _, _| Ok(Loop::without_context(timed, |_| Ok(()))?.here())),
    ..PLAIN
};

/// The empty loop that is subtracted from every other loop; nothing is subtracted from it.
static EMPTY_LOOP_RAW: Benchmark = Benchmark {
    name: own::RAW_LOOP,
    operation: "One iteration of the empty loop, timer included, nothing subtracted: the loop overhead.",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(RawLoop))),
    ..PLAIN
};

static CLOCK_PAIR: Benchmark = Benchmark {
    name: own::CLOCK_PAIR,
    operation: "Two readings of the clock with nothing in between, as around every batch: the timer overhead.",
    crosses: &[TimeStampCounter, VdsoClock, ClockSource],
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(ClockPairs))),
    ..PLAIN
};

static CANARY: Benchmark = Benchmark {
    name: own::CANARY,
    operation: "One system call with number -1, a few microseconds of it in each round: a process in which it takes longer was disturbed.",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    timed: |_| REFUSED_CALL,
    kind: Kind::Instance(|timed, _, _| {
        /// A batch of this many calls takes a few microseconds, so rounds hardly become longer.
        const MOST: u64 = 64;
        Ok(Loop::without_context(timed, |_| Ok(()))?.here().with_most(MOST))
    }),
    absence: &[(libc::SIGSYS, "a seccomp filter kills unknown system calls")],
    ..PLAIN
};

struct RawLoop;

impl Runner for RawLoop {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let mut context = LoopContext::default();
        let before = cpu::switches();
        let span = clock.time(|| run_empty(order.iterations, &mut context));
        let undisturbed = span.same_processor && before == cpu::switches();
        Ok(Batch::new(span.ticks, 0, undisturbed))
    }
}

struct ClockPairs;

impl Runner for ClockPairs {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let before = cpu::switches();
        let span = clock.time(|| {
            for _ in 0..order.iterations {
                std::hint::black_box(clock.time(|| ()));
            }
        });
        let undisturbed = span.same_processor && before == cpu::switches();
        Ok(Batch::new(span.ticks, 0, undisturbed))
    }
}

/// The intended time of a comparison's slowest batch: long compared with the timer overhead, but mostly too short for an interrupt.
pub const BATCH_TIME: Duration = Duration::from_micros(50);
