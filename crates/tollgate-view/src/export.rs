//! Runs as data for other systems.
//!
//! - [`metric`]: what there is to tell of a run, one [`Metric`] a case and quantity; every format is made from these.
//! - [`histogram`]: samples as counts that can be added up over machines.
//! - [`mod@row`]: the long form, one line of JSON a metric with the facts that are asked for most.
//! - [`layout`]: the files of a run in a directory that many machines share.
//! - [`openmetrics`], [`bmf`], [`csv`]: the formats of others.
//!
//! Run documents may come from anybody. Each format writes text by its own rules, so that it reads back as the same text, and what
//! is repeated on each line is cut at [`MOST_TEXT`].

pub mod bmf;
pub mod csv;
pub mod environment;
mod hash;
pub mod histogram;
pub mod layout;
pub mod metric;
pub mod openmetrics;
pub mod row;
pub mod time;

pub use metric::{Figures, Metric, State};

/// The most characters of a text that stands on each line of a run.
pub const MOST_TEXT: usize = 256;

/// A text for each line: whole, or its beginning and `…`.
fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The word that JSON has for it.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
