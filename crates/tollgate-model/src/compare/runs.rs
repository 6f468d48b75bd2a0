//! Two runs side by side.

use serde::{Deserialize, Serialize};

use super::facts::{self, FactDifference};
use super::index::Index;
use super::threshold::{self, Pace};
use super::{LEAST_THRESHOLD, Verdict, confidence_of_each, figure, reaches_across};
use crate::estimate::Level;
use crate::measurement::{Case, Measured, Outcome, Unit};
use crate::own;
use crate::run::Run;
use crate::stats::{self, Interval};

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What both measured, in the order of the base. The engine's own `bench/` cases are not among them.
    pub rows: Vec<Row>,
    /// What only the base measured, and why the other has none: `not measured`, `skipped: …`, `failed: …`.
    pub only_base: Vec<(Case, String)>,
    /// What only the other measured, and why the base has none.
    pub only_other: Vec<(Case, String)>,
    /// What a turn of the empty loop took in the base and in the other, in ns: the pace of the processor, by
    /// whose difference every floor rises. None where either did not measure it.
    pub pace: Option<(f64, f64)>,
    /// What differs between the places; not the facts of a moment, such as the load.
    pub facts: Vec<FactDifference>,
}

/// One case measured in two runs. Every figure is finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub case: Case,
    /// Its price in the base, as [`crate::estimate::Estimate::median`]; None where it cannot be told from nothing.
    pub base: Option<f64>,
    /// Its price in the other, likewise.
    pub other: Option<f64>,
    /// other / base: the Hodges-Lehmann estimate over the logarithms of the processes' medians, so it need not
    /// be the ratio of the two prices to the last digit. 1 where there is no ratio: a price is below the
    /// resolution or not above zero, or the two cannot be held together; `interval` is None then.
    pub ratio: f64,
    /// Of the ratio; corrected for the number of rows. None: too few processes, or no ratio.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
    /// The relative difference below which nothing is called in this row.
    pub threshold: f64,
    /// Why it cannot be told; only then.
    pub why: Option<String>,
}

/// Two runs, unpaired: case by case over the medians of their processes.
///
/// The interval of a row is that of the Mann-Whitney test on the logarithms of the processes' medians, see
/// [`stats::shift`], corrected for the number of rows by Bonferroni's inequality. Where the processes are too
/// few for that correction but enough for an error of 1 in 400, the widest interval that they give is taken.
///
/// The floor of a row is the largest of 1 %, what the controls of either run differ by, and how far either run
/// drifts while it lasts; plus the difference between the two runs in the pace of the processor itself.
///
/// Slower and faster ask for more than the interval, since the processes of a run are not as independent as the
/// test assumes: on virtual machines a price has levels that outlast a process, and rises and falls with the
/// neighbours. So nearly all processes of one run must lie beyond nearly all of the other, and the
/// level of one must not be one that the other was seen at.
///
/// Where a price cannot be told from nothing in either run, or in both, nothing is said of their ratio: two
/// prices of which only an upper bound is known may still differ by any factor.
pub fn compare(base: &Run, other: &Run) -> Comparison {
    let (base, other) = (Index::new(base), Index::new(other));
    let joined: Vec<_> = subjects(&base)
        .filter_map(|(case, measured)| Some((case, measured, other.measured_case(case)?)))
        .collect();
    let judge = Judge {
        base: &base,
        other: &other,
        confidence: confidence_of_each(joined.len()),
        controls: threshold::of_controls(&base, None).max(threshold::of_controls(&other, None)),
        pace: Pace::between(&base, &other),
    };
    Comparison {
        rows: joined.into_iter().map(|(case, base, other)| judge.row(case, base, other)).collect(),
        pace: judge.pace.turns,
        only_base: missing(&base, &other),
        only_other: missing(&other, &base),
        facts: facts::differences(&base.run.facts, &other.run.facts),
    }
}

fn subjects<'a>(index: &Index<'a>) -> impl Iterator<Item = (&'a Case, &'a Measured)> + use<'a> {
    index.measured().filter(|(case, _)| !case.benchmark.starts_with(own::SUITE))
}

/// What `one` measured and `another` did not, and why.
fn missing(one: &Index<'_>, another: &Index<'_>) -> Vec<(Case, String)> {
    let why = |case: &Case| match another.outcome(case) {
        None => Some("not measured".to_owned()),
        Some(Outcome::Skipped { why }) => Some(format!("skipped: {why}")),
        Some(Outcome::Failed { error }) => Some(format!("failed: {error}")),
        Some(Outcome::Measured(_)) => None,
    };
    subjects(one).filter_map(|(case, _)| Some((case.clone(), why(case)?))).collect()
}

/// What all rows of a comparison are judged by.
struct Judge<'a> {
    base: &'a Index<'a>,
    other: &'a Index<'a>,
    confidence: f64,
    controls: f64,
    pace: Pace,
}

