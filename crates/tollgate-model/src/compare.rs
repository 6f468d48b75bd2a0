//! Verdicts: round by round within a run; turn by turn between two environments that were alternated; unpaired between any two
//! runs; and of counts of instructions, which have no noise.
//!
//! Every kind of comparison of times ends in an interval of the ratio and a noise threshold. [`Verdict::of`] joins them where no turns
//! alternated.

mod alternated;
mod counted;
mod facts;
mod halves;
mod index;
mod levels;
mod margins;
mod paired;
mod rounds;
mod rows;
mod runs;
mod sides;
mod spread;
mod threshold;
mod total;
mod turns;
mod withheld;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::disturbance::Disturbance;
use crate::run::Run;
use crate::stats::Interval;
use index::Index;

pub use alternated::{Neighbours, neighbours};
pub use facts::{FactDifference, is_volatile};
pub use halves::Halves;
pub use margins::QUANTITY;
pub use paired::{Paired, paired, paired_rows};
pub use rows::{Alternation, ComparedCase, Comparison, NotCompared, interval_name};
pub use spread::{Basis, Spread, is_of_machine};
pub use threshold::{LEAST_THRESHOLD, MOST_EXCUSE, margin};
pub use total::{CONFIDENCE_OF_TOTAL, Total};

/// Values that may differ by more than this are never the same, however high the threshold.
pub const MOST_SAME: f64 = 0.05;

/// Compares two runs case by case: turn with turn where they are environments of one session that alternated, and unpaired
/// otherwise, see [`Comparison::is_alternated`].
///
/// Where a value is below the detection limit in either run there is no ratio: values of which only an upper bound
/// is known may differ by any factor.
pub fn compare(base: &Run, other: &Run) -> Comparison {
    compare_above(base, other, 0.0)
}

/// The same where no relative difference of up to `asked` counts: no row's threshold is lower, and a row whose whole interval lies
/// within `asked` is the same. Of times that were not alternated it changes nothing up to [`LEAST_THRESHOLD`]; counts have no other
/// threshold. See [`margin`] for turns that alternated.
pub fn compare_above(base: &Run, other: &Run, asked: f64) -> Comparison {
    compare_knowing(base, other, asked, &Spread::default())
}

/// The same where it is known how far runs of the machine lie apart.
pub fn compare_knowing(base: &Run, other: &Run, asked: f64, spread: &Spread) -> Comparison {
    let is_counting = counted::is_counting(base) || counted::is_counting(other);
    // What disturbs a turn disturbs its neighbour too.
    if alternated::share_turns(base, other) && !is_counting {
        return alternated::alternated(&Index::new(base), &Index::new(other), asked);
    }
    let apart = spread.apart(base, other);
    let (disturbed_base, disturbed_other) = (Disturbance::of(base), Disturbance::of(other));
    let (base, other) = (disturbed_base.left_out(base), disturbed_other.left_out(other));
    runs::unpaired(&Index::new(&base), &Index::new(&other), asked, spread, &apart)
}

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
    pub fn of(interval: Interval, threshold: f64) -> Self {
        Self::by(interval, threshold, MOST_SAME)
    }

    /// The verdict where turns alternated: slower if all of the interval is above 1 + `margin` and 1 + `controls`; the same if all of
    /// it is within the margin; somewhat slower if all of it is above 1 + `controls`. Likewise faster.
    fn by_margin(interval: Interval, margin: f64, controls: f64) -> Self {
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

    /// As [`Verdict::of`], with another limit in the place of [`MOST_SAME`].
    fn by(interval: Interval, threshold: f64, most_same: f64) -> Self {
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

/// The confidence of each of `rows` intervals: all of them hold together with 95 % (Bonferroni's inequality), and
/// each alone with at least 99 %. So at most one in a hundred rows without a difference is called different, with
/// any number of rows.
fn confidence_of_each(rows: usize) -> f64 {
    const TOGETHER: f64 = 0.05;
    const EACH: f64 = 0.01;
    1.0 - (TOGETHER / rows.max(1) as f64).min(EACH)
}

/// Three decimals, or an exponent where all of them would be zeros.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-3..1e6).contains(&size) => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// `0.3 %`, `1 %`.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

fn spans_threshold(interval: Interval, threshold: f64) -> String {
    let Interval { low, high } = interval;
    format!("the ratio is between {low:.3} and {high:.3}, the threshold is {:.1} %", threshold * 100.0)
}
