//! Calls by process that are likely to be repeated. They are added up in the processor's lane, and move to the map when another
//! call needs their place. Only calls that did not wait come here, since the others have parts of time to add as well.

use super::calls::FIRST_ERROR;
use super::*;
use crate::bpf::layout::RecentPair;

const PLACE: i16 = 104;

/// Adds the call in R7, which took R9, to its process. R8 is the lane. Clobbers R0 to R5 and the last 104 bytes of the stack.
pub(super) fn add_to_process(a: &mut Assembler, target: &Target, tree: Tree) {
    let (index, duration, at) = (R7, R9, R4);
    let (other, empty, same) = (a.label(), a.label(), a.label());
    place(a, at, HERE, index, field!(Lane, pairs), size_of::<RecentPair>());
    a.load(R1, at, field!(RecentPair, count));
    a.jump_if(Condition::Equal, R1, 0, empty);
    a.load(R1, at, field!(RecentPair, call));
    a.jump_if(Condition::NotEqual, R1, index, other);
    a.load(R1, at, field!(RecentPair, process));
    a.load(R2, HERE, field!(Lane, process));
    a.jump_if(Condition::Equal, R1, R2, same);

    a.bind(other);
    make_room(a, target, tree, at);
    a.bind(empty);
    a.store(at, field!(RecentPair, call), index);
    a.load(R1, HERE, field!(Lane, process));
    a.store(at, field!(RecentPair, process), R1);
    for sum in SUMS.map(|(sum, _)| sum).into_iter().chain([field!(RecentPair, max)]) {
        a.store(at, sum, 0);
    }

    a.bind(same);
    a.increase(at, field!(RecentPair, count), 1, R1);
    a.increase(at, field!(RecentPair, total), duration, R1);
    a.load(R1, at, field!(RecentPair, max));
    a.unless(Condition::AtLeast, R1, duration, |a| a.store(at, field!(RecentPair, max), duration));
    a.load(R1, CONTEXT, argument(1));
    a.unless(Condition::Below, R1, FIRST_ERROR, |a| a.increase(at, field!(RecentPair, errors), 1, R1));
}

const SUMS: [(Field, Field); 3] = [
    (field!(RecentPair, count), field!(PairRecord, count)),
    (field!(RecentPair, errors), field!(PairRecord, errors)),
    (field!(RecentPair, total), field!(PairRecord, total)),
];

/// Adds the calls of a place to the map. Clobbers R0 to R3 and R5.
fn make_room(a: &mut Assembler, target: &Target, tree: Tree, at: Register) {
    let (full, done) = (a.label(), a.label());
    a.store(FRAME, stack(PLACE), at);
    a.load(R1, at, Field::double(field!(RecentPair, call).offset));
    a.store(FRAME, stack(PAIR), R1);
    pair_of_key(a, tree, full);
    a.load(at, FRAME, stack(PLACE));
    for (from, to) in SUMS {
        a.load(R1, at, from);
        a.increase_shared(R0, to, R1);
    }
    a.mov(R2, R0);
    a.load(R3, at, field!(RecentPair, max));
    greatest(a, R2, R3);
    a.jump(done);
    a.bind(full);
    a.load(at, FRAME, stack(PLACE));
    a.load(R1, at, field!(RecentPair, count));
    a.value(R2, target.maps.totals, field!(Totals, lost_pairs).offset as u32);
    a.atomic(Atomic::Add, R2, Field::double(0), R1);
    a.bind(done);
}

/// Raises the maximum of a [`PairRecord`] to `time` at least, also if others raise it at the same time. Clobbers R0 and R5.
pub(super) fn greatest(a: &mut Assembler, record: Register, time: Register) {
    let done = a.label();
    a.load(R0, record, field!(PairRecord, max));
    // A thread that loses the race tries again, as often as threads can be expected to collide here.
    for _ in 0..4 {
        a.jump_if(Condition::AtLeast, R0, time, done);
        a.mov(R5, R0);
        a.atomic(Atomic::CompareExchange, record, field!(PairRecord, max), time);
        a.jump_if(Condition::Equal, R0, R5, done);
    }
    a.bind(done);
}
