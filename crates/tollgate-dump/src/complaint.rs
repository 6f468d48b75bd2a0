//! Errors in a line that looks like data.

use crate::{format::Format, line::excerpt};

/// A line that looks like data that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The line, from 1.
    pub line: usize,
    /// The format that it was read as.
    pub format: Format,
    /// The error.
    pub wrong: Wrong,
}

/// An error in data. Its text is a sentence with the correct form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A number of digits that makes no whole bytes.
    #[error("{word} has {digits} digits; a byte takes two")]
    OddDigits {
        /// The digits, or the first of them.
        word: String,
        /// How many.
        digits: usize,
    },
    /// Words of several widths, so that the number of bytes of each is unknown.
    #[error("{word} has {other} digits after words of {first}; words of one width can be separated")]
    MixedWidths {
        /// Digits of the first.
        first: usize,
        /// Digits of one that differs.
        other: usize,
        /// That one.
        word: String,
    },
    /// A row with more text beside the bytes than bytes.
    #[error("the row has {bytes} bytes and {characters} characters beside them; there is one for each byte")]
    RowTooShort {
        /// How many bytes.
        bytes: usize,
        /// How many characters beside them.
        characters: usize,
    },
    /// A row that ends within a word.
    #[error("the row ends with {word:?}; its words have {digits} digits")]
    EndsWithinWord {
        /// The part of it that is there.
        word: String,
        /// How many digits the others have.
        digits: usize,
    },
    /// A row that goes past the last address.
    #[error("the row goes past the last address, which is 2^64 - 1")]
    PastTheEnd,
    /// A value that is too large for its field.
    #[error("{word} does not fit into {bytes} bytes")]
    TooLarge {
        /// The value.
        word: String,
        /// The size of the field in bytes.
        bytes: usize,
    },
    /// A line that is longer than the limit.
    #[error("the line is longer than {limit} bytes, and the rest of it was not read")]
    LineTooLong {
        /// How many bytes are read of a line.
        limit: usize,
    },
}

impl Wrong {
    pub(crate) fn odd(word: &str, digits: usize) -> Self {
        Self::OddDigits { word: excerpt(word).to_owned(), digits }
    }

    pub(crate) fn mixed(first: usize, word: &str, other: usize) -> Self {
        Self::MixedWidths { first, other, word: excerpt(word).to_owned() }
    }

    pub(crate) fn within(word: &str, digits: usize) -> Self {
        Self::EndsWithinWord { word: excerpt(word).to_owned(), digits }
    }
}
