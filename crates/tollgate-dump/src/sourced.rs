//! A value with its source lines.

/// A value and the lines that it came from, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The lines, from 1, in the order in which they were read.
    pub lines: Vec<usize>,
}

impl<T> Sourced<T> {
    /// A value that one line says.
    pub(crate) fn at(value: T, line: usize) -> Self {
        Self { value, lines: vec![line] }
    }
}
