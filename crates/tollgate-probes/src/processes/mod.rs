//! What it costs to make processes and threads, and to switch between them.

use std::io;

use crate::bench::{Refusal, room};
use crate::probe::Suite;

mod accounts;
mod calls;
mod clone3;
mod creation;
mod exec;
mod fork;
mod fork_exec;
mod image;
mod memory;
mod population;
mod posix_spawn;
mod shell;
mod thread;
mod vfork;

/// The processes.
pub(crate) static SUITE: Suite = Suite {
    name: "processes",
    about: "Making processes and threads, and switching between them.",
    probes: &[
        &fork::PROBE,
        &vfork::PROBE,
        &clone3::PROBE,
        &thread::PROBE,
        &posix_spawn::PROBE,
        &fork_exec::PROBE,
        &exec::PROBE,
        &shell::PROBE,
        &population::TIME,
        &population::MEMORY,
        &population::FREE,
    ],
    twin: None,
};

/// What it says of the place that one more process or thread was refused.
fn refused(call: &str, error: &io::Error) -> Refusal {
    match (error.raw_os_error(), room::processes_allowed()) {
        (Some(libc::EAGAIN), Some(allowed)) => {
            Refusal::Skip(format!("{call} is refused ({error}): of the {allowed}, none is left"))
        }
        (Some(libc::EAGAIN), None) => Refusal::Skip(format!("{call} is refused: {error}")),
        _ => Refusal::of(&format!("{call} is refused"), error),
    }
}
