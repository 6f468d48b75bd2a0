//! A figure of this machine, beside a published one.

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
    /// Its modes, where its samples have two: the value lies between them, or is one of them.
    pub modes: Option<[Mode; 2]>,
    /// On which side of the value it lies, where one of its parts is below the detection limit.
    pub bound: Option<Bound>,
    /// Whether it counts instructions.
    pub is_count: bool,
    /// The unit of its source is a mean or a single execution, which has no interval.
    pub has_no_interval: bool,
    /// The cases that it is made of.
    pub from: Vec<Case>,
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
        self.modes = self.modes.map(|modes| modes.map(|mode| Mode { at: mode.at * factor, ..mode }));
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
        self.from.extend(other.from);
        let has_no_interval = self.has_no_interval || other.has_no_interval;
        let is_count = false;
        value.is_finite().then_some(Self {
            value,
            interval,
            modes: None,
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

    /// The least and the greatest value that it may have; None where its samples support no interval.
    pub fn span(&self) -> Option<(f64, f64)> {
        match (self.bound, self.interval) {
            (Some(Bound::AtMost), _) => Some((0.0, self.value)),
            (Some(Bound::AtLeast), _) => Some((self.value, f64::INFINITY)),
            (None, Some(interval)) => Some((interval.low, interval.high)),
            (None, None) if self.has_no_interval || self.is_count => Some((self.value, self.value)),
            (None, None) => None,
        }
    }

    /// `478`, `< 1.2`, `28 instr.`.
    pub fn in_short(&self) -> String {
        let bound = match self.bound {
            Some(Bound::AtMost) => "< ",
            Some(Bound::AtLeast) => "> ",
            None => "",
        };
        match self.is_count {
            true => format!("{bound}{} instr.", figures::instructions(self.value)),
            false => format!("{bound}{}", figures::significant(self.value, 3)),
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

impl Answer {
    /// `two modes: 1.05 (60 %) and 5.4 (40 %)`, where it has them.
    pub fn modes_in_words(&self) -> Option<String> {
        let Self::Figure(Figure { modes: Some(modes), .. }) = self else { return None };
        let [low, high] = modes
            .map(|mode| format!("{} ({})", figures::significant(mode.at, 3), figures::percent(mode.share)));
        Some(format!("two modes: {low} and {high}"))
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
            modes: Some(modes),
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
        assert_eq!(store.clone().over(store).map(words), Some(None), "a ratio has one value");
    }
}
