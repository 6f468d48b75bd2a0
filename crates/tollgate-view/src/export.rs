//! Runs as data for other systems.
//!
//! Run documents are untrusted. Each format escapes text by its own rules, so that it reads back unchanged. Texts that are
//! repeated on each line are cut at [`MOST_TEXT`].

pub mod bmf;
pub mod csv;
pub mod environment;
pub mod facts;
mod hash;
pub mod histogram;
pub mod metric;
pub mod openmetrics;
pub mod row;
pub mod session;
pub mod time;

pub use metric::Metric;

/// The most characters of a text that is repeated on each line of a run.
pub const MOST_TEXT: usize = 256;

pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(crate) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
