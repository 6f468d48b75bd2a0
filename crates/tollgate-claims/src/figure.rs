//! A figure of this machine, beside a published one.

use std::fmt;

use tollgate_model::Case;
use tollgate_model::stats::{Interval, Mode};
use tollgate_output::figures;

/// A figure or a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A figure.
    Figure(Figure),
    /// A word, such as the value of a fact.
    Words(String),
}

/// A figure, in the unit that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its value.
    pub value: f64,
    /// Its 95 % CI, where its estimator has one.
    pub interval: Option<Interval>,
    /// Its modes, where its samples have two.
    pub modes: Option<Modes>,
    /// On which side of the value it lies, where one of its parts is below the detection limit.
    pub bound: Option<Bound>,
    /// Whether it counts instructions.
    pub is_count: bool,
    /// The unit of its source is a mean or a single execution, which has no interval.
    pub has_no_interval: bool,
    /// The cases that it is made of.
    pub from: Vec<Case>,
}

/// The modes of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Modes {
    /// The lower one and the upper one: the value lies between them, or is one of them.
    Two([Mode; 2]),
    /// Of a ratio both of whose parts have two: which of them meet is not known, so it lies between these.
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

    /// So much over them.
    pub(super) fn under(self, amount: f64) -> Self {
        match self {
            Self::Two([low, high]) => {
                Self::Two([high, low].map(|mode| Mode { at: amount / mode.at, ..mode }))
            }
            Self::Between(low, high) => Self::Between(amount / high, amount / low),
        }
    }
}

/// The side on which a figure lies of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It is no more.
    AtMost,
    /// It is no less.
    AtLeast,
}

impl Figure {
    /// The figure times so many.
    pub fn times(mut self, factor: f64) -> Self {
        self.value *= factor;
        self.interval = self
            .interval
            .map(|interval| Interval { low: interval.low * factor, high: interval.high * factor });
        self.modes = self.modes.map(|modes| modes.times(factor));
        self
    }

    /// The ratio of two figures.
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

    /// The difference of two figures.
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

    /// The least and the greatest value that it may have, its modes among them; None where its samples support no interval.
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

    /// `478`, `< 1.2`, `28 instr.`.
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

    /// The same with its 95 % CI.
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
    /// `two modes: 1.05 (60 %) and 5.4 (40 %)`, where it has them.
    pub fn modes_in_words(&self) -> Option<String> {
        let Self::Figure(Figure { modes: Some(modes), .. }) = self else { return None };
        Some(modes.to_string())
    }

    /// The figure or the words.
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
