//! Environments: where a session measures, and where files are measured.
//!
//! An environment is named (`kinds`), prepared and started with an agent in it (`environment`), and removed when it is dropped.
//! Before anything is made for it, the cleanup process is told how to undo that if this program is killed.
//!
//! - `kinds`: one file per kind: names, what works here, preparation. `pairs`: keys of names and their values.
//! - `environment`: an environment of a session. `making`: what its preparation makes. `ready`: one that can be started. `agent`:
//!   this program, as it is started there. `started`: the command that starts it. `life`: environments whose start is measured.
//!   `shell`: what replaces the agent then.
//! - `container`: containers of several runtimes. `vm`: guests. `seccomp`: filters of system calls. `knob`: a machine setting.
//! - `reach`: a prefix, and another machine. `upload`: this program over standard input. `greeting`: the first look at an answer.
//! - `installed`: packages and files that make an environment possible. `wanted`: files that are copied into it.
//! - `cleanup`: the process that undoes. `prepared`, `undo`: what is undone, and how.
//! - `directory`: a private directory, and how much may be written to it. `known_directory`: one known to the cleanup process.
//! - `ram`: a fresh file system on a block device in memory. `lent`: one that is lent to a command. `device`: the block device.
//! - `commands`: the few external programs that are run. `error`: why an environment cannot be made.
//!
//! The crate never touches a directory, device, module or mount that it did not make. It recognises its own by a unique name, by
//! their owner, and by a lock that the maker holds as long as it lives.

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/takes_any.rs"]
mod takes_any;

mod agent;
mod cleanup;
mod commands;
mod container;
mod device;
mod directory;
mod environment;
mod error;
mod greeting;
mod holders;
mod installed;
mod kinds;
mod knob;
mod known_directory;
mod lent;
mod life;
mod making;
mod pairs;
pub mod prepared;
mod ram;
mod reach;
mod ready;
mod seccomp;
mod shell;
mod started;
mod switch;
mod undo;
mod upload;
mod vm;
mod wanted;

pub use cleanup::{Cleanup, NAME, Promise};
pub use directory::{for_files, writable};
pub use environment::Environment;
pub use error::EnvironmentError;
pub use installed::Installed;
pub use kinds::{Possibility, Spec, changes, forms, is_alone, is_guest, nearest, survey, typed};
pub use knob::KnobSetting;
pub use lent::{Account, Lent, TakenBack};
pub use pairs::{Changes, SpecError};
pub use ram::{Contents, Driver, Memory, OnRam, RamDisk, clean, is_file_system_name, left};
pub use switch::Switch;
pub use vm::{Kernels, inside, interpreter, page_number, serve_if_init};
pub use wanted::{Wanted, What};
