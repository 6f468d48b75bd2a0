//! The architectures.

use std::fmt::{self, Display, Formatter};

pub use crate::chosen::HERE;

/// An architecture that this program can be compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86_64,
    /// arm64.
    Arm64,
}

impl Architecture {
    /// All architectures.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Arm64];
    /// Their names in `vm:arch=`, in the same order.
    pub const WORDS: [&'static str; 2] = ["x86-64", "arm64"];

    /// The name in `vm:arch=`.
    pub fn name(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Whether this program was compiled for this architecture.
    pub fn is_here(self) -> bool {
        self == HERE
    }

    /// Returns the architecture that uname(2) calls `machine`; `None` for any other machine.
    pub fn named(machine: &str) -> Option<Self> {
        match machine {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// Returns the first of two names separated by `/` on x86-64, the second on arm64, and a single name as it is.
    pub fn spelling(self, names: &str) -> &str {
        names.split_once('/').map_or(names, |(x86, arm64)| if self == Self::Arm64 { arm64 } else { x86 })
    }
}

impl Display for Architecture {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The architecture of this program.
impl Default for Architecture {
    fn default() -> Self {
        HERE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_of_one_and_other_names_are_of_none() {
        assert_eq!(Architecture::named(std::env::consts::ARCH), Some(HERE));
        assert_eq!(Architecture::ALL.map(Architecture::name), Architecture::WORDS);
        assert_eq!([Architecture::named("riscv64"), Architecture::named("")], [None, None]);
        let spelled = |names| [Architecture::X86_64, Architecture::Arm64].map(|on| on.spelling(names));
        assert_eq!([spelled("xchg/swpal"), spelled("int")], [["xchg", "swpal"], ["int", "int"]]);
    }
}
