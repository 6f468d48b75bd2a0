//! Finds the file of a descriptor, and the names of a file.

use super::*;

/// Sets R7 to the dentry and R9 to the mount of the descriptor on the stack; jumps to `none` if it is not open.
pub(super) fn path_of_descriptor(a: &mut Assembler, files: &Files, none: Label) {
    file_of_descriptor(a, files, none);
    a.add(R7, i32::from(files.offsets.file_path));
    path(a, files);
}

/// Sets R7 to the `struct file` of the descriptor on the stack; jumps to `none` if it is not open. Clobbers R9.
pub(super) fn file_of_descriptor(a: &mut Assembler, files: &Files, none: Label) {
    let o = &files.offsets;
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(R7, R0);
    read(a, files, R7, R7, Field::double(o.task_files));
    a.jump_if(Condition::Equal, R7, 0, none);
    read(a, files, R7, R7, Field::double(o.files_fdt));
    read(a, files, R9, R7, Field::word(o.fdt_max));
    a.load(R1, FRAME, Field::word(-DESCRIPTOR));
    a.jump_if(Condition::AtLeast, R1, R9, none);
    read(a, files, R7, R7, Field::double(o.fdt_fd));
    a.load(R1, FRAME, Field::word(-DESCRIPTOR));
    a.shl(R1, 3);
    a.add(R7, R1);
    read(a, files, R7, R7, Field::double(0));
    a.jump_if(Condition::Equal, R7, 0, none);
}

/// Sets R7 to the dentry and R9 to the mount of the `struct path` at R7.
pub(super) fn path(a: &mut Assembler, files: &Files) {
    let o = &files.offsets;
    read(a, files, R9, R7, Field::double(o.path_mnt));
    a.sub(R9, i32::from(o.mount_mnt));
    read(a, files, R7, R7, Field::double(o.path_dentry));
}

/// Puts the [`FileId`] of the dentry in R7 on the stack; jumps to `none` if it has no inode. Clobbers R0 to R5.
pub(super) fn identify(a: &mut Assembler, files: &Files, to: i16, none: Label) {
    let o = &files.offsets;
    read(a, files, R1, R7, Field::double(o.dentry_inode));
    a.jump_if(Condition::Equal, R1, 0, none);
    a.store(FRAME, stack(INODE), R1);
    read(a, files, R1, R1, Field::double(o.inode_number));
    a.store(FRAME, on_stack(to, field!(FileId, inode)), R1);
    a.load(R1, FRAME, stack(INODE));
    read(a, files, R1, R1, Field::word(o.inode_generation));
    a.store(FRAME, on_stack(to, field!(FileId, tells_apart)), R1);
    read(a, files, R1, R7, Field::word(o.dentry_hash));
    a.load(R2, FRAME, on_stack(to, field!(FileId, tells_apart)));
    a.xor(R1, R2);
    a.store(FRAME, on_stack(to, field!(FileId, tells_apart)), R1);
    a.load(R1, FRAME, stack(INODE));
    read(a, files, R1, R1, Field::double(o.inode_sb));
    a.store(FRAME, stack(INODE), R1);
    read(a, files, R1, R1, Field::word(o.sb_device));
    a.store(FRAME, on_stack(to, field!(FileId, device)), R1);
}

/// Maps files without names to one id per kind. Clobbers R0 to R5.
pub(super) fn unite_nameless(a: &mut Assembler, files: &Files) {
    let o = &files.offsets;
    a.load(R1, FRAME, stack(INODE));
    read(a, files, R2, R1, Field::double(o.sb_magic));
    let (nameless, named) = (a.label(), a.label());
    for (magic, device) in [(PIPEFS, PIPE), (SOCKFS, SOCKET), (ANON_INODE_FS, ANON_INODE)] {
        a.mov(R1, device);
        a.jump_if(Condition::Equal, R2, magic, nameless);
    }
    a.jump(named);
    a.bind(nameless);
    a.store(FRAME, on_stack(ID, field!(FileId, device)), R1);
    a.store(FRAME, on_stack(ID, field!(FileId, tells_apart)), 0);
    a.store(FRAME, on_stack(ID, field!(FileId, inode)), 0);
    a.bind(named);
}

