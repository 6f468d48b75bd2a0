/// A value with its source lines, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The lines, from 1, in the order in which they were read.
    pub lines: Vec<usize>,
}

impl<T> Sourced<T> {
    pub(crate) fn at(value: T, line: usize) -> Self {
        Self { value, lines: vec![line] }
    }
}
