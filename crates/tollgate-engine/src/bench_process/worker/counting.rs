//! Counts the instructions of an operation in a guest under QEMU's translator with `-icount shift=0`, where each is one tick.
//!
//! A sample is the difference of two batches, one with twice the iterations of the other. So it excludes the fixed cost of a batch, such
//! as the counter reads and the call of the loop. For a long operation that cost is negligible, and a sample is one batch of one: the
//! fewer instructions a sample has, the fewer samples include a kernel tick. The same code takes the same instructions in each
//! batch, unless the kernel's tick, another thread or a page fault interferes. So samples that agree to the last instruction are
//! kept; the others are discarded and counted. Time decides nothing: two runs of the same guest make the same batches.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_model::Unit;

use super::{Bench, InstanceOrder, events_of, run_batch};
use crate::bench_process::shared::{Events, SharedResults, Slot};
use crate::cases::benchmark::Benchmark;
use crate::loops::instance::Instance;
use crate::loops::instance::Readiness;
use crate::loops::runner::Order;
use crate::loops::timed::{LoopContext, run_empty};
use crate::machine::clock::Clock;
use crate::refusal::{Refusal, Result};

/// Operations of a batch: the first number whose batch is short enough.
const OPERATIONS: [u64; 6] = [100, 30, 10, 4, 2, 1];
/// The most instructions of a batch of several operations. With 250 ticks a second, a kernel executes four million between two ticks.
const SHORT: u64 = 60_000;
const LONG: u64 = 20_000;
/// Samples of a case: the first number whose batches have few enough instructions. The ranges of two times seven samples are disjoint
/// by chance once in 1,716 cases.
const SAMPLES: [usize; 4] = [25, 15, 9, 7];
/// This many equal samples are enough. If a quarter of an operation's batches differ, nine samples miss them all in one of 13 cases.
const AGREED: usize = 9;
/// Enough samples of an amount in bytes, which no tick of the kernel affects.
const AMOUNTS: usize = 3;
const ENOUGH: u64 = 60_000_000;
/// Unrecorded samples, which bring in pages and fill the kernel's free lists.
const WARM_UP: usize = 2;
/// A pause before each batch, in which the kernel finishes earlier work such as RCU callbacks. An idle guest skips it.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 20 });
/// Batches of one iteration that show how long it is.
const TRIES: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    iterations: u64,
    /// Whether a sample is the difference to a batch of twice the iterations.
    is_difference: bool,
    samples: usize,
}

impl Plan {
    /// Plans for an iteration of `cost` instructions, in a batch of `whole` with its untimed parts.
    fn new(ready: &Readiness, unit: Unit, cost: u64, whole: u64) -> Self {
        // An amount is in bytes, which say nothing of instructions.
        let is_one = unit == Unit::Bytes || cost >= LONG;
        let fits = |&iterations: &u64| iterations == 1 || iterations.saturating_mul(cost) <= SHORT;
        // Several iterations are an even number: some operations of the kernel alternate between two paths.
        let mut iterations = OPERATIONS.iter().map(|&operations| match operations {
            1 => 1,
            several => several.div_ceil(ready.ops).next_multiple_of(2),
        });
        let iterations = iterations.find(fits);
        let most = if is_one { 1 } else { (ready.most / 2).max(1) };
        let iterations = iterations.unwrap_or(1).min(most);
        let is_difference = !is_one && iterations.saturating_mul(2) <= ready.most;
        let batches = if is_difference { 3 } else { 1 };
        let sample = cost.saturating_mul(iterations * batches).saturating_add(whole.saturating_mul(2));
        let is_enough = |&samples: &usize| sample.saturating_mul(samples as u64) <= ENOUGH;
        let samples = SAMPLES.iter().copied().find(is_enough).unwrap_or(SAMPLES[SAMPLES.len() - 1]);
        Self { iterations, is_difference, samples }
    }
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    ticks: i64,
    events: Events,
    undisturbed: bool,
}

impl Bench<'_> {
    pub fn count(&mut self, clock: Result<Clock, String>, orders: &[InstanceOrder]) {
        let clock = clock.and_then(|clock| steps_by_one(clock).map(|()| clock));
        for (index, order) in orders.iter().enumerate() {
            self.shared.enter(index);
            let clock = clock
                .clone()
                .map_err(|why| Refusal::NotMeasured(format!("no instructions are counted: {why}")));
            let state = clock.and_then(|clock| {
                let (benchmark, instance) = self.prepare(order)?;
                count(self.shared, index, clock, benchmark, instance)
            });
            self.shared.set_instance(index, &state);
            self.shared.leave();
        }
    }
}

