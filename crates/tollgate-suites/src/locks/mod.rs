//! What it costs to take a lock and give it back.

use tollgate_engine::benchmark::{Means, Suite};

mod after_kill;
mod code;
mod footprint;
mod forced;
mod handover;
mod killed;
mod lock;
mod method;
mod preempted;
mod producer_consumer;
mod rseq;
mod semaphore;
#[cfg(test)]
mod stepping;
mod stress;
mod trade;
mod uncontended;

/// The locks.
pub(crate) static SUITE: Suite = Suite {
    name: "locks",
    about: "Locks at user level: taking them, handing them over, and what becomes of them under preemption.",
    benchmarks: &[
        &uncontended::BENCHMARK,
        &handover::BENCHMARK,
        &preempted::BENCHMARK,
        &producer_consumer::BENCHMARK,
        &after_kill::BENCHMARK,
        &footprint::BENCHMARK,
    ],
    control: None,
    means: Means::Rounds,
};
