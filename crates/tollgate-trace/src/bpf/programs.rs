//! The BPF programs. Each is attached to one tracepoint and sees every task of the machine, so it first checks whether the
//! task has a [`Thread`] in its storage. Tasks of the traced tree have one; for all others the program returns at once.
//!
//! Registers with a fixed use: R6 is the tracepoint's context, R7 the task, R8 its [`Thread`] or the processor's lane, R9
//! the time.
//!
//! The programs add up inside the kernel, at each entry, return and switch, so no events are lost on the way; calls without
//! a slot are counted. One word counts the threads that run, are queued, and block. An atomic addition returns its former
//! value, and so shows the time in which no thread of the tree runs.
//!
//! Programs at kernel functions (fentry, fexit) would spare untraced processes the slow path of the two system call
//! tracepoints. They are a worse choice all the same, even for `--only`. docs/trace.md has the figures, and
//! tests/vm/points.c counts them again:
//! - A preemptible kernel preempts them, and does not run a program that is already active on the processor. Calls of other
//!   threads there are missed until it continues. Programs at tracepoints are not preempted.
//! - To attach or detach one, the kernel waits for grace periods of RCU tasks, some tenths of a second.
//! - The trampoline of a function is never freed if a thread does not leave the function. Each trace would leak one of
//!   `x64_sys_call`, through which all calls go, including exit(2). Since 6.15 nothing can be attached to it
//!   (arch/x86/entry/Makefile).
//! - They slow traced calls more. They do not see the return of a call that is in progress when the trace begins, or that a
//!   filter stops.
//!
//! A thread's state is in task storage, so PID namespaces, an exec by a thread other than the leader, and reused PIDs need
//! no special care. A lookup there takes as long as the rest of an entry or a return. The state that these need ([`Live`])
//! is therefore in the processor's lane while the thread runs; a context switch saves and loads it like registers.

pub(super) mod blocked;
mod bucket;
mod calls;
pub(super) mod files;
mod life;
mod recent;
pub(super) mod running;
mod sched;
mod stopped;

use super::asm::{
    Assembler, Atomic, Condition, FRAME, Field, Helper, Label, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9,
    Register, Width,
};
use super::kernel::Kernel;
use super::layout::{Doing, Lane, Live, PairRecord, RECENT, Thread, Totals, by_doing, field};

const CONTEXT: Register = R6;
const TASK: Register = R7;
const THREAD: Register = R8;
const NOW: Register = R9;
/// The processor's lane, if a program needs no [`Thread`].
const HERE: Register = R8;
/// Stack slot of the pointer to the lane, below all keys and records of these programs.
const LANE: i16 = 96;

/// File descriptors of the maps that programs use. Maps that were not requested are absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maps {
    /// [`Thread`]s, in task storage.
    pub threads: i32,
    pub totals: i32,
    /// For each processor, a [`super::layout::Lane`] and its slots.
    pub lanes: i32,
    pub slots: u32,
    pub tree: Option<Tree>,
    /// Single calls, and the capacity of that map.
    pub events: Option<(i32, u32)>,
    pub files: Option<files::Files>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    /// [`super::layout::ProcessRecord`]s by serial number.
    pub processes: i32,
    /// [`PairRecord`]s by serial number and call.
    pub pairs: i32,
}

/// The kernel and the request that the programs are built for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub kernel: Kernel,
    pub maps: Maps,
    pub only_some: bool,
    pub running: Option<running::Running>,
    pub blocked: Option<blocked::Blocked>,
}

#[derive(Debug)]
pub(super) struct Program {
    pub name: &'static str,
    /// The BTF id of its tracepoint.
    pub attach_id: u32,
    pub assembler: Assembler,
}

pub(super) fn attached(target: &Target) -> Vec<Program> {
    let points = target.kernel.tracepoints;
    let mut programs = vec![
        program("tollgate_enter", points.sys_enter, |a| calls::enter(a, target)),
        program("tollgate_exit", points.sys_exit, |a| calls::exit(a, target)),
        program("tollgate_switch", points.sched_switch, |a| sched::switch(a, target)),
        program("tollgate_wakeup", points.sched_wakeup, |a| sched::wakeup(a, target)),
        program("tollgate_new", points.task_newtask, |a| life::new(a, target)),
        program("tollgate_end", points.sched_process_exit, |a| life::end(a, target)),
    ];
    if target.maps.tree.is_some() {
        programs.push(program("tollgate_exec", points.sched_process_exec, |a| life::exec(a, target)));
    }
    if let Some(running) = &target.running
        && let Some(cgroup) = &running.cgroup
    {
        let id = cgroup.offsets.attach_task;
        programs.push(program("tollgate_arrive", id, |a| running::arrive(a, target, running, cgroup)));
    }
    if let Some(blocked) = &target.blocked {
        let id = blocked.offsets.sched_waking;
        programs.push(program("tollgate_waking", id, |a| blocked::waking(a, target, blocked)));
    }
    if let (Some(files), Some(id)) = (&target.maps.files, points.mm_filemap_fault) {
        programs.push(program("tollgate_fault", id, |a| files::fault(a, target, files)));
    }
    programs
}

