//! The bench's measurements of itself: they ride along in every group's rounds.

use std::time::Duration;

use super::arm::{Arm, Loop};
use super::clock::Clock;
use super::cpu;
use super::station::{Block, Order, Refusal, Station};
use super::timed::{Context, EMPTY_LONG};
use crate::probe::{PLAIN, Probe};
use tollgate_model::Boundary::{ClockSource, TimeStampCounter, VdsoClock};
use tollgate_model::{Params, own};

/// Added to every group: the resolution, the processor's pace, the clock's cost.
pub static OWN_PROBES: &[&Probe] = &[&EMPTY_LOOP, &EMPTY_LOOP_RAW, &CLOCK_PAIR];

/// The empty loop held against the empty loop: what is told of nothing is told of noise.
static EMPTY_LOOP: Probe = Probe {
    name: own::EMPTY_LOOP,
    operation: "Nothing: an empty loop less another empty loop, the smallest price that can be told.",
    // SAFETY: the empty loop only writes its context's result.
    arm: |probe, params| Ok(unsafe { Loop::new((probe.timed)(params), [0; 7], None, |_| Ok(())) }?.here()),
    ..PLAIN
};

/// The frame that is subtracted everywhere, with nothing subtracted.
static EMPTY_LOOP_RAW: Probe = Probe {
    name: own::RAW_LOOP,
    operation: "One turn of the empty loop, clock included, nothing subtracted: the processor's pace.",
    arm: |_: &'static Probe, _: &Params| -> Result<Arm, Refusal> { Ok(Arm::new(RawLoop)) },
    ..PLAIN
};

/// Two readings of the clock with nothing between.
static CLOCK_PAIR: Probe = Probe {
    name: own::CLOCK_PAIR,
    operation: "Two readings of the clock with nothing between them, as around every block.",
    crosses: &[TimeStampCounter, VdsoClock, ClockSource],
    arm: |_: &'static Probe, _: &Params| -> Result<Arm, Refusal> { Ok(Arm::new(ClockPairs)) },
    ..PLAIN
};

struct RawLoop;

impl Station for RawLoop {
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal> {
        let mut context = Context::default();
        let before = cpu::switches();
        // SAFETY: the empty loop only writes the context's result.
        let span = clock.time(|| unsafe { EMPTY_LONG(order.iterations, &mut context) });
        let undisturbed = span.same_processor && before == cpu::switches();
        Ok(Block { work: span.ticks, empty: 0, undisturbed, counted: None, tallies: Default::default() })
    }
}

struct ClockPairs;

impl Station for ClockPairs {
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal> {
        let before = cpu::switches();
        let span = clock.time(|| {
            for _ in 0..order.iterations {
                std::hint::black_box(clock.time(|| ()));
            }
        });
        let undisturbed = span.same_processor && before == cpu::switches();
        Ok(Block { work: span.ticks, empty: 0, undisturbed, counted: None, tallies: Default::default() })
    }
}

/// How long a block of the dearest that are compared is meant to take: long enough that the clock is
/// nothing beside it, short enough that most see no interrupt.
pub const BLOCK: Duration = Duration::from_micros(50);
