use core::fmt;

/// A number that may be unknown, with its width in bytes.
///
/// It is shown in hexadecimal with all its digits, or as "not known".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    /// The value, if known.
    pub value: Option<u64>,
    /// Width in bytes.
    pub bytes: u8,
}

impl Number {
    pub(super) const fn new(value: Option<u64>, bytes: u8) -> Self {
        Self { value, bytes }
    }

    pub(super) const fn name_of(self, names: [&'static str; 3]) -> &'static str {
        match self.bytes {
            8 => names[0],
            4 => names[1],
            _ => names[2],
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{value:0digits$x}", digits = usize::from(self.bytes) * 2),
            None => f.write_str("not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn all_digits_are_shown() {
        assert_eq!(Number::new(Some(0x80), 4).to_string(), "00000080");
        assert_eq!(Number::new(Some(0x80), 8).to_string(), "0000000000000080");
        assert_eq!(Number::new(None, 8).to_string(), "not known");
    }
}
