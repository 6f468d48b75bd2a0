use std::collections::HashMap;

use super::index::Index;
use super::rows::{ComparedCase, Comparison};
use super::sides::{Side, below_limit, incomparable, joined, missing};
use super::spread::{Apart, Spread};
use super::threshold::{self, Pace};
use super::{LEAST_THRESHOLD, MOST_SAME, Verdict, counted, facts, spans_threshold};
use crate::measurement::{Case, Measured};
use crate::stats::{self, Interval, confidence_of_different, confidence_of_each, exp};

/// Compares case by case over the medians of the processes, with the confidence corrected for the number of rows, see
/// [`confidence_of_different`].
///
/// If other runs of the machine show the run-to-run spread of a case, it is compared by its levels in the two runs, and the
/// interval is what runs differ by although nothing changed, see [`Spread`]. `apart` has these cases.
///
/// The interval of another row is that of the Mann-Whitney test on the logarithms of the processes' medians in the order of time,
/// see [`stats::shift`]. If the processes are too few for its confidence but enough for an error of 1 in 400, it is the widest
/// interval that they allow. It does not cover differences between runs, so it is widened by the assumed ones.
///
/// The threshold of a row is 1 % or `asked`, and at least the drift within either run; if the row's own spread between runs is
/// known, only the drift beyond chance. If no row's is known, it is also the A/A difference of either run plus the difference
/// between the two runs in the processor's speed. The A/A difference and the speed excuse twice at most. The spread of other runs
/// includes all these.
///
/// Slower and faster need more than the interval: the level of one run must not be a mode of the other. Processes of a run are
/// not as independent as the Mann-Whitney test assumes: on virtual machines a latency has levels that outlast a process, and
/// varies with the neighbours. So nearly all processes of one run must lie beyond nearly all of the other.
pub(super) fn unpaired(
    base: &Index<'_>,
    other: &Index<'_>,
    asked: f64,
    spread: &Spread,
    apart: &HashMap<&Case, Apart>,
) -> Comparison {
    let joined = joined(base, other);
    let judge = Judge {
        base,
        other,
        asked: asked.max(LEAST_THRESHOLD),
        controls: threshold::of_controls(base, None).max(threshold::of_controls(other, None)),
        pace: Pace::between(base, other),
        spread,
        apart,
        is_itself: base.run == other.run,
    };
    let rows = |confidence: f64| -> Vec<ComparedCase> {
        let row = |(case, base, other): &(&Case, &Measured, &Measured)| {
            counted::row(case, base, other, asked).unwrap_or_else(|| judge.row(case, base, other, confidence))
        };
        joined.cases.iter().map(row).collect()
    };
    let number = joined.timed();
    let confidence = if spread.is_seen() {
        judge.confidence(number, &rows(confidence_of_each(1)))
    } else {
        confidence_of_each(number)
    };
    Comparison {
        rows: rows(confidence),
        not_compared: joined.not_compared,
        pace: judge.pace.loops,
        only_base: missing(base, other),
        only_other: missing(other, base),
        facts: facts::differences(&base.run.facts, &other.run.facts),
        is_alternated: false,
        confidence,
        spread: Some(spread.basis()),
        halves: None,
    }
}

struct Judge<'a> {
    base: &'a Index<'a>,
    other: &'a Index<'a>,
    asked: f64,
    controls: f64,
    pace: Pace,
    spread: &'a Spread,
    apart: &'a HashMap<&'a Case, Apart>,
    is_itself: bool,
}

struct MeasuredRatio {
    ratio: f64,
    interval: Option<Interval>,
    threshold: f64,
}

impl Judge<'_> {
    fn confidence(&self, number: usize, rows: &[ComparedCase]) -> f64 {
        let different = rows.iter().filter(|row| row.verdict.is_difference());
        let apart: Vec<&Apart> = different.filter_map(|row| self.apart.get(&row.case)).collect();
        let is_beyond = |confidence| {
            move |apart: &&&Apart| {
                Verdict::from_interval(apart.interval(confidence), self.asked).is_difference()
            }
        };
        confidence_of_different(number, |confidence| apart.iter().filter(is_beyond(confidence)).count())
    }

    fn row(&self, case: &Case, base: &Measured, other: &Measured, confidence: f64) -> ComparedCase {
        let base = Side::new(self.base, base);
        let other = Side::new(self.other, other);
        let row = |found: MeasuredRatio, verdict, why| ComparedCase {
            case: case.clone(),
            base: base.estimate,
            other: other.estimate,
            ratio: found.ratio,
            interval: found.interval,
            verdict,
            threshold: found.threshold,
            why,
            alternation: None,
            layouts: None,
            total: None,
            processor: None,
        };
        let none = MeasuredRatio { ratio: 1.0, interval: None, threshold: self.asked };
        if self.is_itself {
            let interval = Some(Interval { low: 1.0, high: 1.0 });
            return row(MeasuredRatio { interval, ..none }, Verdict::Same, None);
        }
        if let Some(why) = refused(&base, &other) {
            return row(none, Verdict::Inconclusive, Some(why));
        }
        let apart = self.apart.get(case);
        let found = match apart {
            Some(apart) => self.by_levels(apart, &base, &other, confidence),
            None => self.by_processes(&base, &other, confidence),
        };
        let found = match found {
            Ok(found) => found,
            Err(why) => return row(none, Verdict::Inconclusive, Some(why)),
        };
        let Some(interval) = found.interval else {
            let why = format!(
                "too few processes: {} in the base and {} in the other",
                base.number(),
                other.number()
            );
            return row(found, Verdict::Inconclusive, Some(why));
        };
        let threshold = found.threshold;
        let (verdict, why) = match Verdict::by(interval, threshold, MOST_SAME.max(self.asked)) {
            Verdict::Inconclusive => (Verdict::Inconclusive, Some(spans_threshold(interval, threshold))),
            Verdict::Same => (Verdict::Same, None),
            different => match doubt(&base, &other, different, apart.is_some()) {
                Some(why) => (Verdict::Inconclusive, Some(why)),
                None => (different, None),
            },
        };
        row(found, verdict, why)
    }

    fn by_levels(
        &self,
        apart: &Apart,
        base: &Side<'_>,
        other: &Side<'_>,
        confidence: f64,
    ) -> Result<MeasuredRatio, String> {
        let (ratio, interval) = (apart.ratio(), apart.interval(confidence));
        expect_numbers(ratio, Some(interval))?;
        let drift = threshold::of_clear_drift(&base.logs).max(threshold::of_clear_drift(&other.logs));
        Ok(MeasuredRatio { ratio, interval: Some(interval), threshold: self.asked.max(drift) })
    }

    fn by_processes(
        &self,
        base: &Side<'_>,
        other: &Side<'_>,
        confidence: f64,
    ) -> Result<MeasuredRatio, String> {
        let (ratio, interval) = ratio(base, other, confidence)?;
        let interval = interval.map(|within| within.hull(self.spread.supposed(ratio, confidence)));
        Ok(MeasuredRatio { ratio, interval, threshold: self.threshold(base, other) })
    }

    /// If other runs of the machine are known, their spread is in the interval, so the threshold does not measure the machine's
    /// noise too.
    fn threshold(&self, base: &Side<'_>, other: &Side<'_>) -> f64 {
        let drift = threshold::of_drift(&base.logs).max(threshold::of_drift(&other.logs));
        if self.spread.is_seen() {
            self.asked.max(drift)
        } else {
            self.asked.max(self.controls).max(drift) + self.pace.part(base.measured)
        }
    }
}

