//! The litmus tests that distinguish x86-TSO from other machines.
//!
//! Source: Owens, Sarkar, Sewell, "A better x86 memory model: x86-TSO", TPHOLs 2009, which has their names.
//!
//! Each asks whether all loads can return certain values together. Here a process whose loads returned the values in
//! question enters the critical section, so two are there at once if the machine allows the outcome.

use super::machine::Tso;
use super::program::Program;
use super::state::Initial;
use super::symbols::{Registers, Symbols};
use super::text::Drafts;
use super::x86::Scope;
use crate::search::{End, Harm, Limits, search};
use crate::subject::Setting;

const X: &str = "x";
const Y: &str = "y";
const FENCE: &str = "mfence";

fn store(place: &str, value: u8) -> String {
    format!("{place} = {value}")
}

/// Continues only if a load returns this value.
fn load(place: &str, value: u8) -> String {
    format!("if {place} != {value} goto end")
}

/// Asserts whether the processes of all programs can reach their ends together.
fn litmus_on(processors: u8, name: &str, texts: &[&[String]], allowed: bool) {
    let mut symbols = Symbols::default();
    let program = |lines: &&[String]| -> Program {
        let mut drafts = Drafts::default();
        let ending = ["critical section".to_owned()];
        for (number, line) in (1..).zip(lines.iter().chain(&ending)) {
            let registers = &mut Registers::default();
            let mut scope = Scope { symbols: &mut symbols, registers, pointers: &[], numbered: true };
            drafts.add(number, line, &mut scope).unwrap();
        }
        drafts.program(1).unwrap()
    };
    let programs: Vec<Program> = texts.iter().map(program).collect();
    let processes = programs.len() as u8;
    let setting = Setting::new(processes, 1, processors);
    let machine =
        Tso { programs: &programs, symbols: &symbols, initial: &Initial::default(), setting, goal: None };
    let found = search(&machine, Limits::default());
    assert_eq!(found.end, End::Complete, "{name}");
    assert!(found.harms.iter().all(|(harm, _)| *harm == Harm::Exclusion), "{name}: a process is stuck");
    assert_eq!(!found.harms.is_empty(), allowed, "{name}");
}

/// Gives each program a processor of its own.
fn litmus(name: &str, programs: &[&[String]], allowed: bool) {
    litmus_on(programs.len() as u8, name, programs, allowed);
}

#[test]
fn loads_and_stores_of_two_processors() {
    let plain = |mine, theirs| [store(mine, 1), load(theirs, 0)];
    litmus("SB: a load may overtake a store", &[&plain(X, Y), &plain(Y, X)], true);
    litmus_on(1, "SB: on one processor nothing overtakes", &[&plain(X, Y), &plain(Y, X)], false);
    let fenced = |mine, theirs| [store(mine, 1), FENCE.to_owned(), load(theirs, 0)];
    litmus("SB: with fences it may not", &[&fenced(X, Y), &fenced(Y, X)], false);
    litmus("SB: one fence is too few", &[&fenced(X, Y), &plain(Y, X)], true);
    let wrong = |mine, theirs| [FENCE.to_owned(), store(mine, 1), load(theirs, 0), FENCE.to_owned()];
    litmus("SB: a fence before the store, or after the load, is none", &[&wrong(X, Y), &wrong(Y, X)], true);
    let both = [store(X, 1), store(Y, 1)];
    litmus("MP: stores and loads keep their order", &[&both, &[load(Y, 1), load(X, 0)]], false);
    litmus("MP: both new", &[&both, &[load(Y, 1), load(X, 1)]], true);
    litmus("MP: first old, then new", &[&both, &[load(X, 0), load(Y, 1)]], true);
    let second = [load(Y, 1), store(X, 1)];
    litmus("LB: a store does not overtake a load", &[&[load(X, 1), store(Y, 1)], &second], false);
    litmus("LB: the old value", &[&[load(X, 0), store(Y, 1)], &second], true);
    let wait = "wait until y == 1".to_owned();
    litmus("MP: a wait is a load like any other", &[&both, &[wait.clone(), load(X, 0)]], false);
    litmus("MP: a wait, and the new value", &[&both, &[wait, load(X, 1)]], true);
    let crossed = [store(X, 1), load(X, 2)];
    litmus("n5: no two orders of two stores", &[&crossed, &[store(X, 2), load(X, 1)]], false);
}

#[test]
fn a_processor_reads_its_own_stores_first() {
    // Both stores to x are made, the second one last in memory; still the first process has read y before the other's
    // stores.
    let one = [store(X, 1), load(X, 1), load(Y, 0)];
    let other = [store(Y, 2), store(X, 2), FENCE.to_owned(), load(X, 1)];
    litmus("n6: its own store before the others do", &[&one, &other], true);
    let fenced = [store(X, 1), FENCE.to_owned(), load(X, 1), load(Y, 0)];
    litmus("n6: not after a fence", &[&fenced, &other], false);
    for (value, allowed) in [(2, true), (0, false), (1, false)] {
        litmus("the newest of its own stores", &[&[store(X, 1), store(X, 2), load(X, value)], &[]], allowed);
    }
}

#[test]
fn a_switch_drains() {
    // The first and the third share a processor. Once one of them has seen x, every process sees it.
    let (writer, reader) = ([store(X, 1), load(Y, 7)], [load(X, 1), load(Y, 0)]);
    for (value, allowed) in [(0, false), (1, true)] {
        let other = [store(Y, 1), FENCE.to_owned(), load(X, value)];
        litmus_on(2, "a switch drains", &[&writer, &other, &reader], allowed);
    }
}

#[test]
fn iriw_all_others_see_stores_in_one_order() {
    // Two write, and two read in opposite orders. Only the readers enter the critical section; the writers wait for each
    // other.
    let writer = |place| [store(place, 1), load(place, 0)];
    let reader = |first, second| [load(first, 1), load(second, 0)];
    let (a, b, c, d) = (writer(X), writer(Y), reader(X, Y), reader(Y, X));
    litmus("IRIW: opposite orders", &[&a, &b, &c, &d], false);
    litmus("IRIW: one order", &[&a, &b, &c, &c], true);
}
