//! Times by file: finds the file of a call, and its name.
//!
//! A descriptor leads to the file's directory entry (dentry). It is identified by the device, number and generation of its
//! inode and by the hash of its name ([`FileId`]), so a reused inode number or a renamed file is not confused with another
//! file. When an entry is first met, its name and directory are recorded ([`NameRecord`]), and so on up to the root. Full
//! names are assembled after the trace.
//!
//! A call that takes a path and opens nothing is identified by that path and the directory where it starts ([`PathKey`]).
//! The path is read when the call returns, since its page is in memory by then.

mod faults;
mod names;
mod paths;
mod recent;
mod refused;

use tollgate_arch::registers::pt_regs::{ARGUMENTS, ARGUMENTS_32};

use super::*;
use crate::bpf::kernel::FileOffsets;
use crate::bpf::layout::{
    CALLS, FAULT, FileId, FileKey, FileRecord, NO_CALL, NameRecord, PathKey, Scratch, TABLE,
};

pub(super) use faults::{fault, settle_fault};
use names::{file_of_descriptor, identify, note_names, path, path_of_descriptor, scratch, unite_nameless};
use paths::path_key;

/// The file argument of a call: flags in [`Files::aims`].
pub(in crate::bpf) mod aim {
    pub const DESCRIPTOR: u8 = 1;
    pub const PATH: u8 = 2;
    /// The first argument is the descriptor of a directory, the second a path.
    pub const PATH_AT: u8 = 4;
    /// The result is a descriptor.
    pub const OPENS: u8 = 8;
    /// The result is a number of bytes.
    pub const MOVES: u8 = 16;
    /// The second argument is a vector of buffers.
    pub const VECTOR: u8 = 32;
}

#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) struct Files {
    pub offsets: FileOffsets,
    /// The file argument of each call, as one byte per call index.
    pub aims: i32,
    /// [`FileRecord`]s by [`FileKey`].
    pub files: i32,
    /// [`FileRecord`]s by [`PathKey`].
    pub paths: i32,
    /// [`NameRecord`]s by [`FileId`].
    pub names: i32,
    /// One [`Scratch`] per processor.
    pub scratch: i32,
    /// [`RefusedRecord`](crate::bpf::layout::RefusedRecord)s by [`FileKey`].
    pub refused: i32,
}

// Stack slots, by depth below the end. Other parts of the programs keep their data above.
const TEMPORARY: i16 = 104;
const INODE: i16 = 112;
const ID: i16 = 128;
const PARENT: i16 = 144;
const KEEP_R6: i16 = 152;
const KEEP_R7: i16 = 160;
const KEEP_R9: i16 = 168;
const KEY: i16 = 192;
const AIM: i16 = 200;
const DESCRIPTOR: i16 = 208;
const CROSSED: i16 = 216;
const RECORD: i16 = 216 + size_of::<FileRecord>() as i16;
const ZERO: i16 = RECORD + 8;
/// The [`Thread`] whose call returns if it waited in the call, else 0.
pub(super) const WHOLE: i16 = ZERO + 8;
const NUMBERS: i16 = WHOLE + 8;

/// The most directories and mounts recorded on the way to the root; the first part of a longer path is omitted.
const DEEPEST: i32 = 32;

// Magic numbers of file systems whose files have no names: include/uapi/linux/magic.h.
const PIPEFS: i32 = 0x5049_5045;
const SOCKFS: i32 = 0x534f_434b;
const ANON_INODE_FS: i32 = 0x0904_1934;

/// Device numbers in the [`FileId`] of files without names.
pub(in crate::bpf) const PIPE: i32 = 0x7fff_ff01;
pub(in crate::bpf) const SOCKET: i32 = 0x7fff_ff02;
pub(in crate::bpf) const ANON_INODE: i32 = 0x7fff_ff03;

/// Sets R2 to the kind of file argument of the call in `index`. Clobbers R1.
fn aim_of(a: &mut Assembler, files: &Files, index: Register) {
    a.value(R1, files.aims, 0);
    a.mov(R2, index);
    a.and(R2, CALLS as i32 - 1);
    a.add(R1, R2);
    a.load(R2, R1, Field { offset: 0, width: Width::Byte });
}