fn refused(base: &Side<'_>, other: &Side<'_>) -> Option<String> {
    let is_zero = base.estimate.is_none() || other.estimate.is_none();
    incomparable(base.measured, other.measured)
        .or_else(|| below_limit(base, other))
        .or_else(|| is_zero.then(|| "the median of a process is not above zero".to_owned()))
}

fn ratio(base: &Side<'_>, other: &Side<'_>, confidence: f64) -> Result<(f64, Option<Interval>), String> {
    /// Least confidence of a row if the corrected one needs more processes than there are.
    const LAST_RESORT: f64 = 1.0 - 1.0 / 400.0;
    let confidences = [confidence, confidence.min(LAST_RESORT)];
    let shifts = confidences.map(|confidence| stats::shift(&base.logs, &other.logs, confidence));
    let [Some(shift), Some(last_resort)] = shifts else {
        return Err("no process has samples".to_owned());
    };
    let interval = shift.interval.or(last_resort.interval);
    let ratio = shift.estimate.exp();
    let interval = interval.map(exp);
    expect_numbers(ratio, interval)?;
    Ok((ratio, interval))
}

fn expect_numbers(ratio: f64, interval: Option<Interval>) -> Result<(), String> {
    let ends = interval.map_or([ratio; 2], |interval| [interval.low, interval.high]);
    if [ratio, ends[0], ends[1]].iter().all(|end| end.is_normal()) {
        Ok(())
    } else {
        Err("the ratio is too large or too small for a number".to_owned())
    }
}

/// Explains why a difference outside the threshold is not significant; `is_of_levels` if other runs show the run-to-run spread.
fn doubt(base: &Side<'_>, other: &Side<'_>, verdict: Verdict, is_of_levels: bool) -> Option<String> {
    /// Share of all pairs of processes that may lie the other way round.
    const OVERLAP: f64 = 0.05;
    let (faster, slower) = if verdict == Verdict::Slower { (base, other) } else { (other, base) };
    if let Some(why) = unequal_batches(faster, slower) {
        return Some(why);
    }
    if !is_of_levels && stats::share_not_above(&faster.logs, &slower.logs)? > OVERLAP {
        return Some("the processes of the two runs overlap".to_owned());
    }
    if has_mode_at(faster.measured, slower.estimate?) || has_mode_at(slower.measured, faster.estimate?) {
        return Some("one run is bimodal, with a mode at the level of the other".to_owned());
    }
    None
}

/// Explains why a difference may come from the batches: those of the slower run are far shorter, so few operations share the time
/// that a batch takes beside them. A batch of operations that became slower takes as long as before.
fn unequal_batches(faster: &Side<'_>, slower: &Side<'_>) -> Option<String> {
    const FAR: f64 = 2.0;
    let operations = [faster, slower].map(|side| side.measured.ops_per_sample);
    let times = [(faster, operations[0]), (slower, operations[1])]
        .map(|(side, operations)| side.estimate.map(|each| each * operations as f64));
    let [Some(of_faster), Some(of_slower)] = times else { return None };
    (of_faster > FAR * of_slower && operations[0] > operations[1]).then(|| {
        format!(
            "a batch has {} operations in the faster run and {} in the slower",
            operations[0], operations[1]
        )
    })
}

fn has_mode_at(measured: &Measured, estimate: f64) -> bool {
    /// Relative distance within which a sample or a mode is at the estimate.
    const NEAR: f64 = 0.05;
    const SHARE: f64 = 0.05;
    let is_near = |at: f64| (at / estimate - 1.0).abs() <= NEAR;
    let near = measured.samples.iter().filter(|&&sample| is_near(sample)).count();
    if (near as f64) < SHARE * measured.samples.len() as f64 {
        return false;
    }
    let modes = stats::modes(&measured.samples);
    modes.len() > 1 && modes.iter().any(|mode| is_near(mode.at))
}
