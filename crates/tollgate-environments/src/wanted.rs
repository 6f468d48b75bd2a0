//! Files of this machine that come along into an environment.

use std::path::PathBuf;

/// A path that a command needs, and how much of what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// As the command names it, from the root.
    pub path: PathBuf,
    /// What comes along.
    pub what: What,
}

/// How much of a path comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// That it is there, with its owner, mode, size and times.
    Presence,
    /// Of a directory also the names in it.
    Names,
    /// Of a file also what is in it.
    Content,
    /// Of a directory everything below it.
    All,
}
