//! Direct I/O that failed with EINVAL: records the buffers from the call's arguments.

use super::*;
use crate::bpf::layout::RefusedRecord;
use crate::direct::MOST_BUFFERS;

/// Stack slot of the record, below everything that [`super::at_exit`] has on the stack.
const REFUSED: i16 = NUMBERS + size_of::<RefusedRecord>() as i16;

/// Records the call whose [`FileKey`] is on the stack if it moves data, failed with EINVAL, and its file was opened with
/// O_DIRECT; else jumps to `none`. Clobbers R0 to R7 and R9.
pub(super) fn note(a: &mut Assembler, files: &Files, none: Label) {
    let o = &files.offsets;
    a.load(R6, FRAME, stack(KEEP_R6));
    a.load(R1, CONTEXT, argument(1));
    a.jump_if(Condition::NotEqual, R1, -libc::EINVAL, none);
    let (moves, is_direct, found, alone) = (a.label(), a.label(), a.label(), a.label());
    a.load(R1, FRAME, stack(AIM));
    a.jump_if(Condition::AnyBit, R1, i32::from(aim::MOVES), moves);
    a.jump(none);
    a.bind(moves);
    // Calls of the other tables have other arguments.
    a.load(R1, FRAME, stack(KEEP_R7));
    a.jump_if(Condition::AtLeast, R1, TABLE as i32, none);

    // The same file may also be open without O_DIRECT.
    a.load(R1, HERE, Field::double(field!(Lane, live.arguments).offset));
    a.store(FRAME, Field::word(-DESCRIPTOR), R1);
    file_of_descriptor(a, files, none);
    read(a, files, R1, R7, Field::word(o.file_flags));
    a.jump_if(Condition::AnyBit, R1, libc::O_DIRECT, is_direct);
    a.jump(none);
    a.bind(is_direct);
    lookup(a, files.refused, -KEY);
    a.jump_if(Condition::NotEqual, R0, 0, found);
    clear(a, FRAME, stack(REFUSED), size_of::<RefusedRecord>());
    read(a, files, R1, R7, Field::double(o.file_pos));
    let at = |field: Field| Field::double(field.offset - REFUSED);
    a.store(FRAME, at(field!(RefusedRecord, position)), R1);
    a.load(R1, CONTEXT, argument(0));
    let arguments = at(field!(RefusedRecord, arguments)).offset;
    for (number, register) in (0i16..).zip(&ARGUMENTS[1..]) {
        a.load(R2, R1, Field::double(*register));
        a.store(FRAME, Field::double(arguments + 8 * number), R2);
    }

    a.load(R1, FRAME, stack(AIM));
    a.and(R1, i32::from(aim::VECTOR));
    a.jump_if(Condition::Equal, R1, 0, alone);
    let few = a.label();
    a.load(R2, FRAME, Field::double(arguments + 8));
    a.jump_if(Condition::Below, R2, MOST_BUFFERS as i32 + 1, few);
    a.mov(R2, MOST_BUFFERS as i32);
    a.bind(few);
    a.shl(R2, 4);
    a.load(R3, FRAME, Field::double(arguments));
    a.on_stack(R1, at(field!(RefusedRecord, vector)).offset);
    a.call(Helper::ProbeReadUser);
    a.bind(alone);

    a.map(R1, files.refused);
    a.on_stack(R2, -KEY);
    a.on_stack(R3, -REFUSED);
    a.mov(R4, NO_EXIST);
    a.call(Helper::MapUpdate);
    // If the map is full, the call only counts among the failed calls of its file.
    lookup(a, files.refused, -KEY);
    a.jump_if(Condition::Equal, R0, 0, none);
    a.bind(found);
    a.mov(R4, R0);
    a.increase_shared(R4, field!(RefusedRecord, count), 1);
}
