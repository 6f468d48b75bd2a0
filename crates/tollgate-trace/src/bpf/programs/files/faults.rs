//! Page faults of mapped files, outside of calls.

use super::*;

/// mm_filemap_fault(mapping, page): a page of a mapped file is missing. Waits of the thread from here until its next call or
/// fault belong to this fault. The processor time of a fault is not known.
pub(in crate::bpf::programs) fn fault(a: &mut Assembler, target: &Target, files: &Files) {
    let o = &files.offsets;
    let (leave, in_call, no_wait) = (a.label(), a.label(), a.label());
    a.mov(CONTEXT, R1);
    current_thread(a, target, leave);
    if_flagged(a, THREAD, Thread::ARMED | Thread::ENDED, leave);
    a.load(R7, CONTEXT, argument(0));
    a.store(FRAME, stack(16), R7);
    a.load(R1, THREAD, field!(Thread, live.call));
    a.jump_if(Condition::NotEqual, R1, NO_CALL as i32, in_call);
    calls::if_unflagged(a, Thread::WAITED, no_wait);
    settle_fault(a, target, files);
    add_spent(a, THREAD, field!(Thread, outside), field!(Thread, spent), false);
    forget_spent(a);
    take_flags(a);
    a.bind(no_wait);
    a.bind(in_call);
    a.load(R7, FRAME, stack(16));
    read(a, files, R7, R7, Field::double(o.mapping_host));
    a.jump_if(Condition::Equal, R7, 0, leave);
    read(a, files, R7, R7, Field::double(o.inode_dentry));
    a.jump_if(Condition::Equal, R7, 0, leave);
    a.sub(R7, i32::from(o.dentry_alias));
    a.mov(R9, 0);
    identify(a, files, ID, leave);
    note_names(a, target, files);
    a.load(R1, THREAD, field!(Thread, live.call));
    a.unless(Condition::NotEqual, R1, NO_CALL as i32, |a| {
        copy_id(a, (THREAD, field!(Thread, fault)), (FRAME, stack(ID)));
    });
    let (found, lost) = (a.label(), a.label());
    fault_key(a, |a, half| a.load(R1, FRAME, stack(ID).at(half)));
    record(a, files.files, lost, found);
    a.bind(found);
    a.increase_shared(R0, field!(FileRecord, count), 1);
    a.bind(leave);
    a.exit();
    a.bind(lost);
    a.count(target.maps.totals, field!(Totals, lost_files));
    a.exit();
}

/// Sets R7 to the [`FileKey`] for page faults of a file, whose halves `half` loads to R1.
fn fault_key(a: &mut Assembler, half: impl Fn(&mut Assembler, i16)) {
    for at in [0, 8] {
        half(a, at);
        a.store(FRAME, stack(KEY).at(at), R1);
    }
    a.store(FRAME, on_stack(KEY, field!(FileKey, call)), FAULT as i32);
    a.store(FRAME, on_stack(KEY, field!(FileKey, padding)), 0);
    a.on_stack(R7, -KEY);
}

/// Adds time outside of calls, which is about to be cleared, to the thread's last fault, if any. Clobbers R0 to R5 and R7.
pub(in crate::bpf::programs) fn settle_fault(a: &mut Assembler, target: &Target, files: &Files) {
    let (none, lost, found) = (a.label(), a.label(), a.label());
    let last = field!(Thread, fault).offset;
    a.load(R1, THREAD, field!(FileId, device).at(last));
    a.jump_if(Condition::Equal, R1, 0, none);
    fault_key(a, |a, half| a.load(R1, THREAD, Field::double(last + half)));
    clear(a, THREAD, Field::double(last), 16);
    record(a, files.files, lost, found);
    a.bind(lost);
    a.count(target.maps.totals, field!(Totals, lost_files));
    a.jump(none);
    a.bind(found);
    a.mov(R4, R0);
    for doing in [Doing::Queued, Doing::Disk, Doing::Sleeping] {
        a.load(R1, THREAD, by_doing(field!(Thread, spent), doing));
        a.increase_shared(R4, field!(FileRecord, total), R1);
    }
    add_spent(a, R4, field!(FileRecord, spent), field!(Thread, spent), true);
    a.bind(none);
}
