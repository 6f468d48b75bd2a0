//! The architectures.

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
    /// Returns the one that uname(2) calls so; `None` for any other machine.
    pub fn named(machine: &str) -> Option<Self> {
        match machine {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }
}

/// That of this program.
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
        assert_eq!([Architecture::named("riscv64"), Architecture::named("")], [None, None]);
    }
}
