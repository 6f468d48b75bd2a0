//! openat(2) of an existing file.

use std::rc::Rc;

use super::names::{OnNames, close_result, on_names, scratch};
use super::refusal::FILE;
use super::{data_dir::DataDir, single::Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/open",
    operation: "One openat of a file by its name in an open directory, for reading; without the close.",
    avoid: "Keep files open, and open relative to a directory (openat) in place of long paths.",
    source: "openat(2); path_resolution(7)",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    headlines: &[Headline { section: Section::Files, name: "open", params: &[] }],
    kind: Kind::Instance(|_, _, context| on_names(context, call)),
    ..FILE
};

pub(super) fn call(dir: Rc<DataDir>) -> Result<impl Operation> {
    let kept = scratch(&dir, c"open")?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: an open directory and a C string.
    let call = move || checked(unsafe { libc::openat(dir.descriptor(), c"open".as_ptr(), flags) });
    Ok(OnNames { what: "openat(2)", before: || Ok(()), call, after: close_result, _kept: kept })
}
