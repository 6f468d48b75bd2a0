//! Calls that a seccomp(2) filter stopped before they began: the filter returned an error (SECCOMP_RET_ERRNO), raised SIGSYS
//! (SECCOMP_RET_TRAP, SECCOMP_RET_KILL_PROCESS), or had another process answer (SECCOMP_RET_USER_NOTIF).
//!
//! `syscall_trace_enter` of kernel/entry/common.c runs the filter before it reports the entry, so only the return of these
//! calls is seen. strace(1) counts them, and so do we. Their start is unknown, so they are in no sum of times.

use tollgate_arch::registers::pt_regs;

use super::calls::{FIRST_ERROR, OtherTables, SIGKILL_PENDING, slot, slot_of_call, whole_thread};
use super::*;
use crate::bpf::layout::Slot;

/// The upper half has leftover bits of the register.
const CALL: Field = Field::word(pt_regs::CALL);

/// In sys_exit: the thread with the lane in R8 and the task in R7 returns without a recorded entry.
///
/// A thread that was forked, or that was added while it ran, returns from a call that another thread made or that began
/// before the trace. A thread that waits to be released is not the command yet. A killed thread does not return.
pub(super) fn at_exit(a: &mut Assembler, target: &Target, leave: Label) {
    let (fresh, lost, end) = (a.label(), a.label(), a.label());
    let number = R9;
    a.load(R1, HERE, field!(Lane, live.flags));
    a.jump_if(Condition::AnyBit, R1, Thread::FRESH, fresh);
    a.jump_if(Condition::AnyBit, R1, Thread::ARMED | Thread::ENDED, leave);
    a.value(R1, target.maps.totals, field!(Totals, over).offset as u32);
    a.load(R1, R1, Field::double(0));
    a.jump_if(Condition::NotEqual, R1, 0, leave);
    a.load(R1, TASK, Field::double(target.kernel.task.pending));
    a.jump_if(Condition::AnyBit, R1, SIGKILL_PENDING, leave);
    a.load(R1, CONTEXT, argument(0));
    a.load(number, R1, CALL);
    let tables = OtherTables::unless_first(a, target, number);
    if target.only_some {
        // A call that was not requested comes here each time.
        slot_of_call(a, target, number);
        a.jump_if(Condition::Equal, R2, i32::from(Totals::UNWANTED), leave);
    }
    let index = R7;
    a.mov(index, number);
    a.mov(R0, HERE);
    slot(a, target, index, lost);
    a.increase(R0, field!(Slot, sums.stopped), 1, R1);
    if_error(a, |a| a.increase(R0, field!(Slot, sums.errors), 1, R1));
    if let Some(tree) = target.maps.tree {
        whole_thread(a, target, index, leave);
        pair(a, target, tree, end);
        a.increase_shared(R0, field!(PairRecord, stopped), 1);
        if_error(a, |a| a.increase_shared(R0, field!(PairRecord, errors), 1));
    }
    a.bind(end);
    a.exit();

    a.bind(fresh);
    a.and(R1, !Thread::FRESH);
    a.store(HERE, field!(Lane, live.flags), R1);
    a.exit();

    a.bind(lost);
    a.count(target.maps.totals, field!(Totals, lost_calls));
    a.exit();
    tables.write(a, number);
}

/// Emits `then`, executed if the call returned an error. Clobbers R1.
fn if_error(a: &mut Assembler, then: impl FnOnce(&mut Assembler)) {
    a.load(R1, CONTEXT, argument(1));
    a.unless(Condition::Below, R1, FIRST_ERROR, then);
}
