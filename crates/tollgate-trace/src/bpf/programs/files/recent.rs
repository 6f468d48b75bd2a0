//! Calls on files that are likely to be repeated, in the lane's places: see [`RecentFile`].

use super::*;
use crate::bpf::layout::RecentFile;

/// Jumps to `known` if the call's place holds the file on the stack, since its names were recorded then. `index` is the
/// stack slot of the call's index. Clobbers R1 to R4.
pub(super) fn if_known(a: &mut Assembler, index: i16, known: Label) {
    let (at, unknown) = (R4, a.label());
    place_of(a, at, index, ID);
    a.load(R1, at, field!(RecentFile, count));
    a.jump_if(Condition::Equal, R1, 0, unknown);
    for half in [0, 8] {
        a.load(R1, at, Field::double(half));
        a.load(R2, FRAME, stack(ID).at(half));
        a.jump_if(Condition::NotEqual, R1, R2, unknown);
    }
    a.jump(known);
    a.bind(unknown);
}

/// Sets `at` to the place for a call and a file; several may share it in turn. Clobbers R1 and R2.
fn place_of(a: &mut Assembler, at: Register, index: i16, id: i16) {
    a.load(R1, FRAME, stack(index));
    a.load(R2, FRAME, on_stack(id, field!(FileId, inode)));
    a.add(R1, R2);
    place(a, at, HERE, R1, field!(Lane, files), size_of::<RecentFile>());
}

/// Adds the call to its place, by the [`FileKey`] on the stack. Clobbers R0 to R7 and R9.
pub(super) fn add_to_place(a: &mut Assembler, target: &Target, files: &Files) {
    let (other, empty, same, no_bytes) = (a.label(), a.label(), a.label(), a.label());
    let at = R7;
    a.load(R6, FRAME, stack(KEEP_R6));
    a.load(R9, FRAME, stack(KEEP_R9));
    place_of(a, at, KEEP_R7, KEY);
    a.load(R1, at, field!(RecentFile, count));
    a.jump_if(Condition::Equal, R1, 0, empty);
    for part in (0..size_of::<FileKey>() as i16).step_by(8) {
        a.load(R1, at, Field::double(part));
        a.load(R2, FRAME, stack(KEY).at(part));
        a.jump_if(Condition::NotEqual, R1, R2, other);
    }
    a.jump(same);

    a.bind(other);
    make_room(a, target, files, at);
    a.bind(empty);
    for part in (0..size_of::<FileKey>() as i16).step_by(8) {
        a.load(R1, FRAME, stack(KEY).at(part));
        a.store(at, Field::double(part), R1);
    }
    for (sum, _) in SUMS {
        a.store(at, sum, 0);
    }

    a.bind(same);
    a.increase(at, field!(RecentFile, count), 1, R1);
    a.increase(at, field!(RecentFile, total), R9, R1);
    a.load(R2, CONTEXT, argument(1));
    a.unless(Condition::Below, R2, calls::FIRST_ERROR, |a| {
        a.increase(at, field!(RecentFile, errors), 1, R1);
        a.jump(no_bytes);
    });
    a.load(R1, FRAME, stack(AIM));
    a.and(R1, i32::from(aim::MOVES));
    a.jump_if(Condition::Equal, R1, 0, no_bytes);
    a.increase(at, field!(RecentFile, bytes), R2, R1);
    a.bind(no_bytes);
}

const SUMS: [(Field, Field); 4] = [
    (field!(RecentFile, count), field!(FileRecord, count)),
    (field!(RecentFile, errors), field!(FileRecord, errors)),
    (field!(RecentFile, total), field!(FileRecord, total)),
    (field!(RecentFile, bytes), field!(FileRecord, bytes)),
];

/// Adds the calls of the place in R7, which begins with their key, to the map. Clobbers R0 to R5.
fn make_room(a: &mut Assembler, target: &Target, files: &Files, at: Register) {
    let (found, full, done) = (a.label(), a.label(), a.label());
    record(a, files.files, full, found);
    a.bind(found);
    for (from, to) in SUMS {
        a.load(R1, at, from);
        a.increase_shared(R0, to, R1);
    }
    a.jump(done);
    a.bind(full);
    a.load(R1, at, field!(RecentFile, count));
    a.value(R2, target.maps.totals, field!(Totals, lost_files).offset as u32);
    a.atomic(Atomic::Add, R2, Field::double(0), R1);
    a.bind(done);
}
