use super::files::{BYTES, SHARED, directory, open};
use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/read",
    operation: "pread64 of the same cached page of 4 KiB by each thread or process, which has opened the file.",
    avoid: "Map the file, or read larger pieces.",
    source: "pread(2); will-it-scale, pread2.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, PageCache, UserCopy, CacheLine],
    timed: |_| Timed::Whole("pread64(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance_on_files(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(seat: Seat) -> io::Result<Box<dyn Work>> {
    let file = open(directory(seat), SHARED, libc::O_RDONLY)?;
    let mut bytes = vec![0_u8; BYTES];
    calls(move || {
        let arguments = [file.as_raw_fd() as u64, bytes.as_mut_ptr() as u64, BYTES as u64, 0];
        // SAFETY: `bytes` has `BYTES` bytes.
        match unsafe { call(libc::SYS_pread64, arguments) } {
            read if read == BYTES as i64 || read < 0 => read,
            _ => -i64::from(libc::EIO),
        }
    })
}
