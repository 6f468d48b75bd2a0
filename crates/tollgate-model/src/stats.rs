//! Order statistics and the intervals that need no distribution.
//!
//! - `order`: the median and other quantiles.
//! - `interval`: the sign test and its interval of a median.
//! - `shift`: how far one group lies beyond another, by ranks.
//! - `trend`: how much values climb or fall in the order of time.
//! - `trimmed`: the estimator of a published comparison.
//! - `modes`: whether samples gather at two levels.
//!
//! Means are not used for any figure of ours: one interrupt moves a mean and leaves a median.

mod interval;
mod modes;
mod normal;
mod order;
mod shift;
mod trend;
mod trimmed;

pub use interval::{Interval, median_interval};
pub use modes::{Mode, modes};
pub use order::{median, quantile};
pub use shift::{Shift, shift};
pub use trimmed::trimmed_mean;

pub(crate) use interval::sign_test_rank;
pub(crate) use modes::modes_of_sorted;
pub(crate) use order::sorted;
pub(crate) use shift::share_not_above;
pub(crate) use trend::slope;
