use super::index::Index;
use super::rows::NotCompared;
use super::{counted, figure};
use crate::estimate::Level;
use crate::measurement::{Case, Measured};
use crate::{own, stats};

fn subjects<'a>(index: &Index<'a>) -> impl Iterator<Item = (&'a Case, &'a Measured)> + use<'a> {
    index.run.measured().filter(|(case, _)| !own::is_own(&case.benchmark))
}

pub(super) fn missing(one: &Index<'_>, another: &Index<'_>) -> Vec<(Case, String)> {
    let why = |case: &Case| match another.outcome(case) {
        None => Some("not measured".to_owned()),
        Some(outcome) => Some(format!("{}: {}", outcome.status().name(), outcome.why()?)),
    };
    subjects(one).filter_map(|(case, _)| Some((case.clone(), why(case)?))).collect()
}

pub(super) struct Joined<'a> {
    pub(super) cases: Vec<(&'a Case, &'a Measured, &'a Measured)>,
    pub(super) not_compared: Vec<NotCompared>,
}

pub(super) fn joined<'a>(base: &Index<'a>, other: &Index<'a>) -> Joined<'a> {
    let both = subjects(base).filter_map(|(case, base)| Some((case, base, other.measured_case(case)?)));
    let mut joined = Joined { cases: Vec::new(), not_compared: Vec::new() };
    for (case, base, other) in both {
        match counted::not_compared(case, base, other) {
            Some(apart) => joined.not_compared.push(apart),
            None => joined.cases.push((case, base, other)),
        }
    }
    joined
}

impl Joined<'_> {
    pub(super) fn timed(&self) -> usize {
        self.cases.iter().filter(|(_, base, other)| !counted::are_counts(base, other)).count()
    }
}

/// Explains why two measurements of a case have no ratio, for any samples.
pub(super) fn incomparable(base: &Measured, other: &Measured) -> Option<String> {
    if base.unit != other.unit {
        return Some(format!("in {} in the base, in {} in the other", base.unit, other.unit));
    }
    // Counts are comparable across provenances; times are not.
    let differ = base.provenance != other.provenance && !base.unit.is_amount();
    differ.then(|| "executed by different kinds of machines".to_owned())
}

pub(super) struct Side<'a> {
    pub(super) measured: &'a Measured,
    pub(super) median: Option<f64>,
    /// The median; `None` also if that of a single process is not above zero.
    pub(super) estimate: Option<f64>,
    /// The upper bound of a value below the detection limit.
    bound: Option<f64>,
    /// Natural logarithms of the processes' medians; empty if `estimate` is `None`.
    pub(super) logs: Vec<f64>,
}

impl<'a> Side<'a> {
    pub(super) fn new(index: &Index<'_>, measured: &'a Measured) -> Self {
        let none = Self { measured, median: None, estimate: None, bound: None, logs: Vec::new() };
        let Some(level) = Level::from_measured(measured) else { return none };
        let bound = index.detection_limit(measured).and_then(|limit| level.bound(limit));
        let none =
            Self { median: Some(level.median).filter(|median| bound.is_none() && *median > 0.0), ..none };
        if bound.is_some() || level.process_medians.iter().any(|&median| median <= 0.0) {
            return Self { bound, ..none };
        }
        let logs = level.process_medians.iter().map(|median| median.ln()).collect();
        Self { estimate: Some(level.median), logs, ..none }
    }
}

impl Side<'_> {
    pub(super) fn number(&self) -> String {
        let effective = stats::effective_number(&self.logs);
        match self.logs.len() {
            all if effective as usize == all => all.to_string(),
            all => format!("{all} (worth {effective:.0})"),
        }
    }
}

pub(super) fn below_limit(base: &Side<'_>, other: &Side<'_>) -> Option<String> {
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