/// Returns the iterator over all tasks that adds up the threads that still exist at the end.
pub(super) fn remaining(target: &Target) -> Option<Program> {
    let id = target.kernel.tracepoints.iter_task?;
    Some(program("tollgate_remain", id, |a| life::remaining(a, target)))
}

/// Returns the iterator over all tasks that adds running threads to the tree.
pub(super) fn taking(target: &Target) -> Option<Program> {
    let (id, running) = (target.kernel.tracepoints.iter_task?, target.running.as_ref()?);
    Some(program("tollgate_take", id, |a| running::take(a, target, running)))
}

/// Returns the iterator over all tasks that adds up the time outside of calls of existing threads.
pub(super) fn glance(target: &Target) -> Option<Program> {
    let id = target.kernel.tracepoints.iter_task?;
    Some(program("tollgate_glance", id, |a| running::glance(a, target)))
}

fn program(name: &'static str, attach_id: u32, write: impl FnOnce(&mut Assembler)) -> Program {
    let mut assembler = Assembler::default();
    write(&mut assembler);
    Program { name, attach_id, assembler }
}

fn argument(number: i16) -> Field {
    Field::double(8 * number)
}

/// The word on the stack at `depth` bytes below its end.
fn stack(depth: i16) -> Field {
    Field::double(-depth)
}

/// Sets R0 to the map's value under the key at this stack depth, or 0. Clobbers R1 to R5.
fn lookup(a: &mut Assembler, map: i32, key: i16) {
    a.map(R1, map);
    a.on_stack(R2, key);
    a.call(Helper::MapLookup);
}

/// Copies a [`super::layout::FileId`] between two fields. Clobbers R1.
fn copy_id(a: &mut Assembler, to: (Register, Field), from: (Register, Field)) {
    for half in [0, 8] {
        a.load(R1, from.0, from.1.at(half));
        a.store(to.0, to.1.at(half), R1);
    }
}

fn clear(a: &mut Assembler, base: Register, field: Field, bytes: usize) {
    for at in (0..bytes as i16).step_by(8) {
        a.store(base, Field::double(field.offset + at), 0);
    }
}

/// Sets `to` to the word at a kernel address, or 0 if the address is invalid. The word passes through the stack at depth `by`.
/// Clobbers R0 to R5.
///
/// A direct pointer load costs the program nothing but the verifier much: for each load it searches all types of the kernel by
/// name, three times (`type_is_trusted` of kernel/bpf/verifier.c), which takes 2 ms.
fn probe(a: &mut Assembler, to: Register, base: Register, field: Field, by: i16) {
    a.mov(R3, base);
    a.add(R3, i32::from(field.offset));
    a.on_stack(R1, -by);
    a.mov(R2, if field.width == Width::Double { 8 } else { 4 });
    a.call(Helper::ProbeReadKernel);
    a.load(to, FRAME, Field { offset: -by, width: field.width });
}

/// Sets R0 to the [`Thread`] of a task, or 0.
fn thread_of(a: &mut Assembler, target: &Target, task: Register) {
    storage(a, target, task, 0);
}

fn storage(a: &mut Assembler, target: &Target, task: Register, flags: i32) {
    a.map(R1, target.maps.threads);
    a.mov(R2, task);
    a.mov(R3, 0);
    a.mov(R4, flags);
    a.call(Helper::TaskStorageGet);
}

/// Sets R7 to the current task, R8 to its [`Thread`] with its current [`Live`], and stores the lane at [`LANE`]; jumps to
/// `leave` if the task has none.
fn current_thread(a: &mut Assembler, target: &Target, leave: Label) {
    lane(a, target);
    a.jump_if(Condition::Equal, R0, 0, leave);
    thread_on_lane(a, target, leave);
}

