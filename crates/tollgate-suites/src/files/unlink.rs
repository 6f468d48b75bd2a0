use std::rc::Rc;

use super::data_dir::{DataDir, Names};
use super::names::{OnNames, on_names, written};
use super::{refusal::FILE, single::Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/unlink",
    operation: "One unlinkat of a new file of 4 KiB, which frees its pages and blocks.",
    avoid: "Truncate and reuse files, or delete them in another thread.",
    source: "unlink(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, PageCache],
    timed: |_| Timed::Whole("unlinkat(2)"),
    kind: Kind::Instance(|_, params, context| on_names(params, context, call)),
    ..FILE
};

pub(super) fn call(dir: Rc<DataDir>) -> Result<impl Operation> {
    let (names, directory) = (Names::free(&dir, &[c"unlink"])?, Rc::clone(&dir));
    let before = move || written(&directory, c"unlink").map(drop);
    // SAFETY: an open directory and a C string.
    let call = move || checked(unsafe { libc::unlinkat(dir.descriptor(), c"unlink".as_ptr(), 0) });
    Ok(OnNames { what: "unlinkat(2)", before, call, after: |_| Ok(()), _kept: Box::new(names) })
}
