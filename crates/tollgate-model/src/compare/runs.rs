//! Two runs, case by case.

use serde::{Deserialize, Serialize};

use super::facts::{self, FactDifference};
use super::index::Index;
use super::threshold::{self, Pace};
use super::{LEAST_THRESHOLD, MOST_SAME, Verdict, confidence_of_each, figure, spans_threshold};
use crate::estimate::Level;
use crate::measurement::{Case, Measured, Unit};
use crate::own;
use crate::run::Run;
use crate::stats::{self, Interval};

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The cases that both measured, in the order of the base, without the engine's own `bench/` cases.
    pub rows: Vec<Row>,
    /// The cases that only the base measured, and why the other has none: `not measured`, `skipped: …`, `failed: …`.
    pub only_base: Vec<(Case, String)>,
    /// The cases that only the other measured, and why the base has none.
    pub only_other: Vec<(Case, String)>,
    /// The loop overhead in the base and in the other, in ns. It shows the processor's speed, whose difference is part of
    /// every threshold. None where either did not measure it.
    pub pace: Option<(f64, f64)>,
    /// The facts that differ between the environments, without volatile ones such as the load.
    pub facts: Vec<FactDifference>,
}

/// One case measured in two runs. Every figure is finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// Its estimate in the base, as [`crate::estimate::Estimate::median`]; None below the detection limit.
    pub base: Option<f64>,
    /// Its estimate in the other, likewise.
    pub other: Option<f64>,
    /// other / base: the Hodges-Lehmann estimate over the logarithms of the processes' medians, so it need not
    /// be the ratio of the two estimates to the last digit. 1 where there is no ratio: a value is below the
    /// detection limit or not above zero, or the two are not comparable; `interval` is None then.
    pub ratio: f64,
    /// Of the ratio; corrected for the number of rows. None: too few processes, or no ratio.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
    /// The noise threshold of this row, a relative difference.
    pub threshold: f64,
    /// Why it is inconclusive; None otherwise.
    pub why: Option<String>,
}

/// Compares two runs, unpaired: case by case over the medians of their processes.
///
/// The interval of a row is that of the Mann-Whitney test on the logarithms of the processes' medians in the order of
/// time, see [`stats::shift`], corrected for the number of rows by Bonferroni's inequality. Where the processes are too
/// few for that correction but enough for an error of 1 in 400, the widest interval that they allow is taken.
///
/// The threshold of a row is the largest of 1 %, the A/A difference of either run and the drift within either run;
/// plus the difference between the two runs in the processor's speed. The A/A difference and the speed excuse twice at most.
///
/// Slower and faster need more than the interval, because the processes of a run are not as independent as the
/// test assumes: on virtual machines a latency has levels that outlast a process, and varies with the neighbours.
/// So nearly all processes of one run must lie beyond nearly all of the other, and the level of one run must not
/// be a mode of the other.
///
/// Where a value is below the detection limit in either run there is no ratio: values of which only an upper bound
/// is known may differ by any factor.
pub fn compare(base: &Run, other: &Run) -> Comparison {
    compare_above(base, other, LEAST_THRESHOLD)
}

/// The same where no relative difference of up to `asked` counts: no row's threshold is lower, and a row whose whole interval lies
/// within `asked` is the same. [`LEAST_THRESHOLD`] stays the least.
pub fn compare_above(base: &Run, other: &Run, asked: f64) -> Comparison {
    let (base, other) = (Index::new(base), Index::new(other));
    let joined: Vec<_> = subjects(&base)
        .filter_map(|(case, measured)| Some((case, measured, other.measured_case(case)?)))
        .collect();
    let judge = Judge {
        base: &base,
        other: &other,
        asked: asked.max(LEAST_THRESHOLD),
        confidence: confidence_of_each(joined.len()),
        controls: threshold::of_controls(&base, None).max(threshold::of_controls(&other, None)),
        pace: Pace::between(&base, &other),
    };
    Comparison {
        rows: joined.into_iter().map(|(case, base, other)| judge.row(case, base, other)).collect(),
        pace: judge.pace.loops,
        only_base: missing(&base, &other),
        only_other: missing(&other, &base),
        facts: facts::differences(&base.run.facts, &other.run.facts),
    }
}

