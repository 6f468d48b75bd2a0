//! Creation of threads, exec, and exit.

use super::calls::slot;
use super::*;
use crate::bpf::layout::{NO_CALL, ProcessRecord, Slot};

const CLONE_THREAD: i32 = libc::CLONE_THREAD;
/// `BPF_LOCAL_STORAGE_GET_F_CREATE`.
pub(super) const CREATE: i32 = 1;
const RECORD: i16 = 24 + size_of::<ProcessRecord>() as i16;

/// task_newtask(task, flags): a thread of the tree has created a thread, which has not run yet.
///
/// io_uring workers arrive here as well. They have CLONE_THREAD and count as threads of their process, as in /proc.
pub(super) fn new(a: &mut Assembler, target: &Target) {
    let (leave, stranger) = (a.label(), a.label());
    let parent = R7;
    a.mov(CONTEXT, R1);
    current_thread(a, target, stranger);
    if_flagged(a, THREAD, Thread::ARMED | Thread::ENDED, leave);
    a.mov(parent, THREAD);
    a.load(R2, CONTEXT, argument(0));
    storage(a, target, R2, CREATE);
    a.unless(Condition::NotEqual, R0, 0, |a| {
        a.count(target.maps.totals, field!(Totals, lost_threads));
        a.exit();
    });
    a.mov(THREAD, R0);
    now(a);
    a.store(THREAD, field!(Thread, live.call), NO_CALL as i32);
    // Its first return is from the call that created it.
    a.store(THREAD, field!(Thread, live.flags), Thread::TRACED | Thread::FRESH);
    a.store(THREAD, field!(Thread, began), NOW);
    a.store(THREAD, field!(Thread, since), NOW);

    let (same_process, has_process) = (a.label(), a.label());
    a.load(R1, CONTEXT, argument(1));
    a.jump_if(Condition::AnyBit, R1, CLONE_THREAD, same_process);
    a.value(R1, target.maps.totals, field!(Totals, processes).offset as u32);
    a.mov(R2, 1);
    a.atomic(Atomic::FetchAdd, R1, Field::double(0), R2);
    a.store(THREAD, field!(Thread, process), R2);
    if let Some(tree) = target.maps.tree {
        add_process(a, target, tree, parent);
    }
    a.jump(has_process);
    a.bind(same_process);
    a.load(R1, parent, field!(Thread, process));
    a.store(THREAD, field!(Thread, process), R1);
    a.bind(has_process);
    if let Some(tree) = target.maps.tree {
        with_record(a, tree, |a| a.increase_shared(R0, field!(ProcessRecord, threads), 1));
    }

    for total in [field!(Totals, threads), field!(Totals, alive)] {
        a.count(target.maps.totals, total);
    }
    // Its storage was all zero, which means "runs", but the census has not counted it.
    a.store(THREAD, field!(Thread, doing), Doing::Queued as i32);
    a.constant(R0, 1 << 20);
    take_census(a, target);
    a.bind(leave);
    a.exit();

    // A thread outside of the tree may create one in a traced control group (CLONE_INTO_CGROUP of clone3(2)).
    a.bind(stranger);
    if let Some(running) = &target.running
        && let Some(cgroup) = &running.cgroup
    {
        running::born(a, target, running, cgroup);
    }
    a.exit();
}

/// Creates the record of the process of R8, whose parent's thread is R7.
fn add_process(a: &mut Assembler, target: &Target, tree: Tree, parent: Register) {
    a.load(R1, CONTEXT, argument(0));
    a.load(R2, parent, field!(Thread, process));
    a.load(R3, THREAD, field!(Thread, process));
    // A process has its parent's name until it calls exec.
    enter_process(a, target, tree, RECORD, |a| a.call(Helper::GetCurrentComm));
}

/// Adds the process of the task in R1 to the tree, with its parent's number in R2 and its own in R3. It begins now and has no
/// thread yet. `name` puts R2 bytes of its name at R1. The record is built on the stack at depth `record`. Clobbers R0 to R5.
pub(super) fn enter_process(
    a: &mut Assembler,
    target: &Target,
    tree: Tree,
    record: i16,
    name: impl FnOnce(&mut Assembler),
) {
    let on_stack = |field: Field| field.at(-record);
    clear(a, FRAME, stack(record), size_of::<ProcessRecord>());
    a.load(R1, R1, Field::word(target.kernel.task.tgid));
    a.store(FRAME, on_stack(field!(ProcessRecord, pid)), R1);
    a.store(FRAME, on_stack(field!(ProcessRecord, parent)), R2);
    a.store(FRAME, on_stack(field!(ProcessRecord, began)), NOW);
    a.store(FRAME, Field::word(-8), R3);
    a.on_stack(R1, on_stack(field!(ProcessRecord, name)).offset);
    a.mov(R2, 16);
    name(a);
    a.map(R1, tree.processes);
    a.on_stack(R2, -8);
    a.on_stack(R3, -record);
    a.mov(R4, 0);
    a.call(Helper::MapUpdate);
    a.unless(Condition::Equal, R0, 0, |a| a.count(target.maps.totals, field!(Totals, lost_processes)));
}

fn process_key(a: &mut Assembler) {
    a.load(R1, THREAD, field!(Thread, process));
    a.store(FRAME, Field::word(-8), R1);
}

/// Calls `with` with R0 set to the record of the process of R8, if there is one. Clobbers R1 to R5.
fn with_record(a: &mut Assembler, tree: Tree, with: impl FnOnce(&mut Assembler)) {
    process_key(a);
    lookup(a, tree.processes, -8);
    a.unless(Condition::Equal, R0, 0, with);
}

