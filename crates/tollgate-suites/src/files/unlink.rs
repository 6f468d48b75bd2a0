//! unlinkat(2) of a file.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed};
use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, PageCache, PathLookup, SystemCall};

use super::data_dir::DataDir;
use super::names::Unlink;
use super::refusal::absence;
use super::single::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/unlink",
    operation: "One unlinkat of a new file of 4 KiB, which frees its pages and blocks.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, PageCache],
    timed: |_| Timed::Whole("unlinkat(2)"),
    kind: Kind::Instance(|_, _, context| Ok(instance(Unlink::new(&DataDir::of(context)?)?))),
    absence,
    ..PLAIN
};
