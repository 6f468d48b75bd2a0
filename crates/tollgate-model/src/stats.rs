//! Order statistics and distribution-free intervals.
//!
//! No figure of tollgate's own is a mean: one interrupt changes a mean and leaves a median.

mod anytime;
mod correlation;
mod interval;
mod modes;
mod normal;
mod order;
mod series;
mod shift;
mod total;
mod trend;
mod trimmed;

pub use anytime::{anytime_interval, settled_interval};
pub use interval::{Interval, median_interval};
pub use modes::{Mode, modes};
pub use order::{median, quantile};
pub use series::{Drift, drift, effective_number, series_interval};
pub use shift::{Shift, shift};
pub use trimmed::trimmed_mean;

pub(crate) use anytime::{Ends, FEWEST, ranked_interval};
pub(crate) use correlation::rank_correlation;
pub(crate) use interval::sign_test_rank;
pub(crate) use modes::modes_of_sorted;
pub(crate) use normal::{normal_quantile, student};
pub(crate) use order::{inner, median_of, sorted};
pub(crate) use series::independent_number;
pub(crate) use shift::{pseudomedian, share_not_above};
pub(crate) use total::ratio_of_totals;
pub(crate) use trend::slope;
