//! What it costs when two cores want the same cache line, and how far away the memory is.

use crate::probe::{Means, Suite};

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
    name: "lines",
    about: "Cache lines: how far away they are, and what it costs when another core wants the same one.",
    probes: &[&latency::PROBE, &thrash::PROBE, &pingpong::PROBE, &atomic::PROBE, &neighbour::PROBE],
    twin: None,
    means: Means::Rounds,
};
