//! The bench's measurements of itself: they ride along in every group's rounds.

use std::time::Duration;

use super::clock::Clock;
use super::cpu;
use super::instance::{Instance, Loop};
use super::runner::{Batch, Order, Refusal, Runner};
use super::timed::{Context, EMPTY_LONG};
use crate::benchmark::{Benchmark, PLAIN};
use tollgate_model::Boundary::{ClockSource, TimeStampCounter, VdsoClock};
use tollgate_model::{Params, own};

/// Added to every group: the resolution, the processor's pace, the clock's cost.
pub static OWN_BENCHMARKS: &[&Benchmark] = &[&EMPTY_LOOP, &EMPTY_LOOP_RAW, &CLOCK_PAIR];

/// The empty loop held against the empty loop: what is told of nothing is told of noise.
static EMPTY_LOOP: Benchmark = Benchmark {
    name: own::EMPTY_LOOP,
    operation: "Nothing: an empty loop less another empty loop, the smallest price that can be told.",
    // SAFETY: the empty loop only writes its context's result.
    instance: |benchmark, params| {
        Ok(unsafe { Loop::new((benchmark.timed)(params), [0; 7], None, |_| Ok(())) }?.here())
    },
    ..PLAIN
};

/// The frame that is subtracted everywhere, with nothing subtracted.
static EMPTY_LOOP_RAW: Benchmark = Benchmark {
    name: own::RAW_LOOP,
    operation: "One turn of the empty loop, clock included, nothing subtracted: the processor's pace.",
    instance: |_: &'static Benchmark, _: &Params| -> Result<Instance, Refusal> { Ok(Instance::new(RawLoop)) },
    ..PLAIN
};

/// Two readings of the clock with nothing between.
static CLOCK_PAIR: Benchmark = Benchmark {
    name: own::CLOCK_PAIR,
    operation: "Two readings of the clock with nothing between them, as around every batch.",
    crosses: &[TimeStampCounter, VdsoClock, ClockSource],
    instance: |_: &'static Benchmark, _: &Params| -> Result<Instance, Refusal> {
        Ok(Instance::new(ClockPairs))
    },
    ..PLAIN
};

struct RawLoop;

impl Runner for RawLoop {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch, Refusal> {
        let mut context = Context::default();
        let before = cpu::switches();
        // SAFETY: the empty loop only writes the context's result.
        let span = clock.time(|| unsafe { EMPTY_LONG(order.iterations, &mut context) });
        let undisturbed = span.same_processor && before == cpu::switches();
        Ok(Batch { work: span.ticks, empty: 0, undisturbed, counted: None, counters: Default::default() })
    }
}

struct ClockPairs;

impl Runner for ClockPairs {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch, Refusal> {
        let before = cpu::switches();
        let span = clock.time(|| {
            for _ in 0..order.iterations {
                std::hint::black_box(clock.time(|| ()));
            }
        });
        let undisturbed = span.same_processor && before == cpu::switches();
        Ok(Batch { work: span.ticks, empty: 0, undisturbed, counted: None, counters: Default::default() })
    }
}

/// How long a batch of the dearest that are compared is meant to take: long enough that the clock is
/// nothing beside it, short enough that most see no interrupt.
pub const BLOCK: Duration = Duration::from_micros(50);
