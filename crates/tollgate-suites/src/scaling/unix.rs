use std::os::unix::net::UnixStream;

use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/unix",
    operation: "A write of one byte into a UNIX stream socket of its own and the read of it by each thread or process.",
    avoid: "Do not send data to the same thread through a socket; keep it in memory.",
    source: "unix(7); will-it-scale, unix1.c; perf bench sched messaging",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, UserCopy, Socket, CacheLine],
    timed: |_| Timed::Whole("write(2), read(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    let (give, take) = UnixStream::pair()?;
    take.set_nonblocking(true)?;
    let mut byte = [1];
    calls(move || pass(give.as_raw_fd(), take.as_raw_fd(), &mut byte))
}
