//! Entry and return of system calls. They run at every call of every process, so their time is the overhead of tracing.

use tollgate_arch::{abi::X32, registers::COMPAT};

use super::bucket::bucket;
use super::*;
use crate::bpf::layout::{CALLS, EventRecord, Lane, MOST_SLOTS, NO_CALL, Slot, TABLE};

/// The command begins with a call of one of these numbers, in the 64-bit table.
const EXECVE: i32 = libc::SYS_execve as i32;
const EXECVEAT: i32 = libc::SYS_execveat as i32;

pub(super) const SIGKILL_PENDING: i32 = 1 << (libc::SIGKILL - 1);

/// sys_enter(regs, number): records which call begins, and when.
///
/// The time is read last, so the program's own time counts as outside of the call.
pub(super) fn enter(a: &mut Assembler, target: &Target) {
    let (leave, ours, unknown, stranger) = (a.label(), a.label(), a.label(), a.label());
    let (number, lane_here) = (R9, R8);
    a.mov(CONTEXT, R1);
    lane(a, target);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.mov(lane_here, R0);
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(TASK, R0);
    a.load(R1, lane_here, field!(Lane, task));
    a.jump_if(Condition::NotEqual, R1, TASK, unknown);
    a.load(R1, lane_here, field!(Lane, live.flags));
    a.jump_if(Condition::Equal, R1, 0, stranger);
    a.bind(ours);

    a.load(number, CONTEXT, argument(1));
    let tables = OtherTables::unless_first(a, target, number);
    let unwanted = a.label();
    if target.only_some {
        slot_of_call(a, target, number);
        a.jump_if(Condition::Equal, R2, i32::from(Totals::UNWANTED), unwanted);
    }

    let slow = a.label();
    let begin = a.label();
    a.load(R1, lane_here, field!(Lane, live.flags));
    a.jump_if(Condition::NotEqual, R1, Thread::TRACED, slow);
    a.bind(begin);
    if let Some(files) = &target.maps.files {
        files::at_entry(a, target, files);
    }
    a.store(lane_here, field!(Lane, live.call), number);
    a.call(Helper::KtimeGetNs);
    a.store(lane_here, field!(Lane, live.entered), R0);
    a.bind(leave);
    a.exit();

    a.bind(stranger);
    a.load(R1, lane_here, field!(Lane, unsure));
    a.jump_if(Condition::Equal, R1, 0, leave);
    a.bind(unknown);
    claim(a, target);
    a.load(R1, lane_here, field!(Lane, live.flags));
    a.jump_if(Condition::Equal, R1, 0, leave);
    a.jump(ours);

    tables.write(a, number);

    // The thread was off the processor outside of calls, this is its first call, or it is about to become the command.
    a.bind(slow);
    let armed = a.label();
    a.jump_if(Condition::AnyBit, R1, Thread::ENDED, leave);
    current_thread(a, target, leave);
    a.load(R1, THREAD, field!(Thread, live.flags));
    a.jump_if(Condition::AnyBit, R1, Thread::ARMED, armed);
    if let Some(files) = &target.maps.files {
        a.store(FRAME, stack(16), number);
        files::settle_fault(a, target, files);
        a.load(number, FRAME, stack(16));
    }
    add_spent(a, THREAD, field!(Thread, outside), field!(Thread, spent), false);
    forget_spent(a);
    clear_flags(a, Thread::FRESH);
    let resume = a.label();
    a.bind(resume);
    take_flags(a);
    a.load(lane_here, FRAME, stack(LANE));
    a.jump(begin);
    a.bind(armed);
    leave_unless_command(a, number);
    release(a, target);
    a.jump(resume);

    // The command begins with a call that was not requested. Nothing of that call is kept, but later calls may be.
    a.bind(unwanted);
    if target.only_some {
        a.load(R1, lane_here, field!(Lane, live.flags));
        a.and(R1, Thread::ARMED);
        a.jump_if(Condition::Equal, R1, 0, leave);
        leave_unless_command(a, number);
        current_thread(a, target, leave);
        release(a, target);
        take_flags(a);
        a.exit();
    }
}

