//! A signal that a program sends to itself (lmbench, lat_sig catch).

use super::handler::{Handled, TRAP, handler, tried};
use crate::prelude::*;

timed_loop! {
    /// tgkill(2). Words: 0: the process; 1: the thread; 2: the signal.
    tgkill: called call SYS_tgkill([0], [8], [16])
}

handler! {
    /// Only counts: the signal is delivered before the call returns.
    count:
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/signal-self",
    operation: "One SIGUSR1 by tgkill(2) to the thread itself and the handler that counts it.",
    avoid: "Call the handler's work directly, or wake a thread by a futex or an eventfd.",
    source: "tgkill(2); signal(7)",
    crosses: &[KernelEntry, SystemCall, KernelCode, Signal, SignalSend, UserCopy],
    beside: &[
        ("traps/sigreturn", "the return of the handler alone"),
        ("entry/syscall", "a call that does nothing"),
    ],
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(tgkill)),
    counts: Some("signals"),
    headlines: &[Headline::of(Section::Faults, "signal to itself + handler", &[])],
    kind: Kind::Instance(|timed, _, _| {
        let [process, thread] = addressee();
        // SAFETY: signal 0 only checks the permission (kill(2)).
        let sent = checked(unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) });
        sent.or_refused("tgkill(2) is refused")?;
        // SAFETY: the call touches no memory; the installed handler handles its signal.
        let timed_loop = unsafe { Loop::new(timed, [0; 7], None, checks::zero) }?;
        let addressed = Addressed(Handled::new(libc::SIGUSR1, count, timed));
        Ok(tried(timed_loop.with_hooks(addressed), 1, "a signal to oneself")?.here())
    }),
    ..TRAP
};

/// The handler, and the target of the signals in the context: the thread that runs the batch.
struct Addressed(Handled);

impl BatchHooks for Addressed {
    fn before(&mut self, context: &mut LoopContext, _: u64) -> Result<()> {
        let [process, thread] = addressee();
        context.words[..3].copy_from_slice(&[process, thread, libc::SIGUSR1 as u64]);
        self.0.install()
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        Ok(Some(self.0.remove()))
    }
}

fn addressee() -> [u64; 2] {
    // By number: std refers to gettid(3) weakly, and in a static program that can leave it at address 0.
    // SAFETY: both calls have no preconditions.
    let (process, thread) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid)) };
    [process as u64, thread as u64]
}
