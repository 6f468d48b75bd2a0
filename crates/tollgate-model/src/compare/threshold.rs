use std::collections::HashMap;

use super::index::Index;
use super::rounds::Rounds;
use super::turns::Turns;
use crate::estimate::Level;
use crate::measurement::{Measured, Unit};
use crate::own::{CONTROL, RAW_LOOP};
use crate::stats::{self, Interval};

/// The smallest threshold: no smaller difference is significant.
pub const LEAST_THRESHOLD: f64 = 0.01;

const MOST: f64 = 1e6;

/// Upper bound of the parts that do not belong to the row itself, the processor's frequency and the A/A differences: a factor of
/// two. A larger one is a finding, not an excuse for every row.
pub const MOST_EXCUSE: f64 = 1.0;

/// How far 1 and `ratio` are apart as a relative difference: 0.25 for both 1.25 and 0.8. `None` if `ratio` is not above zero.
fn distance(ratio: f64) -> Option<f64> {
    (ratio > 0.0).then(|| (ratio.max(1.0 / ratio) - 1.0).min(MOST))
}

/// The largest A/A difference of a run, without `except`: a control does not measure itself.
pub(super) fn of_controls(index: &Index<'_>, except: Option<&Measured>) -> f64 {
    let controls =
        index.run.measured().filter(|(case, _)| case.benchmark == CONTROL).map(|(_, control)| control);
    let others = controls.filter(|control| !except.is_some_and(|except| std::ptr::eq(*control, except)));
    let distances = others.filter_map(|control| {
        let baseline = index.measured_case(control.baseline.as_ref()?)?;
        distance(Rounds::new(control, baseline).ratio()?)
    });
    distances.fold(0.0, f64::max).min(MOST_EXCUSE)
}

/// The largest significant A/A difference of an environment whose turns alternated: from 1 to the near end of its interval. The
/// differences of few processes vary by more than their own size.
pub(super) fn of_controls_shown(index: &Index<'_>) -> f64 {
    const CONFIDENCE: f64 = 0.95;
    let controls = index.run.measured().filter(|(case, _)| case.benchmark == CONTROL);
    let shown = controls.filter_map(|(_, control)| {
        let baseline = index.measured_case(control.baseline.as_ref()?)?;
        let Interval { low, high } =
            stats::anytime_interval(&Turns::new(baseline, control).logs, CONFIDENCE)?;
        distance(low.max(-high).max(0.0).exp())
    });
    shown.fold(0.0, f64::max).min(MOST_EXCUSE)
}

/// The drift over the length of a run, by the slope of its processes' medians in the order of time: another run in the same
/// environment would differ by as much.
///
/// The slope counts even if it is not significant: a run whose processes scatter by a slope of 4 % is not evidence of a
/// difference of 3 %. It counts 1.5 times because it is uncertain itself: with that, simulated drifts of 2 to 30 % per run stay
/// below one false verdict in a hundred rows. Halves of a run are not compared: two halves at two levels are not a drift, see
/// [`without_levels`], and 7 processes are too few for halves.
pub(super) fn of_drift(logs_of_process_medians: &[f64]) -> f64 {
    const CAUTION: f64 = 1.5;
    let logs = without_levels(logs_of_process_medians);
    distance((CAUTION * stats::slope(&logs) * logs.len() as f64).exp()).unwrap_or(MOST)
}

/// The drift if the order of twelve or more processes shows it (Spearman's correlation, at 5 %), otherwise 0: the spread of other
/// runs covers drift, unless this run drifts as they did not.
pub(super) fn of_clear_drift(logs_of_process_medians: &[f64]) -> f64 {
    const CLEAR: f64 = 2.0;
    let number = logs_of_process_medians.len();
    let order: Vec<f64> = (0..number).map(|at| at as f64).collect();
    let correlation = stats::rank_correlation(&order, logs_of_process_medians).unwrap_or(0.0);
    let is_clear = correlation.abs() * (number.saturating_sub(1) as f64).sqrt() > CLEAR;
    if is_clear { of_drift(logs_of_process_medians) } else { 0.0 }
}

