use crate::prelude::*;

mod atomic;
mod bandwidth;
mod home;
mod latency;
mod neighbour;
mod pairing;
mod pingpong;
#[cfg(test)]
mod reference;
mod region;
mod shootdown;
mod thrash;
mod tlb;
mod topology;

pub(crate) use pairing::{related_to_home, words as relations};

pub(crate) static SUITE: Suite = Suite {
    name: "memory",
    about: "Memory latency and bandwidth, and cache lines shared by several cores.",
    benchmarks: &[
        &latency::BENCHMARK,
        &bandwidth::BENCHMARK,
        &tlb::BENCHMARK,
        &shootdown::BENCHMARK,
        &thrash::BENCHMARK,
        &pingpong::BENCHMARK,
        &atomic::BENCHMARK,
        &neighbour::BENCHMARK,
        &home::BENCHMARK,
    ],
};
