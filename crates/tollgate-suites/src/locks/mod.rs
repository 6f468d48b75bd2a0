use crate::prelude::*;

mod after_kill;
mod bounded_buffer;
mod code;
mod footprint;
mod forced;
mod handover;
mod killed;
mod layout;
mod lock;
mod method;
mod preempted;
mod producer_consumer;
mod rseq;
mod semaphore;
#[cfg(test)]
mod stepping;
mod stress;
mod uncontended;

pub(crate) use semaphore::Semaphore;

pub(crate) static SUITE: Suite = Suite {
    name: "locks",
    about: "User-level locks: acquisition, handover, preemption, and death of the owner.",
    benchmarks: &[
        &uncontended::BENCHMARK,
        &preempted::BENCHMARK,
        &producer_consumer::BENCHMARK,
        &after_kill::BENCHMARK,
        &footprint::BENCHMARK,
        &handover::BENCHMARK,
    ],
};
