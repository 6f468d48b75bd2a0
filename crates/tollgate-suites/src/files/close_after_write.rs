use std::{cell::Cell, rc::Rc};

use super::data_dir::{DataDir, Scratch};
use super::names::{OnNames, close, on_names};
use super::refusal::{FILE, refused};
use super::{block::SMALL, data::put, single::Operation};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/close-after-write",
    operation: "One close of a file after a write of 4 KiB.",
    avoid: "Keep files open across writes.",
    source: "close(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, FileSystem],
    timed: |_| Timed::Whole("close(2)"),
    kind: Kind::Instance(|_, params, context| on_names(params, context, call)),
    ..FILE
};

pub(super) fn call(dir: Rc<DataDir>) -> Result<impl Operation> {
    let kept = Box::new(Scratch::new(&dir, c"close")?);
    let open = Rc::new(Cell::new(None));
    let opened = Rc::clone(&open);
    let mut byte = 0_u8;
    let before = move || {
        let file = dir.open(c"close", libc::O_WRONLY).map_err(|error| refused("openat(2)", &error))?;
        byte = byte.wrapping_add(1);
        put(&file, &[byte; SMALL], 0)?;
        opened.set(Some(file));
        Ok(())
    };
    let call = move || close(open.take());
    Ok(OnNames { what: "close(2)", before, call, after: |_| Ok(()), _kept: kept })
}