/// Sets `to` to the first argument of the call in `index`, from the saved registers, at its entry or return. Clobbers R3.
pub(super) fn first_argument(a: &mut Assembler, to: Register, index: Register) {
    let (compat, loaded) = (a.label(), a.label());
    a.load(to, CONTEXT, argument(0));
    a.mov(R3, index);
    a.sub(R3, TABLE as i32);
    a.jump_if(Condition::Below, R3, TABLE as i32, compat);
    a.load(to, to, Field::double(ARGUMENTS[0]));
    a.jump(loaded);
    a.bind(compat);
    a.load(to, to, Field::double(ARGUMENTS_32[0]));
    a.bind(loaded);
}

/// At entry, with the call's index in R9 and the lane in R8: records the arguments and a descriptor's file. Clobbers R7.
pub(super) fn at_entry(a: &mut Assembler, target: &Target, files: &Files) {
    let (none, restore, known) = (a.label(), a.label(), a.label());
    aim_of(a, files, R9);
    a.jump_if(Condition::Equal, R2, 0, none);
    a.store(FRAME, stack(KEEP_R9), R9);
    a.store(FRAME, stack(KEEP_R6), R6);
    let (compat, noted) = (a.label(), a.label());
    a.load(R1, CONTEXT, argument(0));
    a.mov(R3, R9);
    a.sub(R3, TABLE as i32);
    a.jump_if(Condition::Below, R3, TABLE as i32, compat);
    a.load(R3, R1, Field::double(ARGUMENTS[0]));
    a.load(R4, R1, Field::double(ARGUMENTS[1]));
    a.jump(noted);
    a.bind(compat);
    a.load(R3, R1, Field::double(ARGUMENTS_32[0]));
    a.load(R4, R1, Field::double(ARGUMENTS_32[1]));
    a.bind(noted);
    let arguments = field!(Lane, live.arguments);
    a.store(HERE, Field::double(arguments.offset), R3);
    a.store(HERE, Field::double(arguments.offset + 8), R4);
    clear(a, HERE, field!(Lane, live.file), 16);
    a.and(R2, i32::from(aim::DESCRIPTOR));
    a.jump_if(Condition::Equal, R2, 0, restore);
    a.store(FRAME, Field::word(-DESCRIPTOR), R3);
    path_of_descriptor(a, files, restore);
    identify(a, files, ID, restore);
    unite_nameless(a, files);
    recent::if_known(a, KEEP_R9, known);
    note_names(a, target, files);
    a.bind(known);
    let file = field!(Lane, live.file).offset;
    copy_id(a, (HERE, Field::double(file)), (FRAME, stack(ID)));
    a.bind(restore);
    a.load(R6, FRAME, stack(KEEP_R6));
    a.load(R9, FRAME, stack(KEEP_R9));
    a.bind(none);
}

/// At the return of the call in R7 after R9 ns, with the lane in R8: adds it to its file.
pub(super) fn at_exit(a: &mut Assembler, target: &Target, files: &Files) {
    let (none, restore, by_path, by_file) = (a.label(), a.label(), a.label(), a.label());
    aim_of(a, files, R7);
    a.jump_if(Condition::Equal, R2, 0, none);
    a.store(FRAME, stack(KEEP_R6), R6);
    a.store(FRAME, stack(KEEP_R7), R7);
    a.store(FRAME, stack(KEEP_R9), R9);
    a.store(FRAME, stack(AIM), R2);

    // A file that was opened is known by its descriptor, others by their path.
    let (no_open, open_failed) = (a.label(), a.label());
    a.mov(R3, R2);
    a.and(R3, i32::from(aim::OPENS));
    a.jump_if(Condition::Equal, R3, 0, no_open);
    a.load(R1, CONTEXT, argument(1));
    a.jump_if(Condition::AtLeast, R1, calls::FIRST_ERROR, open_failed);
    a.store(FRAME, Field::word(-DESCRIPTOR), R1);
    let of_descriptor = a.label();
    a.bind(of_descriptor);
    path_of_descriptor(a, files, restore);
    identify(a, files, ID, restore);
    unite_nameless(a, files);
    note_names(a, target, files);
    a.jump(by_file);
    a.bind(open_failed);
    a.jump(by_path);

    a.bind(no_open);
    a.and(R2, i32::from(aim::DESCRIPTOR));
    a.jump_if(Condition::Equal, R2, 0, by_path);
    let file = field!(Lane, live.file).offset;
    copy_id(a, (FRAME, stack(ID)), (HERE, Field::double(file)));
    // The device is never 0 if there was a file.
    a.load(R1, FRAME, on_stack(ID, field!(FileId, device)));
    a.jump_if(Condition::Equal, R1, 0, restore);

    a.bind(by_file);
    copy_id(a, (FRAME, stack(KEY)), (FRAME, stack(ID)));
    a.load(R1, FRAME, stack(KEEP_R7));
    a.store(FRAME, on_stack(KEY, field!(FileKey, call)), R1);
    a.store(FRAME, on_stack(KEY, field!(FileKey, padding)), 0);
    let (waited, added) = (a.label(), a.label());
    a.load(R1, FRAME, stack(WHOLE));
    a.jump_if(Condition::NotEqual, R1, 0, waited);
    recent::add_to_place(a, target, files);
    a.jump(added);
    a.bind(waited);
    a.on_stack(R7, -KEY);
    add_to_record(a, target, files.files);
    a.bind(added);
    refused::note(a, files, restore);
    a.jump(restore);

    a.bind(by_path);
    path_key(a, target, files, restore, of_descriptor);
    add_to_record(a, target, files.paths);

    a.bind(restore);
    a.load(R6, FRAME, stack(KEEP_R6));
    a.load(R7, FRAME, stack(KEEP_R7));
    a.load(R9, FRAME, stack(KEEP_R9));
    a.bind(none);
}

