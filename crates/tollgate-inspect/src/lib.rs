//! The facts of an environment: the machine, kernel, hypervisors and container of a run. They are read without root. Each has
//! its source, or the reason why it is unknown.
//!
//! [`SUBJECTS`] lists the facts; [`read_facts`] reads them from a [`Machine`], which is this machine or a captured tree of its
//! `/proc` and `/sys`; [`strain`] reads the facts that change from moment to moment, before and after a run; [`storage()`] reads
//! the file system and device under a directory; [`environment()`] names the environment. [`capture()`] makes such a tree.
//!
//! A value that could not be read is never replaced by a default. *Absent*, *refused* and *unreadable* are three different
//! answers, see [`tollgate_model::Unknown`]. Every file is untrusted: reads are bounded, and no content makes this crate panic.
//!
//! The modules, lowest first:
//! - `answer`: a value with its source, or one of the three reasons. `machine`: reads files and makes calls. `tree`: a captured
//!   tree, which no path leaves. `record`: the answers of calls and CPUID in such a tree.
//! - `kcore`: the two addresses that a core file of the running kernel shows.
//! - `recorder`, `redaction`, `capture`: a record of all reads, its redaction, and the tree made from it.
//! - `text`, `mounts`: parsers of shared formats. `calls`: system calls. `leaves`: CPUID; `timed`: its time.
//! - `uname`, `kernel`, `tracing`, `processor`, `midr`, `topology`, `mitigation`, `clock`, `memory`, `power`, `process`, `limits`,
//!   `rseq`, `audit`, [`bpf`], `permission`, `cgroup`, `firmware`, `hypervisor`, `container`, `sandbox`, `moments`, `storage`: one
//!   subject each.
//! - `streams`: whether standard output is writable.
//! - `registry`: the tables of all facts, one per subject; the only list of their names. `allowance`: how much may be used here.
//! - `running_config`: the configuration of a machine's kernel, read by `tollgate-kconfig`.
//! - `ring3`, `ring0`, `mechanisms`: the descriptor tables as each ring sees them, and the ways into the kernel.
//! - [`kernel_base`]: whether the kernel itself was moved. [`aslr`]: the measured random bits of a program's addresses.
//!   [`output`] shows both.

#![deny(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/takes_any.rs"]
mod takes_any;

mod allowance;
mod answer;
pub mod aslr;
mod audit;
pub mod bpf;
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
mod midr;
mod mitigation;
mod moments;
mod mounts;
pub mod output;
mod permission;
mod power;
mod process;
mod processor;
mod record;
mod recorder;
mod redaction;
mod registry;
mod ring0;
mod ring3;
mod rseq;
mod running_config;
mod sandbox;
mod software;
mod storage;
mod streams;
#[cfg(test)]
mod testing;
mod text;
mod timed;
mod topology;
mod tracing;
mod tree;
mod uname;

pub use allowance::{Allowance, Limit, allowance};
pub use capture::{CaptureError, Captured, capture};
pub use environment::{environment, read_environment};
pub use hypervisor::{OUTER, is_named};
pub use leaves::{Leaves, Registers};
pub use machine::Machine;
pub use mechanisms::{Mechanism, mechanisms};
pub use record::TreeError;
pub use registry::{
    FactSpec, MOMENTS, STORAGE, SUBJECTS, Subject, effect, facts, read_facts, spec, storage, strain,
};
pub use ring0::{Region, Tables, msrs, tables};
pub use ring3::{Attempt, Ring3, TableRegister, Visible, is_dummy, ring3};
pub use running_config::{RunningConfig, Tried, running_config};
pub use streams::standard_output_is_closed;
