//! Locks, instruction by instruction. A process is stopped at an instruction of its `take`, another one acquires the
//! lock on the same processor, and the first continues. This is repeated at every instruction, so a preemption there
//! shows its effect each time, not once in millions.
//!
//! Two processes share the lock. Both are traced, and only one of them runs at any time, so the outcome is
//! deterministic. A process that calls sched_yield(2) waits for the other. A system call is one step; the C library's
//! functions are stepped through like the code that calls them.

mod points;
mod schedule;
mod traced;

use std::{collections::BTreeSet, mem};

use super::{method::Method, rseq};
use crate::prelude::*;
use points::{entries, executed, of, of_sequence, within};
use schedule::{Pair, aborts, with_each};

/// The instructions of plain's `take`: the load, the test, the jump, the store, and the end.
const PLAIN: [usize; 5] = [0, 1, 2, 3, 4];

#[test]
fn plain_is_caught_at_every_instruction_between_its_load_and_its_store() {
    with_each(&[Method::Plain], |method, pair| {
        let points = of(method.code().extent.take);
        assert_eq!(points.len(), PLAIN.len());
        let mut caught = Vec::new();
        for number in PLAIN {
            let outcome = pair.both_take([Some(points[number]), None], None)?;
            assert_eq!((outcome.stopped, outcome.waited), ([true, false], false), "at {number}");
            assert!(outcome.got != [false, false], "at {number}");
            if outcome.got == [true, true] {
                caught.push(number);
            }
            pair.clear(outcome.got)?;
        }
        assert_eq!(caught, [1, 2, 3]);
        Ok(())
    });
}

#[test]
fn plain_lets_two_in_wherever_both_have_loaded_before_one_of_them_stores() {
    with_each(&[Method::Plain], |method, pair| {
        let points = of(method.code().extent.take);
        for (a, b) in PLAIN.into_iter().flat_map(|a| PLAIN.map(|b| (a, b))) {
            let outcome = pair.both_take([Some(points[a]), Some(points[b])], None)?;
            // A process that finds the lock held jumps over the store.
            assert_eq!(outcome.stopped, [true, !(a == 4 && b == 3)], "at {a} and {b}");
            // A process that is stopped after its store holds the lock.
            let between = |number: usize| (1..=3).contains(&number);
            let expected = between(a) && b != 0 || a == 0 && between(b);
            assert_eq!(outcome.got == [true, true], expected, "at {a} and {b}: {outcome:?}");
            pair.clear(outcome.got)?;
        }
        Ok(())
    });
}

#[test]
fn no_other_lock_ever_lets_two_in() {
    with_each(&Method::LOCKS, |method, pair| {
        let name = method.name();
        let [takes, _] = points_of(method, pair)?;
        let mut waited = false;
        for &a in &takes {
            let outcome = pair.both_take([Some(a), None], None)?;
            assert!(outcome.stopped[0] && outcome.got[0] != outcome.got[1], "{name} at {a:#x}: {outcome:?}");
            pair.clear(outcome.got)?;
            waited |= outcome.waited;
            for &b in &takes {
                let outcome = pair.both_take([Some(a), Some(b)], None)?;
                assert!(outcome.stopped[0], "{name} at {a:#x} and {b:#x}");
                assert!(outcome.got[0] != outcome.got[1], "{name} at {a:#x} and {b:#x}: {outcome:?}");
                pair.clear(outcome.got)?;
            }
        }
        assert_eq!(waited, matches!(method, Method::Lamport | Method::LamportUp), "{name}");
        Ok(())
    });
}

#[test]
fn no_release_is_lost_at_any_instruction() {
    let all: Vec<Method> = Method::LOCKS.into_iter().chain([Method::Plain]).collect();
    with_each(&all, |method, pair| {
        let name = method.name();
        let [takes, releases] = points_of(method, pair)?;
        let mut had = BTreeSet::new();
        for &point in &takes {
            let within_a_take = pair.given_back_at(point, false)?;
            assert!(within_a_take.stopped && within_a_take.sound, "{name} at {point:#x}: {within_a_take:?}");
            assert_eq!(within_a_take.got, [true, false], "{name} at {point:#x}");
            let had_before = pair.given_back_at(point, true)?;
            assert!(had_before.sound && !had_before.got[1], "{name} at {point:#x}: {had_before:?}");
            // At the first instruction `take` has not read the word yet; at the end it has found the lock held.
            assert!(point != takes[0] || had_before.got[0], "{name}");
            assert!(point != method.code().extent.take.1 || !had_before.got[0], "{name}");
        }
        for &point in &releases {
            let release = pair.released_at(point)?;
            assert!(release.stopped && release.sound, "{name} at {point:#x}: {release:?}");
            had.insert(release.had);
        }
        // Some points are before the store that frees the lock, and some after.
        assert_eq!(had.len(), 2, "{name}");
        Ok(())
    });
}