/// Does the same, given the processor's lane in R0.
fn thread_on_lane(a: &mut Assembler, target: &Target, leave: Label) {
    a.mov(THREAD, R0);
    a.store(FRAME, stack(LANE), THREAD);
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(TASK, R0);
    claim(a, target);
    a.load(R1, THREAD, field!(Lane, live.flags));
    a.jump_if(Condition::Equal, R1, 0, leave);
    thread_of(a, target, TASK);
    a.jump_if(Condition::Equal, R0, 0, leave);
    a.mov(THREAD, R0);
    a.load(R2, FRAME, stack(LANE));
    save_unless_ended(a, THREAD, R2);
}

/// Makes the lane in R8 that of the task in R7, which runs on the processor. Nearly always it already is. Clobbers R0 to R5.
fn claim(a: &mut Assembler, target: &Target) {
    let (other, empty, look, known) = (a.label(), a.label(), a.label(), a.label());
    a.load(R1, R8, field!(Lane, task));
    a.jump_if(Condition::NotEqual, R1, TASK, other);
    // A thread was on this processor when it was added to the tree.
    a.load(R1, R8, field!(Lane, live.flags));
    a.jump_if(Condition::NotEqual, R1, 0, known);
    a.load(R1, R8, field!(Lane, unsure));
    a.jump_if(Condition::Equal, R1, 0, known);
    a.jump(look);

    // A switch was missed: the lane still has another thread.
    a.bind(other);
    a.load(R2, R8, field!(Lane, live.flags));
    a.jump_if(Condition::Equal, R2, 0, empty);
    a.store(R8, field!(Lane, left_task), R1);
    copy_live(a, (R8, field!(Lane, left)), (R8, field!(Lane, live)));
    a.store(R8, field!(Lane, live.flags), 0);
    a.bind(empty);
    a.store(R8, field!(Lane, task), TASK);
    a.bind(look);
    be_sure(a, R8);
    thread_of(a, target, TASK);
    a.jump_if(Condition::Equal, R0, 0, known);
    a.mov(R4, R0);
    fetch(a, target, R4, TASK);
    load_live(a, R8, R4);
    a.bind(known);
}

/// Fetches the [`Live`] of a thread from the lane where its switch was missed. Clobbers R0 to R5 except `thread`.
fn fetch(a: &mut Assembler, target: &Target, thread: Register, task: Register) {
    fetch_and(a, target, thread, task, |_| {});
}

/// Does the same, and `then` if the thread is on that lane still, which is in R0.
fn fetch_and(
    a: &mut Assembler,
    target: &Target,
    thread: Register,
    task: Register,
    then: impl FnOnce(&mut Assembler),
) {
    let (here, still_there, kept) = (a.label(), a.label(), a.label());
    a.load(R1, thread, field!(Thread, lane));
    a.jump_if(Condition::Equal, R1, 0, here);
    a.sub(R1, 1);
    a.store(FRAME, Field::word(-4), R1);
    a.store(FRAME, stack(FETCHED), thread);
    a.store(FRAME, stack(FETCHED_TASK), task);
    lookup(a, target.maps.lanes, -4);
    a.load(thread, FRAME, stack(FETCHED));
    a.load(R5, FRAME, stack(FETCHED_TASK));
    a.jump_if(Condition::Equal, R0, 0, here);
    a.load(R1, R0, field!(Lane, task));
    a.jump_if(Condition::Equal, R1, R5, still_there);
    a.load(R1, R0, field!(Lane, left_task));
    a.jump_if(Condition::Equal, R1, R5, kept);
    a.jump(here);
    a.bind(still_there);
    a.load(R1, R0, field!(Lane, live.flags));
    a.jump_if(Condition::Equal, R1, 0, here);
    save_live(a, thread, R0);
    then(a);
    a.jump(here);
    a.bind(kept);
    copy_live(a, (thread, field!(Thread, live)), (R0, field!(Lane, left)));
    a.bind(here);
}

/// Stack slots of a thread and its task while its lane is looked up.
const FETCHED: i16 = 88;
const FETCHED_TASK: i16 = 80;

/// Loads the lane of a processor on which a thread begins to run. Clobbers R1.
fn load_live(a: &mut Assembler, lane: Register, thread: Register) {
    copy_live(a, (lane, field!(Lane, live)), (thread, field!(Thread, live)));
    be_sure(a, lane);
    a.load(R1, lane, field!(Lane, number));
    a.store(thread, field!(Thread, lane), R1);
    a.load(R1, thread, field!(Thread, process));
    a.store(lane, field!(Lane, process), R1);
}

/// Marks the lane as up to date for the thread on its processor. Clobbers R1.
fn be_sure(a: &mut Assembler, lane: Register) {
    a.load(R1, lane, field!(Lane, unsure));
    a.and(R1, Lane::TAKING as i32);
    a.store(lane, field!(Lane, unsure), R1);
}

