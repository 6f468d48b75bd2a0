use super::files::close;
use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/dup",
    operation: "dup and close of a descriptor of its own by each thread or process; threads share the table of descriptors.",
    avoid: "Give workers that open and close much a table of their own (unshare(CLONE_FILES)), or make them processes.",
    source: "dup(2); will-it-scale, dup1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, CacheLine],
    timed: |_| Timed::Whole("dup(2), close(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    // Each task has its own descriptor, so that the tasks do not share the file.
    let own = io::pipe()?;
    calls(move || {
        // SAFETY: the call takes a number.
        let copy = unsafe { call(libc::SYS_dup, [own.0.as_raw_fd() as u64, 0, 0, 0]) };
        if copy < 0 { copy } else { close(copy) }
    })
}
