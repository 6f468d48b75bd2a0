//! Order statistics, distribution-free intervals that hold at every look, and verdicts by pairs that were neighbours in time.
//!
//! tollgate never reports a mean of its own: one interrupt changes a mean, but not a median.
//!
//! - [`median`], [`quantile`], [`trimmed_mean`], [`modes`](fn@modes): describe a series.
//! - [`median_interval`], [`series_interval`], [`anytime_interval`]: how precisely a median is known. They are for one look, for
//!   a series whose neighbours resemble each other, and for every look.
//! - [`shift`](fn@shift), [`ratio_of_totals`]: how far two series lie apart.
//! - [`neighbours`]: pairs and their [`Verdict`], by [`Margins`].
//! - [`Layouts`]: two sides that were linked several times, compared across their layouts.
//! - [`random`]: a random order that can be repeated.

#![forbid(unsafe_code)]

mod anytime;
mod correlation;
mod interval;
mod layouts;
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
pub use layouts::{FEWEST_LAYOUTS, Layouts};
pub use margins::{
    Margins, QUANTITY, confidence_of_different, confidence_of_each, exp, interval_of, margin,
    pairs_that_decide,
};
pub use modes::{Mode, modes, modes_of_sorted};
pub use normal::{normal_quantile, student};
pub use order::{inner, median, median_of, quantile, sorted};
pub use pairs::{MOST_WITHOUT, Neighbours, across_layouts, neighbours};
pub use series::{Drift, drift, effective_number, independent_number, series_interval};
pub use shift::{Shift, pseudomedian, share_not_above, shift};
pub use total::{CONFIDENCE_OF_TOTAL, Total};
pub use totals::ratio_of_totals;
pub use trend::slope;
pub use trimmed::trimmed_mean;
pub use verdict::{MOST_SAME, Verdict, percent};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
