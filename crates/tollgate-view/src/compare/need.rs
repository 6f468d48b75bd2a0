//! The measurement that would decide an inconclusive row.

use std::collections::BTreeSet;

use tollgate_model::compare::{MOST_SAME, Verdict, margin};
use tollgate_model::stats::Interval;
use tollgate_model::versus::BENCHES;
use tollgate_model::{Case, Run, own};
use tollgate_output::figures;

use super::alternating;
use crate::comparison::{ComparedRow, Comparison};

pub(crate) struct Need {
    /// The reason: `±12 %`.
    pub found: String,
    /// Half of the width of its interval, as a share of the ratio.
    pub half: Option<f64>,
    suite: Option<String>,
    factor: f64,
}

impl Need {
    pub fn of(comparison: &Comparison, row: &ComparedRow) -> Option<Self> {
        /// Processes with which every interval exists: 12 choose 6 is 924, and 1 in 400 is needed on two sides.
        const ENOUGH: f64 = 6.0;
        let result = &row.result;
        if result.verdict != Verdict::Inconclusive {
            return None;
        }
        let of_suite = |found: String, factor: f64| {
            // A benchmark of another version cannot be measured.
            let is_known =
                row.base.group == BENCHES || tollgate_suites::find(&row.case().benchmark).is_some();
            let suite = is_known.then(|| suite(row.case()).to_owned());
            Self { found, half: None, suite, factor }
        };
        let without = || {
            let found = result.why.clone().unwrap_or_default();
            Self { found, half: None, suite: None, factor: 0.0 }
        };
        Some(match result.interval {
            // The interval is clear of the threshold, but the samples contradict it: time changes nothing.
            Some(interval) if Verdict::from_interval(interval, result.threshold).is_difference() => without(),
            Some(interval) => {
                let half = half_of(interval);
                // The width of an interval falls with the square root of the time.
                let widest = match result.alternation {
                    Some(_) => margin(comparison.asked),
                    None => result.threshold.min(MOST_SAME),
                };
                let factor = (half / widest).powi(2);
                Self { half: Some(half), ..of_suite(format!("±{}", figures::percent(half)), factor) }
            }
            // A count: `why` says how it varies, and more time does not make more of its batches equal.
            None if row.base.is_count() && row.other.is_count() => without(),
            None if row.ratio().is_some() && result.alternation.is_some() => {
                of_suite(result.why.clone().unwrap_or_default(), ENOUGH)
            }
            None if row.ratio().is_some() => {
                let [base, other] = [row.base, row.other].map(|side| side.processes.len());
                let factor = ENOUGH / base.min(other).max(1) as f64;
                of_suite(format!("{base} and {other} processes are too few"), factor)
            }
            None => without(),
        })
    }
}

pub(crate) fn half_of(interval: Interval) -> f64 {
    (interval.high / interval.low).sqrt() - 1.0
}

fn suite(case: &Case) -> &str {
    case.benchmark.split('/').next().unwrap_or_default()
}

/// The command that measures the suites of these rows for long enough. `None` if time decides none of them.
pub(crate) fn command<'a>(comparison: &Comparison, needs: impl Iterator<Item = &'a Need>) -> Option<String> {
    // Runs that did not alternate differ by more than their own intervals, however long they are.
    if !comparison.is_alternated {
        return None;
    }
    let mut suites = BTreeSet::new();
    let mut factor: f64 = 2.0;
    for need in needs {
        if let Some(suite) = &need.suite {
            suites.insert(suite.as_str());
            factor = factor.max(need.factor);
        }
    }
    let share = share(comparison.base).max(share(comparison.other));
    let time = rounded(share * suites.len() as f64 * factor);
    let suites: Vec<&str> = suites.into_iter().collect();
    if comparison.is_of_builds() {
        return (!suites.is_empty()).then(|| format!("--time {time}"));
    }
    let sides = alternating::options(comparison.base, comparison.other);
    let sides = sides.map(|options| format!(" {options}")).unwrap_or_default();
    (!suites.is_empty()).then(|| format!("tollgate run {}{sides} --time {time}", suites.join(" ")))
}

fn share(run: &Run) -> f64 {
    let cases = run.measured().map(|(case, _)| case);
    let suites: BTreeSet<&str> = cases.filter(|case| !own::is_own(&case.benchmark)).map(suite).collect();
    run.seconds().unwrap_or(0.0) / suites.len().max(1) as f64
}

/// A time for `--time` of at least this many seconds, and at most an hour.
pub(crate) fn rounded(seconds: f64) -> &'static str {
    const STEPS: [(f64, &str); 7] = [
        (20.0, "20s"),
        (60.0, "1m"),
        (120.0, "2m"),
        (300.0, "5m"),
        (600.0, "10m"),
        (1200.0, "20m"),
        (1800.0, "30m"),
    ];
    STEPS.iter().find(|(step, _)| seconds <= *step).map_or("1h", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_round() {
        assert_eq!([0.0, 61.0, 301.0, 1e9].map(rounded), ["20s", "2m", "10m", "1h"]);
    }
}
