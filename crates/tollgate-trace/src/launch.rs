//! The command as a process that waits to be let go, and ends as it would have ended alone.
//!
//! - [`path`]: which file it is. [`child`]: its process, which waits before its execve(2).
//! - [`streams`]: which of its standard streams were closed.
//! - [`signals`]: which of the signals that this process gets are the command's. [`ending`]: ending as it did.

pub(crate) mod child;
pub(crate) mod ending;
pub(crate) mod path;
pub(crate) mod signals;
mod streams;

pub(crate) use child::Child;
pub(crate) use path::Program;