#[test]
fn a_restartable_sequence_is_restarted_where_it_was_left_and_nowhere_else() {
    with_each(&[Method::Rseq, Method::RseqCpu], |method, pair| {
        let extent = method.code().extent;
        let sequence = of_sequence(&extent);
        assert!(sequence.len() >= 4, "{sequence:x?}");
        for point in of(extent.take) {
            let mut restarted = || {
                let before = aborts(&mut pair.a)?;
                let outcome = pair.both_take([Some(point), None], None)?;
                pair.clear(outcome.got)?;
                Ok::<bool, Refusal>(aborts(&mut pair.a)? > before)
            };
            let within = sequence.contains(&point);
            // Another process may also have preempted it within the sequence.
            let expected = (0..20).any(|_| restarted().expect("as before") == within);
            assert!(expected, "{} at {point:#x}: within is {within}", method.name());
            if within {
                assert!(restarted()?, "{} at {point:#x}", method.name());
            }
        }
        Ok(())
    });
}

#[test]
fn a_sequence_of_which_the_kernel_does_not_know_is_plain() {
    with_each(&[Method::Rseq, Method::RseqCpu], |method, pair| {
        // A fork has its parent's rseq areas at the same addresses.
        let known = rseq::area()? as usize + mem::offset_of!(rseq::Area, rseq_cs);
        let extent = method.code().extent;
        let mut caught = Vec::new();
        for &point in &of(extent.take) {
            if pair.both_take_forgetting(point, known)? == [true, true] {
                caught.push(point);
            }
        }
        let sequence = of_sequence(&extent);
        // The sequence ends with load, test, jump and store; a stop at any of the last three breaks exclusion.
        assert_eq!(caught, sequence[sequence.len() - 3..], "{}", method.name());
        Ok(())
    });
}

#[test]
fn contended_paths_and_restarts_keep_mutual_exclusion() {
    let methods = [Method::Rseq, Method::RseqCpu, Method::Lamport, Method::LamportUp];
    with_each(&methods, |method, pair| {
        let extent = method.code().extent;
        let (takes, aside, entries) = (of(extent.take), within(extent.aside[0]), entries(&extent));
        let mut reached = BTreeSet::new();
        for (&a, &b) in takes.iter().flat_map(|a| takes.iter().map(move |b| (a, b))) {
            let mut reach = |again: usize| {
                let outcome = pair.both_take([Some(a), Some(b)], Some(again))?;
                let at = || format!("{} at {a:#x}, {b:#x} and {again:#x}", method.name());
                assert!(outcome.got[0] != outcome.got[1], "{}: {outcome:?}", at());
                pair.clear(outcome.got)?;
                if outcome.again {
                    reached.insert(again);
                }
                Ok::<bool, Refusal>(outcome.again)
            };
            // A process that reaches none of the entries reaches no other instruction there.
            let mut comes_there = false;
            for &entry in &entries {
                comes_there |= reach(entry)?;
            }
            let others = aside.iter().filter(|point| comes_there && !entries.contains(point));
            for &other in others {
                reach(other)?;
            }
        }
        let never: &[usize] = match method {
            // The signature is never executed, and no process was on another processor.
            Method::RseqCpu => &[0, 3, 4],
            Method::Rseq => &[0],
            _ => &[],
        };
        let expected = aside.iter().enumerate().filter(|(number, _)| !never.contains(number));
        assert_eq!(reached, expected.map(|(_, &point)| point).collect(), "{}", method.name());
        Ok(())
    });
}

#[test]
fn a_lock_that_checks_its_processor_takes_nothing_elsewhere() {
    let allowed = cpu::allowed();
    let home = tollgate_engine::topology::usual(&allowed);
    let Some(away) = allowed.into_iter().find(|&cpu| Some(cpu) != home) else {
        return eprintln!("skipped: one processor only");
    };
    with_each(&[Method::RseqCpu], |method, pair| {
        let end = method.code().extent.take.1;
        for point in of(method.code().extent.take) {
            for a_first in [false, true] {
                let got = pair.both_take_apart(point, away, a_first)?;
                // After its store it holds the lock.
                assert_eq!(got, [point == end, point != end], "at {point:#x}, {a_first}");
            }
        }
        Ok(())
    });
}

#[test]
fn the_instructions_that_are_decoded_are_those_that_the_processor_executes() {
    with_each(&Method::LOCKS, |method, pair| {
        if is_sequence(method) {
            return Ok(());
        }
        let extent = method.code().extent;
        let [take, release] = executed(&mut pair.a, &extent)?;
        let inside = |points: &[usize], (begin, end): (usize, usize)| -> Vec<usize> {
            points.iter().copied().filter(|point| (begin..=end).contains(point)).collect()
        };
        assert_eq!(inside(&take, extent.take), of(extent.take), "{}", method.name());
        assert_eq!(inside(&release, extent.release), of(extent.release), "{}", method.name());
        let calls = matches!(method, Method::PthreadTrylock | Method::SemTrywait);
        assert_eq!(take.len() > of(extent.take).len(), calls, "{}", method.name());
        Ok(())
    });
}

/// Returns the stop points of `take` and `release`: every instruction of the uncontended paths.
fn points_of(method: Method, pair: &mut Pair) -> Result<[Vec<usize>; 2]> {
    let extent = method.code().extent;
    if is_sequence(method) {
        // A sequence that is interrupted at each instruction never ends.
        return Ok([of(extent.take), of(extent.release)]);
    }
    executed(&mut pair.a, &extent)
}

fn is_sequence(method: Method) -> bool {
    matches!(method, Method::Rseq | Method::RseqCpu)
}
