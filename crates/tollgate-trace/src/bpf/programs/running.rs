//! Threads that ran before they were traced.
//!
//! A mark in the storage of a process's first thread says that the process is wanted. An iterator over all tasks takes its threads: at any
//! moment, in whatever state each is. From there on the other programs see its switches, wake-ups and calls as those of any thread.

use super::life::CREATE;
use super::sched::kind_of_sleep;
use super::*;
use crate::bpf::kernel::TaskOffsets;
use crate::bpf::layout::{NO_CALL, ProcessRecord, TABLE};

/// What only these programs need.
#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) struct Running {
    /// The serial number of each wanted process, in the storage of its first thread.
    pub marks: i32,
    pub task: TaskOffsets,
}

// task_struct.flags: include/linux/sched.h.
const PF_EXITING: i32 = 0x4;
/// Workers of io_uring and others are threads that never return from a call.
const PF_WORKER: i32 = 0x10 | 0x4000;
/// It is being woken, bit of `__state`.
const WAKING: i32 = 0x200;
/// `struct pt_regs` of x86: the call's number, negative where the kernel was entered by an interrupt or a fault.
const ORIG_AX: i16 = 120;
/// `TS_COMPAT` of thread_info.status.
const TS_COMPAT: i32 = 2;
/// `__X32_SYSCALL_BIT` of a call's number.
const X32_BIT: i32 = 0x4000_0000;

/// A [`Thread`] on the stack, and above it the number of its process.
const MADE: i16 = 16 + size_of::<Thread>() as i16;
const SERIAL: i16 = 16;

/// An iterator's program, for each task of the machine: takes it into the tree where its process is marked.
///
/// What the thread does now is read just before it is taken. Where it gets or loses its processor in between (some 100 ns), its state is wrong
/// until its next switch; the counts of threads by state stay whole.
pub(super) fn take(a: &mut Assembler, target: &Target, running: &Running) {
    let leave = a.label();
    a.load(TASK, R1, argument(1));
    a.jump_if(Condition::Equal, TASK, 0, leave);
    // Whether it passed its end already is not known.
    a.load(R1, TASK, Field::word(running.task.flags));
    a.jump_if(Condition::AnyBit, R1, PF_EXITING, leave);
    a.load(R2, TASK, Field::double(running.task.group_leader));
    a.jump_if(Condition::Equal, R2, 0, leave);
    a.map(R1, running.marks);
    a.mov(R3, 0);
    a.mov(R4, 0);
    a.call(Helper::TaskStorageGet);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.load(R1, R0, Field::word(0));
    a.store(FRAME, Field::word(-SERIAL), R1);
    thread_of(a, target, TASK);
    a.jump_if(Condition::NotEqual, R0, 0, leave);
    now(a);
    call_now(a, target, running);
    doing_now(a, running);
    make(a, target);
    a.bind(leave);
    a.exit();
}

/// A field of the [`Thread`] on the stack.
fn made(field: Field) -> Field {
    field.at(-MADE)
}

/// R8 = the index of the call that the task in R7 is in, or [`NO_CALL`]. Of a thread on a processor it is not known: the registers that it
/// entered the kernel with may be of another time.
fn call_now(a: &mut Assembler, target: &Target, running: &Running) {
    let (none, done, known, compat, odd) = (a.label(), a.label(), a.label(), a.label(), a.label());
    a.load(R1, TASK, Field::word(running.task.flags));
    a.jump_if(Condition::AnyBit, R1, PF_WORKER, none);
    let in_kernel = a.label();
    a.load(R1, TASK, Field::word(running.task.on_cpu));
    a.jump_if(Condition::Equal, R1, 0, in_kernel);
    // One that is about to sleep is in the kernel as well.
    a.load(R1, TASK, Field::word(running.task.state));
    a.jump_if(Condition::Equal, R1, 0, none);
    a.bind(in_kernel);
    a.mov(R1, TASK);
    a.call(Helper::TaskPtRegs);
    a.jump_if(Condition::Equal, R0, 0, none);
    a.load(R8, R0, Field::double(ORIG_AX));
    a.jump_if(Condition::Negative, R8, 0, none);
    a.load(R1, TASK, Field::word(target.kernel.task.status));
    a.jump_if(Condition::AnyBit, R1, TS_COMPAT, compat);
    a.jump_if(Condition::AtLeast, R8, TABLE as i32, odd);
    a.bind(known);
    if target.only_some {
        calls::slot_of_call(a, target, R8);
        a.jump_if(Condition::Equal, R2, i32::from(Totals::UNWANTED), none);
    }
    a.jump(done);

    a.bind(odd);
    a.and(R8, !X32_BIT);
    a.unless(Condition::AtLeast, R8, TABLE as i32, |a| {
        a.add(R8, 2 * TABLE as i32);
        a.jump(known);
    });
    a.mov(R8, TABLE as i32 - 1);
    a.jump(known);
    a.bind(compat);
    a.unless(Condition::Below, R8, TABLE as i32, |a| a.mov(R8, TABLE as i32 - 1));
    a.add(R8, TABLE as i32);
    a.jump(known);

    a.bind(none);
    a.mov(R8, NO_CALL as i32);
    a.bind(done);
}

