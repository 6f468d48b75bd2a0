//! Files of this machine that are copied into an environment.

use std::path::PathBuf;

/// A path that a command needs, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Absolute path, as the command names it.
    pub path: PathBuf,
    /// How much of it is copied.
    pub what: What,
}

/// How much of a path is copied. Each variant includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Its existence, with owner, mode, size and times.
    Presence,
    /// If it is a directory, also the names in it.
    Names,
    /// If it is a file, also its contents.
    Content,
    /// The contents also of a file that is younger than the command: it replaced one that was there.
    Replaced,
    /// If it is a directory, everything below it.
    All,
}
