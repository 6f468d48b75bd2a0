//! What it costs when two cores want the same cache line, and how far away the memory is.

use tollgate_engine::benchmark::{Means, Suite};

mod atomic;
mod latency;
mod memory;
mod neighbour;
mod pairing;
mod pingpong;
mod thrash;
mod topology;

/// The cache lines.
pub(crate) static SUITE: Suite = Suite {
    name: "memory",
    about: "Cache lines: how far away they are, and what it costs when another core wants the same one.",
    benchmarks: &[
        &latency::BENCHMARK,
        &thrash::BENCHMARK,
        &pingpong::BENCHMARK,
        &atomic::BENCHMARK,
        &neighbour::BENCHMARK,
    ],
    control: None,
    means: Means::Rounds,
};
