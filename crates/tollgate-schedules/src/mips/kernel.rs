//! The kernel's effects on a process that it resumes.
//!
//! The return path's work is done when the process is suspended. No step reads its k1, `preempted` or link before it
//! continues, so the moment at which they are set makes no difference.

use super::memory::{ACCESS_MAGIC, Access, Fault, word_at};
use super::processor::Exception;
use super::register::Register;
use super::state::{Phase, Process, State};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Whether a return to user mode leaves [`ACCESS_MAGIC`] in k1. If not, the process's own k1 stays. That is the worst
    /// case: with any other value the store through k1 faults, and a fault stores nothing.
    pub(super) sets_k1: bool,
    pub(super) refill_sets_k1: bool,
    pub(super) handler: Handler,
}

/// The kernel's answer to a store to [`ACCESS_MAGIC`] from the page of `tst()`. Every other fault kills the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    Restart,
    Resume,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Served,
    Restarted,
    Resumed,
    Killed(Reason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    NoHandler,
    NoWrite,
    NotMagic,
}

impl Kernel {
    pub(super) const PUBLISHED: Self =
        Self { sets_k1: true, refill_sets_k1: true, handler: Handler::Restart };

    pub(super) fn k1(&self) -> u32 {
        if self.sets_k1 { ACCESS_MAGIC } else { 0 }
    }

    /// Suspends a process by an interrupt, or by a TLB refill that has to wait for the page, and makes it ready to
    /// continue.
    pub(super) fn suspend(&self, process: &mut Process, by_refill: bool) {
        if process.inside() {
            process.resume(process.epc());
            return_path(process, self.sets_k1 && (self.refill_sets_k1 || !by_refill));
        }
    }

    pub(super) fn serve<const N: usize>(
        &self,
        state: &mut State<N>,
        who: usize,
        exception: Exception,
    ) -> Answer {
        let answer = match exception {
            Exception::Syscall => Answer::Served,
            Exception::Fault(fault) => self.fault(fault),
        };
        match answer {
            Answer::Served => {
                test_and_set(state, who);
                let pc = state.processes[who].pc;
                state.processes[who].resume(pc + 1);
            }
            Answer::Restarted => state.processes[who].resume(0),
            Answer::Resumed => {
                let epc = state.processes[who].epc();
                state.processes[who].resume(epc);
            }
            Answer::Killed(_) => {
                state.processes[who].leave(Phase::Killed);
                return answer;
            }
        }
        return_path(&mut state.processes[who], self.sets_k1);
        answer
    }

    /// Handles SEGV under the three published conditions. The third, EPC in the page of `tst()`, always holds: in this
    /// model nothing else can fault.
    fn fault(&self, fault: Fault) -> Answer {
        match self.handler {
            Handler::None => Answer::Killed(Reason::NoHandler),
            _ if fault.access != Access::Write => Answer::Killed(Reason::NoWrite),
            _ if fault.address != ACCESS_MAGIC => Answer::Killed(Reason::NotMagic),
            Handler::Restart => Answer::Restarted,
            Handler::Resume => Answer::Resumed,
        }
    }
}

fn return_path(process: &mut Process, sets_k1: bool) {
    if sets_k1 {
        process.set(Register::K1, ACCESS_MAGIC);
    }
    process.preempted = 1;
    process.link = 0;
}

/// The test-and-set that the kernel offers as a system call. No other process runs in the meantime.
fn test_and_set<const N: usize>(state: &mut State<N>, who: usize) {
    /// -EFAULT, the result for an invalid pointer.
    const BAD_ADDRESS: u32 = 14_u32.wrapping_neg();
    let address = state.processes[who].get(Register::A0);
    let old = match word_at(address, Access::Write) {
        Ok(word) => {
            let old = state.load(who, word);
            state.store(who, word, 1);
            old
        }
        Err(_) => BAD_ADDRESS,
    };
    state.processes[who].set(Register::V0, old);
}
