//! The rates of false and of missed differences between two runs. Seeded simulations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use support::Random;
use support::between::{APART, CALM, Environment, ROWS, environments, successive, two_runs};
use tollgate_model::Outcome;
use tollgate_model::compare::{Spread, Verdict, compare_knowing};

/// The share of rows that are called faster, and slower, in `pairs` pairs of runs, if this many other runs of the machine are
/// kept.
fn rates(
    seed: u64,
    pairs: usize,
    environment: Environment,
    sizes: (usize, usize),
    ratio: f64,
    kept: usize,
) -> (f64, f64) {
    let mut random = Random(seed);
    let mut called = [0, 0];
    for _ in 0..pairs {
        let sizes: Vec<usize> = std::iter::repeat_n(sizes.0, kept + 1).chain([sizes.1]).collect();
        let runs = successive(&mut random, environment, &sizes, ratio);
        let spread = Spread::of(&runs[..kept]);
        for row in compare_knowing(&runs[kept], &runs[kept + 1], 0.0, &spread).rows {
            called[0] += usize::from(row.verdict == Verdict::Faster);
            called[1] += usize::from(row.verdict == Verdict::Slower);
        }
    }
    let all = (pairs * ROWS) as f64;
    (called[0] as f64 / all, called[1] as f64 / all)
}

/// A/A: at most one in a thousand rows is called different, in any environment, with any kept runs.
#[test]
fn equal_estimates_are_called_different_once_in_a_thousand_at_most() {
    let mut called = 0.0;
    let mut number = 0.0;
    for (seed, (_, environment)) in (10..).zip(environments()) {
        for (sizes, kept) in [((7, 7), 0), ((12, 12), 0), ((7, 7), 3), ((12, 12), 6)] {
            let (faster, slower) = rates(seed, 8, environment, sizes, 1.0, kept);
            called += faster + slower;
            number += 1.0;
        }
    }
    assert!(called / number <= 0.001, "{called} of {number}");
}

/// Many short processes, so that a pace lasts for several.
#[test]
fn equal_estimates_of_many_short_processes_are_called_different_once_in_a_thousand_at_most() {
    let paces = [
        ("two levels, lasting 10 processes", Environment { levels: 1.3, stays: 0.8, ..CALM }),
        ("two levels, lasting 20 processes", Environment { levels: 1.1, stays: 0.9, ..CALM }),
        ("wandering (3 %, 0.9 kept)", Environment { own: 0.03, kept: 0.9, ..CALM }),
        ("wandering (10 %, 0.9 kept)", Environment { own: 0.1, kept: 0.9, ..CALM }),
    ];
    for (seed, (name, environment)) in (50..).zip(paces) {
        for kept in [0, 4] {
            let (faster, slower) = rates(seed, 4, environment, (130, 130), 1.0, kept);
            assert!(faster + slower == 0.0, "{name}, {kept}: {}", faster + slower);
        }
    }
    let (wrong, found) = rates(60, 4, paces[2].1, (130, 130), 1.5, 4);
    assert!(found >= 0.85 && wrong == 0.0, "{found}, {wrong}");
}

/// A run whose interval covers nothing that differs between runs: its processes agree, and each run has a level of its own.
#[test]
fn levels_that_runs_keep_are_no_difference() {
    let levels = Environment { levels: 1.6, stays: 1.0, ..CALM };
    for kept in [0, 3, 6, 20] {
        let mut random = Random(70 + kept as u64);
        let mut called = 0;
        for _ in 0..12 {
            let kept: Vec<_> = (0..kept).map(|_| two_runs(&mut random, levels, (12, 12), 1.0).0).collect();
            let (base, _) = two_runs(&mut random, levels, (12, 12), 1.0);
            let (other, _) = two_runs(&mut random, levels, (12, 12), 1.0);
            let rows = compare_knowing(&base, &other, 0.0, &Spread::of(&kept)).rows;
            called += rows.iter().filter(|row| row.verdict.is_difference()).count();
        }
        assert!(called == 0, "{kept}: {called} of {}", 12 * ROWS);
    }
}

#[test]
fn three_times_is_found_without_other_runs_and_half_as_much_again_with_them() {
    for (seed, (name, environment)) in (100..).zip(environments()) {
        for sizes in [(7, 7), (12, 12)] {
            let (wrong, found) = rates(seed, 4, environment, sizes, 3.0, 0);
            let enough = if environment.busy > 0.0 { 0.75 } else { 0.9 };
            assert!(found >= enough && wrong == 0.0, "{name}, {sizes:?}: {found}, {wrong}");
        }
        if environment.levels == 1.0 && environment.drift < 0.05 && environment.between == 0.0 {
            let (wrong, found) = rates(seed, 4, environment, (12, 12), 1.5, 6);
            assert!(found >= 0.9 && wrong == 0.0, "{name}: {found}, {wrong}");
        }
    }
}

/// If each run has its own level, with any tails, levels are not called different, and a factor of 1.5 is found in four of five
/// rows if all have it.
#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn where_runs_lie_apart_half_as_much_again_is_found_and_nothing_else() {
    let kinds = [("normal", APART), ("heavy tails", Environment { freedom: 8, ..APART })];
    let busy = ("a busy sibling beside half", Environment { busy: 0.5, ..APART });
    for (seed, (name, environment)) in (300..).zip(kinds.into_iter().chain([busy])) {
        let (faster, slower) = rates(seed, 80, environment, (12, 12), 1.0, 10);
        assert!(faster + slower <= 0.002, "{name}: {faster}, {slower}");
        let (wrong, found) = rates(seed, 8, environment, (12, 12), 1.5, 10);
        assert!(found >= 0.8 && wrong == 0.0, "{name}: {found}, {wrong}");
    }
}

#[test]
fn five_in_a_hundred_is_found_where_it_is_calm() {
    let (wrong, found) = rates(1000, 8, CALM, (8, 8), 1.05, 10);
    assert!(found >= 0.9 && wrong == 0.0, "{found}, {wrong}");
}

/// On a busy machine a calibration may take an operation for a slow one, so its batch has one operation: it finds another state,
/// and the level of a whole run differs.
#[test]
fn a_difference_that_may_be_that_of_far_shorter_batches_is_none() {
    let runs = successive(&mut Random(400), CALM, &[12; 12], 3.0);
    let spread = Spread::of(&runs[..10]);
    let slower = |operations: u64| {
        let mut other = runs[11].clone();
        for measurement in &mut other.measurements {
            if let Outcome::Measured(measured) = &mut measurement.outcome {
                measured.ops_per_sample = operations;
            }
        }
        let rows = compare_knowing(&runs[10], &other, 0.0, &spread).rows;
        rows.iter().filter(|row| row.verdict == Verdict::Slower).count()
    };
    // 200 in the others. A case that takes three times as long has a third of the operations in a batch.
    assert_eq!([200, 67, 50, 20, 1].map(slower), [ROWS, ROWS, ROWS, 0, 0]);
}

#[test]
#[ignore = "prints the table of rates"]
fn table() {
    let pairs = 40;
    for kept in [0, 3, 10] {
        println!("{kept} other runs kept: environment | A/A called | 50 % slower found | 5 % slower found");
        for (name, environment) in environments() {
            let (faster, slower) = rates(1, pairs, environment, (12, 12), 1.0, kept);
            let (_, found) = rates(2, pairs, environment, (12, 12), 1.5, kept);
            let (_, small) = rates(3, pairs, environment, (12, 12), 1.05, kept);
            println!("  {name:40} {:7.4} {found:7.4} {small:7.4}", faster + slower);
        }
    }
}
