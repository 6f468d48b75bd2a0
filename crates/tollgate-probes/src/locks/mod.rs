//! What it costs to take a lock and give it back.

use crate::probe::Suite;

mod code;
mod footprint;
mod handover;
mod lock;
mod market;
mod method;
mod producer_consumer;
mod rseq;
mod semaphore;
#[cfg(test)]
mod stepping;
mod uncontended;

/// The locks.
pub(crate) static SUITE: Suite = Suite {
    name: "locks",
    about: "Locks at user level: taking them, handing them over, and what becomes of them under preemption.",
    probes: &[&uncontended::PROBE, &handover::PROBE, &producer_consumer::PROBE, &footprint::PROBE],
    twin: None,
};
