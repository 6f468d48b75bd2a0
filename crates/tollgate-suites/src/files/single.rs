//! Times operations one by one: each sample is one operation, so that rare slow ones show in the distribution.
//!
//! The latency of storage is a distribution, and users ask for its tail. A thread that waits for storage is switched
//! out in every operation, so only an involuntary switch disturbs. cachestat(2) or mincore(2) certifies each read.

use std::{ffi::CStr, io};

use crate::prelude::*;

pub(super) trait Operation {
    /// Whether an untimed operation runs first, to warm the caches for short ones.
    fn warms_up(&self) -> bool {
        !self.is_long()
    }

    /// Whether it takes longer than a time slice, so that preemption is part of its time, as in a whole command.
    fn is_long(&self) -> bool {
        false
    }

    fn before(&mut self) -> Result<()> {
        Ok(())
    }

    /// The timed call.
    ///
    /// # Errors
    /// Returns the call's error, which `after` interprets.
    fn call(&mut self) -> io::Result<usize>;

    /// Checks the outcome. `from_storage` is the number of bytes that this thread read from storage.
    fn after(&mut self, outcome: io::Result<usize>, from_storage: u64) -> Result<Verdict>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub counted: Option<u64>,
    pub kept: bool,
}

pub(super) const FINE: Verdict = Verdict { counted: None, kept: true };

pub(super) fn instance(operation: impl Operation + 'static) -> Instance {
    Instance::new(Single(operation)).with_most(1)
}

words! {
    /// Whether the samples of a case are stretches of operations.
    enum Sampled("timed") { Each = "", Batches = "batches" }
}

/// The cases of a benchmark without other parameters: single operations, and stretches of them.
pub(super) fn cases(_machine: &Topology) -> Vec<Params> {
    vec![Params::new(), in_batches(Params::new())]
}

pub(super) fn in_batches(mut params: Params) -> Params {
    params.insert("timed".to_owned(), Sampled::Batches.word().into());
    params
}

/// Makes the instance of a case: single operations, or stretches, which time a short operation more precisely.
pub(super) fn timed_as(params: &Params, operation: impl Operation + 'static) -> Result<Instance> {
    Ok(match Sampled::try_from(params)? {
        Sampled::Each => instance(operation),
        Sampled::Batches => {
            Instance::new(Stretch { operation, outcomes: Vec::new() }).with_most(MOST_IN_A_STRETCH)
        }
    })
}

