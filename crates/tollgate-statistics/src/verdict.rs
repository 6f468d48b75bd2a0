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
    /// Returns the verdict by an interval of other / base. Slower: all of it is above 1 + `threshold`. Faster: all of it is below
    /// 1 / (1 + `threshold`). Same: all of it lies between the two, ends included, and no further from 1 than [`MOST_SAME`]:
    /// noise that hides 50 % does not make two runs the same.
    pub fn from_interval(interval: Interval, threshold: f64) -> Self {
        Self::by(interval, threshold, MOST_SAME)
    }

    /// Returns the verdict when turns alternated. Slower: all of the interval is above 1 + `margin` and 1 + `controls`. Same: all
    /// of it is within the margin. Somewhat slower: all of it is above 1 + `controls`. Faster is symmetric.
    pub fn by_margin(interval: Interval, margin: f64, controls: f64) -> Self {
        let is_above = |by: f64| interval.low > 1.0 + by;
        let is_below = |by: f64| interval.high < 1.0 / (1.0 + by);
        let beyond = margin.max(controls);
        if interval.low >= 1.0 / (1.0 + margin) && interval.high <= 1.0 + margin {
            Self::Same
        } else if is_above(beyond) {
            Self::Slower
        } else if is_below(beyond) {
            Self::Faster
        } else if is_above(controls) {
            Self::SomewhatSlower
        } else if is_below(controls) {
            Self::SomewhatFaster
        } else {
            Self::Inconclusive
        }
    }

    /// Like [`Verdict::from_interval`], with another limit than [`MOST_SAME`].
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

    /// Every verdict, the differences first.
    pub const ALL: [Self; 6] = [
        Self::Slower,
        Self::SomewhatSlower,
        Self::Faster,
        Self::SomewhatFaster,
        Self::Same,
        Self::Inconclusive,
    ];

    /// Whether it is a significant difference of any size.
    pub fn is_difference(self) -> bool {
        !matches!(self, Self::Same | Self::Inconclusive)
    }

    /// Whether it is a difference beyond the margin.
    pub fn is_beyond_margin(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Writes a share as percent: `0.3 %`, `1 %`.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}
