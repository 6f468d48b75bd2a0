//! Two simulated runs, one after the other: noise of batches, of processes, between processes, and drift.

use tollgate_model::own::CANARY;
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
    /// Deviation of a run's own factor, and the degrees of freedom of its Student's distribution; normal if that is 0.
    pub between: f64,
    pub freedom: u32,
    /// The share of processes beside a busy sibling, which adds a quarter to the canary and to each row. With none there is no
    /// canary.
    pub busy: f64,
}

/// The factor of a busy sibling.
const SIBLING: f64 = 1.25;

pub const CALM: Environment = Environment {
    levels: 1.0,
    stays: 0.5,
    flips: 0.0,
    drift: 0.0,
    own: 0.003,
    kept: 0.0,
    between: 0.0,
    freedom: 0,
    busy: 0.0,
};

/// Runs differ by more than their processes show.
pub const APART: Environment = Environment { own: 0.03, between: 0.03, ..CALM };

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

    fn processes(&mut self, estimate: f64, busy: &[bool]) -> Vec<Vec<f64>> {
        let Environment { between, freedom, .. } = self.environment;
        let of_run = if between > 0.0 { (between * self.student(freedom)).exp() } else { 1.0 };
        let level = |busy: &bool| estimate * of_run * if *busy { SIBLING } else { 1.0 };
        busy.iter().map(|of| self.process(level(of), busy.len())).collect()
    }

    /// With the deviation 1.
    fn student(&mut self, freedom: u32) -> f64 {
        let normal = self.random.normal();
        if freedom == 0 {
            return normal;
        }
        let squares: f64 = (0..freedom).map(|_| self.random.normal().powi(2)).sum();
        normal / (squares / f64::from(freedom - 2)).sqrt()
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
    let mut runs = successive(random, environment, &[sizes.0, sizes.1], ratio).into_iter();
    let (Some(base), Some(other)) = (runs.next(), runs.next()) else { panic!("two runs") };
    (base, other)
}

/// Runs of these many processes, one after the other; every latency of the last is `ratio` times that of the others.
pub fn successive(random: &mut Random, environment: Environment, sizes: &[usize], ratio: f64) -> Vec<Run> {
    let outcome = |processes: &[Vec<f64>]| Outcome::Measured(Box::new(measured("entry", processes)));
    let mut runs: Vec<Vec<(Case, Outcome)>> = sizes.iter().map(|_| Vec::new()).collect();
    let is_busy = |random: &mut Random| environment.busy > 0.0 && random.chance(environment.busy);
    let busy: Vec<Vec<bool>> =
        sizes.iter().map(|size| (0..*size).map(|_| is_busy(random)).collect()).collect();
    if environment.busy > 0.0 {
        for (run, busy) in runs.iter_mut().zip(&busy) {
            let canary = Source::new(random, CALM).processes(100.0, busy);
            run.push((Case::plain(CANARY), outcome(&canary)));
        }
    }
    for row in 0..ROWS {
        let mut source = Source::new(random, environment);
        let estimate = 100.0 + 10.0 * row as f64;
        for (at, (run, busy)) in runs.iter_mut().zip(&busy).enumerate() {
            let times = if at + 1 == sizes.len() { ratio } else { 1.0 };
            let processes = source.processes(estimate * times, busy);
            run.push((Case::plain(format!("entry/row-{row}")), outcome(&processes)));
        }
    }
    runs.into_iter().map(run_of).collect()
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
        ("runs 3 % apart", APART),
        ("runs 3 % apart, heavy tails", Environment { freedom: 8, ..APART }),
        ("a busy sibling beside half", Environment { own: 0.05, busy: 0.5, ..CALM }),
        ("wandering (3 %, half kept)", Environment { own: 0.03, kept: 0.5, ..CALM }),
        ("wandering (3 %, 0.8 kept)", Environment { own: 0.03, kept: 0.8, ..CALM }),
    ]
}
