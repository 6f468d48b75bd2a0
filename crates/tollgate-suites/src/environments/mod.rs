//! What an environment itself costs: its start and its end, its memory, and a page that it has never had.
//!
//! The session's own process measures it from outside, by the clock of this machine: environments are started and ended again and again, in
//! a random order in each round. Each benchmark is an aspect of that, in a file of its own.

mod first_touch;
mod memory;
mod phase;
mod shell;
mod start;
mod stop;

use crate::prelude::*;

pub(crate) static SUITE: Suite = Suite {
    name: "environments",
    about: "What an environment itself costs; only on request: `tollgate run environments`, of those that --in names or of all that work here.",
    benchmarks: &[
        &start::BENCHMARK,
        &shell::BENCHMARK,
        &stop::BENCHMARK,
        &memory::BENCHMARK,
        &first_touch::BENCHMARK,
        &phase::BENCHMARK,
    ],
    control: None,
};
