//! A file gets another name.

use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, PathLookup, SystemCall};

use tollgate_engine::Timed;
use tollgate_engine::benchmark::{Benchmark, PLAIN};

use super::names::Rename;
use super::place::Place;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/rename",
    operation: "One renameat of a file within its directory, to a name that is free.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem],
    timed: |_| Timed::Whole("renameat(2)"),
    instance: |_, _| Ok(instance(Rename::new(&Place::here()?)?)),
    absence,
    ..PLAIN
};
