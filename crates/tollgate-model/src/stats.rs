//! Order statistics and distribution-free intervals.
//!
//! No figure of tollgate's own is a mean: one interrupt changes a mean and leaves a median.

mod correlation;
mod interval;
mod modes;
mod narrower;
mod normal;
mod order;
mod series;
mod shift;
mod signed;
mod trend;
mod trimmed;

pub use interval::{Interval, median_interval};
pub use modes::{Mode, modes};
pub use order::{median, quantile};
pub use series::{Drift, drift, effective_number, series_interval};
pub use shift::{Shift, shift};
pub use trimmed::trimmed_mean;

pub(crate) use correlation::rank_correlation;
pub(crate) use interval::sign_test_rank;
pub(crate) use modes::modes_of_sorted;
pub(crate) use narrower::narrower_centre;
pub(crate) use order::{inner, median_of, sorted};
pub(crate) use shift::share_not_above;
pub(crate) use signed::{Centre, FEWEST_PAIRS, centre};
pub(crate) use trend::slope;
