//! Known truths, followed by the programs as they are. They need root; without it each says so and is skipped.

#![allow(unsafe_code)] // fork(2), to have a process that waits to be let go.

mod counts;
mod disk;
mod harness;
mod truths;
