//! The benches of a user's builds, executed in alternation: `tollgate versus --bench`.
//!
//! A build is a program with benches and the harness that executes them. Each execution is of one bench of one build, takes about
//! ten milliseconds and gives one figure. The executions of one bench in all builds follow each other directly.
//!
//! - [`harness`]: which harness a program has, its command lines, and its answers. `divan`, `reading`: parsers of the answers.
//! - [`template`]: a harness of the user's own, as two command lines and a line of output.
//! - [`kernel`]: the system calls and page faults of an iteration. [`counted`]: its instructions, in a guest that counts.
//! - [`builds`]: programs by links of equal length, and their executions. `copies`: in other pages each time.
//! - [`rounds`]: the executions from the first to the last.

pub mod builds;
mod copies;
pub mod counted;
mod divan;
pub mod harness;
pub mod kernel;
mod reading;
pub mod rounds;
pub mod template;
#[cfg(test)]
mod tests;

pub use builds::{Build, Builds, is_nameable};
pub use harness::Harness;
pub use kernel::Asked;
pub use rounds::{Bench, Plan, measure};
pub use template::Template;
