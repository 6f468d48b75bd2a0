//! The facts of a place: what is known of the machine, the kernel, the hypervisors and the container that a
//! run was made in. Read without root, each with its source, or unknown with the reason.
//!
//! [`SUBJECTS`] says what there is to know; [`read_facts`] reads all of it from a [`Machine`], which is the one
//! at hand or a captured tree of its `/proc` and `/sys`; [`strain`] reads what changes from moment to moment
//! and is taken before and after a run; [`storage()`] reads what lies under a directory; [`environment()`] says in one
//! word what the facts amount to. [`capture()`] makes such a tree of the machine at hand.
//!
//! A value that could not be read is never replaced by a default. *Absent*, *refused* and *unreadable* are
//! three different answers, see [`tollgate_model::Unknown`]. Whatever a file holds is untrusted: reads are
//! bounded, and nothing that a kernel, a container runtime or a captured tree may say makes this crate panic.
//!
//! The rooms, from the ground up:
//! - `answer`: a value with its source, or one of the three reasons. `machine`: where files are read and calls
//!   made. `tree`: a captured tree, which nothing leads out of. `told`: what such a tree keeps beside the files.
//! - `kcore`: the two addresses that a core file of the running kernel shows.
//! - `recorder`, `redaction`, `capture`: a note of all that is read, what is left out of it, and the tree made of it.
//! - `text`: parsers of the formats that several rooms meet. `calls`: what the system calls say. `leaves`: what
//!   CPUID says; `timed`: how long it takes.
//! - `uname`, `kernel`, `tracing`, `processor`, `topology`, `mitigation`, `clock`, `memory`, `power`, `process`,
//!   `limits`, `rseq`, `audit`, `permission`, `cgroup`, `firmware`, `hypervisor`, `container`, `sandbox`, `moments`,
//!   `storage`: one noun each.
//! - `streams`: whether standard output can be written to.
//! - `registry`: the tables of all facts, one a subject; the only list of their names. `allowance`: what may be
//!   taken here.
//! - `running_config`: the configuration of the kernel that a machine runs, read by `tollgate-kconfig`.
//! - `ring3`, `ring0`, `mechanisms`: what this machine shows of those tables, and the ways into its kernel.
//! - [`kernel_base`]: whether the kernel itself was moved. [`aslr`]: how many bits of a program's addresses are
//!   random, measured.

#![deny(unsafe_code)]

mod allowance;
mod answer;
pub mod aslr;
mod audit;
mod calls;
mod capture;
mod cgroup;
mod clock;
mod container;
mod environment;
mod firmware;
#[doc(hidden)]
pub mod fuzz;
mod hypervisor;
mod kcore;
mod kernel;
pub mod kernel_base;
mod leaves;
mod limits;
mod machine;
mod mechanisms;
mod memory;
mod mitigation;
mod moments;
mod permission;
mod power;
mod process;
mod processor;
mod recorder;
mod redaction;
mod registry;
mod ring0;
mod ring3;
mod rseq;
mod running_config;
mod sandbox;
mod storage;
mod streams;
mod text;
mod timed;
mod told;
mod topology;
mod tracing;
mod tree;
mod uname;

pub use allowance::{Allowance, Limit, allowance};
pub use capture::{CaptureError, Captured, capture};
pub use environment::environment;
pub use leaves::{Leaves, Registers};
pub use machine::Machine;
pub use mechanisms::{Mechanism, mechanisms};
pub use registry::{
    FactSpec, MOMENTS, STORAGE, SUBJECTS, Subject, effect, facts, read_facts, spec, storage, strain,
};
pub use ring0::{Region, Tables, msrs, tables};
pub use ring3::{Attempt, Ring3, TableRegister, Told, is_dummy, ring3};
pub use running_config::{RunningConfig, Tried, running_config};
pub use streams::standard_output_is_closed;
pub use told::TreeError;
