//! Creation of a file.

use std::rc::Rc;

use super::data_dir::{DataDir, Names};
use super::names::{OnNames, close_result, on_names};
use super::{refusal::FILE, single::Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/create",
    operation: "One openat that creates an empty file (O_CREAT, O_EXCL); without the close and the unlink.",
    avoid: "Create fewer and larger files; O_TMPFILE needs no name.",
    source: "open(2), O_CREAT and O_TMPFILE",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    kind: Kind::Instance(|_, _, context| on_names(context, call)),
    ..FILE
};

pub(super) fn call(dir: Rc<DataDir>) -> Result<impl Operation> {
    let (names, made) = (Names::free(&dir, &[c"create"])?, Rc::clone(&dir));
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: an open directory and a C string.
    let call = move || checked(unsafe { libc::openat(dir.descriptor(), c"create".as_ptr(), flags, 0o600) });
    let after = move |descriptor| close_result(descriptor).and_then(|()| made.remove(c"create"));
    Ok(OnNames { what: "openat(2) with O_CREAT", before: || Ok(()), call, after, _kept: Box::new(names) })
}
