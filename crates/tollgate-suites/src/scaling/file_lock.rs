use std::fs::File;

use tollgate_os::memfd;

use super::prelude::*;
use crate::record_lock;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/file-lock",
    operation: "F_OFD_SETLK of a record of a file of its own and its unlock by each thread or process.",
    avoid: "Between threads or processes that share memory, use a futex.",
    source: "fcntl(2), open file description locks; will-it-scale, lock1.c; fs/locks.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, UserCopy, CacheLine],
    timed: |_| Timed::Whole("fcntl(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    let file = memfd::create("tollgate-lock")?;
    let records = record_lock::first_byte();
    calls(move || both(set(&file, &records[0]), set(&file, &records[1])))
}

/// Inlined, because a function would add a call and a return each time.
#[inline(always)]
fn set(file: &File, record: &libc::flock) -> i64 {
    let arguments = [file.as_raw_fd() as u64, libc::F_OFD_SETLK as u64, std::ptr::from_ref(record) as u64, 0];
    // SAFETY: the structure is valid for reading.
    unsafe { call(libc::SYS_fcntl, arguments) }
}
