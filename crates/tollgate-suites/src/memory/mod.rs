//! Memory: latency of each level, and cache lines shared by several cores.

use crate::prelude::*;

mod atomic;
mod latency;
mod neighbour;
mod pairing;
mod pingpong;
mod region;
mod thrash;
mod topology;

pub(crate) static SUITE: Suite = Suite {
    name: "memory",
    about: "Memory latency, and cache lines shared by several cores.",
    benchmarks: &[
        &latency::BENCHMARK,
        &thrash::BENCHMARK,
        &pingpong::BENCHMARK,
        &atomic::BENCHMARK,
        &neighbour::BENCHMARK,
    ],
    control: None,
};