fn count(
    shared: &SharedResults,
    index: usize,
    clock: Clock,
    benchmark: &Benchmark,
    mut instance: Instance,
) -> Result<Readiness> {
    let (cost, whole) = try_out(shared, clock, benchmark, &mut instance)?;
    let plan = Plan::new(&instance.ready, benchmark.unit, cost, whole);
    let mut take = || sample(shared, clock, benchmark, &mut instance, plan);
    // If an iteration is long, its tries have warmed everything up.
    if plan.samples > SAMPLES[SAMPLES.len() - 1] {
        for _ in 0..WARM_UP {
            take()?;
        }
    }
    let mut samples = Vec::new();
    while samples.len() < plan.samples && !agree(&samples, benchmark.unit) {
        samples.push(take()?);
    }
    let kept = kept(&samples);
    for (round, (sample, is_kept)) in samples.iter().zip(kept).enumerate() {
        shared.begin_round(round);
        shared.set_slot(round, index, if is_kept { Slot::Kept(sample.ticks) } else { Slot::Discarded });
        if is_kept {
            shared.add_events(index, sample.events);
        }
    }
    Ok(Readiness { counted: plan.iterations, ..instance.ready })
}

/// Returns the instructions of one iteration, and of a batch of one with its untimed parts: the minima of a few tries.
fn try_out(
    shared: &SharedResults,
    clock: Clock,
    benchmark: &Benchmark,
    instance: &mut Instance,
) -> Result<(u64, u64)> {
    let (mut cost, mut whole, mut spent) = (u64::MAX, u64::MAX, 0_u64);
    for _ in 0..TRIES {
        shared.beat();
        let began = clock.moment();
        let batch = run_batch(benchmark, instance, clock, Order::new(1))?;
        let took = clock.moment().saturating_sub(began);
        (cost, whole) = (cost.min(batch.work.saturating_sub(batch.empty)), whole.min(took));
        spent = spent.saturating_add(took);
        if spent >= ENOUGH / 4 {
            break;
        }
    }
    Ok((cost.max(1), whole))
}

fn sample(
    shared: &SharedResults,
    clock: Clock,
    benchmark: &Benchmark,
    instance: &mut Instance,
    plan: Plan,
) -> Result<Sample> {
    let mut batch = |iterations| {
        shared.beat();
        std::thread::sleep(PAUSE);
        let batch = run_batch(benchmark, instance, clock, Order::new(iterations))?;
        let ticks = (batch.work as i64).wrapping_sub(batch.empty as i64);
        Ok::<_, Refusal>(Sample { ticks, events: events_of(&batch), undisturbed: batch.undisturbed })
    };
    let once = batch(plan.iterations)?;
    if !plan.is_difference {
        return Ok(once);
    }
    let twice = batch(plan.iterations * 2)?;
    Ok(Sample {
        ticks: twice.ticks.wrapping_sub(once.ticks),
        events: std::array::from_fn(|which| twice.events[which].saturating_sub(once.events[which])),
        undisturbed: once.undisturbed && twice.undisturbed,
    })
}

/// Whether enough samples are equal to the last instruction, or byte, to expect that more would be.
fn agree(samples: &[Sample], unit: Unit) -> bool {
    let enough = if unit == Unit::Bytes { AMOUNTS } else { AGREED };
    samples.len() >= enough && samples.windows(2).all(|pair| pair[0].ticks == pair[1].ticks)
}

/// Selects the samples to keep: those that agree, if they are at least three quarters of all. About one sample in twenty has a kernel
/// tick. Otherwise the operation varies: the kernel takes another path in a part of each second, or at each sixty-third page.
/// Then the samples in which no other thread took the processor are kept, or all samples if each was disturbed.
fn kept(samples: &[Sample]) -> Vec<bool> {
    let mut times: BTreeMap<i64, usize> = BTreeMap::new();
    samples.iter().for_each(|sample| *times.entry(sample.ticks).or_default() += 1);
    let most = times.into_iter().max_by_key(|&(_, number)| number);
    match most {
        Some((ticks, number)) if number * 4 >= samples.len() * 3 => {
            samples.iter().map(|sample| sample.ticks == ticks).collect()
        }
        _ => {
            let is_any = samples.iter().any(|sample| sample.undisturbed);
            samples.iter().map(|sample| sample.undisturbed || !is_any).collect()
        }
    }
}

