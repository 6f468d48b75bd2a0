use std::sync::atomic::AtomicU32;

use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/futex",
    operation: "FUTEX_WAKE of a word of its own, on which no thread sleeps, by each thread or process.",
    avoid: "Wake only where the word says that a thread sleeps.",
    source: "futex(2); will-it-scale, futex1.c; perf bench futex hash",
    crosses: &[KernelEntry, SystemCall, KernelCode, CacheLine],
    timed: |_| Timed::Whole("futex(2)"),
    in_everything: threads_at_both_ends,
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

#[repr(align(128))]
struct Word(AtomicU32);

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    let word = Box::new(Word(AtomicU32::new(0)));
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;
    // SAFETY: the kernel only takes the word's address.
    calls(move || unsafe { call(libc::SYS_futex, [word.0.as_ptr() as u64, wake, 1, 0]) })
}
