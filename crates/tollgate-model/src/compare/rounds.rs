use crate::measurement::Measured;
use crate::stats::{self, Interval};

pub(super) struct Rounds {
    /// case / baseline if the baseline is above zero, process by process.
    ratios: Vec<Vec<f64>>,
    without_ratio: usize,
    differences: Vec<Vec<f64>>,
}

impl Rounds {
    pub(super) fn new(case: &Measured, baseline: &Measured) -> Self {
        let mut rounds = Self { ratios: Vec::new(), without_ratio: 0, differences: Vec::new() };
        for process in join(case, baseline) {
            let (mut ratios, mut differences) = (Vec::new(), Vec::new());
            for (case, baseline) in process {
                if baseline > 0.0 {
                    ratios.push(case / baseline);
                } else {
                    rounds.without_ratio += 1;
                }
                differences.push(finite(case - baseline));
            }
            rounds.ratios.push(ratios);
            rounds.differences.push(differences);
        }
        rounds
    }

    pub(super) fn any(case: &Measured, baseline: &Measured) -> bool {
        join(case, baseline).any(|mut process| process.next().is_some())
    }

    pub(super) fn ratio(&self) -> Option<f64> {
        stats::median(&self.ratios.concat())
    }

    pub(super) fn adds(&self) -> Option<f64> {
        stats::median(&self.differences.concat()).map(finite)
    }

    /// The sign test's interval of the ratio, widened to that of the processes' medians.
    pub(super) fn ratio_interval(&self, confidence: f64) -> Option<Interval> {
        let sorted = stats::sorted(&self.ratios.concat());
        let rank = stats::sign_test_rank(sorted.len() + self.without_ratio, confidence)?;
        // The rounds without a ratio lie beyond either end.
        let inward = rank.checked_sub(self.without_ratio + 1)?;
        let outward = sorted.len().checked_sub(inward + 1)?;
        let of_rounds = Interval { low: sorted[inward], high: sorted[outward] };
        let interval = with_processes(of_rounds, &self.ratios);
        (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
    }

    pub(super) fn adds_interval(&self, confidence: f64) -> Option<Interval> {
        let of_rounds = stats::median_interval(&self.differences.concat(), confidence)?;
        Some(with_processes(of_rounds, &self.differences))
    }

    pub(super) fn why_no_ratio(&self, confidence: f64) -> String {
        let with = self.ratios.iter().map(Vec::len).sum::<usize>();
        let all = with + self.without_ratio;
        if stats::sign_test_rank(all, confidence).is_none() {
            format!("only {all} rounds in common")
        } else if self.without_ratio > 0 {
            format!("the baseline is not above zero in {} of {all} rounds", self.without_ratio)
        } else {
            "the ratio is too large for a number".to_owned()
        }
    }
}

fn with_processes(of_rounds: Interval, by_process: &[Vec<f64>]) -> Interval {
    const ENOUGH: usize = 5;
    const CONFIDENCE: f64 = 0.99;
    let enough = by_process.iter().filter(|process| process.len() >= ENOUGH);
    let medians: Vec<f64> = enough.filter_map(|process| stats::median(process)).collect();
    let of_processes = stats::median_interval(&medians, CONFIDENCE).or_else(|| Interval::range(&medians));
    of_processes.map_or(of_rounds, |of_processes| of_rounds.hull(of_processes))
}

/// Collects, for every process that both have, the samples of the rounds that both kept. Pairs are streamed: there may be
/// millions.
pub(super) fn join(
    case: &Measured,
    baseline: &Measured,
) -> impl Iterator<Item = impl Iterator<Item = (f64, f64)>> {
    case.by_round().zip(baseline.by_round()).map(|(case, baseline)| {
        let mut baseline = baseline.peekable();
        case.filter_map(move |(round, case)| {
            while baseline.next_if(|(earlier, _)| *earlier < round).is_some() {}
            baseline.next_if(|(same, _)| *same == round).map(|(_, baseline)| (case, baseline))
        })
    })
}

pub(super) fn finite(x: f64) -> f64 {
    x.clamp(-f64::MAX, f64::MAX)
}
