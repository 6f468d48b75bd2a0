//! The machine under a benchmark: its clock, processors, memory and limits, and the processes that end together.
//!
//! [`clock`] is the only clock. [`cpu`], [`affinity`], [`topology`] and [`other_cpus`] are about processors, [`memory`],
//! [`mapping`] and [`limits`] about memory, [`storage`] about files, and [`group`], [`ending`] and [`interrupt`] about processes.

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
