//! The machine under a benchmark: its clock, processors, memory and limits, and the processes that end together.
//!
//! [`clock`] is the only clock; [`cpu`], [`affinity`], [`topology`] and [`other_cpus`] are of processors, [`memory`], [`mapping`] and [`limits`] of
//! memory, [`storage`] is the directory for files, [`group`], [`ending`] and [`interrupt`] of processes that begin and end.

pub(crate) mod affinity;
pub mod clock;
pub mod cpu;
pub(crate) mod ending;
pub mod group;
pub mod interrupt;
pub mod limits;
pub mod mapping;
pub(crate) mod memory;
pub(crate) mod other_cpus;
pub(crate) mod storage;
pub mod topology;
