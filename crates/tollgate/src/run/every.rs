//! `tollgate run --every`: a machine of a fleet measures itself again and again, where no timer and no shell is there to start it.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tollgate_engine::interrupt;
use tollgate_store::fleet;

use super::once;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::say;

/// How long a signal may wait to be seen.
const SLICE: Duration = Duration::from_millis(500);

/// Measures now and at every multiple of the interval from now on, until a signal ends it; then the program ends by that signal. A later
/// run that fails is said, and the next one is made all the same.
///
/// # Errors
/// As of the first run.
pub fn every(interval: Duration, args: &RunArgs, store: &Path) -> Result<(), Failure> {
    interrupt::install();
    let began = Instant::now();
    measure(args, store)?;
    while wait_until(began + interval * next(began.elapsed(), interval)) {
        match measure(args, store) {
            Err(Failure::Input(why) | Failure::NotKept(why)) => say::say(&why),
            outcome => outcome?,
        }
    }
    Ok(())
}

/// One run, and the removal of old ones.
fn measure(args: &RunArgs, store: &Path) -> Result<(), Failure> {
    once(args)?;
    if args.keep_days.is_some() {
        fleet::prune(store, args.keep_days, false)?;
    }
    Ok(())
}

/// The next multiple of the interval: those that passed during a run are left out.
fn next(elapsed: Duration, interval: Duration) -> u32 {
    let passed = elapsed.as_nanos() / interval.as_nanos().max(1);
    u32::try_from(passed + 1).unwrap_or(u32::MAX)
}

/// Waits; false where a signal came.
fn wait_until(moment: Instant) -> bool {
    while interrupt::requested().is_none() {
        match moment.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return true,
            left => sleep(left.min(SLICE)),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_during_a_run_is_left_out() {
        let minute = Duration::from_secs(60);
        assert_eq!(next(Duration::from_secs(10), minute), 1);
        assert_eq!(next(Duration::from_secs(60), minute), 2);
        assert_eq!(next(Duration::from_secs(200), minute), 4);
    }
}
