//! Commands of known behaviour, traced by the real programs. They need root; without it each says so and is skipped.

#![allow(unsafe_code)] // fork(2), to have a process that waits to be let go.

mod counts;
mod disk;
mod harness;
mod stopped;
mod truths;
