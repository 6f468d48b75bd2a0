//! Operations of calls on files, and on the caller's descriptors.

use super::sums::Key;
pub(super) use crate::operations::{Names, Operation};

/// The operation of a call on a file. None where it has none.
pub(super) fn operation(key: Key) -> Option<Operation> {
    Operation::of(key.base_name()?)
}

/// Which of a process's descriptors a call makes others of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    First,
    Second,
    Many,
    None,
}

impl Replaces {
    /// Those of a call.
    pub fn of(key: Key) -> Self {
        match key.base_name() {
            Some("close") => Self::First,
            Some("dup2" | "dup3") => Self::Second,
            Some("close_range" | "unshare") => Self::Many,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls;

    #[test]
    fn calls_are_known_by_their_numbers() {
        let key = |name: &str| {
            let number = calls::number(name).and_then(|numbers| numbers.x86_64).expect("a number");
            Key { number: number.into(), is_32_bit: false }
        };
        assert_eq!(operation(key("pread64")).map(|operation| operation.name), Some("read"));
        assert_eq!(operation(Key { number: -1, is_32_bit: true }), None);
        assert_eq!(Replaces::of(key("dup2")), Replaces::Second);
    }
}
