//! What is wrong with a text.

use thiserror::Error;

/// A text that is no program: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}
