//! What it costs to make processes and threads, and to switch between them.

use crate::probe::Suite;

mod accounts;
mod population;

/// The processes.
pub(crate) static SUITE: Suite = Suite {
    name: "processes",
    about: "Making processes and threads, and switching between them.",
    probes: &[&population::TIME, &population::MEMORY, &population::FREE],
    twin: None,
};