/// R5 = what the task in R7 does, as [`Doing`]; the index of its call is in R8. R1 is lost.
fn doing_now(a: &mut Assembler, running: &Running) {
    let (asleep, known) = (a.label(), a.label());
    a.load(R1, TASK, Field::word(running.task.state));
    a.unless(Condition::AnyBit, R1, WAKING, |a| a.jump_if(Condition::NotEqual, R1, 0, asleep));
    a.mov(R5, Doing::Running as i32);
    a.load(R1, TASK, Field::word(running.task.on_cpu));
    a.jump_if(Condition::NotEqual, R1, 0, known);
    a.mov(R5, Doing::Queued as i32);
    a.jump(known);
    a.bind(asleep);
    kind_of_sleep(a, |a| a.mov(R1, R8));
    a.bind(known);
}

/// Makes the thread of the task in R7, which does what is in R5, in the call in R8.
fn make(a: &mut Assembler, target: &Target) {
    let (made_it, leave) = (a.label(), a.label());
    clear(a, FRAME, stack(MADE), size_of::<Thread>());
    a.store(FRAME, made(field!(Thread, live.call)), R8);
    // A call that is going on began, for the trace, when that did.
    for moment in [field!(Thread, live.entered), field!(Thread, began), field!(Thread, since)] {
        a.store(FRAME, made(moment), NOW);
    }
    a.store(FRAME, made(field!(Thread, live.flags)), Thread::TRACED);
    a.store(FRAME, made(field!(Thread, doing)), R5);
    a.load(R1, FRAME, Field::word(-SERIAL));
    a.store(FRAME, made(field!(Thread, process)), R1);
    // The census comes first: an event that comes between the two then finds the thread counted.
    join_census(a, target, R5, false);
    a.map(R1, target.maps.threads);
    a.mov(R2, TASK);
    a.on_stack(R3, -MADE);
    a.mov(R4, CREATE);
    a.call(Helper::TaskStorageGet);
    a.jump_if(Condition::NotEqual, R0, 0, made_it);
    a.count(target.maps.totals, field!(Totals, lost_threads));
    a.load(R5, FRAME, made(field!(Thread, doing)));
    join_census(a, target, R5, true);
    a.jump(leave);
    a.bind(made_it);
    for total in [field!(Totals, threads), field!(Totals, alive)] {
        a.count(target.maps.totals, total);
    }
    if let Some(tree) = target.maps.tree {
        a.load(R1, FRAME, Field::word(-SERIAL));
        a.store(FRAME, Field::word(-8), R1);
        lookup(a, tree.processes, -8);
        a.unless(Condition::Equal, R0, 0, |a| a.increase_shared(R0, field!(ProcessRecord, threads), 1));
    }
    a.bind(leave);
}

/// Counts a thread that does what is in `doing`, or no longer counts it. R0 to R5 are lost.
fn join_census(a: &mut Assembler, target: &Target, doing: Register, leaves: bool) {
    let known = a.label();
    let one = |number: u64| if leaves { number.wrapping_neg() } else { number };
    for (kind, unit) in [(Doing::Sleeping, 0), (Doing::Running, 1), (Doing::Queued, 1 << 20)] {
        a.constant(R0, one(unit));
        a.jump_if(Condition::Equal, doing, kind as i32, known);
    }
    a.constant(R0, one(1 << 40));
    a.bind(known);
    take_census(a, target);
}
