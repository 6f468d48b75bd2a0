//! Threads that already ran when tracing began.
//!
//! A mark in the storage of a process's first thread says that the process is traced. An iterator over all tasks adds its
//! threads to the tree at an arbitrary moment, in any state. From then on the other programs see its switches,
//! wake-ups and calls like those of any thread.

use tollgate_arch::registers::pt_regs;

use super::calls::OtherTables;
use super::life::{CREATE, enter_process};
use super::sched::kind_of_sleep;
use super::*;
use crate::bpf::kernel::{CgroupOffsets, TaskOffsets};
use crate::bpf::layout::{Mark, NO_CALL, ProcessRecord};
use crate::request::Group;

#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) struct Running {
    /// The serial number of each traced process, in the storage of its first thread.
    pub marks: i32,
    pub task: TaskOffsets,
    pub cgroup: Option<Cgroup>,
}

/// A control group, and the offsets that tell whether another one lies within it.
#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) struct Cgroup {
    pub group: Group,
    pub offsets: CgroupOffsets,
}

// task_struct.flags: include/linux/sched.h.
const PF_EXITING: i32 = 0x4;
/// Workers, of io_uring and others, never return from a call.
const PF_WORKER: i32 = 0x10 | 0x4000;
/// The bit of `__state` for a task that is being woken.
const WAKING: i32 = 0x200;

/// Stack slots of a [`Thread`], and above it of its process's number.
const MADE: i16 = 16 + size_of::<Thread>() as i16;
const SERIAL: i16 = 16;

