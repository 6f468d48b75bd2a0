use std::{ffi::CStr, mem::MaybeUninit, rc::Rc};

use super::data_dir::DataDir;
use super::names::{OnNames, on_names, scratch};
use super::refusal::FILE;
use super::single::{self, Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/stat",
    operation: "One newfstatat of a file by its name in an open directory; one, or a batch of them.",
    avoid: "Ask an open file (fstat), or read a directory's entries with their types (getdents64).",
    source: "stat(2); getdents(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, UserCopy],
    timed: |_| Timed::Whole("newfstatat(2)"),
    cases: single::cases,
    kind: Kind::Instance(|_, params, context| {
        on_names(params, context, |dir| call(dir, single::name(params, NAMES)?))
    }),
    ..FILE
};

pub(super) const NAMES: [&CStr; 2] = [c"stat", c"stat-in-batches"];

pub(super) fn call(dir: Rc<DataDir>, name: &'static CStr) -> Result<impl Operation> {
    let kept = scratch(&dir, name)?;
    let call = move || {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: an open directory, a C string, and a structure that is valid for writing.
        checked(unsafe { libc::fstatat(dir.descriptor(), name.as_ptr(), status.as_mut_ptr(), 0) })
    };
    Ok(OnNames { what: "newfstatat(2)", before: || Ok(()), call, after: |_| Ok(()), _kept: kept })
}
