//! The litmus tests that distinguish x86-TSO from other machines.
//!
//! Source: Owens, Sarkar, Sewell, "A better x86 memory model: x86-TSO", TPHOLs 2009, which has their names.
//!
//! Each asks whether all loads can have given certain values together. Here a process whose loads gave the values in question
//! is in the critical section: two are there at once where the machine allows it.

use super::machine::Tso;
use super::program::{Line, Op, Place, Program, Value};
use crate::search::{End, Harm, Limits, search};
use crate::subject::Setting;

const X: Place = Place::X;
const Y: Place = Place::Y;

fn store(place: Place, value: u8) -> Op {
    Op::Store(place, Value::Is(value))
}

/// Goes on only if a load gives this value.
fn load(place: Place, value: u8) -> Op {
    Op::Unless(place, Value::Is(value), "end")
}

/// Can the processes of all programs get to their ends together?
fn is_allowed_on(processors: u8, programs: &[&[Op]]) -> bool {
    let line = |&op: &Op| Line { label: None, op };
    let ending = [Op::Critical];
    let programs: Vec<Program> =
        programs.iter().map(|ops| Program::new(ops.iter().chain(&ending).map(line).collect())).collect();
    let processes = programs.len() as u8;
    let machine = Tso { programs: &programs, setting: Setting { processes, rounds: 1, processors } };
    let found = search(&machine, Limits::default());
    assert_eq!(found.end, End::Complete);
    assert!(found.harms.iter().all(|(harm, _)| *harm == Harm::Exclusion), "a process is stuck");
    !found.harms.is_empty()
}

fn is_allowed(programs: &[&[Op]]) -> bool {
    is_allowed_on(programs.len() as u8, programs)
}

#[test]
fn sb_a_load_may_overtake_a_store() {
    assert!(is_allowed(&[&[store(X, 1), load(Y, 0)], &[store(Y, 1), load(X, 0)]]));
}

#[test]
fn sb_with_fences_it_may_not_and_one_fence_is_too_few() {
    let fenced = |mine, theirs| [store(mine, 1), Op::Fence, load(theirs, 0)];
    assert!(!is_allowed(&[&fenced(X, Y), &fenced(Y, X)]));
    assert!(is_allowed(&[&fenced(X, Y), &[store(Y, 1), load(X, 0)]]));
    // A fence before the store, or after the load, is none.
    let wrong = |mine, theirs| [Op::Fence, store(mine, 1), load(theirs, 0), Op::Fence];
    assert!(is_allowed(&[&wrong(X, Y), &wrong(Y, X)]));
}

#[test]
fn sb_on_one_processor_nothing_overtakes() {
    assert!(!is_allowed_on(1, &[&[store(X, 1), load(Y, 0)], &[store(Y, 1), load(X, 0)]]));
}

#[test]
fn mp_stores_arrive_in_their_order_and_loads_are_made_in_theirs() {
    assert!(!is_allowed(&[&[store(X, 1), store(Y, 1)], &[load(Y, 1), load(X, 0)]]));
    // That the question can be asked at all: both new, and both old.
    assert!(is_allowed(&[&[store(X, 1), store(Y, 1)], &[load(Y, 1), load(X, 1)]]));
    assert!(is_allowed(&[&[store(X, 1), store(Y, 1)], &[load(X, 0), load(Y, 1)]]));
}

#[test]
fn lb_a_store_does_not_overtake_a_load() {
    assert!(!is_allowed(&[&[load(X, 1), store(Y, 1)], &[load(Y, 1), store(X, 1)]]));
    assert!(is_allowed(&[&[load(X, 0), store(Y, 1)], &[load(Y, 1), store(X, 1)]]));
}

#[test]
fn n6_a_processor_reads_its_own_store_before_the_others_do() {
    // Both stores to x are made, the second last in memory; still the first process has read y from before the other's stores.
    let one = [store(X, 1), load(X, 1), load(Y, 0)];
    let other = [store(Y, 2), store(X, 2), Op::Fence, load(X, 1)];
    assert!(is_allowed(&[&one, &other]));
    let fenced = [store(X, 1), Op::Fence, load(X, 1), load(Y, 0)];
    assert!(!is_allowed(&[&fenced, &other]));
}

#[test]
fn a_processor_reads_the_newest_of_its_own_stores() {
    assert!(is_allowed(&[&[store(X, 1), store(X, 2), load(X, 2)], &[]]));
    for old in [0, 1] {
        assert!(!is_allowed(&[&[store(X, 1), store(X, 2), load(X, old)], &[]]), "{old}");
    }
}

#[test]
fn a_switch_drains() {
    // The first and the third share a processor. When one of them has seen x, every process sees it.
    let writer = [store(X, 1), load(Y, 7)];
    let reader = [load(X, 1), load(Y, 0)];
    let other = [store(Y, 1), Op::Fence, load(X, 0)];
    assert!(!is_allowed_on(2, &[&writer, &other, &reader]));
    let late = [store(Y, 1), Op::Fence, load(X, 1)];
    assert!(is_allowed_on(2, &[&writer, &late, &reader]));
}

#[test]
fn n5_two_processors_do_not_see_two_stores_in_two_orders() {
    assert!(!is_allowed(&[&[store(X, 1), load(X, 2)], &[store(X, 2), load(X, 1)]]));
}

#[test]
fn iriw_all_others_see_stores_in_one_order() {
    // Two write, two read in opposite orders. The critical section is for the readers: the writers wait for each other.
    let writer = |place| vec![store(place, 1), load(place, 0)];
    let reader = |first, second| vec![load(first, 1), load(second, 0)];
    let (a, b, c, d) = (writer(X), writer(Y), reader(X, Y), reader(Y, X));
    assert!(!is_allowed(&[&a, &b, &c, &d]));
    let (c, d) = (reader(X, Y), reader(X, Y));
    assert!(is_allowed(&[&a, &b, &c, &d]));
}

#[test]
fn a_wait_is_a_load_like_any_other() {
    let wait = |place| Op::Wait(place, Value::Is(1));
    assert!(!is_allowed(&[&[store(X, 1), store(Y, 1)], &[wait(Y), load(X, 0)]]));
    assert!(is_allowed(&[&[store(X, 1), store(Y, 1)], &[wait(Y), load(X, 1)]]));
}
