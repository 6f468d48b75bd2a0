//! What ends the sleep of a thread.
//!
//! sched_switch notes the stack of a thread that goes to sleep. sched_waking runs where it is woken: in the thread that does so, or in an
//! interrupt in the middle of any thread. The stack there tells them apart. (`preempt_count` does too, but its address is known only to
//! kernels with CONFIG_KALLSYMS_ALL.) sched_wakeup would not do: it may run on the processor that the woken thread goes to.

use super::life::CREATE;
use super::sched::sleeper;
use super::*;
use crate::bpf::kernel::WakingOffsets;
use crate::bpf::layout::{Asleep, BlockKey, BlockRecord};

/// What these programs need.
#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) struct Blocked {
    pub offsets: WakingOffsets,
    /// [`Asleep`] of each thread.
    pub asleep: i32,
    /// Stacks of threads that fall asleep by number, and of what wakes them.
    pub stacks: i32,
    pub wakings: i32,
    /// [`BlockRecord`]s by [`BlockKey`].
    pub blocks: i32,
    /// Sleeps are told apart by the stack of user code, the process and the name of the thread.
    pub with_users: bool,
}

/// Flags of bpf_get_stackid: equal hashes are equal stacks; the stack of user code.
const FAST_COMPARE: i32 = 1 << 9;
const USER: i32 = 1 << 8;

// The stack. That of sched_switch has its own data elsewhere.
const DOING: i16 = 32;
const PLACE: i16 = 40;
const KEY: i16 = 16 + size_of::<BlockKey>() as i16;
const RECORD: i16 = KEY + size_of::<BlockRecord>() as i16;

/// In sched_switch: the previous thread leaves the processor and does what is in R5, which stays. It notes its stack where it sleeps.
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

/// R0 = the number of the stack here, negative where there is no room for it.
fn stack_id(a: &mut Assembler, stacks: i32, flags: i32) {
    a.mov(R1, CONTEXT);
    a.map(R2, stacks);
    a.mov(R3, flags);
    a.call(Helper::GetStackId);
}

fn key(field: Field) -> Field {
    field.at(-KEY)
}

/// sched_waking(task): a thread is about to be woken, by what runs here.
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
    // One that slept already when the trace began has no stacks.
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

/// Puts what runs here into the key.
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
