//! The facts of a place: what is known of the machine, the kernel, the hypervisors and the container that a
//! run was made in. Read without root, each with its source, or unknown with the reason.
//!
//! [`FACTS`] says what there is to know; [`environment`] reads all of it from a [`Machine`], which is the one
//! at hand or a captured tree of its `/proc` and `/sys`; [`strain`] reads what changes from moment to moment
//! and is taken before and after a run; [`storage()`] reads what lies under a directory; [`place()`] says in one word what the facts amount to.
//!
//! A value that could not be read is never replaced by a default. *Absent*, *refused* and *unreadable* are
//! three different answers, see [`tollgate_model::Unknown`]. Whatever a file holds is untrusted: reads are
//! bounded, and nothing that a kernel, a container runtime or a captured tree may say makes this crate panic.
//!
//! The rooms, from the ground up:
//! - `machine`: where files are read, and how an error becomes one of the three answers.
//! - `text`: parsers of the formats that several rooms meet. `calls`: what the system calls say where there
//!   is no `/proc`. `leaves`: what CPUID says.
//! - `uname`, `kernel`, `processor`, `topology`, `mitigation`, `clock`, `memory`, `power`, `process`, `cgroup`,
//!   `hypervisor`, `container`, `sandbox`, `moments`, `storage`: one noun each.
//! - `registry`: the table of all facts; the only list of their names. `allowance`: what may be taken here.

#![deny(unsafe_code)]

mod allowance;
mod calls;
mod cgroup;
mod clock;
mod container;
mod hypervisor;
mod kernel;
mod leaves;
mod machine;
mod memory;
mod mitigation;
mod moments;
mod place;
mod power;
mod process;
mod processor;
mod registry;
mod sandbox;
mod storage;
mod text;
mod topology;
mod uname;

pub use allowance::{Allowance, Limit, allowance};
pub use leaves::{Leaves, Registers};
pub use machine::Machine;
pub use place::place;
pub use registry::{FACTS, FactSpec, MOMENTS, STORAGE, environment, movers, storage, strain};
