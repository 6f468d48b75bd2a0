//! Creation of a file.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed};
use tollgate_model::Boundary::{
    FileSystem, KernelAllocation, KernelCode, KernelEntry, PathLookup, SystemCall,
};

use super::data_dir::DataDir;
use super::names::Create;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/create",
    operation: "One openat that creates an empty file (O_CREAT, O_EXCL); without the close and the unlink.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    kind: Kind::Instance(|_, _, context| Ok(instance(Create::new(&DataDir::of(context)?)?))),
    absence,
    ..PLAIN
};