/// Instructions for numbers that are not below [`TABLE`] in the 64-bit table, out of line since few calls need them.
pub(super) struct OtherTables {
    odd: Label,
    compat: Label,
    known: Label,
}

impl OtherTables {
    /// Converts a call's number to an index in the table that the task in R7 came through. Clobbers R1.
    pub fn unless_first(a: &mut Assembler, target: &Target, number: Register) -> Self {
        let others = Self { odd: a.label(), compat: a.label(), known: a.label() };
        a.load(R1, TASK, Field::word(target.kernel.task.status));
        a.jump_if(Condition::AnyBit, R1, COMPAT.1, others.compat);
        a.jump_if(Condition::AtLeast, number, TABLE as i32, others.odd);
        a.bind(others.known);
        others
    }

    /// Handles the rest of the two tables, and the other two, where speed does not matter. Nothing may fall through to here.
    pub fn write(self, a: &mut Assembler, number: Register) {
        a.bind(self.odd);
        a.and(number, !X32.cast_signed());
        a.unless(Condition::AtLeast, number, TABLE as i32, |a| {
            a.add(number, 2 * TABLE as i32);
            a.jump(self.known);
        });
        a.mov(number, TABLE as i32 - 1);
        a.jump(self.known);
        a.bind(self.compat);
        a.unless(Condition::Below, number, TABLE as i32, |a| a.mov(number, TABLE as i32 - 1));
        a.add(number, TABLE as i32);
        a.jump(self.known);
    }
}

fn leave_unless_command(a: &mut Assembler, number: Register) {
    let command = a.label();
    a.jump_if(Condition::Equal, number, EXECVE, command);
    a.jump_if(Condition::Equal, number, EXECVEAT, command);
    a.exit();
    a.bind(command);
}

/// Starts the command, whose only thread runs.
fn release(a: &mut Assembler, target: &Target) {
    a.mov(R7, R9);
    now(a);
    a.store(THREAD, field!(Thread, live.flags), Thread::TRACED);
    a.store(THREAD, field!(Thread, began), NOW);
    a.store(THREAD, field!(Thread, since), NOW);
    a.store(THREAD, field!(Thread, doing), Doing::Running as i32);
    a.value(R1, target.maps.totals, field!(Totals, began).offset as u32);
    a.store(R1, Field::double(0), NOW);
    // Removes bit 63 from the census and adds one running thread.
    a.constant(R0, Totals::UNKNOWN + 1);
    take_census(a, target);
    a.mov(R9, R7);
}

/// Sets R1 to the address of the entry for a call's slot, and R2 to the slot. `index` is below [`CALLS`].
pub(super) fn slot_of_call(a: &mut Assembler, target: &Target, index: Register) {
    a.value(R1, target.maps.totals, field!(Totals, slot_of).offset as u32);
    a.mov(R2, index);
    a.and(R2, CALLS as i32 - 1);
    a.shl(R2, 1);
    a.add(R1, R2);
    a.load(R2, R1, Field { offset: 0, width: Width::Half });
}

