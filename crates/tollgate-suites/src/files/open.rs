//! openat(2) of an existing file.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed};
use tollgate_model::Boundary::{KernelAllocation, KernelCode, KernelEntry, PathLookup, SystemCall};

use super::data_dir::DataDir;
use super::names::There;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/open",
    operation: "One openat of a file by its name in an open directory, for reading; without the close.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    kind: Kind::Instance(|_, _, context| Ok(instance(There::opened(&DataDir::of(context)?)?))),
    absence,
    ..PLAIN
};
