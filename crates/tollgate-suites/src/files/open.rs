use std::{ffi::CStr, rc::Rc};

use super::data_dir::DataDir;
use super::names::{OnNames, close_result, on_names, scratch};
use super::refusal::FILE;
use super::single::{self, Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/open",
    operation: "One openat of a file by its name in an open directory, for reading, without the close; one, or a batch of them.",
    avoid: "Keep files open, and open relative to a directory (openat) in place of long paths.",
    source: "openat(2); path_resolution(7)",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    headlines: &[Headline::of(Section::Files, "open", &[("timed", "batches")])],
    cases: single::cases,
    kind: Kind::Instance(|_, params, context| {
        on_names(params, context, |dir| call(dir, single::name(params, NAMES)?))
    }),
    ..FILE
};

pub(super) const NAMES: [&CStr; 2] = [c"open", c"open-in-batches"];

pub(super) fn call(dir: Rc<DataDir>, name: &'static CStr) -> Result<impl Operation> {
    let kept = scratch(&dir, name)?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: an open directory and a C string.
    let call = move || checked(unsafe { libc::openat(dir.descriptor(), name.as_ptr(), flags) });
    Ok(OnNames { what: "openat(2)", before: || Ok(()), call, after: close_result, _kept: kept })
}
