//! Two simulated runs, one after the other: noise of batches, of processes, between processes, and drift.

use tollgate_model::{Case, Outcome, Run};

use super::{Random, measured, run_of};

pub const ROWS: usize = 25;
const SAMPLES: usize = 25;

/// The noise of an environment.
#[derive(Clone, Copy)]
pub struct Environment {
    /// Ratio of the upper level to the lower.
    pub levels: f64,
    /// The chance that a process is at the level of the one before.
    pub stays: f64,
    /// The chance that a process changes its level half way.
    pub flips: f64,
    /// The drift over the length of a run.
    pub drift: f64,
    /// Deviation of a process's own factor, and how much of it the next process has too.
    pub own: f64,
    pub kept: f64,
}

pub const CALM: Environment =
    Environment { levels: 1.0, stays: 0.5, flips: 0.0, drift: 0.0, own: 0.003, kept: 0.0 };

/// One case over two runs, one after the other: processes of samples.
struct Source<'a> {
    random: &'a mut Random,
    environment: Environment,
    upper: bool,
    own: f64,
    time: f64,
}

impl<'a> Source<'a> {
    fn new(random: &'a mut Random, environment: Environment) -> Self {
        let upper = random.chance(0.5);
        let own = random.normal();
        Self { random, environment, upper, own, time: 0.0 }
    }

    fn processes(&mut self, estimate: f64, count: usize) -> Vec<Vec<f64>> {
        (0..count).map(|_| self.process(estimate, count)).collect()
    }

    fn process(&mut self, estimate: f64, count: usize) -> Vec<f64> {
        let environment = self.environment;
        if !self.random.chance(environment.stays) {
            self.upper = self.random.chance(0.5);
        }
        self.own = environment.kept * self.own
            + (1.0 - environment.kept * environment.kept).sqrt() * self.random.normal();
        let flips_at = if self.random.chance(environment.flips) { SAMPLES / 2 } else { SAMPLES };
        let samples = (0..SAMPLES).map(|index| {
            if index == flips_at {
                self.upper = !self.upper;
            }
            self.time += 1.0 / (count * SAMPLES) as f64;
            let level = if self.upper { environment.levels } else { 1.0 };
            let spike = if self.random.chance(0.05) { 1.0 + 4.0 * self.random.exponential() } else { 1.0 };
            let systematic = level * (environment.drift * self.time + environment.own * self.own).exp();
            estimate * systematic * self.random.factor(0.02) * spike
        });
        samples.collect()
    }
}

/// Two runs one after the other; every latency of the second is `ratio` times that of the first.
pub fn two_runs(
    random: &mut Random,
    environment: Environment,
    sizes: (usize, usize),
    ratio: f64,
) -> (Run, Run) {
    let (mut base, mut other) = (vec![], vec![]);
    for row in 0..ROWS {
        let mut source = Source::new(random, environment);
        let case = Case::plain(format!("entry/row-{row}"));
        let estimate = 100.0 + 10.0 * row as f64;
        base.push((
            case.clone(),
            Outcome::Measured(Box::new(measured("entry", &source.processes(estimate, sizes.0)))),
        ));
        other.push((
            case,
            Outcome::Measured(Box::new(measured("entry", &source.processes(estimate * ratio, sizes.1)))),
        ));
    }
    (run_of(base), run_of(other))
}

pub fn environments() -> Vec<(&'static str, Environment)> {
    let levels = Environment { levels: 215.0 / 164.0, stays: 0.0, ..CALM };
    vec![
        ("calm", CALM),
        ("noisy processes (3 %)", Environment { own: 0.03, ..CALM }),
        ("two levels, each process its own", levels),
        ("two levels, lasting 3 processes", Environment { stays: 0.333, ..levels }),
        ("two levels, lasting 4 processes", Environment { stays: 0.5, ..levels }),
        ("two levels, lasting 10 processes", Environment { stays: 0.8, flips: 0.0, ..levels }),
        ("two levels, changing within processes", Environment { stays: 0.9, flips: 0.3, ..levels }),
        ("drift of 2 % a run", Environment { drift: 0.02, ..CALM }),
        ("drift of 5 % a run", Environment { drift: 0.05, ..CALM }),
        ("drift of 10 % a run", Environment { drift: 0.10, ..CALM }),
        ("drift of 30 % a run", Environment { drift: 0.30, ..CALM }),
        ("wandering (3 %, half kept)", Environment { own: 0.03, kept: 0.5, ..CALM }),
        ("wandering (3 %, 0.8 kept)", Environment { own: 0.03, kept: 0.8, ..CALM }),
    ]
}
