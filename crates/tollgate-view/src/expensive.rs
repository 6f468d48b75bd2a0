//! Expensive operations on this machine: each with its figure, its cause here, an alternative, and the benchmark that explains it.
//!
//! A figure is used only with its uncertainty: a ratio of two rows only if their intervals are disjoint, with as many digits as
//! both intervals support, and as a bound if the fast side is below its detection limit.

mod rules;

use serde::{Serialize, Serializer};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, Unit};
use tollgate_output::figures;

use crate::burdens::{self, Burden};
use crate::summary::{Figures, Summary};

/// One thing that is expensive here; for a system call, whether it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expense {
    /// The operation and its figure: `Wake-up on another CPU 23 µs, 10 × the same CPU`.
    pub what: String,
    /// Why it takes so long, with the state of this machine's facts.
    pub cause: String,
    /// An alternative that takes less time.
    pub action: String,
    /// The benchmark to explain.
    pub benchmark: &'static str,
    /// The cases that the figures come from.
    #[serde(serialize_with = "names")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub from: Vec<Case>,
    /// The facts that are part of the cause.
    pub facts: Vec<String>,
    /// How many times as long it takes as the alternative; the first in rank is the system call.
    #[serde(skip)]
    rank: f64,
}

fn names<S: Serializer>(cases: &[Case], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cases.iter().map(Case::to_string))
}

/// The expensive things, the most expensive first, after the system call that all are compared with.
pub fn expenses(summary: &Summary) -> Vec<Expense> {
    let mut all = rules::all(summary);
    all.sort_by(|one, other| other.rank.total_cmp(&one.rank));
    all
}

impl Expense {
    /// As one sentence.
    pub fn sentence(&self) -> String {
        let cause = if self.cause.is_empty() { String::new() } else { format!(": {}", self.cause) };
        let action = if self.action.is_empty() { String::new() } else { format!("; {}", self.action) };
        format!("{}{cause}{action} ({})", self.what, self.benchmark)
    }

    /// Adds the heaviest fact that reaches the case to the cause; `otherwise` if none does and no cause is known.
    fn caused_by(mut self, summary: &Summary, case: &Case, otherwise: &str) -> Self {
        let burden = burdens::of_case(&summary.run.facts, case).into_iter().next();
        let own = Some(self.cause.as_str()).filter(|cause| !cause.is_empty());
        let state = burden.as_ref().map(|burden| burden.state.as_str());
        self.cause = own.into_iter().chain(state).collect::<Vec<_>>().join(", ");
        if self.cause.is_empty() {
            self.cause = otherwise.to_owned();
        }
        self.facts = burden.into_iter().map(|Burden { fact, .. }| fact).collect();
        self
    }
}

struct Known<'a> {
    case: &'a Case,
    figures: &'a Figures<'a>,
    interval: Interval,
}

impl Known<'_> {
    fn median(&self) -> f64 {
        self.figures.estimate.median
    }

    /// The median with the digits that its interval supports.
    fn in_words(&self) -> String {
        amount(self.median(), half_width(self.interval, self.median()), self.figures.measured.unit)
    }
}

struct Times {
    /// The ratio of the medians, or its lower bound.
    times: f64,
    /// The smallest ratio that both intervals allow.
    least: f64,
    in_words: String,
}

/// The ratio of two rows whose intervals are disjoint; a lower bound if the fast one is below its detection limit.
fn times(slow: &Known, fast: &Figures) -> Option<Times> {
    let unit = slow.figures.measured.unit;
    if fast.measured.unit != unit || !fast.is_estimate() {
        return None;
    }
    if let Some(limit) = fast.below {
        let least = slow.interval.low / limit;
        let in_words = format!("at least {} ×", rounded(least.floor().max(1.0), 2));
        return (least > 1.0 && least.is_finite()).then_some(Times { times: least, least, in_words });
    }
    let interval = fast.estimate.interval?;
    let (times, least) = (slow.median() / fast.estimate.median, slow.interval.low / interval.high);
    let width = half_width(slow.interval, slow.median()) + half_width(interval, fast.estimate.median);
    let in_words = format!("{} ×", rounded(times, digits(width)));
    (least > 1.0 && times.is_finite()).then_some(Times { times, least, in_words })
}

fn half_width(interval: Interval, median: f64) -> f64 {
    (interval.high - interval.low) / 2.0 / median.abs()
}

/// ±2 % supports three digits, ±40 % two, more one.
fn digits(half_width: f64) -> i32 {
    match half_width {
        narrow if narrow <= 0.02 => 3,
        usual if usual <= 0.40 => 2,
        _ => 1,
    }
}

fn amount(value: f64, half_width: f64, unit: Unit) -> String {
    let digits = digits(half_width);
    let whole = figures::estimate(round_to(value, digits), unit);
    match whole.split_once(' ') {
        Some((number, unit)) => {
            format!("{} {unit}", number.parse().map_or(number.to_owned(), |number| rounded(number, digits)))
        }
        None => whole,
    }
}

/// A number with this many digits, the others zero: `1,400`, `53`, `1.3`.
fn rounded(value: f64, digits: i32) -> String {
    figures::thousands(&figures::significant(round_to(value, digits), digits))
}

fn round_to(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let step = 10_f64.powi(value.abs().log10().floor() as i32 + 1 - digits);
    (value / step).round() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_digits_that_its_interval_supports() {
        let ns = |value, half_width| amount(value, half_width, Unit::Nanoseconds);
        assert_eq!(ns(156_400.0, 0.13), "160 µs");
        assert_eq!(ns(156_400.0, 0.01), "156 µs");
        assert_eq!(ns(3_349.0, 0.13), "3.3 µs");
        assert_eq!(ns(3_349.0, 0.6), "3 µs");
        assert_eq!(ns(99.7, 0.1), "100 ns");
        assert_eq!((rounded(1_389.6, 2).as_str(), rounded(53.4, 2).as_str()), ("1,400", "53"));
    }
}
