//! Decides which side of a comparison is executed next, and when the comparison ends.
//!
//! A comparison has *cases*, such as benches, each on some *sides*, such as builds. A *round* executes each due case once on each of
//! its sides, in an order that is drawn for each round. The figures of a round were neighbours in time, so they are compared pair by
//! pair. The [`Trial`] executes and has the clock. Nothing here waits or starts a process, so a simulation can drive this code.
//!
//! - [`Plan`]: how long and how precisely. [`Trial`]: what is executed.
//! - [`Alternation`]: the rounds. [`Places`]: where sides are executed, and which places are lost.
//! - [`drawn`], [`Mirrored`]: the orders.

#![forbid(unsafe_code)]

mod case;
mod order;
mod places;
mod plan;
mod rounds;
mod trial;

#[cfg(test)]
mod tests;

pub use case::LEAST_PAIRS;
pub use order::{InTurn, Mirrored, drawn};
pub use places::{Halt, Places};
pub use plan::{Plan, Rounds};
pub use rounds::Alternation;
pub use trial::{How, Outcome, SoFar, Trial, Turn};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
