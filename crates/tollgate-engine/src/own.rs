//! The engine's own benchmarks, which run in every group's rounds.

use std::time::Duration;

use super::benchmark::{Benchmark, Kind, PLAIN};
use super::instance::{Instance, Loop};
use super::runner::{Batch, Order, Runner};
use super::timed::{LoopContext, run_empty};
use super::{clock::Clock, cpu, refusal::Result};
use tollgate_model::Boundary::{ClockSource, TimeStampCounter, VdsoClock};
use tollgate_model::own;

/// Added to every group: detection limit, loop overhead, timer overhead.
pub static OWN_BENCHMARKS: &[&Benchmark] = &[&EMPTY_LOOP, &EMPTY_LOOP_RAW, &CLOCK_PAIR];

/// The empty loop less the empty loop: all of its result is noise.
static EMPTY_LOOP: Benchmark = Benchmark {
    name: own::EMPTY_LOOP,
    operation: "Nothing: an empty loop less another empty loop, which gives the detection limit.",
    kind: Kind::Instance(|timed, _, _| Ok(Loop::without_context(timed, |_| Ok(()))?.here())),
    ..PLAIN
};

/// The loop that is subtracted from every other, with nothing subtracted.
static EMPTY_LOOP_RAW: Benchmark = Benchmark {
    name: own::RAW_LOOP,
    operation: "One iteration of the empty loop, timer included, nothing subtracted: the loop overhead.",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(RawLoop))),
    ..PLAIN
};

/// Two readings of the clock with nothing in between.
static CLOCK_PAIR: Benchmark = Benchmark {
    name: own::CLOCK_PAIR,
    operation: "Two readings of the clock with nothing in between, as around every batch: the timer overhead.",
    crosses: &[TimeStampCounter, VdsoClock, ClockSource],
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(ClockPairs))),
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

/// The intended time of a batch of the slowest case of a comparison: long enough to make the timer overhead
/// negligible, short enough that most batches see no interrupt.
pub const BATCH_TIME: Duration = Duration::from_micros(50);
