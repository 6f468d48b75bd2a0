//! Verdicts, paired within a run and unpaired between two.
//!
//! - `runs`: two runs side by side.
//! - `paired`: two cases of one run, round by round.
//! - `rounds`: two cases joined by their rounds.
//! - `floor`: the difference below which nothing is called.
//! - `facts`: what differs between two places.
//!
//! Both kinds of comparison end in [`Verdict::of`]: an interval of the ratio held against a floor.

mod facts;
mod index;
mod paired;
mod rounds;
mod runs;
mod threshold;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stats::Interval;

pub use facts::{FactDifference, is_volatile};
pub use paired::{Paired, paired, paired_rows};
pub use runs::{Comparison, Row, compare};
pub use threshold::LEAST_THRESHOLD;

/// However high the floor, prices that may differ by more than this are not called the same.
pub const MOST_SAME: f64 = 0.05;

/// What two prices say when they are held side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// Cheaper by more than the floor.
    #[serde(rename = "faster")]
    Faster,
    /// Dearer by more than the floor.
    #[serde(rename = "slower")]
    Slower,
    /// Any difference is smaller than the floor.
    #[serde(rename = "same")]
    Same,
    /// The samples do not decide.
    #[serde(rename = "cannot tell")]
    Inconclusive,
}

impl Verdict {
    /// What an interval of the ratio other / base says against a floor: slower if all of it is above
    /// 1 + `floor`, faster if all of it is below 1 / (1 + `floor`). Same if all of it is between the two,
    /// boundaries included, and no further from 1 than [`MOST_SAME`]: two runs too restless to tell 50 %
    /// apart must not be called the same for that.
    pub fn of(interval: Interval, threshold: f64) -> Self {
        let within =
            |threshold: f64| interval.low >= 1.0 / (1.0 + threshold) && interval.high <= 1.0 + threshold;
        if interval.low > 1.0 + threshold {
            Self::Slower
        } else if interval.high < 1.0 / (1.0 + threshold) {
            Self::Faster
        } else if within(threshold.min(MOST_SAME)) {
            Self::Same
        } else {
            Self::Inconclusive
        }
    }

    /// Whether a difference is claimed.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Inconclusive => "cannot tell",
        })
    }
}

/// The confidence of each of `rows` intervals so that all of them hold together with 95 % (Bonferroni's
/// inequality), and each alone with at least 99 %: of a hundred rows without a difference at most one is
/// called different, however few rows there are.
fn confidence_of_each(rows: usize) -> f64 {
    const TOGETHER: f64 = 0.05;
    const EACH: f64 = 0.01;
    1.0 - (TOGETHER / rows.max(1) as f64).min(EACH)
}

/// Three digits, or an exponent where they would all be zeros.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-3..1e6).contains(&size) => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

fn reaches_across(interval: Interval, threshold: f64) -> String {
    let Interval { low, high } = interval;
    format!("the ratio is between {low:.3} and {high:.3}, the floor is {:.1} %", threshold * 100.0)
}