/// sys_exit(regs, result): adds up the call that returns.
pub(super) fn exit(a: &mut Assembler, target: &Target) {
    let (leave, stopped) = (a.label(), a.label());
    let (index, duration, lane_here) = (R7, R9, R8);
    a.mov(CONTEXT, R1);
    lane(a, target);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.mov(lane_here, R0);
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(TASK, R0);
    let known = a.label();
    a.load(R1, lane_here, field!(Lane, task));
    a.jump_if(Condition::Equal, R1, TASK, known);
    claim(a, target);
    a.bind(known);
    a.load(R1, lane_here, field!(Lane, live.flags));
    a.jump_if(Condition::Equal, R1, 0, leave);

    let no_call = NO_CALL as i32;
    a.load(R1, lane_here, field!(Lane, live.call));
    a.jump_if(Condition::Equal, R1, no_call, stopped);
    a.call(Helper::KtimeGetNs);
    a.mov(duration, R0);
    a.load(R1, lane_here, field!(Lane, live.entered));
    a.sub(duration, R1);
    // A killed thread does not return: its call counts as unfinished when the thread ends, as in strace(1).
    a.load(R2, TASK, Field::double(target.kernel.task.pending));
    a.jump_if(Condition::AnyBit, R2, SIGKILL_PENDING, leave);
    a.load(index, lane_here, field!(Lane, live.call));
    a.store(lane_here, field!(Lane, live.call), no_call);
    a.increase(lane_here, field!(Lane, live.in_calls), duration, R1);

    let lost = a.label();
    let (waited, add_more, forget) = (a.label(), a.label(), a.label());
    a.mov(R0, lane_here);
    slot(a, target, index, lost);
    a.mov(R4, R0);
    a.increase(R4, field!(Slot, sums.total), duration, R1);
    a.load(R1, R4, field!(Slot, sums.max));
    a.unless(Condition::AtLeast, R1, duration, |a| a.store(R4, field!(Slot, sums.max), duration));
    a.load(R1, CONTEXT, argument(1));
    a.unless(Condition::Below, R1, FIRST_ERROR, |a| a.increase(R4, field!(Slot, sums.errors), 1, R1));
    bucket(a, duration);
    a.shl(R1, 3);
    a.mov(R2, R4);
    a.add(R2, R1);
    a.increase(R2, field!(Slot, histogram), 1, R1);

    // For a call that did not wait, the lane has all that is needed.
    let to_files = a.label();
    if target.maps.events.is_none() {
        a.load(R1, lane_here, field!(Lane, live.flags));
        a.jump_if(Condition::AnyBit, R1, Thread::WAITED, waited);
        if let Some(tree) = target.maps.tree {
            recent::add_to_process(a, target, tree);
        }
        if target.maps.files.is_some() {
            a.store(FRAME, stack(LANE), lane_here);
            a.store(FRAME, stack(files::WHOLE), 0);
            a.jump(to_files);
        } else {
            a.exit();
        }
    }

    a.bind(waited);
    a.store(FRAME, stack(SLOT), R4);
    whole_thread(a, target, index, leave);
    if_unflagged(a, Thread::WAITED, add_more);
    a.load(R4, FRAME, stack(SLOT));
    add_spent(a, R4, field!(Slot, sums.spent), field!(Thread, spent), false);
    a.bind(add_more);
    if let Some(tree) = target.maps.tree {
        add_to_process(a, target, tree);
    }
    if let Some((events, room)) = target.maps.events {
        keep_event(a, target, events, room);
    }
    if let Some(files) = &target.maps.files {
        a.store(FRAME, stack(files::WHOLE), THREAD);
        a.load(HERE, FRAME, stack(LANE));
        a.bind(to_files);
        files::at_exit(a, target, files);
        a.load(THREAD, FRAME, stack(files::WHOLE));
        a.jump_if(Condition::Equal, THREAD, 0, leave);
    }
    a.bind(forget);
    if_unflagged(a, Thread::WAITED, leave);
    forget_spent(a);
    take_flags(a);
    a.bind(leave);
    a.exit();

    a.bind(lost);
    a.count(target.maps.totals, field!(Totals, lost_calls));
    whole_thread(a, target, index, leave);
    a.jump(forget);

    a.bind(stopped);
    stopped::at_exit(a, target, leave);
}

const SLOT: i16 = 24;
const INDEX: i16 = 32;

/// Sets R8 to the current thread, as [`current_thread`], in the return of a call that did not need it so far. Preserves `index`.
pub(super) fn whole_thread(a: &mut Assembler, target: &Target, index: Register, leave: Label) {
    a.store(FRAME, stack(INDEX), index);
    current_thread(a, target, leave);
    a.load(index, FRAME, stack(INDEX));
}

/// Results from here on, as unsigned numbers, are errors: -4095 to -1.
pub(super) const FIRST_ERROR: i32 = -4095;