impl Judge<'_> {
    fn row(&self, case: &Case, base: &Measured, other: &Measured) -> Row {
        let base = Side::new(self.base, base);
        let other = Side::new(self.other, other);
        let drift = threshold::of_drift(&base.logs).max(threshold::of_drift(&other.logs));
        let threshold = LEAST_THRESHOLD.max(self.controls).max(drift) + self.pace.of(base.measured);
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
            let (base, other) = (base.logs.len(), other.logs.len());
            let why = format!("too few processes: {base} in the base and {other} in the other");
            return row(ratio, None, Verdict::Inconclusive, Some(why));
        };
        let (verdict, why) = match Verdict::of(interval, threshold) {
            Verdict::Inconclusive => (Verdict::Inconclusive, Some(reaches_across(interval, threshold))),
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
        /// The most that a row may err where the correction asks for more processes than there are.
        const LAST_RESORT: f64 = 1.0 - 1.0 / 400.0;
        if base.measured.unit != other.measured.unit {
            return Err(format!("in {} there, in {} here", base.measured.unit, other.measured.unit));
        }
        // An instruction is one whoever counts it; a time is not.
        let is_count = base.measured.unit == Unit::Instructions;
        if base.measured.provenance != other.measured.provenance && !is_count {
            return Err("not executed by the same kind of machine".to_owned());
        }
        if let Some(why) = below_resolution(base, other) {
            return Err(why);
        }
        if base.estimate.is_none() || other.estimate.is_none() {
            return Err("a process found a price that is not above zero".to_owned());
        }
        let confidences = [self.confidence, self.confidence.min(LAST_RESORT)];
        let shifts = confidences.map(|confidence| stats::shift(&base.logs, &other.logs, confidence));
        let [Some(shift), Some(last_resort)] = shifts else {
            return Err("there is nothing to compare".to_owned());
        };
        let interval = shift.interval.or(last_resort.interval);
        let ratio = shift.estimate.exp();
        let interval = interval.map(|logs| Interval { low: logs.low.exp(), high: logs.high.exp() });
        let ends = interval.map_or([ratio; 2], |interval| [interval.low, interval.high]);
        if [ratio, ends[0], ends[1]].iter().all(|end| end.is_normal()) {
            Ok((ratio, interval))
        } else {
            Err("the ratio is too large or too small to write down".to_owned())
        }
    }
}

/// A case in one of the runs.
struct Side<'a> {
    measured: &'a Measured,
    /// None where it is below the resolution, or where a process's median is not above zero.
    estimate: Option<f64>,
    /// What the price is below where it cannot be told from nothing.
    below: Option<f64>,
    /// Natural logarithms of the processes' medians; empty where `price` is None.
    logs: Vec<f64>,
}

impl<'a> Side<'a> {
    fn new(index: &Index<'_>, measured: &'a Measured) -> Self {
        let nothing = Self { measured, estimate: None, below: None, logs: Vec::new() };
        let Some(level) = Level::of(measured) else { return nothing };
        let below = index.resolution(measured).and_then(|resolution| level.below(resolution));
        if below.is_some() || level.process_medians.iter().any(|&median| median <= 0.0) {
            return Self { below, ..nothing };
        }
        let logs = level.process_medians.iter().map(|median| median.ln()).collect();
        Self { estimate: Some(level.median), logs, ..nothing }
    }
}

fn below_resolution(base: &Side<'_>, other: &Side<'_>) -> Option<String> {
    let unit = base.measured.unit;
    let under = |bound: f64| format!("under {} {unit}", figure(bound));
    match (base.below, other.below) {
        (Some(base), Some(other)) => {
            let (base, other) = (figure(base), figure(other));
            Some(format!("below the resolution in both: under {base} and under {other} {unit}"))
        }
        (Some(bound), None) => Some(format!("below the resolution in the base: {}", under(bound))),
        (None, Some(bound)) => Some(format!("below the resolution in the other: {}", under(bound))),
        (None, None) => None,
    }
}

/// Why a difference that the interval shows is not called.
fn doubt(base: &Side<'_>, other: &Side<'_>, verdict: Verdict) -> Option<String> {
    /// How many of all pairs of processes may lie the other way round.
    const OVERLAP: f64 = 0.05;
    let (cheaper, dearer) = if verdict == Verdict::Slower { (base, other) } else { (other, base) };
    if stats::share_not_above(&cheaper.logs, &dearer.logs)? > OVERLAP {
        return Some("the processes of the two runs overlap".to_owned());
    }
    if visits(cheaper.measured, dearer.estimate?) || visits(dearer.measured, cheaper.estimate?) {
        return Some("the price has levels, and one run was also seen at the level of the other".to_owned());
    }
    None
}

/// Whether the samples are bimodal and one of their levels is `price`.
fn visits(measured: &Measured, estimate: f64) -> bool {
    /// Relative distance within which a sample or a level is at a price.
    const NEAR: f64 = 0.05;
    /// Fewer samples of all are no level.
    const SHARE: f64 = 0.05;
    let is_near = |at: f64| (at / estimate - 1.0).abs() <= NEAR;
    let near = measured.samples.iter().filter(|&&sample| is_near(sample)).count();
    if (near as f64) < SHARE * measured.samples.len() as f64 {
        return false;
    }
    let modes = stats::modes(&measured.samples);
    modes.len() > 1 && modes.iter().any(|mode| is_near(mode.at))
}
