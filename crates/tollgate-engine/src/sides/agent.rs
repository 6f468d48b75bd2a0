//! The agent: this program in an environment of a session. It prepares bench processes there as the session's coordinator asks.
//!
//! It speaks on standard input and output, and ends when its input does. Its parts: `protocol` (the messages), `serve` (its
//! life), `bench` (the bench process that it watches), `commands` (whole commands), `itself` (the memory of its environment),
//! `functions` (the names of the kernel's functions).

mod bench;
pub(crate) mod commands;
mod functions;
pub(crate) mod itself;
pub(crate) mod protocol;
pub(crate) mod serve;
pub(crate) mod streams;

use serde::{Deserialize, Serialize};
use tollgate_model::Facts;

use crate::{cases::benchmark::Benchmark, machine::limits::Limits, machine::storage::Storage, sides::versus};

pub use protocol::MAGIC;
pub use protocol::PATIENCE;
pub use protocol::PROTOCOL;
pub use serve::serve;

/// The resources of an agent, all of the environment that it runs in.
pub struct Means<'a> {
    /// The version of this program.
    pub version: &'static str,
    /// Finds a benchmark by name.
    pub find: fn(&str) -> Option<&'static Benchmark>,
    /// Whether the program's `main` begins with [`serve_if_worker`](crate::serve_if_worker), see [`Plan`](crate::Plan).
    pub executes: bool,
    /// Reads the facts of this moment.
    pub facts: &'a mut dyn FnMut(Moment) -> Facts,
    /// Reads the environment's limits.
    pub limits: &'a dyn Fn() -> Limits,
    /// The directory for files, made when a chosen case needs it, or why there is none. It is kept until [`serve()`] returns.
    pub storage: &'a mut dyn FnMut() -> Result<Storage, String>,
    /// Executes commands of the user. Its maker keeps what they leave until [`serve()`] returns.
    pub executor: &'a mut dyn versus::Executor,
}

/// When facts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// Before the first measurement: all of them.
    Before,
    /// After the last one: those that change from moment to moment.
    After,
}
