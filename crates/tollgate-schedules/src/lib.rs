//! Locks, and every order in which the steps of the processes that use them can come.
//!
//! A test that runs a lock a million times has seen the million orders that the machine happened to choose. Here the
//! machine is a model small enough that all of its state is in sight, and [`search`] looks at every state that it can
//! reach: a harm that is never reached cannot happen, and one that is reached is shown by the shortest schedule that
//! leads to it ([`counterexample`]).
//!
//! A [`subject`] is checked: a program together with the machine that they run on. [`output`] shows what came of it.
#![forbid(unsafe_code)]

pub mod counterexample;
mod figures;
pub mod mips;
pub mod output;
mod own;
pub mod search;
pub mod subject;
pub mod tso;

pub use counterexample::{Counterexample, Step};
pub use figures::{COMPARISONS, methods};
pub use own::{OwnError, from_text};
pub use search::{Harm, Limits};
pub use subject::{Checked, Setting, Subject, Verdict};

/// Everything that is checked here: the figures of the paper and its other programs, mutants, then Lamport's algorithm.
pub fn subjects() -> impl Iterator<Item = &'static dyn Subject> {
    figures::subjects().iter().copied()
}

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
