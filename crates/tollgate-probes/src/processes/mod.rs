//! What it costs to make processes and threads, and to switch between them.

use crate::probe::{Means, Suite};

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
pub(crate) mod raw;
mod ring;
mod shell;
mod stage;
mod switch;
mod thread;
mod trial;
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
        &switch::PROBE,
        &ring::PROBE,
    ],
    twin: None,
    means: Means::Rounds,
};
