//! Whole commands of the user, executed in alternation: which is executed next, how and how often.
//!
//! - [`order`]: one execution of a command, and what it gave.
//! - [`executor`]: a place where commands are executed: this process, or an agent in an environment.

pub mod executor;
pub mod order;

pub use executor::Executor;
pub use order::{Cooled, End, Execution, How, Input, Order, Output};