/// Returns the file name of a case. Single operations and stretches share a directory, so their names differ.
pub(super) fn name(params: &Params, names: [&'static CStr; 2]) -> Result<&'static CStr> {
    Ok(names[Sampled::try_from(params)? as usize])
}

/// Limit for a stretch: each openat(2) in it leaves a descriptor open until its end.
const MOST_IN_A_STRETCH: u64 = 64;

/// Times one operation. Waiting for storage is part of its time, so only preemption and migration count as disturbance.
/// Returns its result, the batch, and the bytes that it read from storage.
pub(super) fn time<T>(clock: Clock, work: impl FnOnce() -> T) -> (Option<T>, Batch, u64) {
    let mut answer = None;
    let mut counting = Counting::begin(Of::Thread);
    let emptied = counting.empty(|| clock.time(|| ()));
    let span = counting.work(|| clock.time(|| answer = Some(work())));
    let (tally, [before, after]) = counting.end_with_usage();
    let emptied_again = clock.time(|| ());
    let empty = emptied.ticks.min(emptied_again.ticks);
    let undisturbed = span.same_processor && before.nivcsw == after.nivcsw;
    let batch = Batch { tally, ..Batch::new(span.ticks, empty, undisturbed) };
    (answer, batch, 512 * after.inblock.saturating_sub(before.inblock))
}

struct Single<O>(O);

impl<O: Operation> Single<O> {
    fn once(&mut self, clock: Clock) -> Result<Batch> {
        self.0.before()?;
        let operation = &mut self.0;
        let (outcome, batch, from_storage) = time(clock, || operation.call());
        let outcome = outcome.unwrap_or_else(|| Err(io::Error::other("the call was not made")));
        let verdict = self.0.after(outcome, from_storage)?;
        Ok(Batch {
            counted: verdict.counted,
            undisturbed: (batch.undisturbed || self.0.is_long()) && verdict.kept,
            ..batch
        })
    }
}

impl<O: Operation> Runner for Single<O> {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        if self.0.warms_up() {
            self.once(clock)?;
        }
        let mut sum = self.once(clock)?;
        for _ in 1..order.all() {
            let next = self.once(clock)?;
            sum = together(sum, next);
        }
        Ok(sum)
    }
}

struct Stretch<O> {
    operation: O,
    outcomes: Vec<io::Result<usize>>,
}

impl<O: Operation> Stretch<O> {
    fn run(&mut self, clock: Clock, number: u64) -> Result<Batch> {
        let (operation, outcomes) = (&mut self.operation, &mut self.outcomes);
        outcomes.reserve(number as usize);
        let (_, batch, from_storage) =
            time(clock, || (0..number).for_each(|_| outcomes.push(operation.call())));
        let (mut counted, mut kept) = (Some(0), true);
        for outcome in outcomes.drain(..) {
            let verdict = operation.after(outcome, from_storage)?;
            counted = counted.zip(verdict.counted).map(|(sum, counted)| sum + counted);
            kept &= verdict.kept;
        }
        Ok(Batch { counted, undisturbed: batch.undisturbed && kept, ..batch })
    }
}

impl<O: Operation> Runner for Stretch<O> {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.operation.before()?;
        self.run(clock, (order.iterations / 16).max(1))?;
        self.run(clock, order.all())
    }
}

pub(super) fn together(first: Batch, second: Batch) -> Batch {
    Batch {
        work: first.work + second.work,
        empty: first.empty + second.empty,
        undisturbed: first.undisturbed && second.undisturbed,
        counted: first.counted.zip(second.counted).map(|(first, second)| first + second),
        counters: std::array::from_fn(|which| first.counters[which] + second.counters[which]),
        tally: first.tally.and(&second.tally),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Waits(u64);

    impl Operation for Waits {
        fn call(&mut self) -> io::Result<usize> {
            std::thread::sleep(std::time::Duration::from_millis(2));
            self.0 += 1;
            Ok(0)
        }

        fn after(&mut self, _: io::Result<usize>, _: u64) -> Result<Verdict> {
            Ok(Verdict { counted: Some(1), kept: self.0 < 5 })
        }
    }

    #[test]
    fn waiting_is_measured_and_is_no_disturbance() {
        let mut instance = instance(Waits(0));
        assert_eq!(instance.limits(), (1, 1));
        let order = Order::new(2);
        // Another test may preempt this thread, but not every time.
        let batch = instance.batch(Clock::Kernel, order).expect("a batch");
        assert!(batch.work >= 4_000_000 && batch.empty < batch.work);
        assert_eq!(batch.counted, Some(2));
        // One of the next operations is invalid.
        let batch = instance.batch(Clock::Kernel, order).expect("a batch");
        assert!(!batch.undisturbed);
    }

    #[test]
    fn a_stretch_times_many_operations_and_checks_each() {
        let mut instance = timed_as(&in_batches(Params::new()), Waits(0)).expect("batches");
        assert_eq!(instance.limits(), (1, MOST_IN_A_STRETCH));
        // One for warm-up and two that are timed; then some that are not valid.
        let batch = instance.batch(Clock::Kernel, Order::new(2)).expect("a batch");
        assert!(batch.work >= 4_000_000 && batch.counted == Some(2), "{batch:?}");
        assert!(!instance.batch(Clock::Kernel, Order::new(3)).expect("a batch").undisturbed);
        assert_eq!(timed_as(&Params::new(), Waits(0)).expect("single ones").limits(), (1, 1));
    }
}
