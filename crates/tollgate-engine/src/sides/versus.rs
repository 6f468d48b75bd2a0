//! Executes whole commands of the user in alternation, and decides which is executed next, how, and how often.
//!
//! - [`plan`]: the compared commands, and how long they are compared. [`rounds`]: the executions from the first preparation to the last
//!   clean-up.
//! - [`order`]: one execution of a command, and its result. [`cell`]: the executions of a command in one place.
//! - [`counted`]: an execution in a guest that counts instructions. [`tally`]: the counts as measurements.
//! - [`executor`]: a place where commands are executed: this process, or an agent in an environment.

pub mod cell;
pub mod counted;
pub mod executor;
pub mod order;
pub mod plan;
pub mod rounds;
pub mod tally;
#[cfg(test)]
mod tests;

pub use crate::cases::run::Halt;
pub use cell::Found;
pub use executor::Executor;
pub use order::{Cooled, End, Execution, How, Input, Order, Output};
pub use plan::{Accepts, Given, Plan};
pub use rounds::{Compared, Doing, NotCompared, measure};
pub use tollgate_alternation::Rounds;