/// Returns logarithms that lie at two levels, each less the median of its level; others unchanged. There are two levels if one
/// gap among the sorted ones is wide, and much wider than every other.
fn without_levels(logs: &[f64]) -> Vec<f64> {
    const WIDE: f64 = 0.05;
    const MUCH_WIDER: f64 = 3.0;
    let sorted = stats::sorted(logs);
    let mut gaps: Vec<(f64, usize)> = sorted.windows(2).map(|pair| pair[1] - pair[0]).zip(1..).collect();
    gaps.sort_by(|one, another| another.0.total_cmp(&one.0));
    let [(widest, at), (second, _), ..] = gaps[..] else { return logs.to_vec() };
    let (lower, upper) = sorted.split_at(at);
    match (stats::median(lower), stats::median(upper)) {
        (Some(low), Some(high)) if widest > WIDE && widest > MUCH_WIDER * second => {
            logs.iter().map(|&log| if log < upper[0] { log - low } else { log - high }).collect()
        }
        _ => logs.to_vec(),
    }
}

pub(super) struct Pace {
    by_group: HashMap<String, f64>,
    /// Loop overhead of the first raw loop that both have, in each, in ns.
    pub(super) loops: Option<(f64, f64)>,
}

impl Pace {
    pub(super) fn between(base: &Index<'_>, other: &Index<'_>) -> Self {
        let mut pace = Self { by_group: HashMap::new(), loops: None };
        for (case, base) in base.run.measured().filter(|(case, _)| case.benchmark == RAW_LOOP) {
            let Some(loops) = other.measured_case(case).and_then(|other| loops_of(base, other)) else {
                continue;
            };
            let Some(difference) = difference(loops) else { continue };
            pace.loops.get_or_insert(loops);
            pace.by_group.entry(base.group.clone()).or_insert(difference);
        }
        pace
    }

    pub(super) fn part(&self, measured: &Measured) -> f64 {
        if measured.unit.is_amount() {
            return 0.0;
        }
        let elsewhere = || self.loops.and_then(difference).unwrap_or(0.0);
        self.by_group.get(&measured.group).copied().unwrap_or_else(elsewhere)
    }
}

fn loops_of(base: &Measured, other: &Measured) -> Option<(f64, f64)> {
    let in_time = base.unit == Unit::Nanoseconds && other.unit == Unit::Nanoseconds;
    let loops = (Level::from_measured(base)?.median, Level::from_measured(other)?.median);
    (in_time && loops.0 > 0.0 && loops.1 > 0.0).then_some(loops)
}

fn difference((base, other): (f64, f64)) -> Option<f64> {
    Some(distance(other / base)?.min(MOST_EXCUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_no_drift_and_a_climb_is() {
        let jump = [164.0, 165.0, 164.0, 163.0, 215.0, 214.0, 216.0, 215.0_f64].map(f64::ln);
        assert!(of_drift(&jump) < 0.03);
        let climb: Vec<f64> = (0..10).map(|i| f64::from(i) * 0.01).collect();
        assert!((of_drift(&climb) - 0.15_f64.exp_m1()).abs() < 1e-9);
        let fall: Vec<f64> = climb.iter().rev().copied().collect();
        assert!((of_drift(&fall) - of_drift(&climb)).abs() < 1e-9);
        assert_eq!((of_drift(&[]), of_drift(&[1.0])), (0.0, 0.0));
    }

    #[test]
    fn a_drift_that_is_chance_is_none_beside_other_runs() {
        let climb: Vec<f64> = (0..14).map(|i| f64::from(i) * 0.01).collect();
        assert!(of_drift(&climb) > 0.2 && of_clear_drift(&climb) == of_drift(&climb));
        let scattered: Vec<f64> = (0..14).map(|i| f64::from(i * 5 % 14) * 0.01).collect();
        assert_eq!((of_clear_drift(&scattered), of_clear_drift(&climb[..5])), (0.0, 0.0));
    }

    #[test]
    fn another_frequency_excuses_no_more_than_twice() {
        assert!((difference((1.0, 1.3)).expect("a difference") - 0.3).abs() < 1e-9);
        assert_eq!(difference((1.0, 10.0)), Some(MOST_EXCUSE));
        assert_eq!(difference((10.0, 1.0)), Some(MOST_EXCUSE));
    }

    #[test]
    fn distances_are_the_same_both_ways() {
        assert_eq!(distance(1.25), Some(0.25));
        assert_eq!(distance(0.8), Some(0.25));
        assert_eq!((distance(0.0), distance(-1.0), distance(f64::NAN)), (None, None, None));
        assert_eq!(distance(1e300), Some(MOST));
    }
}
