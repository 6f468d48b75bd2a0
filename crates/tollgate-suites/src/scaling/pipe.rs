use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/pipe",
    operation: "A write of one byte into a pipe of its own and the read of it by each thread or process.",
    avoid: "Do not send data to the same thread through a pipe; keep it in memory.",
    source: "pipe(7); will-it-scale, pipe1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, CacheLine],
    timed: |_| Timed::Whole("write(2), read(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    const MESSAGE: usize = 1;
    let (take, give) = io::pipe()?;
    let mut bytes = [0_u8; MESSAGE];
    calls(move || {
        let buffer = bytes.as_mut_ptr() as u64;
        // SAFETY: `bytes` has `MESSAGE` bytes.
        let wrote = unsafe { call(libc::SYS_write, [give.as_raw_fd() as u64, buffer, MESSAGE as u64, 0]) };
        // SAFETY: `bytes` has `MESSAGE` bytes.
        let read = unsafe { call(libc::SYS_read, [take.as_raw_fd() as u64, buffer, MESSAGE as u64, 0]) };
        if read >= 0 && read != wrote { -i64::from(libc::EIO) } else { both(wrote, read) }
    })
}