/// Records the name of the dentry in R7, in the mount in R9, with its id on the stack, and those of the directories above it
/// until one is already known. Clobbers R0 to R7 and R9.
pub(super) fn note_names(a: &mut Assembler, target: &Target, files: &Files) {
    let o = &files.offsets;
    let (again, within, end, done) = (a.label(), a.label(), a.label(), a.label());
    let keep_id = stack(KEY);
    copy_id(a, (FRAME, keep_id), (FRAME, stack(ID)));
    a.load(R1, FRAME, on_stack(ID, field!(FileId, device)));
    for device in [PIPE, SOCKET, ANON_INODE] {
        a.jump_if(Condition::Equal, R1, device, done);
    }
    match o.numbers {
        Some(numbers) => {
            a.on_stack(R1, -NUMBERS);
            a.mov(R2, 0);
            a.mov(R3, DEEPEST);
            a.call_kernel(numbers.new);
            a.bind(again);
            a.on_stack(R1, -NUMBERS);
            a.call_kernel(numbers.next);
            a.jump_if(Condition::Equal, R0, 0, end);
        }
        None => {
            a.mov(R6, 0);
            a.bind(again);
            a.jump_if(Condition::AtLeast, R6, DEEPEST, end);
            a.add(R6, 1);
        }
    }
    lookup(a, files.names, -ID);
    a.jump_if(Condition::NotEqual, R0, 0, end);
    // The root of a mount has the name of the directory that it is mounted on. Mounts may be stacked.
    read(a, files, R1, R9, Field::double(o.mount_root));
    a.jump_if(Condition::NotEqual, R1, R7, within);
    read(a, files, R1, R9, Field::double(o.mount_parent));
    a.jump_if(Condition::Equal, R1, R9, within);
    a.store(FRAME, stack(CROSSED), R1);
    read(a, files, R7, R9, Field::double(o.mount_mountpoint));
    a.load(R9, FRAME, stack(CROSSED));
    a.jump(again);
    a.bind(within);
    // Without a mount, the root of a file system has no name.
    a.unless(Condition::NotEqual, R9, 0, |a| {
        read(a, files, R1, R7, Field::double(o.dentry_parent));
        a.jump_if(Condition::Equal, R1, R7, end);
    });
    name(a, target, files, end);
    read(a, files, R1, R7, Field::double(o.dentry_parent));
    a.jump_if(Condition::Equal, R1, R7, end);
    a.mov(R7, R1);
    copy_id(a, (FRAME, stack(ID)), (FRAME, stack(PARENT)));
    a.jump(again);
    a.bind(end);
    if let Some(numbers) = o.numbers {
        a.on_stack(R1, -NUMBERS);
        a.call_kernel(numbers.destroy);
    }
    a.bind(done);
    copy_id(a, (FRAME, stack(ID)), (FRAME, keep_id));
}

/// Records the name and directory of the dentry in R7 under the id on the stack, and puts the id of the directory on the
/// stack. A root is its own directory. Clobbers R0 to R5.
fn name(a: &mut Assembler, target: &Target, files: &Files, none: Label) {
    let o = &files.offsets;
    a.store(FRAME, stack(CROSSED), R7);
    read(a, files, R7, R7, Field::double(o.dentry_parent));
    identify(a, files, PARENT, none);
    a.load(R7, FRAME, stack(CROSSED));
    scratch(a, files, none);
    a.store(FRAME, stack(CROSSED), R9);
    a.mov(R9, R0);
    a.add(R9, i32::from(field!(Scratch, name).offset));
    copy_id(a, (R9, field!(NameRecord, parent)), (FRAME, stack(PARENT)));
    read(a, files, R3, R7, Field::double(o.dentry_name));
    a.mov(R1, R9);
    a.add(R1, i32::from(field!(NameRecord, name).offset));
    a.mov(R2, crate::bpf::layout::NAME as i32);
    a.call(Helper::ProbeReadKernelString);
    a.map(R1, files.names);
    a.on_stack(R2, -ID);
    a.mov(R3, R9);
    a.mov(R4, 0);
    a.call(Helper::MapUpdate);
    a.unless(Condition::Equal, R0, 0, |a| a.count(target.maps.totals, field!(Totals, lost_names)));
    a.load(R9, FRAME, stack(CROSSED));
}

/// Sets R0 to this processor's [`Scratch`].
pub(super) fn scratch(a: &mut Assembler, files: &Files, none: Label) {
    a.store(FRAME, Field::word(-ZERO), 0);
    lookup(a, files.scratch, -ZERO);
    a.jump_if(Condition::Equal, R0, 0, none);
}
