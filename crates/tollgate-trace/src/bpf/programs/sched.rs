//! The scheduler: which task leaves a processor and why, which is woken, which gets a processor.
//!
//! The kernel calls these programs with the runqueue of the task's processor locked, so the events of one task arrive in
//! order. A task is woken on another processor only after it was switched out.

use tollgate_arch::abi::VFORK;

use super::*;

// Bits of task_struct.__state: include/linux/sched.h.
const UNINTERRUPTIBLE: i32 = 0x2;
const DEAD: i32 = 0x80;
const WAKE_KILL: i32 = 0x100;
const NO_LOAD: i32 = 0x400;
const RT_LOCK: i32 = 0x1000;

/// Stack slots of the change of the census, and of the thread that gets the processor, while the two tasks are examined.
const CHANGE: i16 = 16;
const NEXT: i16 = 24;

/// sched_switch(preempted, previous, next, state): one thread leaves this processor, another one gets it.
///
/// Both may be in the tree. The census is changed once, so a switch between two threads of the tree leaves it unchanged. The
/// lane tells whether the previous thread is in the tree.
pub(super) fn switch(a: &mut Assembler, target: &Target) {
    let leave = a.label();
    let (previous, next) = (R7, THREAD);
    a.mov(CONTEXT, R1);
    a.load(R7, CONTEXT, argument(2));
    thread_of(a, target, R7);
    a.store(FRAME, stack(NEXT), R0);
    let (stranger, ours) = (a.label(), a.label());
    lane(a, target);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.store(FRAME, stack(LANE), R0);
    a.mov(R8, R0);
    a.load(R7, CONTEXT, argument(1));
    claim(a, target);
    a.load(R1, CONTEXT, argument(2));
    a.store(R8, field!(Lane, task), R1);
    a.load(R1, R8, field!(Lane, live.flags));
    a.mov(R0, 0);
    a.jump_if(Condition::Equal, R1, 0, stranger);
    thread_of(a, target, R7);
    a.bind(stranger);
    a.mov(previous, R0);
    a.load(next, FRAME, stack(NEXT));
    a.jump_if(Condition::NotEqual, previous, 0, ours);
    a.jump_if(Condition::Equal, next, 0, leave);
    a.bind(ours);
    now(a);
    a.store(FRAME, stack(CHANGE), 0);

    let no_previous = a.label();
    a.jump_if(Condition::Equal, previous, 0, no_previous);
    save_and_leave(a, previous);
    if_flagged(a, previous, Thread::ARMED, no_previous);
    a.store(previous, field!(Thread, since), NOW);
    why_switched(a, target, previous);
    if let Some(blocked) = &target.blocked {
        blocked::falls_asleep(a, blocked);
    }
    change_doing(a, previous);
    a.store(FRAME, stack(CHANGE), R0);
    a.bind(no_previous);

    let (no_next, armed) = (a.label(), a.label());
    a.load(R2, FRAME, stack(LANE));
    a.store(R2, field!(Lane, live.flags), 0);
    a.jump_if(Condition::Equal, next, 0, no_next);
    a.load(R5, CONTEXT, argument(2));
    fetch(a, target, next, R5);
    if_flagged(a, next, Thread::ARMED, armed);
    charge(a, next);
    a.mov(R5, Doing::Running as i32);
    change_doing(a, next);
    a.load(R1, FRAME, stack(CHANGE));
    a.add(R0, R1);
    a.store(FRAME, stack(CHANGE), R0);
    a.bind(armed);
    a.load(R2, FRAME, stack(LANE));
    load_live(a, R2, next);
    a.bind(no_next);

    a.load(R0, FRAME, stack(CHANGE));
    take_census(a, target);
    a.bind(leave);
    a.exit();
}

/// Makes the thread leave the lane on the stack. Clobbers R1 and R2.
fn save_and_leave(a: &mut Assembler, thread: Register) {
    a.load(R2, FRAME, stack(LANE));
    save_unless_ended(a, thread, R2);
    a.store(thread, field!(Thread, lane), 0);
}

/// Sets R5 to the [`Doing`] of a thread that leaves the processor. Clobbers R1.
fn why_switched(a: &mut Assembler, target: &Target, previous: Register) {
    let known = a.label();
    a.mov(R5, Doing::Queued as i32);
    a.load(R1, CONTEXT, argument(0));
    a.jump_if(Condition::AnyBit, R1, 0xff, known);
    match target.kernel.task.state {
        None => a.load(R1, CONTEXT, argument(3)),
        Some(offset) => {
            a.load(R1, CONTEXT, argument(1));
            a.load(R1, R1, Field::word(offset));
        }
    }
    a.jump_if(Condition::Equal, R1, 0, known);
    kind_of_sleep(a, |a| a.load(R1, previous, field!(Thread, live.call)));
    a.bind(known);
}

/// Sets R5 to the kind of sleep of a thread with the `__state` in R1; `call` puts the index of its call into R1. Clobbers R1.
pub(super) fn kind_of_sleep(a: &mut Assembler, call: impl FnOnce(&mut Assembler)) {
    let (known, sleeps) = (a.label(), a.label());
    // TASK_IDLE is uninterruptible but does not count as load: state I, not D.
    a.jump_if(Condition::AnyBit, R1, DEAD | NO_LOAD, sleeps);
    a.unless(Condition::AnyBit, R1, UNINTERRUPTIBLE | RT_LOCK, |a| a.jump(sleeps));
    // vfork(2) and posix_spawn(3) wait for their child in state D, so that only SIGKILL ends the wait. That is not a disk wait.
    let is_disk = a.label();
    a.unless(Condition::AnyBit, R1, WAKE_KILL, |a| a.jump(is_disk));
    call(a);
    for call in VFORK.into_iter().chain([libc::SYS_clone, libc::SYS_clone3]) {
        a.jump_if(Condition::Equal, R1, call as i32, sleeps);
    }
    a.bind(is_disk);
    a.mov(R5, Doing::Disk as i32);
    a.jump(known);
    a.bind(sleeps);
    a.mov(R5, Doing::Sleeping as i32);
    a.bind(known);
}

/// sched_wakeup(task): a sleeping task is queued from here on.
pub(super) fn wakeup(a: &mut Assembler, target: &Target) {
    let leave = a.label();
    sleeper(a, target, Thread::ARMED, leave);
    now(a);
    charge(a, THREAD);
    a.mov(R5, Doing::Queued as i32);
    change_doing(a, THREAD);
    take_census(a, target);
    a.bind(leave);
    a.exit();
}

/// Sets R7 to the woken task and R8 to its thread if that sleeps and has no flag of `without`; else jumps to `leave`.
pub(super) fn sleeper(a: &mut Assembler, target: &Target, without: i32, leave: Label) {
    a.mov(CONTEXT, R1);
    a.load(TASK, CONTEXT, argument(0));
    thread_of(a, target, TASK);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.mov(THREAD, R0);
    if_flagged(a, THREAD, without, leave);
    // A task that still runs or is queued was woken before it slept.
    a.load(R1, THREAD, field!(Thread, doing));
    a.jump_if(Condition::Below, R1, Doing::Disk as i32, leave);
}
