//! A figure of this machine that stands beside a published one.

use std::fmt;

use tollgate_model::Case;
use tollgate_model::stats::{Interval, Mode};
use tollgate_output::figures;

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Figure(Figure),
    Words(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub value: f64,
    /// The 95 % CI; `None` if the estimator has none.
    pub interval: Option<Interval>,
    /// `None` unless the samples are bimodal.
    pub modes: Option<Modes>,
    /// Set if one of its parts is below the detection limit: the side of `value` on which the figure lies.
    pub bound: Option<Bound>,
    pub is_count: bool,
    /// True if the source used a mean or a single execution, which has no interval.
    pub has_no_interval: bool,
    pub from: Vec<Case>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Modes {
    /// The lower and the upper mode. The value lies between them, or is one of them.
    Two([Mode; 2]),
    /// The bounds of a ratio whose parts are both bimodal: it is not known which of their modes go together.
    Between(f64, f64),
}

impl Modes {
    fn span(self) -> (f64, f64) {
        match self {
            Self::Two([low, high]) => (low.at, high.at),
            Self::Between(low, high) => (low, high),
        }
    }

    fn times(self, factor: f64) -> Self {
        match self {
            Self::Two(modes) => Self::Two(modes.map(|mode| Mode { at: mode.at * factor, ..mode })),
            Self::Between(low, high) => Self::Between(low * factor, high * factor),
        }
    }

    pub(super) fn under(self, amount: f64) -> Self {
        match self {
            Self::Two([low, high]) => {
                Self::Two([high, low].map(|mode| Mode { at: amount / mode.at, ..mode }))
            }
            Self::Between(low, high) => Self::Between(amount / high, amount / low),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    AtMost,
    AtLeast,
}

impl Figure {
    pub fn times(mut self, factor: f64) -> Self {
        self.value *= factor;
        self.interval = self
            .interval
            .map(|interval| Interval { low: interval.low * factor, high: interval.high * factor });
        self.modes = self.modes.map(|modes| modes.times(factor));
        self
    }

    pub fn over(mut self, other: Self) -> Option<Self> {
        let value = self.value / other.value;
        let is_bounded = |figure: &Self| figure.bound.is_some();
        let bound = match (is_bounded(&self), is_bounded(&other)) {
            (true, true) => return None,
            (true, false) => Some(Bound::AtMost),
            (false, true) => Some(Bound::AtLeast),
            (false, false) => None,
        };
        let interval = self.interval.zip(other.interval).filter(|(_, below)| below.low > 0.0);
        let interval = interval
            .map(|(one, other)| Interval { low: one.low / other.high, high: one.high / other.low })
            .filter(|_| bound.is_none());
        let modes = match (self.modes, other.modes) {
            (Some(modes), None) => Some(modes.times(1.0 / other.value)),
            (None, Some(modes)) => Some(modes.under(self.value)),
            (Some(one), Some(other)) => {
                let ((low, high), (other_low, other_high)) = (one.span(), other.span());
                Some(Modes::Between(low / other_high, high / other_low))
            }
            (None, None) => None,
        };
        self.from.extend(other.from);
        let has_no_interval = self.has_no_interval || other.has_no_interval;
        let is_count = false;
        value.is_finite().then_some(Self {
            value,
            interval,
            modes: modes.filter(|_| bound.is_none()),
            bound,
            is_count,
            has_no_interval,
            from: self.from,
        })
    }

    pub fn minus(mut self, other: Self) -> Option<Self> {
        let interval = self.interval.zip(other.interval);
        self.interval =
            interval.map(|(one, other)| Interval { low: one.low - other.high, high: one.high - other.low });
        self.value -= other.value;
        self.modes = None;
        self.has_no_interval |= other.has_no_interval;
        let is_whole = self.bound.is_none() && other.bound.is_none();
        self.from.extend(other.from);
        is_whole.then_some(self)
    }

    /// Returns the smallest and the largest possible value, modes included; `None` if the samples support no interval.
    pub fn span(&self) -> Option<Interval> {
        let (low, high) = match (self.bound, self.interval) {
            (Some(Bound::AtMost), _) => (0.0, self.value),
            (Some(Bound::AtLeast), _) => (self.value, f64::INFINITY),
            (None, Some(interval)) => (interval.low, interval.high),
            (None, None) if self.has_no_interval || self.is_count => (self.value, self.value),
            (None, None) => return None,
        };
        let own = Interval { low, high };
        Some(self.modes.map(Modes::span).map_or(own, |(low, high)| own.hull(Interval { low, high })))
    }

    /// Formats as `478`, `< 1.2` or `28 instr.`.
    pub fn in_short(&self) -> String {
        let bound = match self.bound {
            Some(Bound::AtMost) => "< ",
            Some(Bound::AtLeast) => "> ",
            None => "",
        };
        if self.is_count {
            format!("{bound}{} instr.", figures::instructions(self.value))
        } else {
            format!("{bound}{}", figures::significant(self.value, 3))
        }
    }

    /// Formats as [`Figure::in_short`], with the 95 % CI in parentheses.
    pub fn with_interval(&self) -> String {
        match self.interval {
            Some(interval) => format!("{} ({})", self.in_short(), figures::span(interval.low, interval.high)),
            None => self.in_short(),
        }
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Two(modes) => {
                let [low, high] = modes.map(|mode| {
                    format!("{} ({})", figures::significant(mode.at, 3), figures::percent(mode.share))
                });
                write!(f, "two modes: {low} and {high}")
            }
            Self::Between(low, high) => {
                let [low, high] = [low, high].map(|value| figures::significant(*value, 3));
                write!(f, "both parts have two modes: {low} to {high}")
            }
        }
    }
}

impl Answer {
    /// Formats as `two modes: 1.05 (60 %) and 5.4 (40 %)`; `None` unless it is bimodal.
    pub fn modes_in_words(&self) -> Option<String> {
        let Self::Figure(Figure { modes: Some(modes), .. }) = self else { return None };
        Some(modes.to_string())
    }

    pub fn in_short(&self) -> String {
        match self {
            Self::Figure(figure) => figure.in_short(),
            Self::Words(words) => words.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_modes_are_said_with_their_shares_in_the_unit_of_the_figure() {
        let modes = [Mode { at: 3.89, share: 0.4 }, Mode { at: 15.1, share: 0.6 }];
        let store = Figure {
            value: 15.0,
            interval: None,
            modes: Some(Modes::Two(modes)),
            bound: None,
            is_count: false,
            has_no_interval: false,
            from: Vec::new(),
        };
        let words = |figure: Figure| Answer::Figure(figure).modes_in_words();
        assert_eq!(words(store.clone()).as_deref(), Some("two modes: 3.89 (40 %) and 15.1 (60 %)"));
        assert_eq!(
            words(store.clone().times(2.0)).as_deref(),
            Some("two modes: 7.78 (40 %) and 30.2 (60 %)")
        );
        let alone = Figure { value: 5.0, modes: None, ..store.clone() };
        let ratio = |one: &Figure, other: &Figure| one.clone().over(other.clone()).and_then(words);
        assert_eq!(ratio(&store, &alone).as_deref(), Some("two modes: 0.778 (40 %) and 3.02 (60 %)"));
        assert_eq!(ratio(&alone, &store).as_deref(), Some("two modes: 0.331 (60 %) and 1.29 (40 %)"));
        assert_eq!(ratio(&store, &store).as_deref(), Some("both parts have two modes: 0.258 to 3.88"));
    }
}
