//! close(2) after a write.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed};
use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, SystemCall};

use super::data_dir::DataDir;
use super::names::Close;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/close-after-write",
    operation: "One close of a file after a write of 4 KiB.",
    crosses: &[KernelEntry, SystemCall, KernelCode, FileSystem],
    timed: |_| Timed::Whole("close(2)"),
    kind: Kind::Instance(|_, _, context| Ok(instance(Close::new(&DataDir::of(context)?)?))),
    absence,
    ..PLAIN
};
