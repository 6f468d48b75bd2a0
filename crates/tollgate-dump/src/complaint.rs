use crate::{format::Format, line::excerpt};

/// A line that looks like damaged data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Line number, from 1.
    pub line: usize,
    /// The format that it was read as.
    pub format: Format,
    /// The error.
    pub wrong: Wrong,
}

/// An error in data. Its message is a sentence with the correct form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The number of digits is odd.
    #[error("{word} has {digits} digits; a byte takes two")]
    OddDigits {
        /// The word, or its beginning.
        word: String,
        /// Its number of digits.
        digits: usize,
    },
    /// Words differ in width, so the number of bytes of each is unknown.
    #[error("{word} has {other} digits after words of {first}; words of one width can be separated")]
    MixedWidths {
        /// Digits of the first word.
        first: usize,
        /// Digits of the word that differs.
        other: usize,
        /// The word that differs.
        word: String,
    },
    /// A row has more characters beside the bytes than bytes.
    #[error(
        "the row has {bytes} bytes and {characters} characters beside them; there must be one for each byte"
    )]
    RowTooShort {
        /// Number of bytes.
        bytes: usize,
        /// Number of characters beside them.
        characters: usize,
    },
    /// A row ends within a word.
    #[error("the row ends with {word:?}; its words have {digits} digits")]
    EndsWithinWord {
        /// The incomplete word.
        word: String,
        /// Number of digits of the other words.
        digits: usize,
    },
    /// A row goes past the last address.
    #[error("the row goes past the last address, which is 2^64 - 1")]
    PastTheEnd,
    /// A value is too large for its field.
    #[error("{word} does not fit into {bytes} bytes")]
    TooLarge {
        /// The value.
        word: String,
        /// The size of the field in bytes.
        bytes: usize,
    },
    /// A line is longer than the limit.
    #[error("the line is longer than {limit} bytes, and the rest of it was not read")]
    LineTooLong {
        /// The most bytes that are read of a line.
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
