//! By how much runs of one machine differ though nothing changed.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::facts::differences;
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
    /// The median of the variances of all cases.
    usual: f64,
}

#[derive(Debug, Clone, Copy)]
struct Variance {
    variance: f64,
    freedom: f64,
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
        let mut logs: HashMap<Case, Vec<f64>> = HashMap::new();
        let mut number = 0;
        for run in runs {
            number += 1;
            let timed = run
                .measured()
                .filter(|(case, measured)| !case.benchmark.starts_with(own::SUITE) && !measured.is_count());
            for (case, measured) in timed {
                let median = Level::of(measured).map(|level| level.median).filter(|median| *median > 0.0);
                if let Some(median) = median {
                    logs.entry(case.clone()).or_default().push(median.ln());
                }
            }
        }
        if number < ENOUGH {
            return Self::default();
        }
        let by_case: HashMap<Case, Variance> =
            logs.into_iter().filter_map(|(case, logs)| Some((case, Variance::of(&logs)?))).collect();
        let all: Vec<f64> = by_case.values().map(|of| of.variance).collect();
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
        let own = self.by_case.get(case).copied().unwrap_or(Variance { variance: self.usual, freedom: 0.0 });
        let freedom = WEIGHT + own.freedom;
        let variance = (WEIGHT * self.usual + own.freedom * own.variance) / freedom;
        student(normal_quantile(0.5 + confidence / 2.0), freedom) * (2.0 * variance).sqrt()
    }

    pub(super) fn basis(&self) -> Basis {
        Basis { runs: self.runs }
    }
}

impl Variance {
    fn of(logs: &[f64]) -> Option<Self> {
        if logs.len() < ENOUGH {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let freedom = logs.len() as f64 - 1.0;
        Some(Self { variance: logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / freedom, freedom })
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
