//! The cost of an environment itself: its start, its end, its memory, and the first touch of a page.
//!
//! The session's own process measures it from outside, by this machine's clock. It starts and ends the environments repeatedly,
//! in random order in each round. Each benchmark is one aspect of that.

mod first_touch;
mod memory;
mod phase;
mod shell;
mod start;
mod stop;

use crate::prelude::*;

pub(crate) static SUITE: Suite = Suite {
    name: "environments",
    about: "Start, stop and memory of an environment itself; only on request: `tollgate run environments` measures those that --in names, or all that work here.",
    benchmarks: &[
        &start::BENCHMARK,
        &shell::BENCHMARK,
        &stop::BENCHMARK,
        &memory::BENCHMARK,
        &first_touch::BENCHMARK,
        &phase::BENCHMARK,
    ],
};
