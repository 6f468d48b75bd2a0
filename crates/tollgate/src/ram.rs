//! `tollgate ram`: lends a device in memory to a command.

use tollgate_engine::interrupt;
use tollgate_environments::{Account, Cleanup, Contents, EnvironmentError, Lent, TakenBack};
use tollgate_model::Unit;
use tollgate_output::figures;
use tollgate_trace::{Choice, Request};

use crate::args::ram::RamArgs;
use crate::failure::{Failure, go_on, plainly};
use crate::{say, storage, trace};

const VARIABLE: &str = "TOLLGATE_RAM";

impl RamArgs {
    /// Lends a device to a command. Does not return once the command was started: the process ends as the command did.
    /// Fails if the input is wrong, the device cannot be made, or the command cannot be started.
    pub fn execute(&self) -> Result<(), Failure> {
        // The cleanup process is forked before anything else is started.
        let cleanup = Cleanup::begin().map_err(|error| {
            Failure::input(format!("the cleanup process could not be started: {}", plainly(&error)))
        })?;
        interrupt::install();
        let stop = || interrupt::requested().is_some();
        let lent = Lent::make(Contents::named(&self.fs), self.size, &storage::memory(), &cleanup, &stop)
            .map_err(failure)?;
        go_on()?;
        let request = Request {
            by: Choice::Rusage,
            variables: vec![(VARIABLE.into(), lent.path().into())],
            // Processes that the command leaves are ended without waiting for them.
            linger: std::time::Duration::ZERO,
            ..Request::new(self.command.clone())
        };
        let before = lent.account();
        let outcome = tollgate_trace::trace(&request).map_err(trace::failure);
        if before.is_beyond_memory && !self.quiet {
            say::say(&held(self, &before, &lent.account()));
        }
        match lent.take_back() {
            Ok(TakenBack { was_full: true, .. }) => {
                say::say(
                    "ram: the command was ended: it wrote nearly all of the memory that the device may use",
                );
            }
            Ok(TakenBack { ended: 0, .. }) => {}
            Ok(_) if self.quiet => {}
            Ok(TakenBack { ended: 1, .. }) => say::say("a process that the command left was ended"),
            Ok(TakenBack { ended, .. }) => {
                say::say(&format!("{ended} processes that the command left were ended"))
            }
            Err(error) => say::say(&format!("the device in memory was not removed: {error}")),
        }
        drop(cleanup);
        tollgate_trace::end_like(outcome?.ended)
    }
}

/// The memory held by a device that is larger than the memory.
fn held(args: &RamArgs, before: &Account, after: &Account) -> String {
    let size = |bytes: Option<u64>| {
        bytes.map_or_else(|| "an unknown part".to_owned(), |bytes| figures::bytes(bytes as f64))
    };
    let made = match before.made_in {
        None => String::new(),
        Some(time) => {
            format!(
                "mkfs.{} took {}; ",
                args.fs,
                figures::estimate(time.as_secs_f64() * 1e9, Unit::Nanoseconds)
            )
        }
    };
    format!(
        "ram: {}: {made}{} of memory held before the command, {} after it",
        size(Some(before.size)),
        size(before.taken),
        size(after.taken)
    )
}

fn failure(error: EnvironmentError) -> Failure {
    match (error, interrupt::requested()) {
        (EnvironmentError::Interrupted, Some(signal)) => Failure::Interrupted(signal),
        (error @ EnvironmentError::NeedsRoot(_), _) => Failure::input(format!("ram {error}")),
        (error, _) => Failure::input(format!("ram: {error}")),
    }
}
