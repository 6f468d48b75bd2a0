//! The plain crossing: SYSCALL, and the kernel does nothing but refuse.

use tollgate_model::Boundary::{KernelCode, KernelEntry, SystemCall};

use tollgate_engine::benchmark::{Benchmark, PLAIN};
use tollgate_engine::timed::timed_loop;
use tollgate_engine::{Loop, Refusal, Timed, TimedLoop};

use super::results;

timed_loop! {
    /// Number -1, which no system call has.
    refused_call: "mov rax, -1", "syscall"
}

/// The loop of every benchmark that is held against this one.
pub(super) const TIMED: Timed = Timed::once("syscall", TimedLoop::Long(refused_call));

/// The instance's loop, to be put in a thread that something was done to.
pub(super) fn refused_loop() -> Result<Loop, Refusal> {
    // SAFETY: the loop needs nothing from its context.
    unsafe { Loop::new(TIMED, [0; 7], None, results::refused) }
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/syscall",
    operation: "One SYSCALL with number -1, which the kernel refuses with ENOSYS and does nothing else.",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    timed: |_| TIMED,
    instance: |_, _| {
        let mut timed = refused_loop()?;
        let note = results::note_on_refusal(timed.try_once());
        Ok(timed.here().with_notes(note))
    },
    ..PLAIN
};

/// The same in a thread of its own, as the instances that are held against it: what the two differ by is
/// what no verdict may be finer than.
pub(super) static CONTROL: Benchmark = Benchmark {
    name: tollgate_model::own::CONTROL,
    operation: "The same refused SYSCALL once more, as a second instance: how far equal instances lie apart.",
    baseline: Some("entry/syscall"),
    instance: |_, _| refused_loop()?.in_thread(|| Ok(())),
    ..BENCHMARK
};

/// An equal instance that a test may slow down on purpose and then must find.
#[cfg(feature = "test-hooks")]
pub(super) static EQUAL: Benchmark = Benchmark { name: "entry/test-equal", ..CONTROL };
