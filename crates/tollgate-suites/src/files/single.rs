//! A runner that times operations one by one: each sample is one operation, so that rare slow ones show in the
//! distribution.
//!
//! A sample of this suite is one operation: latency of storage is a distribution, and users ask for its
//! tail. A thread that waits for storage is switched out in every operation, so only an involuntary switch
//! disturbs. The state of a page is certified before each read by cachestat(2) or mincore(2).

use std::io;

use crate::prelude::*;

/// One operation, with its untimed preparation and check.
pub(super) trait Operation {
    /// Whether an untimed operation runs first, to warm caches for short ones.
    fn warms_up(&self) -> bool {
        true
    }

    /// Whether it takes longer than a time slice, so that preemption is a part of it as of a whole command.
    fn is_long(&self) -> bool {
        false
    }

    fn before(&mut self) -> Result<()> {
        Ok(())
    }

    /// The timed call.
    ///
    /// # Errors
    /// Those of the call; `after` interprets them.
    fn call(&mut self) -> io::Result<usize>;

    /// Checks it. `from_storage` is the number of bytes that this thread read from storage.
    fn after(&mut self, outcome: io::Result<usize>, from_storage: u64) -> Result<Verdict>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Counted events, where the benchmark counts any.
    pub counted: Option<u64>,
    /// The operation was valid.
    pub kept: bool,
}

/// Valid, with nothing counted.
pub(super) const FINE: Verdict = Verdict { counted: None, kept: true };

/// An instance whose samples are single operations.
pub(super) fn instance(operation: impl Operation + 'static) -> Instance {
    Instance::new(Single(operation)).with_most(1)
}

/// Times one operation alone. Waiting for storage is part of its time, so only preemption and migration count as
/// disturbance. Returns its result, the batch, and the bytes that it read from storage.
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
        let outcome = outcome.unwrap_or_else(|| Err(io::Error::other("the call did not run")));
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

    /// Counts its calls, and waits in each.
    struct Waits(u64);

    impl Operation for Waits {
        fn warms_up(&self) -> bool {
            true
        }

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
        let order = Order::of(2);
        // Another test may preempt this thread, but not each time.
        let batch = instance.batch(Clock::Kernel, order).expect("a batch");
        assert!(batch.work >= 4_000_000 && batch.empty < batch.work);
        assert_eq!(batch.counted, Some(2));
        // One of the next operations is invalid.
        let batch = instance.batch(Clock::Kernel, order).expect("a batch");
        assert!(!batch.undisturbed);
    }
}
