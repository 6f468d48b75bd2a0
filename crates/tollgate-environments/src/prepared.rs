//! An environment that is ready to be started: a command that runs the agent in it, and how to undo the preparation.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How an environment is started and undone.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The program and its arguments. It runs the agent and passes its own standard input and output to it.
    pub command: Vec<OsString>,
    /// Environment variables of the command, in addition to the inherited ones.
    pub variables: Vec<(OsString, OsString)>,
    /// The runtime that makes it, if several could.
    pub runtime: Option<&'static str>,
    /// Actions that undo everything that was made and that the command makes, in the order of making. They are performed in
    /// reverse.
    pub undo: Vec<Undo>,
}

/// An action that undoes one thing that was made or changed. It can be repeated, and does nothing if nothing is left to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Undo {
    /// Ends the process group of this process, if it still is the process that was started then (its start time in
    /// /proc/PID/stat, field 22): waits a moment for it to end by itself, sends SIGTERM, then SIGKILL.
    Group {
        /// Leader of the group.
        pid: i32,
        /// Clock ticks after boot.
        started: u64,
    },
    /// Runs a program to its end, such as `runc delete --force ID`. Its failure is not an error.
    Program(Vec<OsString>),
    /// Unmounts everything at or below this path, lazily (umount2(2), MNT_DETACH).
    Unmount(PathBuf),
    /// Kills the processes in this cgroup directory and removes it with its descendants.
    Cgroup(PathBuf),
    /// Removes a directory that this program made, with its contents, if it still has this device and inode.
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// st_dev.
        device: u64,
        /// st_ino.
        inode: u64,
    },
    /// Removes private directories that a process left in `under`. Their locks show that it has ended.
    Left {
        /// Directory that contains them.
        under: PathBuf,
        /// Process ID, which is part of their names.
        pid: i32,
    },
    /// Ends the processes that keep the mounts of a device in memory, and removes the device, its mounts and its directory.
    Ram {
        /// Process ID of the program that made it.
        pid: i32,
        /// Unique name of its private directory.
        home: String,
        /// The mount namespace that the program left for its own, as /proc/PID/ns/mnt names it. Processes there see none of
        /// its mounts.
        outside: PathBuf,
    },
    /// Writes the original value of a machine setting.
    Setting {
        /// Its file in /proc/sys or /sys.
        path: PathBuf,
        /// The original value.
        value: String,
    },
    /// Executes a command of the user by sh(1), which switches a state off.
    Shell {
        /// One line.
        command: String,
        /// The directory in which it is executed.
        directory: PathBuf,
    },
}
