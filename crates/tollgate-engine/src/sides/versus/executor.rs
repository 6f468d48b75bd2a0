//! The interface of a place where commands are executed one by one: this process, or an agent in an environment.

use super::order::{Cooled, Execution, Order};
use crate::cases::run::Halt;

/// A place where commands are executed.
pub trait Executor {
    /// Executes a command and waits for its end. `tick` is called a few times a second meanwhile. Processes that the command leaves
    /// behind are killed, unless [`Order::keeps`].
    ///
    /// # Errors
    /// See [`Halt`]; a command that cannot be started is an [`Execution`] that says so.
    fn execute(&mut self, order: &Order, tick: &mut dyn FnMut()) -> Result<Execution, Halt>;

    /// Drops the pages of these files from the page cache, file by file, and checks which stayed.
    ///
    /// # Errors
    /// See [`Halt`].
    fn cool(&mut self, files: &[String]) -> Result<Cooled, Halt>;
}
