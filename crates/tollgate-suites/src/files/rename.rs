use std::{cell::Cell, rc::Rc};

use super::data_dir::{DataDir, Names};
use super::names::{OnNames, on_names, written};
use super::{refusal::FILE, single::Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/rename",
    operation: "One renameat of a file within its directory, to an unused name.",
    avoid: "Rename once at the end of an update instead of for each part of it.",
    source: "rename(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem],
    timed: |_| Timed::Whole("renameat(2)"),
    kind: Kind::Instance(|_, params, context| on_names(params, context, call)),
    ..FILE
};

pub(super) fn call(dir: Rc<DataDir>) -> Result<impl Operation> {
    let names = Names::free(&dir, &[c"rename-1", c"rename-2"])?;
    drop(written(&dir, c"rename-1")?);
    let now = Rc::new(Cell::new([c"rename-1", c"rename-2"]));
    let next = Rc::clone(&now);
    let call = move || {
        let [from, to] = now.get();
        dir.rename(from, to)
    };
    let after = move |_| {
        let [from, to] = next.get();
        next.set([to, from]);
        Ok(())
    };
    Ok(OnNames { what: "renameat(2)", before: || Ok(()), call, after, _kept: Box::new(names) })
}