/// sched_process_exec(task, old_pid, program): renames the process.
pub(super) fn exec(a: &mut Assembler, target: &Target) {
    let leave = a.label();
    current_thread(a, target, leave);
    if_flagged(a, THREAD, Thread::ARMED, leave);
    if let Some(tree) = target.maps.tree {
        with_record(a, tree, |a| {
            a.mov(R6, R0);
            a.load(R1, TASK, Field::word(target.kernel.task.tgid));
            a.store(R6, field!(ProcessRecord, pid), R1);
            a.increase(R6, field!(ProcessRecord, execs), 1, R1);
            a.mov(R1, R6);
            a.add(R1, i32::from(field!(ProcessRecord, name).offset));
            a.mov(R2, 16);
            a.call(Helper::GetCurrentComm);
        });
    }
    a.bind(leave);
    a.exit();
}

/// sched_process_exit(task): a thread ends. After the last thread of the command's process, the causes of real time are unknown.
pub(super) fn end(a: &mut Assembler, target: &Target) {
    let (leave, gone) = (a.label(), a.label());
    current_thread(a, target, leave);
    if_flagged(a, THREAD, Thread::ENDED, leave);
    if_flagged(a, THREAD, Thread::ARMED, gone);
    now(a);
    add_up(a, target);
    probe(a, R3, TASK, Field::double(target.kernel.task.signal), PROBED);
    probe(a, R1, R3, Field::word(target.kernel.task.live), PROBED);
    a.jump_if(Condition::NotEqual, R1, 0, gone);
    if let Some(tree) = target.maps.tree {
        with_record(a, tree, |a| a.store(R0, field!(ProcessRecord, ended), NOW));
    }
    if target.running.is_none() {
        a.load(R1, THREAD, field!(Thread, process));
        a.jump_if(Condition::NotEqual, R1, 0, gone);
        a.value(R1, target.maps.totals, field!(Totals, ended).offset as u32);
        a.store(R1, Field::double(0), NOW);
        a.constant(R0, Totals::UNKNOWN);
        take_census(a, target);
    }
    a.bind(gone);
    set_flags(a, THREAD, Thread::ENDED);
    take_flags(a);
    a.value(R1, target.maps.totals, field!(Totals, alive).offset as u32);
    a.mov(R2, -1);
    a.atomic(Atomic::Add, R1, Field::double(0), R2);
    a.bind(leave);
    a.exit();
}

const PROBED: i16 = 16;

/// Iterator program, called for each task of the machine: adds up the threads that still exist.
pub(super) fn remaining(a: &mut Assembler, target: &Target) {
    let leave = a.label();
    a.load(TASK, R1, argument(1));
    a.jump_if(Condition::Equal, TASK, 0, leave);
    thread_of(a, target, TASK);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.mov(THREAD, R0);
    // The thread may be on a processor, and its call, which is counted here, may return before the programs are detached.
    fetch_and(a, target, THREAD, TASK, |a| {
        a.store(R0, field!(Lane, live.flags), Thread::TRACED | Thread::ENDED);
        a.store(R0, field!(Lane, live.call), NO_CALL as i32);
    });
    if_flagged(a, THREAD, Thread::ENDED | Thread::ARMED, leave);
    now(a);
    charge(a, THREAD);
    add_up(a, target);
    set_flags(a, THREAD, Thread::ENDED);
    a.store(THREAD, field!(Thread, live.call), NO_CALL as i32);
    a.bind(leave);
    a.exit();
}

/// Adds the thread's time outside of calls, and a call that does not return. Saves R7 in R6.
fn add_up(a: &mut Assembler, target: &Target) {
    let (outside, in_call, lost, done) = (a.label(), a.label(), a.label(), a.label());
    a.mov(R6, R7);
    a.load(R7, THREAD, field!(Thread, live.call));
    a.jump_if(Condition::NotEqual, R7, NO_CALL as i32, in_call);
    a.store(THREAD, field!(Thread, live.entered), NOW);
    add_spent(a, THREAD, field!(Thread, outside), field!(Thread, spent), false);
    a.jump(outside);

    a.bind(in_call);
    lane(a, target);
    a.jump_if(Condition::Equal, R0, 0, lost);
    slot(a, target, R7, lost);
    a.increase(R0, field!(Slot, sums.unfinished), 1, R1);
    if let Some(tree) = target.maps.tree {
        let full = a.label();
        pair(a, target, tree, full);
        a.increase_shared(R0, field!(PairRecord, unfinished), 1);
        a.bind(full);
    }

    a.jump(outside);
    a.bind(lost);
    a.count(target.maps.totals, field!(Totals, lost_calls));

    a.bind(outside);
    // Time outside is all time from the first moment to the last, less the time in calls.
    a.load(R7, THREAD, field!(Thread, live.entered));
    a.load(R1, THREAD, field!(Thread, began));
    a.sub(R7, R1);
    a.load(R1, THREAD, field!(Thread, live.in_calls));
    a.sub(R7, R1);
    lane(a, target);
    a.jump_if(Condition::Equal, R0, 0, done);
    a.increase(R0, field!(Lane, outside), R7, R1);
    add_spent(a, R0, field!(Lane, outside_spent), field!(Thread, outside), false);
    if let Some(tree) = target.maps.tree {
        with_record(a, tree, |a| {
            a.increase_shared(R0, field!(ProcessRecord, outside), R7);
            add_spent(a, R0, field!(ProcessRecord, outside_spent), field!(Thread, outside), true);
        });
    }
    a.bind(done);
    a.mov(R7, R6);
}