/// Sets R0 to the slot of the call in `index` in the lane in R0; jumps to `lost` if there is none left. Clobbers R1 to R5.
pub(super) fn slot(a: &mut Assembler, target: &Target, index: Register, lost: Label) {
    let (new, known) = (a.label(), a.label());
    slot_of_call(a, target, index);
    a.jump_if(Condition::Equal, R2, 0, new);
    a.bind(known);
    a.mov(R1, R2);
    a.sub(R1, 1);
    a.jump_if(Condition::AtLeast, R1, target.maps.slots as i32, lost);
    a.mul(R1, size_of::<Slot>() as i32);
    a.add(R0, size_of::<Lane>() as i32);
    a.add(R0, R1);
    let end = a.label();
    a.jump(end);

    a.bind(new);
    a.value(R4, target.maps.totals, field!(Totals, slots).offset as u32);
    a.mov(R3, 1);
    a.atomic(Atomic::FetchAdd, R4, Field::double(0), R3);
    a.jump_if(Condition::AtLeast, R3, (target.maps.slots as i32).min(MOST_SLOTS as i32), lost);
    a.value(R4, target.maps.totals, field!(Totals, call_of).offset as u32);
    a.mov(R5, R3);
    a.shl(R5, 1);
    a.add(R4, R5);
    a.store(R4, Field { offset: 0, width: Width::Half }, index);
    a.mov(R2, R3);
    a.add(R2, 1);
    a.store(R1, Field { offset: 0, width: Width::Half }, R2);
    a.jump(known);
    a.bind(end);
}

/// Adds the call in R7, which took R9, to its process. Threads of a process may do so at the same time.
fn add_to_process(a: &mut Assembler, target: &Target, tree: Tree) {
    let lost = a.label();
    pair(a, target, tree, lost);
    a.mov(R4, R0);
    a.increase_shared(R4, field!(PairRecord, count), 1);
    a.increase_shared(R4, field!(PairRecord, total), R9);
    a.load(R1, CONTEXT, argument(1));
    a.unless(Condition::Below, R1, FIRST_ERROR, |a| a.increase_shared(R4, field!(PairRecord, errors), 1));
    recent::greatest(a, R4, R9);
    if_unflagged(a, Thread::WAITED, lost);
    add_spent(a, R4, field!(PairRecord, spent), field!(Thread, spent), true);
    a.bind(lost);
}

pub(super) fn if_unflagged(a: &mut Assembler, flag: i32, to: Label) {
    a.load(R1, THREAD, field!(Thread, live.flags));
    a.and(R1, flag);
    a.jump_if(Condition::Equal, R1, 0, to);
}

/// Keeps the call in R7, which took R9, as a single event, while there is room.
fn keep_event(a: &mut Assembler, target: &Target, events: i32, room: u32) {
    let full = a.label();
    a.value(R1, target.maps.totals, field!(Totals, events).offset as u32);
    a.mov(R2, 1);
    a.atomic(Atomic::FetchAdd, R1, Field::double(0), R2);
    a.jump_if(Condition::AtLeast, R2, room as i32, full);
    a.store(FRAME, Field::word(-4), R2);
    lookup(a, events, -4);
    a.jump_if(Condition::Equal, R0, 0, full);
    let copy = |a: &mut Assembler, to: Field, from: Field| {
        a.load(R1, THREAD, from);
        a.store(R0, to, R1);
    };
    copy(a, field!(EventRecord, began), field!(Thread, live.entered));
    copy(a, field!(EventRecord, process), field!(Thread, process));
    for doing in [Doing::Queued, Doing::Disk, Doing::Sleeping] {
        copy(a, by_doing(field!(EventRecord, spent), doing), by_doing(field!(Thread, spent), doing));
    }
    a.store(R0, field!(EventRecord, total), R9);
    a.store(R0, field!(EventRecord, call), R7);
    a.load(R1, CONTEXT, argument(1));
    a.store(R0, field!(EventRecord, result), R1);
    files::first_argument(a, R1, R7);
    a.store(R0, field!(EventRecord, argument), R1);
    a.store(FRAME, stack(INDEX), R7);
    a.mov(R7, R0);
    a.call(Helper::GetCurrentTaskBtf);
    a.load(R1, R0, Field::word(target.kernel.task.pid));
    a.store(R7, field!(EventRecord, thread), R1);
    a.store(R7, field!(EventRecord, written), 1);
    a.load(R7, FRAME, stack(INDEX));
    a.bind(full);
}