/// Iterator program, called for each task of the machine: adds the task to the tree if its process is marked.
///
/// The thread's state is read just before it is added. If the thread gets or loses its processor in between (some 100 ns),
/// its state is wrong until its next switch, but the counts of threads by state stay consistent.
pub(super) fn take(a: &mut Assembler, target: &Target, running: &Running) {
    let leave = a.label();
    a.load(TASK, R1, argument(1));
    a.jump_if(Condition::Equal, TASK, 0, leave);
    // It is not known whether the thread has already passed sched_process_exit.
    a.load(R1, TASK, Field::word(running.task.flags));
    a.jump_if(Condition::AnyBit, R1, PF_EXITING, leave);
    a.load(R2, TASK, Field::double(running.task.group_leader));
    a.jump_if(Condition::Equal, R2, 0, leave);
    a.map(R1, running.marks);
    a.mov(R3, 0);
    a.mov(R4, 0);
    a.call(Helper::TaskStorageGet);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.load(R1, R0, field!(Mark, known));
    a.jump_if(Condition::Equal, R1, 0, leave);
    a.load(R1, R0, field!(Mark, serial));
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

fn made(field: Field) -> Field {
    field.at(-MADE)
}

/// Sets R8 to the index of the call that the task in R7 is in, or [`NO_CALL`]. For a thread on a processor it is unknown,
/// since the saved registers may be from an earlier entry.
fn call_now(a: &mut Assembler, target: &Target, running: &Running) {
    let (none, done) = (a.label(), a.label());
    a.load(R1, TASK, Field::word(running.task.flags));
    a.jump_if(Condition::AnyBit, R1, PF_WORKER, none);
    let in_kernel = a.label();
    a.load(R1, TASK, Field::word(running.task.on_cpu));
    a.jump_if(Condition::Equal, R1, 0, in_kernel);
    // A thread that is about to sleep is in the kernel as well.
    a.load(R1, TASK, Field::word(running.task.state));
    a.jump_if(Condition::Equal, R1, 0, none);
    a.bind(in_kernel);
    a.mov(R1, TASK);
    a.call(Helper::TaskPtRegs);
    a.jump_if(Condition::Equal, R0, 0, none);
    a.load(R8, R0, Field::word(pt_regs::CALL));
    a.mov(R1, R8);
    a.shl(R1, 32);
    a.jump_if(Condition::Negative, R1, 0, none);
    let tables = OtherTables::unless_first(a, target, R8);
    if target.only_some {
        calls::slot_of_call(a, target, R8);
        a.jump_if(Condition::Equal, R2, i32::from(Totals::UNWANTED), none);
    }
    a.jump(done);

    tables.write(a, R8);
    a.bind(none);
    a.mov(R8, NO_CALL as i32);
    a.bind(done);
}

/// Sets R5 to the [`Doing`] of the task in R7; the index of its call is in R8. Clobbers R1.
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

/// Creates the thread of the task in R7, in the state in R5, in the call in R8.
fn make(a: &mut Assembler, target: &Target) {
    let (made_it, leave, not_counted) = (a.label(), a.label(), a.label());
    clear(a, FRAME, stack(MADE), size_of::<Thread>());
    a.store(FRAME, made(field!(Thread, live.call)), R8);
    // A call in progress counts from the start of the trace.
    for moment in [field!(Thread, live.entered), field!(Thread, began), field!(Thread, since)] {
        a.store(FRAME, made(moment), NOW);
    }
    a.store(FRAME, made(field!(Thread, live.flags)), Thread::TRACED);
    a.unless(Condition::NotEqual, R8, NO_CALL as i32, |a| {
        a.store(FRAME, made(field!(Thread, live.flags)), Thread::TRACED | Thread::FRESH);
    });
    a.store(FRAME, made(field!(Thread, doing)), R5);
    a.load(R1, FRAME, Field::word(-SERIAL));
    a.store(FRAME, made(field!(Thread, process)), R1);
    // The census comes first, so an event between the two finds the thread counted.
    join_census(a, target, R5, false);
    a.map(R1, target.maps.threads);
    a.mov(R2, TASK);
    a.on_stack(R3, -MADE);
    a.mov(R4, CREATE);
    a.call(Helper::TaskStorageGet);
    a.jump_if(Condition::NotEqual, R0, 0, made_it);
    a.count(target.maps.totals, field!(Totals, lost_threads));
    a.bind(not_counted);
    a.load(R5, FRAME, made(field!(Thread, doing)));
    join_census(a, target, R5, true);
    a.jump(leave);
    a.bind(made_it);
    a.mov(R1, 1);
    a.atomic(Atomic::FetchAdd, R0, field!(Thread, taken), R1);
    a.jump_if(Condition::NotEqual, R1, 0, not_counted);
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

/// Adds a thread in the state `doing` to the census, or removes it. Clobbers R0 to R5.
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

const DEEPEST: usize = 24;
// Stack slots of the programs for control groups, above [`MADE`].
const READ: i16 = MADE + 8;
const RECORD: i16 = READ + size_of::<ProcessRecord>() as i16;

/// cgroup_attach_task(group, path, task, all of its threads): a process enters a control group.
pub(super) fn arrive(a: &mut Assembler, target: &Target, running: &Running, cgroup: &Cgroup) {
    let leave = a.label();
    a.mov(CONTEXT, R1);
    leave_unless_it_takes_in(a, target, leave);
    a.load(R8, CONTEXT, argument(0));
    leave_unless_within(a, cgroup, leave);
    a.load(TASK, CONTEXT, argument(2));
    thread_of(a, target, TASK);
    a.jump_if(Condition::NotEqual, R0, 0, leave);
    serial_of_task(a, target, running, cgroup, leave);
    now(a);
    call_now(a, target, running);
    doing_now(a, running);
    make(a, target);
    announce(a, target);
    a.bind(leave);
    a.exit();
}

/// task_newtask(task, flags) by a thread outside of the tree: the new thread may be in the control group. R6 is the context.
pub(super) fn born(a: &mut Assembler, target: &Target, running: &Running, cgroup: &Cgroup) {
    let leave = a.label();
    leave_unless_it_takes_in(a, target, leave);
    a.load(TASK, CONTEXT, argument(0));
    read(a, R8, TASK, Field::double(cgroup.offsets.task));
    a.jump_if(Condition::Equal, R8, 0, leave);
    read(a, R8, R8, Field::double(cgroup.offsets.default));
    a.jump_if(Condition::Equal, R8, 0, leave);
    leave_unless_within(a, cgroup, leave);
    serial_of_task(a, target, running, cgroup, leave);
    now(a);
    a.mov(R8, NO_CALL as i32);
    a.mov(R5, Doing::Queued as i32);
    make(a, target);
    a.bind(leave);
}

/// Jumps to `leave` before the trace begins and after it has ended, see [`Totals::takes_in`]. Clobbers R1.
fn leave_unless_it_takes_in(a: &mut Assembler, target: &Target, leave: Label) {
    a.value(R1, target.maps.totals, field!(Totals, takes_in).offset as u32);
    a.load(R1, R1, Field::double(0));
    a.jump_if(Condition::Equal, R1, 0, leave);
}

/// Jumps to `leave` unless the control group in R8 is the traced one, or below it. Clobbers R8 and R0 to R5.
fn leave_unless_within(a: &mut Assembler, cgroup: &Cgroup, leave: Label) {
    let within = a.label();
    let offsets = &cgroup.offsets;
    read(a, R9, R8, Field::double(offsets.root));
    read(a, R9, R9, Field::word(offsets.hierarchy));
    a.jump_if(Condition::NotEqual, R9, cgroup.group.hierarchy.cast_signed(), leave);
    for _ in 0..DEEPEST {
        read(a, R9, R8, Field::double(offsets.node));
        read(a, R9, R9, Field::double(offsets.id));
        a.constant(R1, cgroup.group.id);
        a.jump_if(Condition::Equal, R9, R1, within);
        read(a, R8, R8, Field::double(offsets.parent));
        a.jump_if(Condition::Equal, R8, 0, leave);
    }
    a.jump(leave);
    a.bind(within);
}

fn read(a: &mut Assembler, to: Register, base: Register, field: Field) {
    probe(a, to, base, field, READ);
}

/// Puts the process number of the task in R7 on the stack, and marks a new process. Clobbers R0 to R5, R8 and R9.
fn serial_of_task(a: &mut Assembler, target: &Target, running: &Running, cgroup: &Cgroup, leave: Label) {
    let known = a.label();
    a.load(R2, TASK, Field::double(running.task.group_leader));
    a.jump_if(Condition::Equal, R2, 0, leave);
    a.map(R1, running.marks);
    a.mov(R3, 0);
    a.mov(R4, CREATE);
    a.call(Helper::TaskStorageGet);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.mov(R8, R0);
    a.load(R1, R8, field!(Mark, known));
    a.jump_if(Condition::NotEqual, R1, 0, known);
    a.value(R1, target.maps.totals, field!(Totals, processes).offset as u32);
    a.mov(R2, 1);
    a.atomic(Atomic::FetchAdd, R1, Field::double(0), R2);
    a.store(R8, field!(Mark, serial), R2);
    if let Some(tree) = target.maps.tree {
        record(a, target, tree, cgroup);
    }
    // A program that sees the mark from here on finds the record, and counts the thread in it.
    a.store(R8, field!(Mark, known), 1);
    a.bind(known);
    a.load(R1, R8, field!(Mark, serial));
    a.store(FRAME, Field::word(-SERIAL), R1);
}

/// Creates the record of the process of the task in R7, with its mark in R8. It is its own parent, as at the trace's start.
fn record(a: &mut Assembler, target: &Target, tree: Tree, cgroup: &Cgroup) {
    now(a);
    a.mov(R1, TASK);
    a.load(R2, R8, field!(Mark, serial));
    a.mov(R3, R2);
    enter_process(a, target, tree, RECORD, |a| {
        a.mov(R3, TASK);
        a.add(R3, i32::from(cgroup.offsets.comm));
        a.call(Helper::ProbeReadKernel);
    });
}

/// The thread in R7 may be on a processor. On this processor, its next call looks for it. For the others, and for the other
/// threads of its process, the tracer is told to look.
fn announce(a: &mut Assembler, target: &Target) {
    let elsewhere = a.label();
    a.count(target.maps.totals, field!(Totals, arrived));
    a.call(Helper::GetCurrentTaskBtf);
    a.jump_if(Condition::NotEqual, R0, TASK, elsewhere);
    lane(a, target);
    a.jump_if(Condition::Equal, R0, 0, elsewhere);
    a.load(R1, R0, field!(Lane, unsure));
    a.or(R1, 1);
    a.store(R0, field!(Lane, unsure), R1);
    a.bind(elsewhere);
}

/// Iterator program, called for each task of the machine: adds the time outside of calls of an existing thread without changing
/// the thread. The last switch of a thread on another processor may be half recorded: an error of some microseconds, once.
pub(super) fn glance(a: &mut Assembler, target: &Target) {
    let (leave, in_call, add) = (a.label(), a.label(), a.label());
    a.load(TASK, R1, argument(1));
    a.jump_if(Condition::Equal, TASK, 0, leave);
    thread_of(a, target, TASK);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.mov(R6, R0);
    for at in (0..size_of::<Thread>() as i16).step_by(8) {
        a.load(R1, R6, Field::double(at));
        a.store(FRAME, Field::double(at - GLANCED), R1);
    }
    a.on_stack(THREAD, -GLANCED);
    fetch(a, target, THREAD, TASK);
    if_flagged(a, THREAD, Thread::ENDED | Thread::ARMED, leave);
    now(a);
    a.load(R1, THREAD, field!(Thread, live.call));
    a.jump_if(Condition::NotEqual, R1, NO_CALL as i32, in_call);
    charge(a, THREAD);
    a.store(THREAD, field!(Thread, live.entered), NOW);
    add_spent(a, THREAD, field!(Thread, outside), field!(Thread, spent), false);
    a.jump(add);
    a.bind(in_call);
    // The time between its last call and this one already counts as outside.
    a.bind(add);
    a.load(R7, THREAD, field!(Thread, live.entered));
    a.load(R1, THREAD, field!(Thread, began));
    a.sub(R7, R1);
    a.load(R1, THREAD, field!(Thread, live.in_calls));
    a.sub(R7, R1);
    a.value(R5, target.maps.totals, field!(Totals, glance).offset as u32);
    a.atomic(Atomic::Add, R5, Field::double(0), R7);
    a.value(R5, target.maps.totals, 0);
    add_spent(a, R5, field!(Totals, glance_spent), field!(Thread, outside), true);
    a.bind(leave);
    a.exit();
}

/// Stack slot of a copy of a [`Thread`], below those of [`fetch`].
const GLANCED: i16 = 96 + size_of::<Thread>() as i16;
