use super::files::{SHARED, directory};
use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/stat",
    operation: "newfstatat of the same cached file by each thread or process.",
    avoid: "Ask an open file (fstat), or keep the answer.",
    source: "stat(2); Documentation/filesystems/path-lookup.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, UserCopy, CacheLine],
    timed: |_| Timed::Whole("newfstatat(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance_on_files(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(seat: Seat) -> io::Result<Box<dyn Work>> {
    let directory = directory(seat);
    let mut status = Box::new(std::mem::MaybeUninit::<libc::stat>::uninit());
    calls(move || {
        let arguments = [directory as u64, SHARED.as_ptr() as u64, status.as_mut_ptr() as u64, 0];
        // SAFETY: an open directory, a C string, and a structure that is valid for writing.
        unsafe { call(libc::SYS_newfstatat, arguments) }
    })
}
