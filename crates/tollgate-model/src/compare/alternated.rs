//! Two environments of one session whose turns alternated, case by case.

use super::index::Index;
use super::rows::{Alternation, Comparison, Row};
use super::sides::{Side, below_limit, incomparable, joined, missing};
use super::turns::Turns;
use super::{LEAST_ALTERNATED, SAME_ALTERNATED, Verdict, counted, facts, threshold};
use crate::measurement::{Case, Measured};
use crate::run::Run;
use crate::stats::{self, Centre, FEWEST_PAIRS, Interval};

/// The share of turns that may be without a ratio: more of them are no accidents, and the median of the others is biased.
const WITHOUT: f64 = 0.05;

/// The threshold of a difference and that of sameness, where no relative difference of up to `asked` counts.
fn thresholds(asked: f64) -> [f64; 2] {
    [LEAST_ALTERNATED.max(asked), SAME_ALTERNATED.max(asked)]
}

/// Executions of two commands, while they are measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbours {
    /// other / base.
    pub ratio: f64,
    /// Of the ratio; None with too few pairs.
    pub interval: Option<Interval>,
    /// The verdict that a comparison of their runs would have.
    pub verdict: Verdict,
}

/// Executions of which those of one number were neighbours in time, compared pair by pair as [`compare`](super::compare) compares their
/// runs, as one of `rows` comparisons where no relative difference of up to `asked` counts. None without a pair of times above zero, and
/// where too many are not.
pub fn neighbours(base: &[f64], other: &[f64], rows: usize, asked: f64) -> Option<Neighbours> {
    let logs: Vec<Vec<f64>> = base
        .iter()
        .zip(other)
        .filter(|(base, other)| **base > 0.0 && **other > 0.0)
        .map(|(base, other)| vec![(other / base).ln()])
        .filter(|log| log[0].is_finite())
        .collect();
    let all = base.len().min(other.len());
    if (all - logs.len()) as f64 > WITHOUT * all as f64 {
        return None;
    }
    let Centre { estimate, interval } = stats::narrower_centre(&logs, confidence_of_each(rows))?;
    let (verdict, _) = verdict(estimate.exp(), interval, logs.len(), thresholds(asked));
    Some(Neighbours { ratio: estimate.exp(), interval: interval.map(exp), verdict })
}

/// Whether two runs are environments of one session, and process i and round r of both were neighbours in time.
pub(super) fn share_turns(base: &Run, other: &Run) -> bool {
    match (&base.session, &other.session) {
        (Some(base), Some(other)) => {
            base.id == other.id && base.place != other.place && base.paired && other.paired
        }
        _ => false,
    }
}

/// Case by case, turn with turn ("duet benchmarking": Bulej et al., arXiv 2001.05811; "randomized multiple interleaved trials":
/// Abedi & Brecht, ICPE 2017).
///
/// Of each pair of processes the medians of ln(other / base) over stretches of the turns that both kept; of these the centre with
/// its interval, see [`stats::centre`], corrected for the number of rows. A process keeps its pages and its level for life, so
/// stretches of one pair of processes may be alike, and the interval is as wide as the pairs differ.
///
/// Slower: the interval lies above 1, and the ratio itself exceeds the threshold; faster likewise. Same: the whole interval lies within
/// 1 %, or within `asked` where that is more. The threshold is the largest of 0.3 %, `asked`, and the
/// significant part of the A/A difference of either environment. The processor's speed is that of both.
pub(super) fn alternated(base: &Index<'_>, other: &Index<'_>, asked: f64) -> Comparison {
    let joined = joined(base, other);
    let [threshold, same] = thresholds(asked);
    let controls = threshold::of_controls_shown(base).max(threshold::of_controls_shown(other));
    let judge = Judge {
        base,
        other,
        confidence: confidence_of_each(joined.timed()),
        threshold: threshold.max(controls),
        same,
    };
    let row = |(case, base, other): (&Case, &Measured, &Measured)| {
        counted::row(case, base, other, asked).unwrap_or_else(|| judge.row(case, base, other))
    };
    Comparison {
        rows: joined.cases.into_iter().map(row).collect(),
        not_compared: joined.not_compared,
        pace: None,
        only_base: missing(base, other),
        only_other: missing(other, base),
        facts: facts::differences(&base.run.facts, &other.run.facts),
        is_alternated: true,
    }
}

/// The confidence of each of `rows` intervals: all of them hold together with 95 %, and each alone misses at most once in 4,000. One
/// in a thousand rows without a difference may be called different, with any number of rows; the rest is for what the intervals
/// assume and processes do not keep to.
fn confidence_of_each(rows: usize) -> f64 {
    const TOGETHER: f64 = 0.05;
    const EACH: f64 = 1.0 / 4000.0;
    1.0 - (TOGETHER / rows.max(1) as f64).min(EACH)
}

/// The common basis of all rows of a comparison.
struct Judge<'a> {
    base: &'a Index<'a>,
    other: &'a Index<'a>,
    confidence: f64,
    threshold: f64,
    /// An interval within this is the same.
    same: f64,
}

