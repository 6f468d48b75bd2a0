//! The shortest call, which shares nothing.

use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/getppid",
    operation: "getppid by each thread or process. The calls share nothing: a difference comes from the processors.",
    avoid: "This row is the reference for the other rows of this suite.",
    source: "getppid(2); will-it-scale, getppid1.c",
    crosses: &[KernelEntry, SystemCall],
    timed: |_| Timed::Whole("getppid(2)"),
    in_everything: threads_at_both_ends,
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    // SAFETY: the call takes nothing.
    calls(|| unsafe { call(libc::SYS_getppid, [0; 4]) })
}
