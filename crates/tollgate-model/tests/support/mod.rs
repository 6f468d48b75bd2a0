//! A small generator of random numbers, and runs made of them.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod alternated;
pub mod between;
pub mod executions;
pub mod within;

use tollgate_model::run::{RunId, SCHEMA, Tool};
use tollgate_model::{
    Case, Environment, Facts, Measured, Measurement, Outcome, ProcessRounds, Provenance, Run, Unit,
};

/// SplitMix64 (Steele, Lea & Flood, 2014): every test always draws the same numbers.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A factor whose logarithm is normal with this deviation.
    pub fn factor(&mut self, deviation: f64) -> f64 {
        (deviation * self.normal()).exp()
    }
}

/// A measurement of these processes, without discarded rounds.
pub fn measured(group: &str, processes: &[Vec<f64>]) -> Measured {
    let rounds =
        |samples: &Vec<f64>| ProcessRounds { rounds: samples.len() as u32, ran: None, discarded: vec![] };
    Measured {
        unit: Unit::Nanoseconds,
        provenance: Provenance::Hardware,
        ops_per_sample: 200,
        clock_hz: 2_000_000_000,
        samples: processes.concat(),
        discarded: 0,
        processes: processes.iter().map(rounds).collect(),
        counters: Vec::new(),
        events: Vec::new(),
        bytes_per_op: None,
        group: group.to_owned(),
        baseline: None,
        counted: None,
        notes: vec![],
        span_ns: None,
        traced: vec![],
        traced_apart: Vec::new(),
    }
}

/// Like [`measured`], with rounds of which some were discarded (`None`).
pub fn measured_with_discards(group: &str, processes: &[Vec<Option<f64>>]) -> Measured {
    let kept: Vec<Vec<f64>> =
        processes.iter().map(|rounds| rounds.iter().flatten().copied().collect()).collect();
    let mut measured = measured(group, &kept);
    for (process, rounds) in measured.processes.iter_mut().zip(processes) {
        process.rounds = rounds.len() as u32;
        process.discarded =
            (0..).zip(rounds).filter(|(_, round)| round.is_none()).map(|(index, _)| index).collect();
        measured.discarded += process.discarded.len() as u64;
    }
    measured
}

pub fn run_of(measurements: Vec<(Case, Outcome)>) -> Run {
    Run {
        schema: SCHEMA,
        tool: Tool { name: "tollgate".into(), version: "0.1.0".into() },
        id: "20260101-000000-a".parse::<RunId>().unwrap(),
        label: None,
        environment: Environment::Vm,
        session: None,
        started: "2026-01-01T00:00:00Z".into(),
        finished: "2026-01-01T00:01:00Z".into(),
        facts: Facts::new(),
        measurements: measurements.into_iter().map(|(case, outcome)| Measurement { case, outcome }).collect(),
    }
}

/// The medians of processes on a machine that keeps its pace for a while, in the order of time.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// It wanders: a first-order autoregression, to which each process adds its own noise.
    Wanders { noise: f64 },
    /// It jumps between two levels and is at the upper one for this share of the time.
    Jumps { upper: f64 },
}

impl Pace {
    /// `count` values with this autocorrelation time, in values, of the pace.
    pub fn series(self, random: &mut Random, time: f64, count: usize) -> Vec<f64> {
        let kept = (time - 1.0) / (time + 1.0);
        match self {
            Self::Wanders { noise } => {
                let mut pace = random.normal();
                let mut next = || {
                    pace = kept * pace + (1.0 - kept * kept).sqrt() * random.normal();
                    pace + noise * random.normal()
                };
                (0..count).map(|_| next()).collect()
            }
            Self::Jumps { upper } => {
                let mut is_upper = random.chance(upper);
                let mut next = || {
                    if !random.chance(kept) {
                        is_upper = random.chance(upper);
                    }
                    f64::from(u8::from(is_upper)) + 0.03 * random.normal()
                };
                (0..count).map(|_| next()).collect()
            }
        }
    }

    /// The median of all values that it ever has.
    pub fn median(self) -> f64 {
        match self {
            Self::Wanders { .. } => 0.0,
            // The lower level's quantile of 0.5 / (1 - upper): 5/6 and 5/8.
            Self::Jumps { upper } if upper > 0.3 => 0.03 * 0.967_42,
            Self::Jumps { .. } => 0.03 * 0.318_64,
        }
    }
}
