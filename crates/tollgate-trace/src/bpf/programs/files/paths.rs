use super::*;

/// Sets R7 to the [`PathKey`] of the call on the stack, from its arguments. Jumps to `none` if no path can be read, and to
/// `of_descriptor` if the path is empty and follows a descriptor (`AT_EMPTY_PATH`).
pub(super) fn path_key(a: &mut Assembler, target: &Target, files: &Files, none: Label, of_descriptor: Label) {
    let o = &files.offsets;
    let arguments = field!(Lane, live.arguments).offset;
    scratch(a, files, none);
    a.mov(R7, R0);
    let key = field!(Scratch, path).offset;
    clear(a, R7, Field::double(key), size_of::<PathKey>());
    // R6 is the directory's descriptor, R3 the path.
    let both = a.label();
    a.load(R1, FRAME, stack(AIM));
    a.mov(R6, libc::AT_FDCWD);
    a.load(R3, HERE, Field::double(arguments));
    a.unless(Condition::AnyBit, R1, i32::from(aim::PATH_AT), |a| a.jump(both));
    a.mov(R6, R3);
    a.load(R3, HERE, Field::double(arguments + 8));
    a.bind(both);
    // Descriptors are ints: the upper half of the register has no meaning.
    a.shl(R6, 32);
    a.shr(R6, 32);
    a.mov(R1, R7);
    a.add(R1, i32::from(key + field!(PathKey, path).offset));
    a.mov(R2, crate::bpf::layout::PATH as i32);
    a.call(Helper::ProbeReadUserString);
    a.jump_if(Condition::Negative, R0, 0, none);
    let absolute = a.label();
    a.store(FRAME, Field::word(-DESCRIPTOR), R6);
    // Includes the NUL, but for an empty string only since Linux 6.16 (mm/maccess.c, strncpy_from_user_nofault()).
    a.unless(Condition::AtLeast, R0, 2, |a| {
        a.load(R1, FRAME, stack(AIM));
        a.and(R1, i32::from(aim::PATH_AT));
        a.jump_if(Condition::Equal, R1, 0, none);
        a.jump(of_descriptor);
    });
    a.store(R7, field!(PathKey, length).at(key), R0);
    a.load(R1, FRAME, stack(KEEP_R7));
    a.store(R7, field!(PathKey, call).at(key), R1);
    a.load(R1, R7, Field { offset: key + field!(PathKey, path).offset, width: Width::Byte });
    a.jump_if(Condition::Equal, R1, i32::from(b'/'), absolute);

    let (given, found) = (a.label(), a.label());
    a.constant(R1, u64::from(libc::AT_FDCWD as u32));
    a.jump_if(Condition::NotEqual, R6, R1, given);
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(R7, R0);
    read(a, files, R7, R7, Field::double(o.task_fs));
    a.jump_if(Condition::Equal, R7, 0, none);
    a.add(R7, i32::from(o.fs_pwd));
    path(a, files);
    a.jump(found);
    a.bind(given);
    path_of_descriptor(a, files, none);
    a.bind(found);
    identify(a, files, ID, none);
    note_names(a, target, files);
    scratch(a, files, none);
    a.mov(R7, R0);
    copy_id(a, (R7, Field::double(key + field!(PathKey, directory).offset)), (FRAME, stack(ID)));
    a.bind(absolute);
    a.add(R7, i32::from(key));
}
