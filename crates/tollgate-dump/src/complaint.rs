//! Errors in a line that looks like data.

use std::fmt;

use crate::format::Format;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A number of digits that makes no whole bytes.
    OddDigits {
        /// The digits, or the first of them.
        word: String,
        /// How many.
        digits: usize,
    },
    /// Words of several widths, so that the number of bytes of each is unknown.
    MixedWidths {
        /// Digits of the first.
        first: usize,
        /// Digits of one that differs.
        other: usize,
        /// That one.
        word: String,
    },
    /// A row with more text beside the bytes than bytes.
    RowTooShort {
        /// How many bytes.
        bytes: usize,
        /// How many characters beside them.
        characters: usize,
    },
    /// A row that ends within a word.
    EndsWithinWord {
        /// The part of it that is there.
        word: String,
        /// How many digits the others have.
        digits: usize,
    },
    /// A row that goes past the last address.
    PastTheEnd,
    /// A value that is too large for its field.
    TooLarge {
        /// The value.
        word: String,
        /// The size of the field in bytes.
        bytes: usize,
    },
    /// A line that is longer than the limit.
    LineTooLong {
        /// How many bytes are read of a line.
        limit: usize,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OddDigits { word, digits } => {
                write!(f, "{word} has {digits} digits; a byte takes two")
            }
            Self::MixedWidths { first, other, word } => write!(
                f,
                "{word} has {other} digits after words of {first}; words of one width can be separated"
            ),
            Self::RowTooShort { bytes, characters } => write!(
                f,
                "the row has {bytes} bytes and {characters} characters beside them; there is one for each byte"
            ),
            Self::EndsWithinWord { word, digits } => {
                write!(f, "the row ends with {word:?}; its words have {digits} digits")
            }
            Self::PastTheEnd => f.write_str("the row goes past the last address, which is 2^64 - 1"),
            Self::TooLarge { word, bytes } => {
                write!(f, "{word} does not fit into {bytes} bytes")
            }
            Self::LineTooLong { limit } => {
                write!(f, "the line is longer than {limit} bytes, and the rest of it was not read")
            }
        }
    }
}
