//! Two runs that were not alternated, case by case: unpaired.

use super::index::Index;
use super::margins::confidence_of_each;
use super::rows::{Comparison, Row};
use super::sides::{Side, below_limit, incomparable, joined, missing};
use super::spread::Spread;
use super::threshold::{self, Pace};
use super::{LEAST_THRESHOLD, MOST_SAME, Verdict, counted, facts, spans_threshold};
use crate::measurement::{Case, Measured};
use crate::stats::{self, Interval};

/// Case by case over the medians of the processes.
///
/// The interval of a row is that of the Mann-Whitney test on the logarithms of the processes' medians in the order of
/// time, see [`stats::shift`], corrected for the number of rows by Bonferroni's inequality. Where the processes are too
/// few for that correction but enough for an error of 1 in 400, the widest interval that they allow is taken. It knows nothing of what
/// differs between runs, so it is widened to what runs of the machine differ by though nothing changed, see [`Spread`].
///
/// The threshold of a row is the largest of 1 %, `asked`, the A/A difference of either run and the drift within either run;
/// plus the difference between the two runs in the processor's speed. The A/A difference and the speed excuse twice at most. Where the
/// spread of other runs is known, both are in it and are no part of the threshold.
///
/// Slower and faster need more than the interval, because the processes of a run are not as independent as the
/// test assumes: on virtual machines a latency has levels that outlast a process, and varies with the neighbours.
/// So nearly all processes of one run must lie beyond nearly all of the other, and the level of one run must not
/// be a mode of the other.
pub(super) fn unpaired(base: &Index<'_>, other: &Index<'_>, asked: f64, spread: &Spread) -> Comparison {
    let joined = joined(base, other);
    let judge = Judge {
        base,
        other,
        asked: asked.max(LEAST_THRESHOLD),
        confidence: confidence_of_each(joined.timed()),
        controls: threshold::of_controls(base, None).max(threshold::of_controls(other, None)),
        pace: Pace::between(base, other),
        spread,
        is_itself: base.run == other.run,
    };
    let row = |(case, base, other): (&Case, &Measured, &Measured)| {
        counted::row(case, base, other, asked).unwrap_or_else(|| judge.row(case, base, other))
    };
    Comparison {
        rows: joined.cases.into_iter().map(row).collect(),
        not_compared: joined.not_compared,
        pace: judge.pace.loops,
        only_base: missing(base, other),
        only_other: missing(other, base),
        facts: facts::differences(&base.run.facts, &other.run.facts),
        is_alternated: false,
        confidence: judge.confidence,
        spread: Some(spread.basis()),
        halves: None,
    }
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
    spread: &'a Spread,
    /// Whether the two are one run, which is the same as itself.
    is_itself: bool,
}

impl Judge<'_> {
    fn row(&self, case: &Case, base: &Measured, other: &Measured) -> Row {
        let base = Side::new(self.base, base);
        let other = Side::new(self.other, other);
        let threshold = self.threshold(&base, &other);
        let row = |ratio, interval, verdict, why| Row {
            case: case.clone(),
            base: base.estimate,
            other: other.estimate,
            ratio,
            interval,
            verdict,
            threshold,
            why,
            alternation: None,
            total: None,
        };
        if self.is_itself {
            return row(1.0, Some(Interval { low: 1.0, high: 1.0 }), Verdict::Same, None);
        }
        let (ratio, interval) = match self.ratio(&base, &other) {
            Ok(found) => found,
            Err(why) => return row(1.0, None, Verdict::Inconclusive, Some(why)),
        };
        let between = self.between(case, ratio);
        let interval = interval.map(|within| within.hull(between));
        // Runs that were seen to lie so far apart had as few processes.
        let fewest = base.logs.len().min(other.logs.len());
        let Some(interval) = interval.or_else(|| self.spread.is_seen_of(case, fewest).then_some(between))
        else {
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

    /// By what the ratio of two runs may differ from that of others.
    fn between(&self, case: &Case, ratio: f64) -> Interval {
        let apart = self.spread.apart(case, self.confidence).exp();
        Interval { low: ratio / apart, high: ratio * apart }
    }

    /// What other runs of the machine show is in the interval: the threshold is then no measure of the machine's noise too.
    fn threshold(&self, base: &Side<'_>, other: &Side<'_>) -> f64 {
        let drift = threshold::of_drift(&base.logs).max(threshold::of_drift(&other.logs));
        match self.spread.is_seen() {
            true => self.asked.max(drift),
            false => self.asked.max(self.controls).max(drift) + self.pace.of(base.measured),
        }
    }

    /// The ratio other / base with its interval, or why there is none.
    fn ratio(&self, base: &Side<'_>, other: &Side<'_>) -> Result<(f64, Option<Interval>), String> {
        /// The least confidence of a row where the corrected one needs more processes than there are.
        const LAST_RESORT: f64 = 1.0 - 1.0 / 400.0;
        if let Some(why) = incomparable(base.measured, other.measured) {
            return Err(why);
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
