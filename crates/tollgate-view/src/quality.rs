//! How far a run's figures can be trusted: a grade, and the one or two reasons for it.

use std::fmt;

use serde::Serialize;
use tollgate_model::estimate::CONFIDENCE;
use tollgate_model::stats::{self, median, quantile};
use tollgate_output::figures::percent;

use crate::counts;
use crate::health::{self, Check, State};
use crate::summary::{Figures, Summary};

/// A grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Instructions were counted: another run gives the same figures.
    Exact,
    /// Another run gives the same figures within a few percent.
    Good,
    /// Differences of ten percent can be noise.
    Fair,
    /// Differences of tens of percent can be noise.
    Poor,
}

/// The quality of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quality {
    /// The worst of the reasons' grades.
    pub grade: Grade,
    /// The reasons, the worst first: phrases with a figure.
    pub reasons: Vec<String>,
}

/// The median range of the central 80 % of processes above which a run is fair, and poor.
const RANGES: [f64; 2] = [0.05, 0.20];
/// The median difference between the first and the second half of the processes, likewise.
const DRIFTS: [f64; 2] = [0.03, 0.10];
/// The share of processes that were left out because something else slowed them, likewise.
const LEFT_OUT: [f64; 2] = [0.10, 0.50];
/// The share of rows with too few processes for an interval, likewise.
const FEW: [f64; 2] = [0.10, 0.50];

/// The quality of a run, from its rows and from what else happened meanwhile.
pub fn of(summary: &Summary) -> Quality {
    let rows: Vec<&Figures> = summary.measured().map(|(_, figures)| figures).collect();
    if rows.is_empty() {
        return Quality { grade: Grade::Poor, reasons: vec!["nothing was measured".to_owned()] };
    }
    if counts::is_counted(summary) {
        return Quality { grade: Grade::Exact, reasons: counts::inexact(summary).into_iter().collect() };
    }
    // Two are shown, and this one causes all others.
    let (quota, disturbances): (Vec<Check>, Vec<Check>) =
        health::of_moment(summary.run).into_iter().partition(|check| check.name == "quota");
    let mut reasons: Vec<(Grade, String)> = quota.into_iter().filter_map(disturbance).collect();
    let mut judge = |value: Option<f64>, [fair, poor]: [f64; 2], words: &dyn Fn(f64) -> String| {
        let Some(value) = value.filter(|value| *value > fair) else { return };
        reasons.push((if value > poor { Grade::Poor } else { Grade::Fair }, words(value)));
    };
    let is_known =
        |figures: &Figures| figures.below.is_none() && figures.is_estimate() && !figures.is_count();
    let above = || rows.iter().filter(|figures| is_known(figures));
    let ranges: Vec<f64> = above().filter_map(|figures| middle_range(figures)).collect();
    judge(median(&ranges), RANGES, &|range| format!("processes differ by {}", percent(range)));
    let drifts: Vec<f64> = above().filter_map(|figures| drift(figures)).collect();
    judge(median(&drifts).map(f64::abs), DRIFTS, &|drift| format!("drift {} during the run", percent(drift)));
    let few = above().filter(|figures| figures.estimate.interval.is_none()).count();
    let share = few as f64 / rows.len() as f64;
    judge(Some(share), FEW, &|_| match rows.len() {
        1 => "its row lacks a CI".to_owned(),
        all => format!("{few} of {all} rows lack a CI"),
    });
    let left_out = summary.disturbance.share();
    let share = left_out.disturbed as f64 / left_out.of.max(1) as f64;
    judge(Some(share), LEFT_OUT, &|_| {
        format!("{} of {} processes disturbed, left out", left_out.disturbed, left_out.of)
    });
    reasons.extend(disturbances.into_iter().filter_map(disturbance));
    reasons.sort_by_key(|(grade, _)| std::cmp::Reverse(*grade));
    let grade = reasons.first().map_or(Grade::Good, |(grade, _)| *grade);
    Quality { grade, reasons: reasons.into_iter().map(|(_, reason)| reason).collect() }
}

/// The range of the central 80 % of the processes over their median: among hundreds, one that met an interrupt does not describe
/// the rest.
fn middle_range(figures: &Figures) -> Option<f64> {
    let mut medians = figures.estimate.process_medians.clone();
    medians.sort_unstable_by(f64::total_cmp);
    let range = quantile(&medians, 0.9)? - quantile(&medians, 0.1)?;
    Some(range / median(&medians)?).filter(|range| range.is_finite())
}

/// The second half of the processes over the first, less one, as far as their intervals do not explain it.
fn drift(figures: &Figures) -> Option<f64> {
    let drift = stats::drift(&figures.estimate.process_medians, CONFIDENCE)?;
    Some(if drift.beyond_interval { drift.ratio - 1.0 } else { 0.0 })
}

fn disturbance(check: Check) -> Option<(Grade, String)> {
    let grade = if check.judged.state == State::Poor { Grade::Poor } else { Grade::Fair };
    Some((grade, check.judged.disturbance?))
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Poor => "poor",
        })
    }
}

impl fmt::Display for Quality {
    /// `poor. Processes differ by 25 %; load 1.8 on 2 CPUs`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = self.reasons.iter().take(2).map(String::as_str).collect::<Vec<_>>().join("; ");
        let mut letters = reasons.chars();
        match letters.next() {
            None if self.grade == Grade::Exact => write!(f, "{}: every batch has the same count", self.grade),
            Some(_) if self.grade == Grade::Exact => write!(f, "{} {reasons}", self.grade),
            None => write!(f, "{}: processes agree, none disturbed", self.grade),
            Some(first) => write!(f, "{}. {}{}", self.grade, first.to_uppercase(), letters.as_str()),
        }
    }
}