impl Judge<'_> {
    fn row(&self, case: &Case, base: &Measured, other: &Measured) -> Row {
        let turns = Turns::new(base, other);
        let base = Side::new(self.base, base);
        let other = Side::new(self.other, other);
        let comparable = incomparable(base.measured, other.measured);
        let is_comparable = comparable.is_none();
        let ratio = match comparable.or_else(|| below_limit(&base, &other)) {
            Some(why) => Err(why),
            None => self.ratio(&turns),
        };
        let (ratio, logs, verdict, why) = match ratio {
            Ok((ratio, logs)) => {
                let (verdict, why) = self.verdict(ratio, logs, turns.logs.len());
                match unequal_batches(base.measured, other.measured, ratio) {
                    Some(doubt) if verdict.is_difference() => {
                        (ratio, logs, Verdict::Inconclusive, Some(doubt))
                    }
                    _ => (ratio, logs, verdict, why),
                }
            }
            Err(why) => (1.0, None, Verdict::Inconclusive, Some(why)),
        };
        Row {
            case: case.clone(),
            base: base.median,
            other: other.median,
            ratio,
            interval: logs.map(exp),
            verdict,
            threshold: self.threshold,
            why,
            alternation: is_comparable.then(|| self.alternation(&turns, &base, &other, logs)).flatten(),
        }
    }

    /// Executions of commands may be disturbed as a whole, where turns are so short that most are not.
    fn centre(&self, pairs: &[Vec<f64>]) -> Option<Centre> {
        let is_of_command =
            |index: &Index<'_>| index.run.session.as_ref().is_some_and(|part| part.command.is_some());
        match is_of_command(self.base) && is_of_command(self.other) {
            true => stats::narrower_centre(pairs, self.confidence),
            false => stats::centre(pairs, self.confidence),
        }
    }

    /// The ratio other / base with the interval of its logarithm, or why there is none.
    fn ratio(&self, turns: &Turns) -> Result<(f64, Option<Interval>), String> {
        if turns.number == 0 {
            return Err("no turn in common".to_owned());
        }
        if turns.without_ratio as f64 > WITHOUT * turns.number as f64 {
            return Err(format!("not above zero in {} of {} turns", turns.without_ratio, turns.number));
        }
        let too_large = || "the ratio is too large or too small for a number".to_owned();
        let Centre { estimate, interval } = self.centre(&turns.logs).ok_or_else(too_large)?;
        let ratio = estimate.exp();
        let ends = interval.map_or([ratio; 2], |logs| [logs.low.exp(), logs.high.exp()]);
        if [ratio, ends[0], ends[1]].iter().all(|end| end.is_normal()) {
            Ok((ratio, interval))
        } else {
            Err(too_large())
        }
    }

    fn verdict(&self, ratio: f64, logs: Option<Interval>, pairs: usize) -> (Verdict, Option<String>) {
        verdict(ratio, logs, pairs, [self.threshold, self.same])
    }

    /// None without a turn in common.
    fn alternation(
        &self,
        turns: &Turns,
        base: &Side<'_>,
        other: &Side<'_>,
        logs: Option<Interval>,
    ) -> Option<Alternation> {
        let Centre { estimate, interval } = self.centre(&turns.differences)?;
        Some(Alternation {
            adds: estimate,
            adds_interval: interval,
            pairs: turns.differences.len(),
            turns: turns.number,
            correlation: turns.correlation,
            narrowed: logs.and_then(|logs| self.narrowed(base, other, logs)),
        })
    }

    fn narrowed(&self, base: &Side<'_>, other: &Side<'_>, paired: Interval) -> Option<f64> {
        let unpaired = stats::shift(&base.logs, &other.logs, self.confidence)?.interval?;
        let times = (unpaired.high - unpaired.low) / (paired.high - paired.low);
        times.is_finite().then_some(times)
    }
}

/// The verdict by an interval of the logarithm of the ratio, and why it is inconclusive.
fn verdict(
    ratio: f64,
    logs: Option<Interval>,
    pairs: usize,
    [threshold, same]: [f64; 2],
) -> (Verdict, Option<String>) {
    let undecided = |why| (Verdict::Inconclusive, Some(why));
    let Some(interval) = logs.map(exp) else {
        return undecided(format!("too few pairs of processes: {pairs}; an interval needs {FEWEST_PAIRS}"));
    };
    let Interval { low, high } = interval;
    let beyond = 1.0 + threshold;
    let is_different = low > 1.0 || high < 1.0;
    if low > 1.0 && ratio > beyond {
        return (Verdict::Slower, None);
    }
    if high < 1.0 && ratio < 1.0 / beyond {
        return (Verdict::Faster, None);
    }
    if low >= 1.0 / (1.0 + same) && high <= 1.0 + same {
        return (Verdict::Same, None);
    }
    let [threshold, same] = [threshold, same].map(percent);
    undecided(if is_different {
        format!(
            "the ratio is between {low:.4} and {high:.4}, and {ratio:.4} is within the threshold, {threshold}"
        )
    } else {
        format!("the ratio is between {low:.4} and {high:.4}: 1 is in it, and more than {same}")
    })
}

/// Why a small difference may be that of the batches: what a batch takes beside its operations is shared among them. Sides whose
/// costs lie far apart need other counts.
fn unequal_batches(base: &Measured, other: &Measured, ratio: f64) -> Option<String> {
    const FAR: f64 = 2.0;
    let [base, other] = [base.ops_per_sample, other.ops_per_sample];
    let is_near = (1.0 / FAR..FAR).contains(&ratio);
    (base != other && is_near)
        .then(|| format!("a batch has {base} operations in the base and {other} in the other"))
}

fn exp(logs: Interval) -> Interval {
    Interval { low: logs.low.exp(), high: logs.high.exp() }
}

/// `0.3 %`, `1 %`.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}
