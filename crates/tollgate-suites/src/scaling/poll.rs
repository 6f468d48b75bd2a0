use tollgate_arch::abi::POLL;

use super::prelude::*;
use crate::descriptor::eventfd;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/poll",
    operation: "poll, by each thread or process, of an eventfd of its own that can be read.",
    avoid: "Use epoll or io_uring where there are many descriptors.",
    source: "poll(2); will-it-scale, poll1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, CacheLine],
    timed: |_| Timed::Whole("poll(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    let counter = eventfd(1, libc::EFD_NONBLOCK)?;
    let mut asked = Box::new(libc::pollfd { fd: counter.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    calls(move || {
        asked.fd = counter.as_raw_fd();
        // SAFETY: one structure, valid for writing. The descriptor lives as long as this.
        let ready = unsafe { call(POLL, [&raw mut *asked as u64, 1, 0, 0]) };
        if ready == 0 { -i64::from(libc::EIO) } else { ready }
    })
}
