//! The rates of false and of missed differences between two runs. Seeded simulations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod support;

use support::Random;
use support::between::{CALM, Environment, ROWS, environments, two_runs};
use tollgate_model::compare::{Verdict, compare};

/// The share of rows that are called faster, and slower, in `pairs` pairs of runs.
fn rates(seed: u64, pairs: usize, environment: Environment, sizes: (usize, usize), ratio: f64) -> (f64, f64) {
    let mut random = Random(seed);
    let mut called = [0, 0];
    for _ in 0..pairs {
        let (base, other) = two_runs(&mut random, environment, sizes, ratio);
        for row in compare(&base, &other).rows {
            called[0] += usize::from(row.verdict == Verdict::Faster);
            called[1] += usize::from(row.verdict == Verdict::Slower);
        }
    }
    let all = (pairs * ROWS) as f64;
    (called[0] as f64 / all, called[1] as f64 / all)
}

/// A/A: at most one in a hundred rows is called different, in any environment.
#[test]
fn equal_estimates_are_called_different_once_in_a_hundred_at_most() {
    for (seed, (name, environment)) in (10..).zip(environments()) {
        if name.contains("10 processes") {
            continue; // A level that outlasts a run of 7 looks like a change: see the table.
        }
        for sizes in [(7, 7), (12, 12)] {
            let (faster, slower) = rates(seed, 16, environment, sizes, 1.0);
            assert!(faster + slower <= 0.01, "{name}, {sizes:?}: {}", faster + slower);
        }
    }
}

/// Many short processes, so that a pace lasts for several: a tenth of the rows was called different where they were
/// taken as independent.
#[test]
fn equal_estimates_of_many_short_processes_are_called_different_once_in_a_hundred_at_most() {
    let paces = [
        ("two levels, lasting 10 processes", Environment { levels: 1.3, stays: 0.8, ..CALM }),
        ("two levels, lasting 20 processes", Environment { levels: 1.1, stays: 0.9, ..CALM }),
        ("wandering (3 %, 0.9 kept)", Environment { own: 0.03, kept: 0.9, ..CALM }),
        ("wandering (10 %, 0.9 kept)", Environment { own: 0.1, kept: 0.9, ..CALM }),
    ];
    for (seed, (name, environment)) in (50..).zip(paces) {
        let (faster, slower) = rates(seed, 8, environment, (130, 130), 1.0);
        assert!(faster + slower <= 0.01, "{name}: {}", faster + slower);
    }
    let (wrong, found) = rates(60, 4, paces[2].1, (130, 130), 1.5);
    assert!(found >= 0.85 && wrong == 0.0, "{found}, {wrong}");
}

#[test]
fn fifty_in_a_hundred_is_found() {
    for (seed, (name, environment)) in (100..).zip(environments()) {
        for sizes in [(7, 7), (12, 12)] {
            let (wrong, found) = rates(seed, 8, environment, sizes, 1.5);
            assert!(found >= 0.95 && wrong == 0.0, "{name}, {sizes:?}: {found}, {wrong}");
            if environment.drift > 0.05 {
                continue; // The drift itself takes the gain away.
            }
            let (found, wrong) = rates(seed, 4, environment, sizes, 1.0 / 1.5);
            assert!(found >= 0.92 && wrong == 0.0, "{name}, {sizes:?}: {found}, {wrong}");
        }
    }
}

#[test]
fn five_in_a_hundred_is_found_where_it_is_calm() {
    let (wrong, found) = rates(1000, 20, CALM, (8, 8), 1.05);
    assert!(found >= 0.95 && wrong == 0.0, "{found}, {wrong}");
}

#[test]
#[ignore = "prints the table of rates; for a release build"]
fn table() {
    let pairs = 160;
    for sizes in [(7, 7), (8, 8), (10, 10), (12, 12), (16, 16), (7, 16)] {
        println!(
            "{sizes:?}: environment | A/A called | 50 % slower found | called faster | 5 % slower found"
        );
        for (name, environment) in environments() {
            let (faster, slower) = rates(1, pairs, environment, sizes, 1.0);
            let (wrong, found) = rates(2, pairs, environment, sizes, 1.5);
            let (_, small) = rates(3, pairs, environment, sizes, 1.05);
            println!("  {name:40} {:7.4} {found:7.4} {wrong:7.4} {small:7.4}", faster + slower);
        }
    }
}
