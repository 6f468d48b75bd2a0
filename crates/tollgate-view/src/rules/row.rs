//! The rows that rules read, and the ratio of two.

use tollgate_model::stats::Interval;
use tollgate_model::{Case, Unit};
use tollgate_output::figures;

use crate::summary::{Figures, Summary};

/// A time that hardware measured.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub case: &'a Case,
    pub figures: &'a Figures<'a>,
}

/// A row with an interval, above its detection limit.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub row: Row<'a>,
    pub interval: Interval,
}

/// The row that a pattern names, such as `files/read{block=4k, state=cached}`: of several cases with these parameters, the one with
/// the fewest others. A benchmark alone names its case without parameters.
pub fn row<'a>(summary: &'a Summary, pattern: &str) -> Option<Row<'a>> {
    let is_time = |figures: &Figures| figures.is_estimate() && !figures.is_count();
    row_of(summary, pattern, is_time)
}

/// Like [`row`], for a row whose figures satisfy `is_such`.
pub fn row_of<'a>(
    summary: &'a Summary,
    pattern: &str,
    is_such: impl Fn(&Figures) -> bool,
) -> Option<Row<'a>> {
    let (benchmark, params) = pattern.split_once('{').unwrap_or((pattern, ""));
    let params: Vec<(&str, &str)> =
        params.trim_end_matches('}').split(", ").filter_map(|param| param.split_once('=')).collect();
    let has = |case: &Case, (name, value): &(&str, &str)| {
        case.params.get(*name).is_some_and(|own| own.to_string() == *value)
    };
    let is_named = |case: &Case| match params.as_slice() {
        [] => case.params.is_empty(),
        params => params.iter().all(|param| has(case, param)),
    };
    let rows = summary
        .measured()
        .filter(|(case, figures)| case.benchmark == benchmark && is_such(figures) && is_named(case));
    let (case, figures) = rows.min_by_key(|(case, _)| case.params.len())?;
    Some(Row { case, figures })
}

pub fn known<'a>(summary: &'a Summary, pattern: &str) -> Option<Known<'a>> {
    row(summary, pattern)?.known()
}

impl<'a> Row<'a> {
    pub fn known(self) -> Option<Known<'a>> {
        let interval = self.figures.estimate.interval.filter(|_| self.figures.below.is_none())?;
        Some(Known { row: self, interval })
    }

    pub fn median(&self) -> f64 {
        self.figures.estimate.median
    }

    /// The median with the digits that its interval supports, or a bound.
    pub fn in_words(&self) -> String {
        self.known().map_or_else(|| self.figures.in_words(), |known| known.in_words())
    }
}

impl Known<'_> {
    pub fn median(&self) -> f64 {
        self.row.median()
    }

    pub fn in_words(&self) -> String {
        amount(self.median(), self.half_width(), self.row.figures.measured.unit)
    }

    pub fn half_width(&self) -> f64 {
        (self.interval.high - self.interval.low) / 2.0 / self.median().abs()
    }

    /// Whether the intervals are disjoint.
    pub fn is_apart(&self, other: &Self) -> bool {
        self.interval.high < other.interval.low || other.interval.high < self.interval.low
    }
}

/// How many times as long one row takes as another whose interval is apart.
#[derive(Clone, Copy)]
pub struct Times {
    /// The ratio of the medians, or its lower bound.
    pub times: f64,
    /// The smallest ratio that both intervals allow.
    pub least: f64,
    half_width: f64,
    is_bound: bool,
}

impl Times {
    pub fn of(slow: Row, fast: Row) -> Option<Self> {
        let slow = slow.known().filter(|_| slow.figures.measured.unit == fast.figures.measured.unit)?;
        let times = if let Some(limit) = fast.figures.below {
            let least = slow.interval.low / limit;
            (least > 1.0).then_some(Self { times: least, least, half_width: 0.0, is_bound: true })?
        } else {
            let fast = fast.known().filter(|fast| fast.is_apart(&slow))?;
            Self {
                times: slow.median() / fast.median(),
                least: slow.interval.low / fast.interval.high,
                half_width: slow.half_width() + fast.half_width(),
                is_bound: false,
            }
        };
        times.times.is_finite().then_some(times)
    }

    /// Their intervals may overlap.
    pub fn of_medians(slow: Row, fast: Row) -> Option<Self> {
        let times = slow.median() / fast.figures.bounded();
        let is_bound = fast.figures.below.is_some();
        times.is_finite().then_some(Self { times, least: times, half_width: f64::INFINITY, is_bound })
    }

    /// `42 ×`, `at least 42 ×`.
    pub fn in_words(&self) -> String {
        if self.is_bound {
            format!("at least {} ×", rounded(self.least.floor().max(1.0), 2))
        } else {
            format!("{} ×", rounded(self.times, digits(self.half_width)))
        }
    }

    /// `4.20 × slower`, `12 % faster`.
    pub fn compared(&self) -> String {
        let at_least = if self.is_bound { "at least " } else { "" };
        format!("{at_least}{}", figures::compared(self.times, ["slower", "faster"]))
    }
}

/// ±2 % supports three digits, ±40 % two, more one.
pub fn digits(half_width: f64) -> i32 {
    match half_width {
        narrow if narrow <= 0.02 => 3,
        usual if usual <= 0.40 => 2,
        _ => 1,
    }
}

pub fn amount(value: f64, half_width: f64, unit: Unit) -> String {
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
pub fn rounded(value: f64, digits: i32) -> String {
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
