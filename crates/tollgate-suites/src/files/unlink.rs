//! A file is taken away.

use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, PageCache, PathLookup, SystemCall};

use tollgate_engine::Timed;
use tollgate_engine::benchmark::{Benchmark, PLAIN};

use super::names::Unlink;
use super::place::Place;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/unlink",
    operation: "One unlinkat of a file of 4 KiB that was just written and closed: its pages and blocks go with it.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, PageCache],
    timed: |_| Timed::Whole("unlinkat(2)"),
    instance: |_, _| Ok(instance(Unlink::new(&Place::here()?)?)),
    absence,
    ..PLAIN
};
