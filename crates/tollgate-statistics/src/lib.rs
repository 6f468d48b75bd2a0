//! Order statistics, intervals without an assumption on the distribution that hold however often one looks, and the verdicts of pairs that
//! were neighbours in time.
//!
//! No figure of tollgate's own is a mean: one interrupt changes a mean and leaves a median.
//!
//! - [`median`], [`quantile`], [`trimmed_mean`], [`modes`](fn@modes): what a series is.
//! - [`median_interval`], [`series_interval`], [`anytime_interval`]: how far it is known; for one look, for a series whose neighbours
//!   resemble each other, and for every look.
//! - [`shift`](fn@shift), [`ratio_of_totals`]: how far two series lie apart.
//! - [`neighbours`]: pairs and their [`Verdict`], by [`Margins`].
//! - [`random`]: a random order that can be drawn again.

#![forbid(unsafe_code)]

mod anytime;
mod correlation;
mod interval;
mod margins;
mod modes;
mod normal;
mod order;
mod pairs;
pub mod random;
mod series;
mod shift;
mod total;
mod totals;
mod trend;
mod trimmed;
mod verdict;

pub use anytime::{Ends, FEWEST, anytime_interval, ranked_interval, settled_interval};
pub use correlation::rank_correlation;
pub use interval::{Interval, median_interval, sign_test_rank};
pub use margins::{
    Margins, QUANTITY, confidence_of_different, confidence_of_each, exp, interval_of, margin,
    pairs_that_decide,
};
pub use modes::{Mode, modes, modes_of_sorted};
pub use normal::{normal_quantile, student};
pub use order::{inner, median, median_of, quantile, sorted};
pub use pairs::{MOST_WITHOUT, Neighbours, neighbours};
pub use series::{Drift, drift, effective_number, independent_number, series_interval};
pub use shift::{Shift, pseudomedian, share_not_above, shift};
pub use total::{CONFIDENCE_OF_TOTAL, Total};
pub use totals::ratio_of_totals;
pub use trend::slope;
pub use trimmed::trimmed_mean;
pub use verdict::{MOST_SAME, Verdict, percent};

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
