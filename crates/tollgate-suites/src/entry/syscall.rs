use super::results;
use crate::prelude::*;

pub(super) fn refused_loop() -> Result<Loop> {
    Loop::without_context(REFUSED_CALL, results::refused)
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/syscall",
    operation: "One system call with number -1, in a function that is called, which the kernel refuses with ENOSYS at once; less the call.",
    avoid: "Do more in each call: readv, sendmmsg, io_uring; keep what does not change in user mode.",
    source: "Intel SDM vol. 2, SYSCALL; Linux arch/x86/entry/entry_64.S",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    timed: |_| REFUSED_CALL,
    headlines: &[Headline::of(Section::Entry, "syscall (unknown number)", &[])],
    kind: Kind::Instance(|_, _, _| {
        let mut timed = refused_loop()?;
        let note = results::note_on_refusal(timed.try_once());
        Ok(timed.here().with_notes(note))
    }),
    ..PLAIN
};

/// The A/A control: the same loop in its own thread, as others have. The difference bounds the noise threshold.
pub(crate) static CONTROL: Benchmark = Benchmark {
    name: tollgate_model::own::CONTROL,
    operation: "The same refused call as a second instance: the A/A difference.",
    baseline: Baseline::Benchmark("entry/syscall"),
    kind: Kind::Instance(|_, _, _| refused_loop()?.in_thread(|| Ok(()))),
    headlines: &[],
    ..BENCHMARK
};