/// Saves what calls changed in the thread that runs on the processor with this lane. Clobbers R1.
fn save_live(a: &mut Assembler, thread: Register, lane: Register) {
    copy_live(a, (thread, field!(Thread, live)), (lane, field!(Lane, live)));
}

/// Does the same unless [`remaining`] has added up the thread meanwhile. The thread is not traced after that, but the lane does not know.
fn save_unless_ended(a: &mut Assembler, thread: Register, lane: Register) {
    let ended = a.label();
    if_flagged(a, thread, Thread::ENDED, ended);
    save_live(a, thread, lane);
    a.bind(ended);
}

fn copy_live(a: &mut Assembler, to: (Register, Field), from: (Register, Field)) {
    for at in (0..size_of::<Live>() as i16).step_by(8) {
        a.load(R1, from.0, Field::double(from.1.offset + at));
        a.store(to.0, Field::double(to.1.offset + at), R1);
    }
}

/// Sets R9 to the time by CLOCK_MONOTONIC.
fn now(a: &mut Assembler) {
    a.call(Helper::KtimeGetNs);
    a.mov(NOW, R0);
}

/// Jumps to `to` if any of these flags is set in the thread. Clobbers R1.
fn if_flagged(a: &mut Assembler, thread: Register, flags: i32, to: Label) {
    a.load(R1, thread, field!(Thread, live.flags));
    a.jump_if(Condition::AnyBit, R1, flags, to);
}

fn set_flags(a: &mut Assembler, thread: Register, flags: i32) {
    a.load(R1, thread, field!(Thread, live.flags));
    a.or(R1, flags);
    a.store(thread, field!(Thread, live.flags), R1);
}

/// Adds the time since the thread's state began to the total of that state. Clobbers R1 to R3.
fn charge(a: &mut Assembler, thread: Register) {
    a.mov(R1, NOW);
    a.load(R2, thread, field!(Thread, since));
    a.sub(R1, R2);
    a.store(thread, field!(Thread, since), NOW);
    a.load(R2, thread, field!(Thread, doing));
    a.and(R2, 3);
    a.shl(R2, 3);
    a.mov(R3, thread);
    a.add(R3, R2);
    a.increase(R3, field!(Thread, spent), R1, R2);
    set_flags(a, thread, Thread::WAITED);
}

/// Sets the thread's state to R5, and R0 to the change of the census. Clobbers R1.
fn change_doing(a: &mut Assembler, thread: Register) {
    let unit = |a: &mut Assembler, to: Register, doing: Register| {
        a.mul(doing, 20);
        a.mov(to, 1);
        a.shl(to, doing);
        // Sleeping threads are not counted: a bit above the three counts is shifted out here.
        a.shl(to, 4);
        a.shr(to, 4);
    };
    a.load(R1, thread, field!(Thread, doing));
    a.and(R1, 3);
    a.store(thread, field!(Thread, doing), R5);
    unit(a, R0, R5);
    unit(a, R5, R1);
    a.sub(R0, R5);
}

/// Adds R0 to the census. If that changes the kind of real time, one stretch ends now and another begins. Clobbers R0 to R5.
fn take_census(a: &mut Assembler, target: &Target) {
    let same = a.label();
    a.jump_if(Condition::Equal, R0, 0, same);
    a.value(R2, target.maps.totals, field!(Totals, census).offset as u32);
    a.mov(R1, R0);
    a.mov(R3, R0);
    a.atomic(Atomic::FetchAdd, R2, Field::double(0), R3);
    a.add(R1, R3);
    stretch_of(a, R4, R3);
    stretch_of(a, R5, R1);
    a.jump_if(Condition::Equal, R4, R5, same);
    a.value(R2, target.maps.totals, field!(Totals, stretches).offset as u32);
    a.mov(R3, R2);
    a.shl(R4, 3);
    a.add(R3, R4);
    a.atomic(Atomic::Add, R3, Field::double(0), NOW);
    a.shl(R5, 3);
    a.add(R2, R5);
    a.mov(R1, 0);
    a.sub(R1, NOW);
    a.atomic(Atomic::Add, R2, Field::double(0), R1);
    a.bind(same);
}

