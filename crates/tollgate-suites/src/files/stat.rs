//! newfstatat(2) of a file.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed};
use tollgate_model::Boundary::{KernelCode, KernelEntry, PathLookup, SystemCall, UserCopy};

use super::data_dir::DataDir;
use super::names::There;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/stat",
    operation: "One newfstatat of a file by its name in an open directory.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, UserCopy],
    timed: |_| Timed::Whole("newfstatat(2)"),
    kind: Kind::Instance(|_, _, context| Ok(instance(There::looked_at(&DataDir::of(context)?)?))),
    absence,
    ..PLAIN
};
