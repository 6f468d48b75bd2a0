//! A runner for operations that are timed one by one: each sample is one of them, so that what is rare and dear
//! shows in the distribution and is not spread over a mean.

use std::io;

use tollgate_engine::clock::Clock;
use tollgate_engine::{Batch, Instance, Order, Refusal, Runner, cpu};

/// One operation, with what must be done before and after it, untimed.
pub(super) trait Operation {
    /// Whether another one goes before, untimed: for those that are over before caches are warm.
    fn warms_up(&self) -> bool;

    /// Before it.
    ///
    /// # Errors
    /// Why it cannot be done.
    fn before(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    /// What is timed.
    ///
    /// # Errors
    /// What the call says; `after` decides what that means.
    fn call(&mut self) -> io::Result<usize>;

    /// After it: whether what was done is what was asked. `from_storage` is what this thread has read from storage
    /// meanwhile.
    ///
    /// # Errors
    /// What went wrong.
    fn after(&mut self, outcome: io::Result<usize>, from_storage: u64) -> Result<Verdict, Refusal>;
}

/// What one operation was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Events that were counted, where the benchmark counts any.
    pub counted: Option<u64>,
    /// It was what is asked for, and not something that happened once.
    pub kept: bool,
}

/// As it should be, with nothing counted.
pub(super) const FINE: Verdict = Verdict { counted: None, kept: true };

/// An instance whose samples are single operations.
pub(super) fn instance(operation: impl Operation + 'static) -> Instance {
    Instance::new(Single(operation)).with_most(1)
}

/// Times `work` alone. It may wait for storage, which is part of the price: only who was made to yield, or was
/// moved, was disturbed. Returns what it answered, the block, and the bytes that it read from storage.
pub(super) fn time<T>(clock: Clock, work: impl FnOnce() -> T) -> (Option<T>, Batch, u64) {
    let mut answer = None;
    let emptied = clock.time(|| ());
    let before = cpu::Toll::of_thread();
    let span = clock.time(|| answer = Some(work()));
    let after = cpu::Toll::of_thread();
    let emptied_again = clock.time(|| ());
    let block = Batch {
        work: span.ticks,
        empty: emptied.ticks.min(emptied_again.ticks),
        undisturbed: span.same_processor && before.preemptions == after.preemptions,
        counted: None,
        counters: Default::default(),
    };
    (answer, block, after.read_from_storage.saturating_sub(before.read_from_storage))
}

struct Single<O>(O);

impl<O: Operation> Single<O> {
    fn once(&mut self, clock: Clock) -> Result<Batch, Refusal> {
        self.0.before()?;
        let operation = &mut self.0;
        let (outcome, block, from_storage) = time(clock, || operation.call());
        let outcome = outcome.unwrap_or_else(|| Err(io::Error::other("it was not called")));
        let verdict = self.0.after(outcome, from_storage)?;
        Ok(Batch { counted: verdict.counted, undisturbed: block.undisturbed && verdict.kept, ..block })
    }
}

impl<O: Operation> Runner for Single<O> {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch, Refusal> {
        if self.0.warms_up() {
            self.once(clock)?;
        }
        let mut sum = self.once(clock)?;
        for _ in 1..order.iterations + order.extra {
            let next = self.once(clock)?;
            sum = together(sum, next);
        }
        Ok(sum)
    }
}

/// Two blocks as one.
pub(super) fn together(first: Batch, second: Batch) -> Batch {
    Batch {
        work: first.work + second.work,
        empty: first.empty + second.empty,
        undisturbed: first.undisturbed && second.undisturbed,
        counted: first.counted.zip(second.counted).map(|(first, second)| first + second),
        counters: std::array::from_fn(|which| first.counters[which] + second.counters[which]),
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

        fn after(&mut self, _: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
            Ok(Verdict { counted: Some(1), kept: self.0 < 5 })
        }
    }

    #[test]
    fn waiting_is_part_of_the_estimate_and_no_disturbance() {
        let mut instance = instance(Waits(0));
        assert_eq!(instance.limits(), (1, 1));
        let order = Order { iterations: 2, extra: 0 };
        // Another test may make this thread yield; it will not do so each time.
        let block = instance.batch(Clock::Kernel, order).expect("a block");
        assert!(block.work >= 4_000_000 && block.empty < block.work);
        assert_eq!(block.counted, Some(2));
        // One of the next is not what was asked for.
        let block = instance.batch(Clock::Kernel, order).expect("a block");
        assert!(!block.undisturbed);
    }
}
