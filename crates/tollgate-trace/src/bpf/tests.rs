//! Traces commands of known behaviour with the real programs. The tests need root; without it each prints that and is skipped.

#![allow(unsafe_code)] // fork(2), for a process that waits to be released.

mod counts;
mod disk;
mod harness;
mod stopped;
mod truths;
