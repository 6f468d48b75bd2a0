use serde::{Deserialize, Serialize};

use super::index::Index;
use super::rounds::{Rounds, finite};
use super::{LEAST_THRESHOLD, Verdict, confidence_of_each, counted, figure, spans_threshold, threshold};
use crate::estimate::Level;
use crate::measurement::{Case, Measured};
use crate::own::CONTROL;
use crate::run::Run;
use crate::stats::Interval;

/// A case compared with another of the same rounds. Every figure is finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The case that it is compared with.
    pub baseline: Case,
    /// The median of case / baseline over the rounds. For counts the ratio of the medians. It is 1, and `ratio_interval` is
    /// `None`, if the baseline is never above zero.
    pub ratio: f64,
    /// Interval of the ratio, corrected for the number of rows. `None` if there are too few rounds, or if the baseline is not
    /// above zero in too many of them.
    pub ratio_interval: Option<Interval>,
    /// The median of the differences case - baseline, in the unit of the samples.
    pub adds: f64,
    /// Interval of the differences, corrected likewise. `None` if there are too few rounds.
    pub adds_interval: Option<Interval>,
    /// The verdict on the ratio.
    pub verdict: Verdict,
    /// Noise threshold, a relative difference: the larger of 1 % and the A/A difference; 0 for counts.
    pub threshold: f64,
    /// Why it is inconclusive; `None` otherwise.
    pub why: Option<String>,
}

/// Compares every case of a run with its baseline, in the run's order, corrected for their number.
pub fn paired_rows(run: &Run) -> Vec<(Case, Paired)> {
    let index = Index::new(run);
    let joined: Vec<_> = index
        .run
        .measured()
        .filter_map(|(name, case)| Some((name, case, joinable(&index, case)?)))
        .filter(|(_, case, baseline)| Rounds::any(case, baseline))
        .collect();
    let threshold = LEAST_THRESHOLD.max(threshold::of_controls(&index, None));
    let rows = joined.iter().filter_map(|(name, case, baseline)| {
        let threshold = if name.benchmark == CONTROL { threshold_without(&index, case) } else { threshold };
        Some(((*name).clone(), compare(&index, case, baseline, joined.len(), threshold)?))
    });
    rows.collect()
}

/// Compares `case`, a measurement of `run`, with its baseline round by round; corrected as one of `rows` such comparisons. `None`
/// without a baseline, or if the two do not share a unit, a provenance, a group and rounds.
///
/// The ratio is the median of the ratios of the rounds with the sign test's interval (Conover, *Practical Nonparametric
/// Statistics*, 3.2 and 3.4). Ranks do not change under a logarithm, so this is the median of the log-ratios, but a round in
/// which `case` is not above zero still counts. A round in which the baseline is not above zero may have any ratio, so the
/// interval takes it as minus infinity below and as infinity above.
///
/// Rounds of one process are not independent, since a process keeps its page placement and its level. So the interval is
/// widened to contain that of the processes' medians at 99 % or, if they are too few for that, their range: no verdict rests on
/// one process out of several.
pub fn paired(run: &Run, case: &Measured, rows: usize) -> Option<Paired> {
    let index = Index::new(run);
    let baseline = joinable(&index, case)?;
    compare(&index, case, baseline, rows, threshold_without(&index, case))
}

fn threshold_without(index: &Index<'_>, case: &Measured) -> f64 {
    LEAST_THRESHOLD.max(threshold::of_controls(index, Some(case)))
}

fn joinable<'a>(index: &Index<'a>, case: &Measured) -> Option<&'a Measured> {
    let baseline = index.measured_case(case.baseline.as_ref()?)?;
    let alike =
        case.group == baseline.group && case.unit == baseline.unit && case.provenance == baseline.provenance;
    alike.then_some(baseline)
}

fn compare(
    index: &Index<'_>,
    case: &Measured,
    baseline: &Measured,
    rows: usize,
    threshold: f64,
) -> Option<Paired> {
    if let Some(paired) = of_counts(case, baseline) {
        return Some(paired);
    }
    let rounds = Rounds::new(case, baseline);
    let confidence = confidence_of_each(rows);
    let adds = rounds.adds()?;
    let ratio = rounds.ratio().filter(|ratio| ratio.is_finite());
    let ratio_interval = ratio.and_then(|_| rounds.ratio_interval(confidence));
    let (verdict, why) = match (bound(index, baseline), ratio_interval) {
        (Some(bound), _) => (
            Verdict::Inconclusive,
            Some(format!("the baseline is < {} {} (detection limit)", figure(bound), baseline.unit)),
        ),
        (None, None) => (Verdict::Inconclusive, Some(rounds.why_no_ratio(confidence))),
        (None, Some(interval)) => match Verdict::from_interval(interval, threshold) {
            Verdict::Inconclusive => (Verdict::Inconclusive, Some(spans_threshold(interval, threshold))),
            verdict => (verdict, None),
        },
    };
    Some(Paired {
        baseline: case.baseline.clone()?,
        ratio: ratio.unwrap_or(1.0),
        ratio_interval,
        adds,
        adds_interval: rounds.adds_interval(confidence),
        verdict,
        threshold,
        why,
    })
}

fn of_counts(case: &Measured, baseline: &Measured) -> Option<Paired> {
    let [base, other] = counted::Side::both(baseline, case)?;
    let counted::Decision { ratio, verdict, why } = counted::decide([base, other], 0.0, 0.0);
    Some(Paired {
        baseline: case.baseline.clone()?,
        ratio: ratio.unwrap_or(1.0),
        ratio_interval: None,
        adds: finite(other.median - base.median),
        adds_interval: None,
        verdict,
        threshold: 0.0,
        why: why.filter(|_| verdict == Verdict::Inconclusive),
    })
}

fn bound(index: &Index<'_>, measured: &Measured) -> Option<f64> {
    Level::from_measured(measured)?.bound(index.detection_limit(measured)?)
}