fn on_stack(depth: i16, field: Field) -> Field {
    field.at(-depth)
}

/// Sets `to` to the word at a kernel address, or 0 if the address is invalid. Clobbers R0 to R5.
fn read(a: &mut Assembler, files: &Files, to: Register, base: Register, field: Field) {
    if let Some(cast) = files.offsets.cast {
        a.mov(R1, base);
        a.add(R1, i32::from(field.offset));
        a.mov(R2, cast.structure as i32);
        a.call_kernel(cast.function);
        a.load(to, R0, Field { offset: 0, width: field.width });
        return;
    }
    probe(a, to, base, field, TEMPORARY);
}

/// Adds the call to the [`FileRecord`] under the key in R7. Clobbers R0 to R5 and R9.
fn add_to_record(a: &mut Assembler, target: &Target, map: i32) {
    let (found, lost, end) = (a.label(), a.label(), a.label());
    record(a, map, lost, found);
    a.bind(found);
    a.load(R6, FRAME, stack(KEEP_R6));
    a.load(R9, FRAME, stack(KEEP_R9));
    a.mov(R4, R0);
    a.increase_shared(R4, field!(FileRecord, count), 1);
    a.increase_shared(R4, field!(FileRecord, total), R9);
    let no_bytes = a.label();
    a.load(R1, CONTEXT, argument(1));
    a.unless(Condition::Below, R1, calls::FIRST_ERROR, |a| {
        a.increase_shared(R4, field!(FileRecord, errors), 1);
        a.jump(no_bytes);
    });
    a.load(R2, FRAME, stack(AIM));
    a.and(R2, i32::from(aim::MOVES));
    a.jump_if(Condition::Equal, R2, 0, no_bytes);
    a.increase_shared(R4, field!(FileRecord, bytes), R1);
    a.bind(no_bytes);
    a.load(THREAD, FRAME, stack(WHOLE));
    a.unless(Condition::Equal, THREAD, 0, |a| {
        let none = a.label();
        calls::if_unflagged(a, Thread::WAITED, none);
        add_spent(a, R4, field!(FileRecord, spent), field!(Thread, spent), true);
        a.bind(none);
    });
    a.load(HERE, FRAME, stack(LANE));
    a.jump(end);
    a.bind(lost);
    a.count(target.maps.totals, field!(Totals, lost_files));
    a.bind(end);
}

/// Sets R0 to the [`FileRecord`] under the key in R7, creating it if needed, and jumps to `found`; else jumps to `lost`.
fn record(a: &mut Assembler, map: i32, lost: Label, found: Label) {
    let lookup = |a: &mut Assembler| {
        a.map(R1, map);
        a.mov(R2, R7);
        a.call(Helper::MapLookup);
        a.jump_if(Condition::NotEqual, R0, 0, found);
    };
    lookup(a);
    clear(a, FRAME, stack(RECORD), size_of::<FileRecord>());
    a.map(R1, map);
    a.mov(R2, R7);
    a.on_stack(R3, -RECORD);
    a.mov(R4, NO_EXIST);
    a.call(Helper::MapUpdate);
    lookup(a);
    a.jump(lost);
}
