//! The rates of false and of missed differences within a run. Seeded simulations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod support;

use support::{Random, measured_with_discards, run_of};
use tollgate_model::compare::{Verdict, paired_rows};
use tollgate_model::own::CONTROL;
use tollgate_model::{Case, Measured, Outcome, Run};

const ROWS: usize = 20;

#[derive(Clone, Copy)]
struct Noise {
    /// Deviation of a batch.
    batch: f64,
    /// Deviation of the factor that an instance keeps for the life of a process.
    process: f64,
    processes: usize,
    rounds: usize,
}

/// `ROWS` instances with a system call as baseline, each `ratio` times as slow, in rounds that share a level and a drift.
/// 5 % of the batches have a spike of up to many times the latency, 2 % of the rounds are discarded.
fn one_run(random: &mut Random, noise: Noise, ratio: f64) -> Run {
    let mut instances = vec![vec![vec![]; noise.processes]; ROWS + 2];
    for process in 0..noise.processes {
        let own: Vec<f64> = instances.iter().map(|_| random.factor(noise.process)).collect();
        let mut upper = random.chance(0.5);
        for _ in 0..noise.rounds {
            upper ^= random.chance(0.02);
            let level = if upper { 215.0 } else { 164.0 } * random.factor(0.05);
            for (instance, processes) in instances.iter_mut().enumerate() {
                let estimate = if instance < 2 { level } else { level * ratio };
                let spike = if random.chance(0.05) { 1.0 + 10.0 * random.exponential() } else { 1.0 };
                let sample = estimate * own[instance] * random.factor(noise.batch) * spike;
                processes[process].push((!random.chance(0.02)).then_some(sample));
            }
        }
    }
    let syscall = Case::plain("entry/syscall");
    let mut instances = instances.into_iter().map(|instance| measured_with_discards("entry", &instance));
    let compared = |instance: Measured| {
        Outcome::Measured(Box::new(Measured { baseline: Some(syscall.clone()), ..instance }))
    };
    let mut measurements = vec![(syscall.clone(), Outcome::Measured(Box::new(instances.next().unwrap())))];
    measurements.push((Case::plain(CONTROL), compared(instances.next().unwrap())));
    measurements
        .extend(instances.enumerate().map(|(row, one)| (Case::plain(format!("entry/{row}")), compared(one))));
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
    ("batches 3 %", Noise { batch: 0.03, process: 0.0, processes: 7, rounds: 100 }),
    ("batches 10 %", Noise { batch: 0.10, process: 0.0, processes: 7, rounds: 200 }),
    (
        "batches 3 %, instances 0.5 % a process",
        Noise { batch: 0.03, process: 0.005, processes: 7, rounds: 100 },
    ),
    ("batches 3 %, instances 3 % a process", Noise { batch: 0.03, process: 0.03, processes: 10, rounds: 50 }),
    ("batches 3 %, one process", Noise { batch: 0.03, process: 0.0, processes: 1, rounds: 300 }),
];

#[test]
fn equal_instances_are_called_different_once_in_a_hundred_at_most() {
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
