//! Verdicts by an interval of a ratio.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Interval;

/// Values that may differ by more than this are never the same, however high the threshold.
pub const MOST_SAME: f64 = 0.05;

/// The result of a comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Faster by more than the threshold.
    Faster,
    /// Slower by more than the threshold.
    Slower,
    /// Faster, perhaps by less than the margin: by how much is open.
    #[serde(rename = "somewhat faster")]
    SomewhatFaster,
    /// Slower, perhaps by less than the margin: by how much is open.
    #[serde(rename = "somewhat slower")]
    SomewhatSlower,
    /// Any difference is within the threshold.
    Same,
    /// No significant difference, and none excluded.
    Inconclusive,
}

impl Verdict {
    /// The verdict by an interval of the ratio other / base: slower if all of it is above 1 + `threshold`, faster
    /// if all of it is below 1 / (1 + `threshold`). Same if all of it is between the two, boundaries included, and
    /// no further from 1 than [`MOST_SAME`]: noise that hides 50 % does not make two runs the same.
    pub fn from_interval(interval: Interval, threshold: f64) -> Self {
        Self::by(interval, threshold, MOST_SAME)
    }

    /// The verdict where turns alternated: slower if all of the interval is above 1 + `margin` and 1 + `controls`; the same if all of
    /// it is within the margin; somewhat slower if all of it is above 1 + `controls`. Likewise faster.
    pub fn by_margin(interval: Interval, margin: f64, controls: f64) -> Self {
        let is_above = |by: f64| interval.low > 1.0 + by;
        let is_below = |by: f64| interval.high < 1.0 / (1.0 + by);
        let beyond = margin.max(controls);
        match interval.low >= 1.0 / (1.0 + margin) && interval.high <= 1.0 + margin {
            true => Self::Same,
            false if is_above(beyond) => Self::Slower,
            false if is_below(beyond) => Self::Faster,
            false if is_above(controls) => Self::SomewhatSlower,
            false if is_below(controls) => Self::SomewhatFaster,
            false => Self::Inconclusive,
        }
    }

    /// As [`Verdict::from_interval`], with another limit in the place of [`MOST_SAME`].
    pub fn by(interval: Interval, threshold: f64, most_same: f64) -> Self {
        let within =
            |threshold: f64| interval.low >= 1.0 / (1.0 + threshold) && interval.high <= 1.0 + threshold;
        if interval.low > 1.0 + threshold {
            Self::Slower
        } else if interval.high < 1.0 / (1.0 + threshold) {
            Self::Faster
        } else if within(threshold.min(most_same)) {
            Self::Same
        } else {
            Self::Inconclusive
        }
    }

    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Slower,
        Self::SomewhatSlower,
        Self::Faster,
        Self::SomewhatFaster,
        Self::Same,
        Self::Inconclusive,
    ];

    /// Whether it is a significant difference, of whatever size.
    pub fn is_difference(self) -> bool {
        !matches!(self, Self::Same | Self::Inconclusive)
    }

    /// Whether it is a difference of more than the margin.
    pub fn is_beyond_margin(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// `0.3 %`, `1 %`.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}