/// Sets `to` to the kind of real time of a census: 0 if a thread runs, else its first [`Doing`]; 4 if unknown. Clobbers R0.
fn stretch_of(a: &mut Assembler, to: Register, census: Register) {
    const COUNT: i32 = (1 << 20) - 1;
    let known = a.label();
    a.mov(to, 4);
    a.jump_if(Condition::Negative, census, 0, known);
    a.mov(to, Doing::Running as i32);
    a.jump_if(Condition::AnyBit, census, COUNT, known);
    a.mov(to, Doing::Queued as i32);
    a.mov(R0, census);
    a.shr(R0, 20);
    a.jump_if(Condition::AnyBit, R0, COUNT, known);
    a.mov(to, Doing::Disk as i32);
    a.shr(R0, 20);
    a.jump_if(Condition::NotEqual, R0, 0, known);
    a.mov(to, Doing::Sleeping as i32);
    a.bind(known);
}

/// Sets R0 to this processor's lane, or 0 if the machine has more processors than the program was built for.
fn lane(a: &mut Assembler, target: &Target) {
    a.call(Helper::GetSmpProcessorId);
    a.store(FRAME, Field::word(-4), R0);
    lookup(a, target.maps.lanes, -4);
}

/// Adds the words of `from` for time off the processor to those of `to`; atomically if it is shared. Clobbers R1.
fn add_spent(a: &mut Assembler, to: Register, to_array: Field, from_array: Field, shared: bool) {
    for doing in [Doing::Queued, Doing::Disk, Doing::Sleeping] {
        a.load(R1, THREAD, by_doing(from_array, doing));
        let place = by_doing(to_array, doing);
        if shared { a.increase_shared(to, place, R1) } else { a.increase(to, place, R1, R2) }
    }
}

/// Zeroes the thread's times after they were added up. Clobbers R1.
fn forget_spent(a: &mut Assembler) {
    for doing in [Doing::Running, Doing::Queued, Doing::Disk, Doing::Sleeping] {
        a.store(THREAD, by_doing(field!(Thread, spent), doing), 0);
    }
    clear_flags(a, Thread::WAITED);
}

/// Clears flags of the thread in R8. Clobbers R1.
fn clear_flags(a: &mut Assembler, flags: i32) {
    a.load(R1, THREAD, field!(Thread, live.flags));
    a.and(R1, !flags);
    a.store(THREAD, field!(Thread, live.flags), R1);
}

/// Copies the flags of the thread to its lane, so that they take effect. Clobbers R1 and R2.
fn take_flags(a: &mut Assembler) {
    a.load(R1, THREAD, field!(Thread, live.flags));
    a.load(R2, FRAME, stack(LANE));
    a.store(R2, field!(Lane, live.flags), R1);
}

/// Sets R0 to the [`PairRecord`] of the thread's process and the call in R7, creating it if needed; jumps to `lost` if the
/// map is full. Clobbers R1 to R5 and the last 88 bytes of the stack.
fn pair(a: &mut Assembler, target: &Target, tree: Tree, lost: Label) {
    let (full, found) = (a.label(), a.label());
    a.store(FRAME, Field::word(-PAIR), R7);
    a.load(R1, THREAD, field!(Thread, process));
    a.store(FRAME, Field::word(4 - PAIR), R1);
    pair_of_key(a, tree, full);
    a.jump(found);
    a.bind(full);
    a.count(target.maps.totals, field!(Totals, lost_pairs));
    a.jump(lost);
    a.bind(found);
}

/// Stack slot of the key of a [`PairRecord`].
const PAIR: i16 = 8;

/// Does the same by the key on the stack, without counting a loss if the map is full.
fn pair_of_key(a: &mut Assembler, tree: Tree, full: Label) {
    let found = a.label();
    lookup(a, tree.pairs, -PAIR);
    a.jump_if(Condition::NotEqual, R0, 0, found);
    let record = -PAIR - size_of::<PairRecord>() as i16;
    clear(a, FRAME, Field::double(record), size_of::<PairRecord>());
    a.map(R1, tree.pairs);
    a.on_stack(R2, -PAIR);
    a.on_stack(R3, record);
    a.mov(R4, NO_EXIST);
    a.call(Helper::MapUpdate);
    lookup(a, tree.pairs, -PAIR);
    a.jump_if(Condition::Equal, R0, 0, full);
    a.bind(found);
}

/// Sets `to` to the lane's place for a call. Places have `bytes` bytes each and begin at `first`.
fn place(a: &mut Assembler, to: Register, lane: Register, index: Register, first: Field, bytes: usize) {
    a.mov(to, index);
    a.and(to, RECENT as i32 - 1);
    a.mul(to, bytes as i32);
    a.add(to, lane);
    a.add(to, i32::from(first.offset));
}

/// Flag of bpf_map_update_elem: fail if the entry exists, so that a second thread finds the first one's.
const NO_EXIST: i32 = 1;
