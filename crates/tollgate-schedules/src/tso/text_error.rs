use thiserror::Error;

/// Why a text is not a program, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct TextError {
    /// Line number, from 1.
    pub line: usize,
    /// The error, and a correct form.
    pub problem: String,
}
