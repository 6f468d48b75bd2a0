//! By how much runs of one machine differ though nothing changed.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::facts::differences;
use crate::disturbance::Disturbance;
use crate::estimate::Level;
use crate::measurement::Case;
use crate::own;
use crate::run::Run;
use crate::stats::{self, normal_quantile, student};

/// So many runs of a machine show how far its runs lie apart.
const ENOUGH: usize = 3;

/// Where they are fewer: two runs of a machine lie up to twice apart.
const PRIOR: f64 = 2.0;

/// How far runs lie apart, case by case: the variances of the logarithms of their medians.
///
/// A case has few runs, and its variance counts together with that of the other cases, as if these were four runs more: the moderated
/// t of Smyth, "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray Experiments" (2004).
#[derive(Debug, Clone, Default)]
pub struct Spread {
    runs: usize,
    by_case: HashMap<Case, Variance>,
    /// The median of the variances of all cases but the program's own.
    usual: f64,
}

#[derive(Debug, Clone, Copy)]
struct Variance {
    variance: f64,
    freedom: f64,
    /// Of a run, in the middle.
    processes: f64,
}

/// What a [`Spread`] rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The kept runs of the machine; 0 where they are too few, and runs are supposed to lie up to twice apart.
    pub runs: usize,
}

/// The weight of the other cases, in runs.
const WEIGHT: f64 = 4.0;

impl Spread {
    /// Of runs of one machine, none of which is compared. What is supposed where they are fewer than three.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut levels: HashMap<Case, Vec<(f64, f64)>> = HashMap::new();
        let mut number = 0;
        for run in runs {
            number += 1;
            let disturbed = Disturbance::of(run);
            let run = disturbed.left_out(run);
            for (case, measured) in run.measured().filter(|(_, measured)| !measured.is_count()) {
                let median = Level::of(measured).map(|level| level.median).filter(|median| *median > 0.0);
                if let Some(median) = median {
                    let processes = measured.by_process().count() as f64;
                    levels.entry(case.clone()).or_default().push((median.ln(), processes));
                }
            }
        }
        if number < ENOUGH {
            return Self::default();
        }
        let by_case: HashMap<Case, Variance> =
            levels.into_iter().filter_map(|(case, levels)| Some((case, Variance::of(&levels)?))).collect();
        let others = by_case.iter().filter(|(case, _)| !case.benchmark.starts_with(own::SUITE));
        let all: Vec<f64> = others.map(|(_, of)| of.variance).collect();
        match stats::median(&all) {
            Some(usual) => Self { runs: number, by_case, usual },
            None => Self::default(),
        }
    }

    /// The logarithm of the ratio that two runs differ by at most with this confidence.
    pub(super) fn apart(&self, case: &Case, confidence: f64) -> f64 {
        if self.runs == 0 {
            return PRIOR.ln();
        }
        let own = self.by_case.get(case);
        let own_freedom = own.map_or(0.0, |own| own.freedom);
        let freedom = WEIGHT + own_freedom;
        let variance = (WEIGHT * self.usual + own_freedom * own.map_or(0.0, |own| own.variance)) / freedom;
        student(normal_quantile(0.5 + confidence / 2.0), freedom) * (2.0 * variance).sqrt()
    }

    /// Whether it was seen, and is not supposed.
    pub(super) fn is_seen(&self) -> bool {
        self.runs > 0
    }

    /// Whether it was seen of this case, in runs of no more processes.
    pub(super) fn is_seen_of(&self, case: &Case, processes: usize) -> bool {
        self.by_case.get(case).is_some_and(|own| own.processes <= processes as f64)
    }

    pub(super) fn basis(&self) -> Basis {
        Basis { runs: self.runs }
    }
}

impl Variance {
    /// Of the logarithms of medians, each with the number of processes that it is of.
    fn of(levels: &[(f64, f64)]) -> Option<Self> {
        if levels.len() < ENOUGH {
            return None;
        }
        let (logs, processes): (Vec<f64>, Vec<f64>) = levels.iter().copied().unzip();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let freedom = logs.len() as f64 - 1.0;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / freedom;
        Some(Self { variance, freedom, processes: stats::median(&processes)? })
    }
}

/// `runs that took no turns are supposed to lie as far apart as 12 others of the machine`.
impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runs {
            0 => write!(
                f,
                "runs that took no turns are supposed to lie up to {PRIOR} × apart, as fewer than {ENOUGH} others of the machine are kept"
            ),
            runs => write!(
                f,
                "runs that took no turns are supposed to lie as far apart as {runs} others of the machine"
            ),
        }
    }
}

/// Whether two runs were made on one machine as it was, and not in turns with others: no fact differs but those that change by the
/// moment.
pub fn is_of_machine(one: &Run, another: &Run) -> bool {
    let is_alone = one.session.is_none() && one.environment == another.environment;
    is_alone && differences(&one.facts, &another.facts).is_empty()
}
