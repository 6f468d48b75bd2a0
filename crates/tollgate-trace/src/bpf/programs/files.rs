//! By file: the file of a call, and its name.
//!
//! A descriptor leads to its file's entry in a directory (dentry), and that is identified by its inode's device, number and
//! generation and by the hash of its name ([`FileId`]): so neither a number that a file system uses again nor a renamed file
//! is taken for another one. The first time that an entry is met, its name and its directory are noted ([`NameRecord`]), and so on up
//! to the root: names are put together when all is over.
//!
//! A call that names a path and opens nothing is known by that path and the directory that it begins at ([`PathKey`]). The path is
//! read when the call returns: by then its page is in memory.

mod faults;
mod names;
mod paths;
mod recent;
mod refused;

use super::*;
use crate::bpf::kernel::FileOffsets;
use crate::bpf::layout::{
    CALLS, FAULT, FileId, FileKey, FileRecord, NO_CALL, NameRecord, PathKey, Scratch, TABLE,
};

pub(super) use faults::{fault, settle_fault};
use names::{file_of_descriptor, identify, note_names, path, path_of_descriptor, scratch, unite_nameless};
use paths::path_key;

/// The file argument of a call, by index in [`Files::aims`].
pub(in crate::bpf) mod aim {
    /// Its first argument is a descriptor.
    pub const DESCRIPTOR: u8 = 1;
    /// Its first argument is a path.
    pub const PATH: u8 = 2;
    /// Its first argument is a directory's descriptor, the second a path.
    pub const PATH_AT: u8 = 4;
    /// Its result is a descriptor.
    pub const OPENS: u8 = 8;
    /// Its result is a number of bytes.
    pub const MOVES: u8 = 16;
    /// Its second argument is a vector of buffers.
    pub const VECTOR: u8 = 32;
}

/// The maps of files.
#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) struct Files {
    pub offsets: FileOffsets,
    /// The file argument of each call: one byte for each index.
    pub aims: i32,
    /// [`FileRecord`]s by [`FileKey`].
    pub files: i32,
    /// [`FileRecord`]s by [`PathKey`].
    pub paths: i32,
    /// [`NameRecord`]s by [`FileId`].
    pub names: i32,
    /// A [`Scratch`] for each processor.
    pub scratch: i32,
    /// [`RefusedRecord`](crate::bpf::layout::RefusedRecord)s by [`FileKey`].
    pub refused: i32,
}

// The stack, by the distance from its end. Data of other parts of the programs lies above.
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
/// The [`Thread`] whose call returns, where it waited in it; else 0.
pub(super) const WHOLE: i16 = ZERO + 8;
/// The state of a loop over [`Numbers`](crate::bpf::kernel::Numbers).
const NUMBERS: i16 = WHOLE + 8;

/// Directories and mounts on the way to the root: of a longer way the first part is not noted.
const DEEPEST: i32 = 32;

// `struct pt_regs` of x86: arguments of 64-bit calls, and of 32-bit ones.
const DI: i16 = 112;
const SI: i16 = 104;
const DX: i16 = 96;
const R10: i16 = 56;
const BX: i16 = 40;
const CX: i16 = 88;

// Magic numbers of file systems without names: include/uapi/linux/magic.h.
const PIPEFS: i32 = 0x5049_5045;
const SOCKFS: i32 = 0x534f_434b;
const ANON_INODE_FS: i32 = 0x0904_1934;

/// Device numbers of a [`FileId`] for files without a name.
pub(in crate::bpf) const PIPE: i32 = 0x7fff_ff01;
pub(in crate::bpf) const SOCKET: i32 = 0x7fff_ff02;
pub(in crate::bpf) const ANON_INODE: i32 = 0x7fff_ff03;

/// R2 = the kind of file argument of the call in `index`. R1 is lost.
fn aim_of(a: &mut Assembler, files: &Files, index: Register) {
    a.value(R1, files.aims, 0);
    a.mov(R2, index);
    a.and(R2, CALLS as i32 - 1);
    a.add(R1, R2);
    a.load(R2, R1, Field { offset: 0, width: Width::Byte });
}

/// `to` = the first argument of the call in `index`, at its beginning or its end: the kernel keeps it in the registers that it saved. R3 is lost.
pub(super) fn first_argument(a: &mut Assembler, to: Register, index: Register) {
    let (compat, loaded) = (a.label(), a.label());
    a.load(to, CONTEXT, argument(0));
    a.mov(R3, index);
    a.sub(R3, TABLE as i32);
    a.jump_if(Condition::Below, R3, TABLE as i32, compat);
    a.load(to, to, Field::double(DI));
    a.jump(loaded);
    a.bind(compat);
    a.load(to, to, Field::double(BX));
    a.bind(loaded);
}

/// A call begins, its index is in R9, and the lane in R8: notes its arguments, and its file where a descriptor says it. R7 is lost.
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
    a.load(R3, R1, Field::double(DI));
    a.load(R4, R1, Field::double(SI));
    a.jump(noted);
    a.bind(compat);
    a.load(R3, R1, Field::double(BX));
    a.load(R4, R1, Field::double(CX));
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

/// The call in R7 has returned after R9, and R8 is the lane: adds it to its file.
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
    // The device is never 0 where there was a file.
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

/// `to` = the word at an address of the kernel, or 0 where the address is invalid. R0 to R5 are lost.
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

/// Adds the call to the [`FileRecord`] under the key in R7. R0 to R5 and R9 are lost.
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

/// R0 = the [`FileRecord`] under the key in R7, made where there is none: then goes to `found`, else to `lost`.
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
