//! How often paired comparisons err, and how often they find what is there. Seeded simulations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod support;

use support::{Random, measured_with_drops, run_of};
use tollgate_model::compare::{Verdict, paired_rows};
use tollgate_model::own::CONTROL;
use tollgate_model::{Case, Measured, Outcome, Run};

const ROWS: usize = 20;

#[derive(Clone, Copy)]
struct Noise {
    /// Deviation of a block.
    block: f64,
    /// Deviation of what an arm keeps for the life of a process.
    process: f64,
    processes: usize,
    rounds: usize,
}

/// `ROWS` arms against a system call, each `ratio` times as dear, in rounds that share a level and a drift; 5 % of the
/// blocks are hit by a spike of up to many times the price, 2 % of the rounds are dropped.
fn one_run(random: &mut Random, noise: Noise, ratio: f64) -> Run {
    let mut arms = vec![vec![vec![]; noise.processes]; ROWS + 2];
    for process in 0..noise.processes {
        let own: Vec<f64> = arms.iter().map(|_| random.factor(noise.process)).collect();
        let mut upper = random.chance(0.5);
        for _ in 0..noise.rounds {
            upper ^= random.chance(0.02);
            let level = if upper { 215.0 } else { 164.0 } * random.factor(0.05);
            for (arm, processes) in arms.iter_mut().enumerate() {
                let estimate = if arm < 2 { level } else { level * ratio };
                let spike = if random.chance(0.05) { 1.0 + 10.0 * random.exponential() } else { 1.0 };
                let sample = estimate * own[arm] * random.factor(noise.block) * spike;
                processes[process].push((!random.chance(0.02)).then_some(sample));
            }
        }
    }
    let syscall = Case::plain("entry/syscall");
    let mut arms = arms.into_iter().map(|arm| measured_with_drops("entry", &arm));
    let held =
        |arm: Measured| Outcome::Measured(Box::new(Measured { baseline: Some(syscall.clone()), ..arm }));
    let mut measurements = vec![(syscall.clone(), Outcome::Measured(Box::new(arms.next().unwrap())))];
    measurements.push((Case::plain(CONTROL), held(arms.next().unwrap())));
    measurements.extend(arms.enumerate().map(|(row, arm)| (Case::plain(format!("entry/{row}")), held(arm))));
    run_of(measurements)
}

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

const NOISES: [(&str, Noise); 5] = [
    ("blocks 3 %", Noise { block: 0.03, process: 0.0, processes: 7, rounds: 100 }),
    ("blocks 10 %", Noise { block: 0.10, process: 0.0, processes: 7, rounds: 200 }),
    ("blocks 3 %, arms 0.5 % a process", Noise { block: 0.03, process: 0.005, processes: 7, rounds: 100 }),
    ("blocks 3 %, arms 3 % a process", Noise { block: 0.03, process: 0.03, processes: 10, rounds: 50 }),
    ("blocks 3 %, one process", Noise { block: 0.03, process: 0.0, processes: 1, rounds: 300 }),
];

#[test]
fn equal_arms_are_called_different_once_in_a_hundred_at_most() {
    for (seed, (name, noise)) in (20..).zip(NOISES) {
        let [faster, slower, _] = rates(seed, 12, noise, 1.0);
        assert!(faster + slower <= 0.01, "{name}: {faster}, {slower}");
    }
}

#[test]
fn five_in_a_hundred_is_found_under_heavy_noise() {
    for (seed, (name, noise)) in (30..).zip(NOISES).filter(|(_, (_, noise))| noise.process < 0.01) {
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
