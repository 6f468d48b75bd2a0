//! The command as a process that waits to be released, and ends as it would have ended without a tracer.
//!
//! - [`path`]: finds its file. [`child`]: its process, which waits before execve(2).
//! - [`streams`]: the standard streams that were closed.
//! - [`signals`]: the signals of this process that belong to the command. [`ending`]: ends like the command.

pub(crate) mod child;
pub(crate) mod ending;
pub(crate) mod path;
pub(crate) mod signals;
mod streams;

pub(crate) use child::Child;
pub(crate) use path::Program;
