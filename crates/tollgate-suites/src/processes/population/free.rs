//! Free memory before and during a population, and whether the machine's accounts show how much it took.
//!
//! MemFree excludes the pages on per-CPU lists (`pcp` in mm/page_alloc.c), from which allocations take first. These lists
//! can hold more than a thousand threads need: then MemFree hardly changes, although the memory is taken. Other activity
//! also changes free memory. So MemFree and the lists (/proc/zoneinfo) are also read in idle stretches before and during
//! the population. If either change is a considerable part of what was taken, there is no figure.

use std::{thread::sleep, time::Duration};

use super::super::accounts::{Accounts, on_lists};
use super::{Children, Of, Population, Threads, amount};
use crate::prelude::*;

/// Memory of tasks that have ended becomes free after an RCU grace period.
const SETTLE: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(20);
/// Other changes may be at most this fraction (1/20) of what was taken.
const SMALL: i64 = 20;

pub(super) struct Free(pub Population);

impl Experiment for Free {
    fn run(&mut self, _: Clock, _: Order) -> Result<Vec<Batch>> {
        sleep(SETTLE);
        let idle = Memory::now()?;
        sleep(IDLE);
        let before = Memory::now()?;
        let [during, after] = self.while_paused(|| {
            let during = Memory::now()?;
            sleep(IDLE);
            Ok([during, Memory::now()?])
        })?;
        told(&self.0, [idle, before, during, after]).map_err(Refusal::NotMeasured)?;
        Ok(vec![amount(during.free, before.free)])
    }
}

impl Free {
    fn while_paused<T>(&self, look: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.0.of {
            Of::Processes => {
                let mut children = Children::none(&self.0)?;
                children.make_all()?;
                look()
            }
            Of::Threads => {
                let mut threads = Threads::none(&self.0);
                threads.make_all()?;
                look()
            }
        }
    }
}

/// Unused memory in bytes: MemFree, and the pages on per-CPU lists.
#[derive(Debug, Clone, Copy)]
struct Memory {
    free: i64,
    on_lists: i64,
}

impl Memory {
    fn now() -> Result<Self> {
        let on_lists = on_lists().map_err(|why| {
            Refusal::NotMeasured(format!("MemFree leaves out the pages on per-CPU lists, and {}", why.why()))
        })?;
        Ok(Self { free: Accounts::of_the_machine()?.free, on_lists })
    }

    fn all(self) -> i64 {
        self.free.saturating_add(self.on_lists)
    }
}

/// Decides whether MemFree shows what a population took, by readings while idle, before it, during it, and while it idled.
fn told(population: &Population, [idle, before, during, after]: [Memory; 4]) -> Result<(), String> {
    let who = match population.of {
        Of::Processes => format!("{} processes", population.number),
        Of::Threads => format!("{} threads", population.number),
    };
    let taken = before.all().saturating_sub(during.all());
    let small = taken / SMALL;
    if taken <= 0 {
        return Err(format!(
            "other activity freed {} more than {who} took (MemFree, /proc/zoneinfo)",
            mib(taken)
        ));
    }
    let changes = [(idle, before), (during, after)].into_iter().flat_map(|(first, then)| {
        [first.free.abs_diff(then.free), first.all().abs_diff(then.all())].map(u64::cast_signed)
    });
    let idle = changes.max().unwrap_or(0);
    if idle > small {
        return Err(format!(
            "other activity changed free memory by {} in {} ms, and {who} by {}",
            mib(idle),
            IDLE.as_millis(),
            mib(taken)
        ));
    }
    let from_lists = before.on_lists.saturating_sub(during.on_lists);
    if from_lists.saturating_abs() > small {
        return Err(format!(
            "MemFree leaves out the pages on per-CPU lists (/proc/zoneinfo): {who} took {}, {} of it from there",
            mib(taken),
            mib(from_lists)
        ));
    }
    Ok(())
}

fn mib(bytes: i64) -> String {
    format!("{:.1} MiB", bytes.unsigned_abs() as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    fn answer(idle: [i64; 2], before: [i64; 2], during: [i64; 2], after: [i64; 2]) -> Result<(), String> {
        let population = Population {
            of: Of::Threads,
            number: 1000,
            quota: Quota::default(),
            heartbeat: Heartbeat::default(),
        };
        told(
            &population,
            [idle, before, during, after]
                .map(|[free, lists]| Memory { free: free * MIB, on_lists: lists * MIB }),
        )
    }

    #[test]
    fn a_decrease_is_told_where_nothing_else_changed() {
        assert_eq!(answer([900, 100], [900, 100], [860, 100], [860, 100]), Ok(()));
        assert_eq!(answer([900, 100], [901, 100], [860, 101], [860, 100]), Ok(()), "small changes");
    }

    #[test]
    fn pages_from_per_cpu_lists_are_not_told() {
        // As observed: 1,000 threads took 36 MiB, of which MemFree shows 2.
        let why = answer([900, 200], [900, 200], [898, 166], [898, 166]).expect_err("no figure");
        assert_eq!(
            why,
            "MemFree leaves out the pages on per-CPU lists (/proc/zoneinfo): 1000 threads took 36.0 MiB, 34.0 MiB of it \
             from there"
        );
        // A decrease that refills the lists does not count either.
        assert!(answer([900, 100], [900, 100], [840, 124], [840, 124]).is_err());
    }

    #[test]
    fn other_activity_is_no_figure() {
        let why = answer([930, 100], [900, 100], [860, 100], [860, 100]).expect_err("no figure");
        assert_eq!(
            why,
            "other activity changed free memory by 30.0 MiB in 20 ms, and 1000 threads by 40.0 MiB"
        );
        assert!(answer([900, 100], [900, 100], [860, 100], [850, 100]).is_err(), "during the population");
        let why = answer([900, 100], [900, 100], [938, 100], [938, 100]).expect_err("the wrong sign");
        assert!(why.starts_with("other activity freed 38.0 MiB more than 1000 threads took"), "{why}");
    }
}