fn subjects<'a>(index: &Index<'a>) -> impl Iterator<Item = (&'a Case, &'a Measured)> + use<'a> {
    index.run.measured().filter(|(case, _)| !case.benchmark.starts_with(own::SUITE))
}

/// The cases that `one` measured and `another` did not, and why.
fn missing(one: &Index<'_>, another: &Index<'_>) -> Vec<(Case, String)> {
    let why = |case: &Case| match another.outcome(case) {
        None => Some("not measured".to_owned()),
        Some(outcome) => Some(format!("{}: {}", outcome.status().name(), outcome.why()?)),
    };
    subjects(one).filter_map(|(case, _)| Some((case.clone(), why(case)?))).collect()
}

/// The common basis of all rows of a comparison.
struct Judge<'a> {
    base: &'a Index<'a>,
    other: &'a Index<'a>,
    /// The least threshold.
    asked: f64,
    confidence: f64,
    controls: f64,
    pace: Pace,
}

impl Judge<'_> {
    fn row(&self, case: &Case, base: &Measured, other: &Measured) -> Row {
        let base = Side::new(self.base, base);
        let other = Side::new(self.other, other);
        let drift = threshold::of_drift(&base.logs).max(threshold::of_drift(&other.logs));
        let threshold = self.asked.max(self.controls).max(drift) + self.pace.of(base.measured);
        let row = |ratio, interval, verdict, why| Row {
            case: case.clone(),
            base: base.estimate,
            other: other.estimate,
            ratio,
            interval,
            verdict,
            threshold,
            why,
        };
        let (ratio, interval) = match self.ratio(&base, &other) {
            Ok(found) => found,
            Err(why) => return row(1.0, None, Verdict::Inconclusive, Some(why)),
        };
        let Some(interval) = interval else {
            let why = format!(
                "too few processes: {} in the base and {} in the other",
                base.number(),
                other.number()
            );
            return row(ratio, None, Verdict::Inconclusive, Some(why));
        };
        let (verdict, why) = match Verdict::by(interval, threshold, MOST_SAME.max(self.asked)) {
            Verdict::Inconclusive => (Verdict::Inconclusive, Some(spans_threshold(interval, threshold))),
            Verdict::Same => (Verdict::Same, None),
            different => match doubt(&base, &other, different) {
                Some(why) => (Verdict::Inconclusive, Some(why)),
                None => (different, None),
            },
        };
        row(ratio, Some(interval), verdict, why)
    }

    /// The ratio other / base with its interval, or why there is none.
    fn ratio(&self, base: &Side<'_>, other: &Side<'_>) -> Result<(f64, Option<Interval>), String> {
        /// The least confidence of a row where the corrected one needs more processes than there are.
        const LAST_RESORT: f64 = 1.0 - 1.0 / 400.0;
        if base.measured.unit != other.measured.unit {
            return Err(format!(
                "in {} in the base, in {} in the other",
                base.measured.unit, other.measured.unit
            ));
        }
        // Counts of instructions are comparable across provenances; times are not.
        let is_count = base.measured.unit == Unit::Instructions;
        if base.measured.provenance != other.measured.provenance && !is_count {
            return Err("executed by different kinds of machines".to_owned());
        }
        if let Some(why) = below_limit(base, other) {
            return Err(why);
        }
        if base.estimate.is_none() || other.estimate.is_none() {
            return Err("the median of a process is not above zero".to_owned());
        }
        let confidences = [self.confidence, self.confidence.min(LAST_RESORT)];
        let shifts = confidences.map(|confidence| stats::shift(&base.logs, &other.logs, confidence));
        let [Some(shift), Some(last_resort)] = shifts else {
            return Err("no process has samples".to_owned());
        };
        let interval = shift.interval.or(last_resort.interval);
        let ratio = shift.estimate.exp();
        let interval = interval.map(|logs| Interval { low: logs.low.exp(), high: logs.high.exp() });
        let ends = interval.map_or([ratio; 2], |interval| [interval.low, interval.high]);
        if [ratio, ends[0], ends[1]].iter().all(|end| end.is_normal()) {
            Ok((ratio, interval))
        } else {
            Err("the ratio is too large or too small for a number".to_owned())
        }
    }
}

