//! Estimates and verdicts, and how often they are wrong.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise, its helpers too"
)]

mod alternated;
mod any_run;
mod counted;
mod disturbance;
mod documents;
mod estimates;
mod rates_alternated;
mod rates_between_runs;
mod rates_however_often;
mod rates_of_few_pairs;
mod rates_of_layouts;
mod rates_of_statistics;
mod rates_within_a_run;
mod support;
