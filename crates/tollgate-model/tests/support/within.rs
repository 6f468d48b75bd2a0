//! A simulated run: noise of batches and of processes, levels that the rounds share.

use tollgate_model::own::CONTROL;
use tollgate_model::{Case, Measured, Outcome, Run};

use super::{Random, measured_with_discards, run_of};

pub const ROWS: usize = 20;

#[derive(Clone, Copy)]
pub struct Noise {
    /// Deviation of a batch.
    pub batch: f64,
    /// Deviation of the factor that an instance keeps for the life of a process.
    pub process: f64,
    /// How far the A/A control lies from its baseline in the whole run. The other instances lie within 0.8 of that.
    pub apart: f64,
    pub processes: usize,
    pub rounds: usize,
}

/// `ROWS` instances with a system call as baseline, each `ratio` times as slow, in rounds that share a level and a drift.
/// 5 % of the batches have a spike of up to many times the latency, 2 % of the rounds are discarded.
pub fn one_run(random: &mut Random, noise: Noise, ratio: f64) -> Run {
    let mut instances = vec![vec![vec![]; noise.processes]; ROWS + 2];
    let apart = |instance: usize| match instance {
        0 => 1.0,
        1 => 1.0 + noise.apart,
        row => 1.0 + noise.apart * [-0.8, -0.4, 0.0, 0.4, 0.8][row % 5],
    };
    for process in 0..noise.processes {
        let own: Vec<f64> = instances.iter().map(|_| random.factor(noise.process)).collect();
        let mut upper = random.chance(0.5);
        for _ in 0..noise.rounds {
            upper ^= random.chance(0.02);
            let level = if upper { 215.0 } else { 164.0 } * random.factor(0.05);
            for (instance, processes) in instances.iter_mut().enumerate() {
                let estimate = if instance < 2 { level } else { level * ratio };
                let spike = if random.chance(0.05) { 1.0 + 10.0 * random.exponential() } else { 1.0 };
                let sample = estimate * apart(instance) * own[instance] * random.factor(noise.batch) * spike;
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

const BATCHES: Noise = Noise { batch: 0.03, process: 0.0, apart: 0.0, processes: 7, rounds: 100 };

pub const NOISES: [(&str, Noise); 6] = [
    ("batches 3 %", BATCHES),
    ("batches 10 %", Noise { batch: 0.10, rounds: 200, ..BATCHES }),
    ("batches 3 %, instances 0.5 % a process", Noise { process: 0.005, ..BATCHES }),
    ("batches 3 %, instances 3 % a process", Noise { process: 0.03, processes: 10, rounds: 50, ..BATCHES }),
    ("batches 3 %, one process", Noise { processes: 1, rounds: 300, ..BATCHES }),
    ("batches 3 %, instances 3 % apart", Noise { apart: 0.03, ..BATCHES }),
];
