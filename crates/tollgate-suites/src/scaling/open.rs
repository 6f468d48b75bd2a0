use std::ffi::CString;

use super::files::{SHARED, close, directory, has_own_file, make, of_shared_and_own};
use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/open",
    operation: "openat and close of a cached file by each thread or process: all of one file, or each of a file of its own.",
    avoid: "Keep files open, and have each worker work on files and directories of its own.",
    source: "open(2); will-it-scale, open1.c and open3.c; Documentation/filesystems/path-lookup.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, CacheLine],
    timed: |_| Timed::Whole("openat(2), close(2)"),
    cases: |machine| of_shared_and_own(every_kind(&numbers(machine).0)),
    thorough_cases: |machine| of_shared_and_own(every_kind(&numbers(machine).1)),
    in_everything: threads_at_both_ends,
    kind: Kind::Instance(|_, params, context| {
        instance_on_files(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(seat: Seat) -> io::Result<Box<dyn Work>> {
    let directory = directory(seat);
    let name = if has_own_file(seat) {
        CString::new(format!("scaling-own-{}", seat.number))?
    } else {
        SHARED.to_owned()
    };
    drop(make(directory, &name)?);
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
    calls(move || {
        // SAFETY: an open directory and a C string.
        let opened = unsafe { call(libc::SYS_openat, [directory as u64, name.as_ptr() as u64, flags, 0]) };
        if opened < 0 { opened } else { close(opened) }
    })
}