/// A case in one of the runs.
struct Side<'a> {
    measured: &'a Measured,
    /// None where it is below the detection limit, or where a process's median is not above zero.
    estimate: Option<f64>,
    /// The upper bound of a value below the detection limit.
    bound: Option<f64>,
    /// Natural logarithms of the processes' medians; empty where `estimate` is None.
    logs: Vec<f64>,
}

impl<'a> Side<'a> {
    fn new(index: &Index<'_>, measured: &'a Measured) -> Self {
        let none = Self { measured, estimate: None, bound: None, logs: Vec::new() };
        let Some(level) = Level::of(measured) else { return none };
        let bound = index.detection_limit(measured).and_then(|limit| level.bound(limit));
        if bound.is_some() || level.process_medians.iter().any(|&median| median <= 0.0) {
            return Self { bound, ..none };
        }
        let logs = level.process_medians.iter().map(|median| median.ln()).collect();
        Self { estimate: Some(level.median), logs, ..none }
    }
}

impl Side<'_> {
    /// The number of its processes, and how many independent ones they are worth.
    fn number(&self) -> String {
        let effective = stats::effective_number(&self.logs);
        match self.logs.len() {
            all if effective as usize == all => all.to_string(),
            all => format!("{all} (worth {effective:.0})"),
        }
    }
}

fn below_limit(base: &Side<'_>, other: &Side<'_>) -> Option<String> {
    let unit = base.measured.unit;
    let below = |bound: f64| format!("< {} {unit}", figure(bound));
    Some(match (base.bound, other.bound) {
        (Some(base), Some(other)) => {
            format!("below the detection limit in both: {} and {}", below(base), below(other))
        }
        (Some(bound), None) => format!("below the detection limit in the base: {}", below(bound)),
        (None, Some(bound)) => format!("below the detection limit in the other: {}", below(bound)),
        (None, None) => return None,
    })
}

/// Why a difference outside the threshold is not significant.
fn doubt(base: &Side<'_>, other: &Side<'_>, verdict: Verdict) -> Option<String> {
    /// The share of all pairs of processes that may lie the other way round.
    const OVERLAP: f64 = 0.05;
    let (faster, slower) = if verdict == Verdict::Slower { (base, other) } else { (other, base) };
    if stats::share_not_above(&faster.logs, &slower.logs)? > OVERLAP {
        return Some("the processes of the two runs overlap".to_owned());
    }
    if has_mode_at(faster.measured, slower.estimate?) || has_mode_at(slower.measured, faster.estimate?) {
        return Some("one run is bimodal, with a mode at the level of the other".to_owned());
    }
    None
}

/// Whether the samples are bimodal and one of their modes is `estimate`.
fn has_mode_at(measured: &Measured, estimate: f64) -> bool {
    /// Relative distance within which a sample or a mode is at the estimate.
    const NEAR: f64 = 0.05;
    /// A smaller share of all samples is no mode.
    const SHARE: f64 = 0.05;
    let is_near = |at: f64| (at / estimate - 1.0).abs() <= NEAR;
    let near = measured.samples.iter().filter(|&&sample| is_near(sample)).count();
    if (near as f64) < SHARE * measured.samples.len() as f64 {
        return false;
    }
    let modes = stats::modes(&measured.samples);
    modes.len() > 1 && modes.iter().any(|mode| is_near(mode.at))
}
