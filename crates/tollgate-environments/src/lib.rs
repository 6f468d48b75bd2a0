//! Environments: where a session measures, and where files are measured.
//!
//! An environment is named (`kinds`), prepared and started with an agent in it (`environment`), and gone when it is dropped. What is made
//! for it is promised to the cleanup process first, which undoes it when this program is killed.
//!
//! - `kinds`: a file a kind, with its names, what works here, and how one is made ready. `pairs`: keys of names and their values.
//! - `environment`: one of a session. `making`: what its preparation is given. `ready`: one that can be started. `agent`: this program, as it
//!   is started there. `started`: the command that does it. `life`: one that is measured itself. `shell`: what stands in the agent's place then.
//! - `container`: containers of several runtimes. `vm`: guests. `seccomp`: filters of system calls. `knob`: a setting of the machine that is
//!   alternated.
//! - `reach`: a command's prefix, and another machine. `upload`: this program over standard input. `greeting`: the first look at an answer.
//! - `installed`: the files that make an environment, and the packages that brought them.
//! - `wanted`: files that come along into an environment.
//! - `cleanup`: the process that undoes. `prepared`, `undo`: what is undone, and how.
//! - `directory`: a directory of this run alone, and how much may be written to it. `known_directory`: one that the cleanup process knows of.
//! - `ram`: a fresh file system on a block device in memory. `lent`: one that is lent to a command. `device`: that device, by either of two drivers.
//! - `commands`: the few programs that are run for it. `error`: why there is none.
//!
//! A directory, device, module or mount that was not made here is not touched. Those made here are known by a unique
//! name, by their owner, and by a lock that the maker holds for as long as it lives.

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
pub use vm::{Kernels, inside, serve_if_init};
pub use wanted::{Wanted, What};
