//! A file is closed after it was written.

use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, SystemCall};

use tollgate_engine::Timed;
use tollgate_engine::benchmark::{Benchmark, PLAIN};

use super::names::Close;
use super::place::Place;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/close-after-write",
    operation: "One close of a file in which 4 KiB were just written.",
    crosses: &[KernelEntry, SystemCall, KernelCode, FileSystem],
    timed: |_| Timed::Whole("close(2)"),
    instance: |_, _| Ok(instance(Close::new(&Place::here()?)?)),
    absence,
    ..PLAIN
};