/// Whether the counter ticks once per instruction: each further iteration of the empty loop, which has two, must add two ticks.
fn steps_by_one(clock: Clock) -> Result<(), String> {
    const FEW: u64 = 1_000;
    const MANY: u64 = 3_000;
    /// Instructions of an iteration: `dec`, `jnz`.
    const EACH: u64 = 2;
    const TRIES: usize = 8;
    // The engine's own tests count ticks on any machine.
    if cfg!(test) {
        return Ok(());
    }
    let mut context = LoopContext::default();
    let mut least = |iterations| {
        let ticks = (0..TRIES).map(|_| clock.time(|| run_empty(iterations, &mut context)).ticks);
        ticks.min().unwrap_or(0)
    };
    let (few, many) = (least(FEW), least(MANY));
    let (instructions, ticks) = ((MANY - FEW) * EACH, many.wrapping_sub(few));
    if ticks == instructions {
        Ok(())
    } else {
        Err(format!(
            "the counter made {ticks} ticks in {instructions} instructions; QEMU's -icount shift=0 makes one per instruction"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(ticks: &[i64]) -> Vec<Sample> {
        let sample = |&ticks: &i64| Sample { ticks, events: Events::default(), undisturbed: ticks < 900 };
        ticks.iter().map(sample).collect()
    }

    #[test]
    fn samples_that_agree_are_kept_if_they_are_three_quarters_of_all() {
        for (ticks, expected) in [
            (&[209, 209, 700, 209][..], &[true, true, false, true][..]),
            // Two paths, neither of which is typical.
            (&[215, 209, 209, 215], &[true, true, true, true]),
            (&[209, 215, 209, 215, 209, 209], &[true, true, true, true, true, true]),
            // Different in every batch: what another thread disturbed is left out, unless all were.
            (&[100, 101, 102, 950, 103], &[true, true, true, false, true]),
            (&[950, 960, 970], &[true, true, true]),
            (&[209, 700], &[true, true]),
            (&[-3], &[true]),
            (&[], &[]),
        ] {
            assert_eq!(kept(&samples(ticks)), expected, "{ticks:?}");
        }
    }

    #[test]
    fn samples_that_agree_end_a_case() {
        assert!(!agree(&samples(&[209; 8]), Unit::Nanoseconds));
        assert!(agree(&samples(&[209; 9]), Unit::Nanoseconds));
        assert!(!agree(&samples(&[209, 209, 209, 209, 700, 209, 209, 209, 209, 209]), Unit::Nanoseconds));
        assert!(agree(&samples(&[4096; 3]), Unit::Bytes));
        assert!(
            !agree(&samples(&[4096, 4096]), Unit::Bytes)
                && !agree(&samples(&[4096, 8192, 4096]), Unit::Bytes)
        );
    }

    #[test]
    fn a_batch_is_short_and_a_long_operation_has_few_samples() {
        let ready = |ops, most| Readiness { ops, most, ..Readiness::default() };
        let plan =
            |ready: &Readiness, cost| Plan::new(ready, Unit::Nanoseconds, cost, cost.saturating_add(2_000));
        let of = |iterations, is_difference, samples| Plan { iterations, is_difference, samples };
        assert_eq!(plan(&ready(1, u64::MAX), 209), of(100, true, 25));
        assert_eq!(plan(&ready(8, u64::MAX), 8 * 209), of(14, true, 25));
        assert_eq!(plan(&ready(1, u64::MAX), 20_000), of(1, false, 25));
        assert_eq!(plan(&ready(1, u64::MAX), 12_000), of(4, true, 25));
        assert_eq!(plan(&ready(64, u64::MAX), 15_000), of(2, true, 25));
        assert_eq!(plan(&ready(1, u64::MAX), 150_000), of(1, false, 25));
        assert_eq!(plan(&ready(1, u64::MAX), 1_000_000), of(1, false, 15));
        assert_eq!(plan(&ready(1000, 1), 300_000_000), of(1, false, 7));
        // No room for twice the iterations, and an amount of memory.
        assert_eq!(plan(&ready(1, 1), 209), of(1, false, 25));
        assert_eq!(plan(&ready(1, 64), 209), of(32, true, 25));
        assert_eq!(Plan::new(&ready(1, u64::MAX), Unit::Bytes, 40, 2_000), of(1, false, 25));
        assert_eq!(plan(&ready(1, u64::MAX), u64::MAX), of(1, false, 7));
    }
}
