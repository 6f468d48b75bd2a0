//! The text and data about runs. A [`summary`] has all figures of a run; [`rules`], `health` and `advice` judge them, [`causes`]
//! explains differences, and text (`pictures`, in the tables and figures of [`tollgate_output`]), a page ([`page`]) and data for
//! other systems ([`export`]) show them.
//!
//! All of it is pure: it turns runs into values and text, and reads and prints nothing.

#![forbid(unsafe_code)]

mod advice;
mod atlas;
pub mod benchmarks;
pub mod bill;
mod blame;
pub mod burdens;
pub mod causes;
pub mod compare;
pub mod comparison;
pub mod counts;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod facts;
mod health;
pub mod inspect;
pub mod page;
mod pictures;
pub mod proven;
pub mod quality;
pub mod report;
pub mod rules;
pub mod screen;
pub mod session;
pub mod show;
pub mod summary;
mod together;
pub mod versus;
