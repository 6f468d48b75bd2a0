//! Environments: where a session measures, and where files are measured.
//!
//! An environment is named (`spec`), prepared and started with an agent in it (`environment`), and gone when it is dropped. What is made
//! for it is promised to the guardian first, which undoes it when this program is killed.
//!
//! - `environment`: one of a session. `agent`: this program, as it is started there. `started`: the command that does it. `life`: one that is
//!   measured itself. `shell`: one with a shell in the agent's place.
//! - `spec`: the names. `apply`: the settings of the host. `knob`: a setting of the machine that is alternated.
//! - `container`: containers of several runtimes. `gvisor`: its sandbox. `vm`: guests. `seccomp`: filters of system calls. `survey`: what works here.
//! - `exec`: a command's prefix, and another machine. `upload`: this program over standard input. `greeting`: the first look at an answer.
//! - `guardian`: the process that undoes. `prepared`, `undo`: what is undone, and how.
//! - `directory`: a directory of this run alone, and how much may be written to it. `known_directory`: one that the guardian knows of.
//! - `ram`: a fresh file system on a block device in memory. `lent`: one that is lent to a command. `device`: that device, by either of two drivers.
//! - `commands`: the few programs that are run for it. `error`: why there is none.
//!
//! A directory, device, module or mount that was not made here is not touched. Those made here are known by a unique
//! name, by their owner, and by a lock that the maker holds for as long as it lives.

mod agent;
mod apply;
mod commands;
mod container;
mod device;
mod directory;
mod environment;
mod error;
mod exec;
mod greeting;
mod guardian;
mod gvisor;
mod knob;
mod known_directory;
mod lent;
mod life;
pub mod prepared;
mod ram;
mod seccomp;
mod shell;
mod spec;
mod started;
mod survey;
mod undo;
mod upload;
mod vm;

pub use apply::apply;
pub use directory::Private;
pub use environment::Environment;
pub use error::EnvironmentError;
pub use guardian::{Guardian, NAME, Promise};
pub use knob::KnobSetting;
pub use lent::Lent;
pub use ram::{Contents, Driver, Memory, RamDisk, clean, left};
pub use seccomp::Filter;
pub use spec::{
    Accel, Cache, Container, Exec, FORMS, Gvisor, Host, Runtime, Sched, Seccomp, Setting, Spec, SpecError,
    Ssh, Vm, Vmm,
};
pub use survey::{Possibility, survey};
pub use vm::{GuestLog, inside, serve_if_init};
