//! The command as a process that waits to be released, and ends as it would have ended without a tracer.
//!
//! [`path`] finds its file, [`child`] is its process, and [`streams`] its standard streams that were closed. [`signals`] has the
//! signals of this process that belong to the command, and [`ending`] ends like the command.

pub(crate) mod child;
pub(crate) mod ending;
pub(crate) mod path;
pub(crate) mod signals;
mod streams;

pub(crate) use child::Child;
pub(crate) use path::Program;
