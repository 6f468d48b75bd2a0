//! Locks, checked over every order in which the steps of their processes can come.
//!
//! A test that runs a lock a million times sees only the orders that the machine happened to choose. Here the machine is a
//! model whose whole state is visible, and [`search`] visits every state that it can reach. A harm that is never reached
//! cannot happen; one that is reached is shown by a shortest schedule that leads to it ([`counterexample`]).
//!
//! A [`subject`] is a program together with its machine. [`output`] shows the results.
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

/// Returns everything that is checked: the paper's figures and other programs, mutants, then Lamport's algorithm.
pub fn subjects() -> impl Iterator<Item = &'static dyn Subject> {
    figures::subjects().iter().copied()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
