//! The rates of false and of missed differences within a run. Seeded simulations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use support::Random;
use support::within::{NOISES, Noise, ROWS, one_run};
use tollgate_model::compare::{Verdict, paired_rows};
use tollgate_model::own::CONTROL;

/// Shares of the rows that are called faster, slower and the same.
fn rates(seed: u64, runs: usize, noise: Noise, ratio: f64) -> [f64; 3] {
    let mut random = Random(seed);
    let mut called = [0_usize; 3];
    for _ in 0..runs {
        let rows = paired_rows(&one_run(&mut random, noise, ratio));
        assert_eq!(rows.len(), ROWS + 1);
        for (_, row) in rows.iter().filter(|(case, _)| case.benchmark != CONTROL) {
            for (count, verdict) in called.iter_mut().zip([Verdict::Faster, Verdict::Slower, Verdict::Same]) {
                *count += usize::from(row.verdict == verdict);
            }
        }
    }
    called.map(|count| count as f64 / (runs * ROWS) as f64)
}

#[test]
fn equal_instances_are_called_different_once_in_a_hundred_at_most() {
    for (seed, (name, noise)) in (20..).zip(NOISES) {
        let [faster, slower, _] = rates(seed, 12, noise, 1.0);
        assert!(faster + slower <= 0.01, "{name}: {faster}, {slower}");
    }
}

#[test]
fn five_in_a_hundred_is_found_under_heavy_noise() {
    let small = |noise: &Noise| noise.process < 0.01 && noise.apart < 0.01;
    for (seed, (name, noise)) in (30..).zip(NOISES).filter(|(_, (_, noise))| small(noise)) {
        let [faster, slower, _] = rates(seed, 6, noise, 1.05);
        assert!(slower >= 0.95 && faster == 0.0, "{name}: {slower}, {faster}");
        let [faster, slower, _] = rates(seed, 6, noise, 1.0 / 1.05);
        assert!(faster >= 0.95 && slower == 0.0, "{name}: {faster}, {slower}");
    }
}

#[test]
#[ignore = "prints the table of rates; for a release build"]
fn table() {
    println!("noise | equal called | equal the same | 5 % slower found | 3 % slower found");
    for (name, noise) in NOISES {
        let [faster, slower, same] = rates(1, 100, noise, 1.0);
        let [_, five, _] = rates(2, 100, noise, 1.05);
        let [_, three, _] = rates(3, 100, noise, 1.03);
        println!("  {name:34} {:7.4} {same:7.4} {five:7.4} {three:7.4}", faster + slower);
    }
}
