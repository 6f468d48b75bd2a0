use super::prelude::*;
use crate::descriptor::eventfd;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/eventfd",
    operation: "A write that adds one to an eventfd of its own and the read of it by each thread or process.",
    avoid: "Count in memory, and tell others only where they sleep.",
    source: "eventfd(2); will-it-scale, eventfd1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, CacheLine],
    timed: |_| Timed::Whole("write(2), read(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    let counter = eventfd(0, libc::EFD_NONBLOCK)?;
    let mut count = 1_u64.to_ne_bytes();
    calls(move || pass(counter.as_raw_fd(), counter.as_raw_fd(), &mut count))
}
