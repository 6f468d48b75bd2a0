//! The installation of a handler (lmbench, lat_sig install).

use tollgate_arch::signal::Action;

use super::handler::{TRAP, handler};
use crate::prelude::*;

timed_loop! {
    /// rt_sigaction(2) for SIGUSR1, without the old action. Words 0 to 3: the kernel's struct sigaction
    /// (handler, flags, restorer, mask of 8 bytes).
    rt_sigaction: called call SYS_rt_sigaction(10, (0), 0, 8)
}

handler! {
    /// A handler whose signal is never sent.
    count:
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/signal-install",
    operation: "One rt_sigaction(2) that installs a handler for SIGUSR1.",
    avoid: "Install handlers once at start.",
    source: "sigaction(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy],
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(rt_sigaction)),
    kind: Kind::Instance(|timed, _, _| {
        let Action { handler, flags, restorer, mask } = Action::of(count);
        let words = [handler as u64, flags, restorer as u64, mask, 0, 0, 0];
        // SAFETY: the kernel reads words 0 to 3. The handler and the restorer are valid.
        let timed = unsafe { Loop::new(timed, words, None, checks::zero) }?;
        Ok(timed.with_hooks(Kept(None)).here())
    }),
    ..TRAP
};

struct Kept(Option<Action>);

impl Kept {
    fn put_back(&mut self) {
        if let Some(before) = self.0.take() {
            // SAFETY: this is the action from before the batch.
            let _ = unsafe { before.put(libc::SIGUSR1) };
        }
    }
}

impl BatchHooks for Kept {
    fn before(&mut self, _: &mut LoopContext, _: u64) -> Result<()> {
        self.put_back();
        let before = Action::now(libc::SIGUSR1).or_refused("rt_sigaction(2) is refused")?;
        self.0 = Some(before);
        Ok(())
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        self.put_back();
        Ok(None)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.put_back();
    }
}
