use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::facts::differences;
use super::levels::{Level, Processes, slope, variance};
use crate::disturbance::Disturbance;
use crate::measurement::Case;
use crate::own;
use crate::run::Run;
use crate::stats::{self, Interval, normal_quantile, student};

/// Runs of a machine that are enough to show its run-to-run spread.
pub const ENOUGH_RUNS: usize = 3;

/// With fewer runs: two runs of a machine are assumed to differ by up to this factor.
pub const SUPPOSED_APART: f64 = 2.0;

/// Run-to-run spread, case by case: the variances of the logarithms of their levels.
///
/// A case has few runs, so its variance counts together with that of the other cases, as if these were two more runs: the
/// moderated t of Smyth, "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
/// Experiments" (2004).
#[derive(Debug, Clone, Default)]
pub struct Spread {
    runs: usize,
    by_case: HashMap<Case, Between>,
    usual: f64,
}

#[derive(Debug, Clone, Copy)]
struct Between {
    slope: f64,
    variance: f64,
    freedom: f64,
    processes: f64,
}

/// The basis of a [`Spread`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Kept runs of the machine; 0 if they are too few, so that runs are assumed to differ by up to a factor of two.
    pub runs: usize,
}

/// Weight of the other cases, in runs. Smyth estimates it by how much more the variances of cases differ than so few runs explain:
/// 1.4 to 2.2 in 10 to 30 runs of two processors of a busy host.
const WEIGHT: f64 = 2.0;

/// Greatest weight of a case's own runs: about one run in a hundred has a level of its own although many others agree, and the
/// quantile of more degrees of freedom would exclude that level.
const MOST_OWN: f64 = 8.0;

impl Spread {
    /// Computes the spread of runs of one machine, none of which is compared; the assumed spread if they are fewer than three.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut processes: HashMap<&Case, Vec<Processes>> = HashMap::new();
        let mut number = 0;
        for run in runs {
            number += 1;
            let disturbance = Disturbance::of(run);
            for (case, measured) in run.measured().filter(|(_, measured)| !measured.is_count()) {
                processes.entry(case).or_default().push(Processes::new(measured, &disturbance));
            }
        }
        if number < ENOUGH_RUNS {
            return Self::default();
        }
        let of_case =
            |(case, runs): (&Case, Vec<Processes>)| Some((case.clone(), Between::from_runs(&runs)?));
        let by_case: HashMap<Case, Between> = processes.into_iter().filter_map(of_case).collect();
        let others = by_case.iter().filter(|(case, _)| !own::is_own(&case.benchmark));
        let all: Vec<f64> = others.map(|(_, of)| of.variance).collect();
        match stats::median(&all) {
            Some(usual) => Self { runs: number, by_case, usual },
            None => Self::default(),
        }
    }

    pub(super) fn apart<'a>(&self, base: &'a Run, other: &Run) -> HashMap<&'a Case, Apart> {
        let of_other: HashMap<_, _> = other.measured().collect();
        let disturbance = [base, other].map(Disturbance::of);
        let apart = |(case, of_base)| {
            let between = self.by_case.get(case)?;
            let both = [of_base, *of_other.get(case)?];
            let processes = [0, 1].map(|side| Processes::new(both[side], &disturbance[side]));
            let [base, other] = processes.map(|of| of.level(between.slope));
            Some((case, self.between(between, &base?, &other?)))
        };
        base.measured().filter_map(apart).collect()
    }

    /// A run with fewer processes than the others has a greater variance, and so has one whose processes lie far apart.
    fn between(&self, of_case: &Between, base: &Level, other: &Level) -> Apart {
        let own = of_case.freedom.min(MOST_OWN);
        let freedom = WEIGHT + own;
        let usual = (WEIGHT * self.usual + own * of_case.variance) / freedom;
        let variance = |side: &Level| (usual * (of_case.processes / side.processes).max(1.0)).max(side.error);
        Apart { log: other.log - base.log, scale: (variance(base) + variance(other)).sqrt(), freedom }
    }

    /// The ratios by which two runs may differ in a case of unknown spread.
    pub(super) fn supposed(&self, ratio: f64, confidence: f64) -> Interval {
        let half = match self.runs {
            0 => SUPPOSED_APART.ln(),
            _ => quantile(confidence, WEIGHT) * (2.0 * self.usual).sqrt(),
        };
        Interval { low: ratio / half.exp(), high: ratio * half.exp() }
    }

    /// Returns whether the spread was measured, not assumed.
    pub(super) fn is_seen(&self) -> bool {
        self.runs > 0
    }

    pub(super) fn basis(&self) -> Basis {
        Basis { runs: self.runs }
    }
}

impl Between {
    fn from_runs(runs: &[Processes]) -> Option<Self> {
        let slope = slope(runs);
        let levels: Vec<Level> = runs.iter().filter_map(|run| run.level(slope)).collect();
        if levels.len() < ENOUGH_RUNS {
            return None;
        }
        let logs: Vec<f64> = levels.iter().map(|level| level.log).collect();
        let number = logs.len() as f64;
        let processes = number / levels.iter().map(|level| 1.0 / level.processes).sum::<f64>();
        Some(Self { slope, variance: variance(&logs)?, freedom: number - 1.0, processes })
    }
}

pub(super) struct Apart {
    /// The logarithm of other over base.
    log: f64,
    /// Its deviation if nothing changed.
    scale: f64,
    freedom: f64,
}

impl Apart {
    pub(super) fn ratio(&self) -> f64 {
        self.log.exp()
    }

    pub(super) fn interval(&self, confidence: f64) -> Interval {
        let half = quantile(confidence, self.freedom) * self.scale;
        Interval { low: (self.log - half).exp(), high: (self.log + half).exp() }
    }
}

fn quantile(confidence: f64, freedom: f64) -> f64 {
    student(normal_quantile(0.5 + confidence / 2.0), freedom)
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runs {
            0 => write!(
                f,
                "runs that did not alternate are assumed to differ by up to {SUPPOSED_APART} ×, since fewer than {ENOUGH_RUNS} other runs of the machine are kept"
            ),
            runs => write!(
                f,
                "runs that did not alternate are assumed to differ as much as {runs} other runs of the machine"
            ),
        }
    }
}

/// Returns whether two runs were made on the same unchanged machine without alternating: no fact differs except those that change
/// from moment to moment.
pub fn is_of_machine(one: &Run, another: &Run) -> bool {
    let is_alone = one.session.is_none() && one.environment == another.environment;
    is_alone && differences(&one.facts, &another.facts).is_empty()
}
