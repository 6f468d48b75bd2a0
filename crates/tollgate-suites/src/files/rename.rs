//! renameat(2) of a file.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed};
use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, PathLookup, SystemCall};

use super::data_dir::DataDir;
use super::names::Rename;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/rename",
    operation: "One renameat of a file within its directory, to an unused name.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem],
    timed: |_| Timed::Whole("renameat(2)"),
    kind: Kind::Instance(|_, _, context| Ok(instance(Rename::new(&DataDir::of(context)?)?))),
    absence,
    ..PLAIN
};
