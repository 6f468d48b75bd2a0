use std::ffi::CString;

use super::files::{close, directory};
use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/create",
    operation: "openat that creates an empty file, close and unlinkat of it by each thread or process, all in one directory.",
    avoid: "Give each worker a directory of its own: changes of one directory wait for each other.",
    source: "open(2); unlink(2); will-it-scale, unlink1.c; Documentation/filesystems/directory-locking.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, CacheLine],
    timed: |_| Timed::Whole("openat(2), close(2), unlinkat(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance_on_files(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(seat: Seat) -> io::Result<Box<dyn Work>> {
    let directory = directory(seat) as u64;
    let name = CString::new(format!("scaling-created-{}", seat.number))?;
    let flags = (libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC) as u64;
    calls(move || {
        // SAFETY: an open directory and a C string.
        let opened = unsafe { call(libc::SYS_openat, [directory, name.as_ptr() as u64, flags, 0o600]) };
        if opened < 0 {
            return opened;
        }
        let closed = close(opened);
        // SAFETY: as above; the file belongs to this task.
        both(closed, unsafe { call(libc::SYS_unlinkat, [directory, name.as_ptr() as u64, 0, 0]) })
    })
}
