use crate::prelude::*;

mod accounts;
mod calls;
mod clone3;
mod creation;
mod exec;
mod fixture;
mod fork;
mod fork_exec;
mod image;
mod memory;
mod population;
mod posix_spawn;
pub(crate) mod raw;
mod ring;
mod shell;
mod sleep;
mod switch;
mod thread;
mod trial;
mod vfork;

pub use image::bare as fixed_program;

pub(crate) static SUITE: Suite = Suite {
    name: "processes",
    about: "Creation of processes and threads, and context switches.",
    benchmarks: &[
        &fork::BENCHMARK,
        &vfork::BENCHMARK,
        &clone3::BENCHMARK,
        &thread::BENCHMARK,
        &posix_spawn::BENCHMARK,
        &fork_exec::BENCHMARK,
        &exec::BENCHMARK,
        &shell::BENCHMARK,
        &population::TIME,
        &population::MEMORY,
        &population::FREE,
        &switch::BENCHMARK,
        &ring::BENCHMARK,
        &sleep::BENCHMARK,
    ],
};
