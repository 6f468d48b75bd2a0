//! What it costs to take a lock and give it back.

use crate::probe::{Means, Suite};

mod after_kill;
mod code;
mod footprint;
mod forced;
mod handover;
mod killed;
mod lock;
mod market;
mod method;
mod preempted;
mod producer_consumer;
mod rseq;
mod semaphore;
#[cfg(test)]
mod stepping;
mod stress;
mod uncontended;

/// The locks.
pub(crate) static SUITE: Suite = Suite {
    name: "locks",
    about: "Locks at user level: taking them, handing them over, and what becomes of them under preemption.",
    probes: &[
        &uncontended::PROBE,
        &handover::PROBE,
        &preempted::PROBE,
        &producer_consumer::PROBE,
        &after_kill::PROBE,
        &footprint::PROBE,
    ],
    twin: None,
    means: Means::Rounds,
};
