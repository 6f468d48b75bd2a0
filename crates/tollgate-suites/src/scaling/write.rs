use std::ffi::CString;

use super::files::{BYTES, directory, has_own_file, of_shared_and_own, open};
use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/write",
    operation: "pwrite64 of a page of its own in the page cache by each thread or process: all of one file, or each of a file of its own.",
    avoid: "Give each writer a file of its own: writes to one file wait for each other (inode lock).",
    source: "pwrite(2); will-it-scale, pwrite1.c and pwrite3.c; Documentation/filesystems/locking.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PageCache, UserCopy, FileSystem, CacheLine],
    timed: |_| Timed::Whole("pwrite64(2)"),
    cases: |machine| of_shared_and_own(every_kind(&numbers(machine).0)),
    thorough_cases: |machine| of_shared_and_own(every_kind(&numbers(machine).1)),
    kind: Kind::Instance(|_, params, context| {
        instance_on_files(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(seat: Seat) -> io::Result<Box<dyn Work>> {
    let (name, page) = if has_own_file(seat) {
        (CString::new(format!("scaling-written-{}", seat.number))?, 0)
    } else {
        // A page for each task.
        (c"scaling-written".to_owned(), seat.number as u64)
    };
    let file = open(directory(seat), &name, libc::O_RDWR | libc::O_CREAT)?;
    let bytes = vec![2_u8; BYTES];
    calls(move || {
        let arguments = [file.as_raw_fd() as u64, bytes.as_ptr() as u64, BYTES as u64, page * BYTES as u64];
        // SAFETY: `bytes` has `BYTES` bytes.
        match unsafe { call(libc::SYS_pwrite64, arguments) } {
            written if written == BYTES as i64 || written < 0 => written,
            _ => -i64::from(libc::EIO),
        }
    })
}
