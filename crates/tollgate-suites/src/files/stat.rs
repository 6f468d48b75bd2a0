//! newfstatat(2) of a file.

use std::{mem::MaybeUninit, rc::Rc};

use super::names::{OnNames, on_names, scratch};
use super::refusal::FILE;
use super::{data_dir::DataDir, single::Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/stat",
    operation: "One newfstatat of a file by its name in an open directory.",
    avoid: "Ask an open file (fstat), or read a directory's entries with their types (getdents64).",
    source: "stat(2); getdents(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, UserCopy],
    timed: |_| Timed::Whole("newfstatat(2)"),
    kind: Kind::Instance(|_, _, context| on_names(context, call)),
    ..FILE
};

pub(super) fn call(dir: Rc<DataDir>) -> Result<impl Operation> {
    let kept = scratch(&dir, c"stat")?;
    let call = move || {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: an open directory, a C string, and a structure that is valid for writing.
        checked(unsafe { libc::fstatat(dir.descriptor(), c"stat".as_ptr(), status.as_mut_ptr(), 0) })
    };
    Ok(OnNames { what: "newfstatat(2)", before: || Ok(()), call, after: |_| Ok(()), _kept: kept })
}
