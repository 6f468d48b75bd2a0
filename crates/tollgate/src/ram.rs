//! `tollgate ram`: a device in memory that is lent to a command.

use tollgate_engine::interrupt;
use tollgate_environments::{Contents, EnvironmentError, Guardian, Lent};
use tollgate_trace::{Choice, Request};

use crate::args::ram::RamArgs;
use crate::failure::{Failure, go_on, plainly};
use crate::{say, storage, trace};

mod compare;

/// The variable in which the command finds the directory or the device.
const VARIABLE: &str = "TOLLGATE_RAM";

/// Lends a device to a command, or compares the ways to have files in memory. Where the command was started, this does not come back:
/// the process ends as the command did.
///
/// # Errors
/// Wrong input; a device that cannot be made; a command that cannot be started.
pub fn ram(args: &RamArgs) -> Result<(), Failure> {
    // The guardian is forked before anything else is started.
    let guardian = Guardian::begin().map_err(|error| {
        Failure::input(format!("the process that undoes cannot be started: {}", plainly(&error)))
    })?;
    interrupt::install();
    if args.compare {
        return compare::compare(args);
    }
    let stop = || interrupt::requested().is_some();
    let lent = Lent::make(Contents::named(&args.fs), args.size, &storage::memory(), &guardian, &stop)
        .map_err(failure)?;
    go_on()?;
    let request = Request {
        by: Choice::Rusage,
        variables: vec![(VARIABLE.into(), lent.path().into())],
        // Processes that the command leaves are ended, and not waited for.
        linger: std::time::Duration::ZERO,
        ..Request::new(args.command.clone())
    };
    let outcome = tollgate_trace::trace(&request).map_err(trace::failure);
    match lent.take_back() {
        Ok(0) => {}
        Ok(_) if args.quiet => {}
        Ok(1) => say::say("a process that the command left was ended"),
        Ok(number) => say::say(&format!("{number} processes that the command left were ended")),
        Err(error) => say::say(&format!("the device in memory is not gone: {error}")),
    }
    drop(guardian);
    tollgate_trace::end_like(outcome?.ended)
}

fn failure(error: EnvironmentError) -> Failure {
    match (error, interrupt::requested()) {
        (EnvironmentError::Interrupted, Some(signal)) => Failure::Interrupted(signal),
        (error @ EnvironmentError::NeedsRoot(_), _) => Failure::input(format!("ram {error}")),
        (error, _) => Failure::input(format!("ram: {error}")),
    }
}
