//! Locks, instruction by instruction: a process is stopped at an instruction of its take, another takes the lock on the same
//! processor, and the first goes on. This is done at every instruction, so that what a preemption does there is seen
//! each time, and not once in millions.
//!
//! Two processes share the lock. Each is traced, and only one of them runs at any time: what happens is the same in every
//! run. A process that gives the processor away waits for the other, which is known by the system call. What the kernel does
//! within a system call is one step; the C library's functions are gone through as the fragments that call them are.

mod party;
mod points;
mod schedule;

use std::collections::BTreeSet;
use std::mem;

use super::method::Method;
use super::rseq;
use points::{entries, executed, of, of_sequence, within};
use schedule::{Pair, aborts, with_each};
use tollgate_engine::{Refusal, cpu};

/// The instruction numbers of plain's take: the load, the test, the jump, the store, and the end.
const PLAIN: [usize; 5] = [0, 1, 2, 3, 4];

#[test]
fn plain_is_caught_at_every_instruction_between_its_load_and_its_store() {
    with_each(&[Method::Plain], |method, pair| {
        let points = of(method.code().extent.take);
        assert_eq!(points.len(), PLAIN.len());
        let mut caught = Vec::new();
        for number in PLAIN {
            let meeting = pair.both_take([Some(points[number]), None], None)?;
            assert_eq!((meeting.stopped, meeting.waited), ([true, false], false), "at {number}");
            assert!(meeting.got != [false, false], "at {number}");
            if meeting.got == [true, true] {
                caught.push(number);
            }
            pair.clear(meeting.got)?;
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
            let meeting = pair.both_take([Some(points[a]), Some(points[b])], None)?;
            // Who finds the lock taken jumps over the store.
            assert_eq!(meeting.stopped, [true, !(a == 4 && b == 3)], "at {a} and {b}");
            // Who is stopped past its store has taken it.
            let between = |number: usize| (1..=3).contains(&number);
            let expected = between(a) && b != 0 || a == 0 && between(b);
            assert_eq!(meeting.got == [true, true], expected, "at {a} and {b}: {meeting:?}");
            pair.clear(meeting.got)?;
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
            let meeting = pair.both_take([Some(a), None], None)?;
            assert!(meeting.stopped[0] && meeting.got[0] != meeting.got[1], "{name} at {a:#x}: {meeting:?}");
            pair.clear(meeting.got)?;
            waited |= meeting.waited;
            for &b in &takes {
                let meeting = pair.both_take([Some(a), Some(b)], None)?;
                assert!(meeting.stopped[0], "{name} at {a:#x} and {b:#x}");
                assert!(meeting.got[0] != meeting.got[1], "{name} at {a:#x} and {b:#x}: {meeting:?}");
                pair.clear(meeting.got)?;
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
            // Before the first instruction nobody has looked, and who has come to the end has found it taken.
            assert!(point != takes[0] || had_before.got[0], "{name}");
            assert!(point != method.code().extent.take.1 || !had_before.got[0], "{name}");
        }
        for &point in &releases {
            let release = pair.released_at(point)?;
            assert!(release.stopped && release.sound, "{name} at {point:#x}: {release:?}");
            had.insert(release.had);
        }
        // Some are before the lock is free, and some after.
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
                let meeting = pair.both_take([Some(point), None], None)?;
                pair.clear(meeting.got)?;
                Ok::<bool, Refusal>(aborts(&mut pair.a)? > before)
            };
            let within = sequence.contains(&point);
            // Somebody else may have been given the processor within it as well.
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
        // A fork has its parent's areas at the same addresses.
        let known = rseq::area()? as usize + mem::offset_of!(rseq::Area, rseq_cs);
        let extent = method.code().extent;
        let mut caught = Vec::new();
        for &point in &of(extent.take) {
            if pair.both_take_forgetting(point, known)? == [true, true] {
                caught.push(point);
            }
        }
        let sequence = of_sequence(&extent);
        // The load, the test, the jump and the store end it.
        assert_eq!(caught, sequence[sequence.len() - 3..], "{}", method.name());
        Ok(())
    });
}

#[test]
fn those_that_wait_or_start_again_let_nobody_in_either() {
    let methods = [Method::Rseq, Method::RseqCpu, Method::Lamport, Method::LamportUp];
    with_each(&methods, |method, pair| {
        let extent = method.code().extent;
        let (takes, aside, entries) = (of(extent.take), within(extent.aside[0]), entries(&extent));
        let mut reached = BTreeSet::new();
        for (&a, &b) in takes.iter().flat_map(|a| takes.iter().map(move |b| (a, b))) {
            let mut reach = |again: usize| {
                let meeting = pair.both_take([Some(a), Some(b)], Some(again))?;
                let at = || format!("{} at {a:#x}, {b:#x} and {again:#x}", method.name());
                assert!(meeting.got[0] != meeting.got[1], "{}: {meeting:?}", at());
                pair.clear(meeting.got)?;
                if meeting.again {
                    reached.insert(again);
                }
                Ok::<bool, Refusal>(meeting.again)
            };
            // Who comes to none of the entries comes to nothing else there.
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
            // The signature is no instruction to be run, and nobody was on another processor.
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
fn who_looks_at_the_processor_takes_nothing_elsewhere() {
    let allowed = cpu::allowed();
    let home = cpu::usual(&allowed);
    let Some(away) = allowed.into_iter().find(|&cpu| Some(cpu) != home) else {
        return eprintln!("skipped: one processor only");
    };
    with_each(&[Method::RseqCpu], |method, pair| {
        let end = method.code().extent.take.1;
        for point in of(method.code().extent.take) {
            for a_first in [false, true] {
                let got = pair.both_take_apart(point, away, a_first)?;
                // Past its store it has taken it at home.
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

/// Where a process can be stopped in a take and in a release: every instruction that is executed where nobody is in the way.
fn points_of(method: Method, pair: &mut Pair) -> Result<[Vec<usize>; 2], Refusal> {
    let extent = method.code().extent;
    if is_sequence(method) {
        // One that is interrupted at each instruction never comes to its end.
        return Ok([of(extent.take), of(extent.release)]);
    }
    executed(&mut pair.a, &extent)
}

fn is_sequence(method: Method) -> bool {
    matches!(method, Method::Rseq | Method::RseqCpu)
}
