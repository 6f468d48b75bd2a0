//! Finds what ends the sleep of a thread.
//!
//! sched_switch records the stack of a thread that goes to sleep. sched_waking runs in the context of the waker: a thread, or an
//! interrupt in the middle of any thread. The stack there distinguishes the two. (So does `preempt_count`, but only kernels with
//! CONFIG_KALLSYMS_ALL reveal its address.) sched_wakeup would not do: it may run on the processor that the woken thread goes to.

use super::life::CREATE;
use super::sched::sleeper;
use super::*;
use crate::bpf::kernel::WakingOffsets;
use crate::bpf::layout::{Asleep, BlockKey, BlockRecord};

#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) struct Blocked {
    pub offsets: WakingOffsets,
    /// [`Asleep`] of each thread.
    pub asleep: i32,
    /// Stacks by id: of threads that go to sleep, and of their wakers.
    pub stacks: i32,
    pub wakings: i32,
    /// [`BlockRecord`]s by [`BlockKey`].
    pub blocks: i32,
    /// Distinguish sleeps by user stack, process and thread name.
    pub with_users: bool,
}

/// Flags of bpf_get_stackid: compare stacks by hash only; take the user stack.
const FAST_COMPARE: i32 = 1 << 9;
const USER: i32 = 1 << 8;

// Stack slots. sched_switch keeps its own data elsewhere.
const DOING: i16 = 32;
const PLACE: i16 = 40;
const KEY: i16 = 16 + size_of::<BlockKey>() as i16;
const RECORD: i16 = KEY + size_of::<BlockRecord>() as i16;

/// In sched_switch: the previous thread leaves in the state in R5, which is preserved. Records its stack if it sleeps.
pub(super) fn falls_asleep(a: &mut Assembler, blocked: &Blocked) {
    let awake = a.label();
    let restore = a.label();
    a.jump_if(Condition::Below, R5, Doing::Disk as i32, awake);
    a.store(FRAME, stack(DOING), R5);
    a.map(R1, blocked.asleep);
    a.load(R2, CONTEXT, argument(1));
    a.mov(R3, 0);
    a.mov(R4, CREATE);
    a.call(Helper::TaskStorageGet);
    a.jump_if(Condition::Equal, R0, 0, restore);
    a.store(FRAME, stack(PLACE), R0);
    let mut note = |field: Field, flags: i32| {
        stack_id(a, blocked.stacks, flags);
        a.load(R1, FRAME, stack(PLACE));
        a.store(R1, field, R0);
    };
    note(field!(Asleep, kernel), FAST_COMPARE);
    if blocked.with_users {
        note(field!(Asleep, user), FAST_COMPARE | USER);
    }
    a.bind(restore);
    a.load(R5, FRAME, stack(DOING));
    a.bind(awake);
}

/// Sets R0 to the id of the current stack, negative if there is no room for it.
fn stack_id(a: &mut Assembler, stacks: i32, flags: i32) {
    a.mov(R1, CONTEXT);
    a.map(R2, stacks);
    a.mov(R3, flags);
    a.call(Helper::GetStackId);
}

fn key(field: Field) -> Field {
    field.at(-KEY)
}

/// sched_waking(task): the current context is about to wake a thread.
pub(super) fn waking(a: &mut Assembler, target: &Target, blocked: &Blocked) {
    let leave = a.label();
    sleeper(a, target, Thread::ARMED | Thread::ENDED, leave);
    a.map(R1, blocked.asleep);
    a.mov(R2, TASK);
    a.mov(R3, 0);
    a.mov(R4, 0);
    a.call(Helper::TaskStorageGet);
    clear(a, FRAME, stack(KEY), size_of::<BlockKey>());
    let stacks = field!(BlockKey, stacks).offset;
    // A thread that already slept when the trace began has no stacks.
    a.store(FRAME, key(Field::word(stacks)), -1);
    a.store(FRAME, key(Field::word(stacks + 4)), -1);
    a.unless(Condition::Equal, R0, 0, |a| {
        a.load(R1, R0, field!(Asleep, kernel));
        a.store(FRAME, key(Field::word(stacks)), R1);
        a.load(R1, R0, field!(Asleep, user));
        a.store(FRAME, key(Field::word(stacks + 4)), R1);
    });
    a.load(R1, THREAD, field!(Thread, live.call));
    a.store(FRAME, key(field!(BlockKey, call)), R1);
    now(a);
    a.load(R1, THREAD, field!(Thread, since));
    a.sub(NOW, R1);
    if blocked.with_users {
        a.load(R1, TASK, Field::word(target.kernel.task.tgid));
        a.store(FRAME, key(field!(BlockKey, process)), R1);
        a.on_stack(R1, key(field!(BlockKey, name)).offset);
        a.mov(R2, 16);
        a.mov(R3, TASK);
        a.add(R3, i32::from(blocked.offsets.comm));
        a.call(Helper::ProbeReadKernel);
    }
    waker(a, target, blocked);
    add(a, target, blocked);
    a.bind(leave);
    a.exit();
}

fn waker(a: &mut Assembler, target: &Target, blocked: &Blocked) {
    stack_id(a, blocked.wakings, FAST_COMPARE);
    a.store(FRAME, key(field!(BlockKey, waking)), R0);
    a.call(Helper::GetCurrentTaskBtf);
    a.load(R1, R0, Field::word(target.kernel.task.pid));
    a.store(FRAME, key(field!(BlockKey, waker)), R1);
    a.on_stack(R1, key(field!(BlockKey, waker_name)).offset);
    a.mov(R2, 16);
    a.call(Helper::GetCurrentComm);
}

/// Adds a sleep of R9 nanoseconds to the record under the key.
fn add(a: &mut Assembler, target: &Target, blocked: &Blocked) {
    let (found, lost) = (a.label(), a.label());
    lookup(a, blocked.blocks, -KEY);
    a.jump_if(Condition::NotEqual, R0, 0, found);
    clear(a, FRAME, stack(RECORD), size_of::<BlockRecord>());
    a.map(R1, blocked.blocks);
    a.on_stack(R2, -KEY);
    a.on_stack(R3, -RECORD);
    a.mov(R4, NO_EXIST);
    a.call(Helper::MapUpdate);
    lookup(a, blocked.blocks, -KEY);
    a.jump_if(Condition::NotEqual, R0, 0, found);
    a.count(target.maps.totals, field!(Totals, lost_blocks));
    a.jump(lost);
    a.bind(found);
    a.mov(R4, R0);
    a.increase_shared(R4, field!(BlockRecord, count), 1);
    a.increase_shared(R4, field!(BlockRecord, total), R9);
    a.bind(lost);
}
