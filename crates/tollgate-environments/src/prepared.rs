//! An environment that is ready to be started: a command that runs the agent in it, and what undoes the preparation.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How an environment is started and undone.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The program and its arguments. It runs the agent and passes its own standard input and output to it.
    pub command: Vec<OsString>,
    /// Variables that the command gets beside the inherited ones.
    pub variables: Vec<(OsString, OsString)>,
    /// The runtime that makes it, where there are several.
    pub runtime: Option<&'static str>,
    /// What undoes everything that was made and that the command makes, the first made first. The cleanup process undoes it in reverse.
    pub undo: Vec<Undo>,
}

/// Undoes one thing that was made or changed. Each may be repeated, and does nothing where there is nothing to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Undo {
    /// Ends the process group of this process, if the process still is the one that was started then (its start time in
    /// /proc/PID/stat, field 22): waits a moment for its own end, sends SIGTERM, then SIGKILL.
    Group {
        /// Its leader.
        pid: i32,
        /// Clock ticks after boot.
        started: u64,
    },
    /// Runs a program to its end, such as `runc delete --force ID`. Its failure is no error.
    Program(Vec<OsString>),
    /// Unmounts what is mounted at or below this path, lazily (umount2(2), MNT_DETACH).
    Unmount(PathBuf),
    /// Kills the processes in this cgroup directory and removes it with those beneath it.
    Cgroup(PathBuf),
    /// Removes a directory that this program made, with what is in it: known by its device and inode.
    Directory {
        /// Its path.
        path: PathBuf,
        /// st_dev.
        device: u64,
        /// st_ino.
        inode: u64,
    },
    /// Removes the private directories that the program with this number left in a directory. Their locks say that it has ended.
    Left {
        /// Where they are.
        under: PathBuf,
        /// The program's number, which stands in their names.
        pid: i32,
    },
    /// Ends the processes that keep the mounts of a device in memory, and removes the device, its mounts and its directory.
    Ram {
        /// The number of the program that made it.
        pid: i32,
        /// The name of its private directory, which no other has.
        home: String,
        /// The mount namespace that the program left for one of its own, as /proc/PID/ns/mnt names it: the processes there see none of
        /// its mounts.
        outside: PathBuf,
    },
    /// Writes a setting of the machine back.
    Setting {
        /// Its file in /proc/sys or /sys.
        path: PathBuf,
        /// The value that it had.
        value: String,
    },
}
