//! Several checks at once, within the available processors and memory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use tollgate_inspect::Machine;
use tollgate_output::figures;
use tollgate_schedules::output::Outcome;
use tollgate_schedules::subject::Wish;
use tollgate_schedules::{Limits, Setting, Subject};

use super::chosen::Chosen;
use crate::failure::Failure;

/// A search with less memory than this does not deserve its own thread.
const LEAST_BYTES: usize = 1 << 30;

/// Checks all of them. The outcomes are in their order, whichever ends first.
pub fn check(subjects: &[Chosen], wish: Wish, states: usize) -> Result<Vec<Outcome<'_>>, Failure> {
    let settings: Vec<Setting> = subjects
        .iter()
        .map(|subject| subject.get().setting(wish))
        .collect::<Result<_, _>>()
        .map_err(|unfit| Failure::input(unfit.to_string()))?;
    let bytes = memory();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let workers = processors.min(subjects.len()).min(bytes / LEAST_BYTES).max(1);
    let limits = Limits { states, bytes: (bytes / workers).min(Limits::default().bytes) };
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(subject), Some(&setting)) = (subjects.get(at), settings.get(at)) else { break };
            let outcome = check_one(subject.get(), setting, limits);
            done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((at, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers {
            // If a thread cannot start, the others do its work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
}

fn check_one(subject: &dyn Subject, setting: Setting, limits: Limits) -> Outcome<'_> {
    let began = Instant::now();
    let checked = subject.check(setting, limits);
    Outcome { subject, checked, seconds: began.elapsed().as_secs_f64() }
}

/// Half of the memory that the environment allows, for all searches together.
fn memory() -> usize {
    let allowed = tollgate_inspect::allowance(&Machine::here()).memory;
    allowed.map_or(Limits::default().bytes, |limit| usize::try_from(limit.amount / 2).unwrap_or(usize::MAX))
}

/// The condition of `--fail-on violated`, with the programs that do not hold.
pub fn conclude(failed: &[String]) -> Result<(), Failure> {
    match failed {
        [] => Ok(()),
        [only] => Err(Failure::Condition(only.clone())),
        [first, rest @ ..] => {
            let others = figures::count(rest.len(), "other does", "others do");
            Err(Failure::Condition(format!("{first}, and {others} not hold")))
        }
    }
}
