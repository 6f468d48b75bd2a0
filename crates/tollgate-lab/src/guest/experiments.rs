//! The experiments, and the expected outcome of each. `experiments.s` has their code, by the same numbers.

mod list;

use tollgate_x86::Vendor;

pub use list::EXPERIMENTS;

/// The subject of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// From ring 3 to ring 0 and back, at the program's request.
    Crossings,
    /// From ring 3 to ring 0 and back, by an exception.
    Traps,
    /// A piece of a kernel's entry, by itself.
    Pieces,
    /// Operations of a program that may disable interrupts.
    Interrupts,
    /// A setup that the processor must refuse; attempted once and not measured.
    Wrong,
}

impl Group {
    /// Returns the word for all experiments of the group.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crossings => "crossings",
            Self::Traps => "traps",
            Self::Pieces => "pieces",
            Self::Interrupts => "interrupts",
            Self::Wrong => "wrong",
        }
    }
}

/// The ring and mode in which an operation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Ring 0.
    Kernel,
    /// Ring 3, 64-bit mode.
    Program,
    /// Ring 3, compatibility mode.
    Compatibility,
}

/// A feature that a processor may lack. The guest asks CPUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// SYSCALL and SYSRET: CPUID 80000001h, EDX bit 11.
    Syscall,
    /// SYSENTER and SYSEXIT: CPUID 1, EDX bit 11.
    Sysenter,
    /// Process-context identifiers: CPUID 1, ECX bit 17.
    Pcid,
    /// The MSR SPEC_CTRL, 48h: CPUID 7, EDX bits 26, 27, 31; on AMD processors CPUID 80000008h, EBX bits 14, 15, 24.
    SpecCtrl,
}

impl Feature {
    /// All features, in order of their bits.
    pub const ALL: [Self; 4] = [Self::Syscall, Self::Sysenter, Self::Pcid, Self::SpecCtrl];

    /// Returns the feature's bit in the guest's records.
    pub const fn bit(self) -> u64 {
        1 << self as u64
    }

    /// Returns the feature's name in the manuals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syscall => "SYSCALL",
            Self::Sysenter => "SYSENTER",
            Self::Pcid => "PCID",
            Self::SpecCtrl => "SPEC_CTRL",
        }
    }
}

/// The outcome that the manuals state.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expected {
    /// It completes.
    Done,
    /// The first operation faults, with an error code (or 0) and in the given ring.
    Fault { vector: u8, error: u32, ring: u8 },
}

/// One experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// Number of the experiment, here and in records; those below 40h are measured.
    pub number: u8,
    /// Name on the command line.
    pub name: &'static str,
    /// Subject.
    pub group: Group,
    /// Ring and mode in which the operation begins.
    pub from: Origin,
    /// Description, a sentence.
    pub about: &'static str,
    /// The instructions of one operation, in order.
    pub operation: &'static str,
    /// A feature that the processor must have.
    pub needs: Option<Feature>,
    /// Whether a handler counts each operation. Other experiments reach no handler.
    pub counted: bool,
    /// The value that the operation computes or finds, if it is the same each time.
    pub value: Option<u64>,
    /// Outcome on an Intel processor.
    pub intel: Expected,
    /// Outcome on an AMD processor.
    pub amd: Expected,
}

impl Experiment {
    /// Finds an experiment by its name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.name == name)
    }

    /// Finds an experiment by its number.
    pub fn numbered(number: u8) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.number == number)
    }

    /// Returns whether a run without a choice includes it: all but the wrong setups.
    pub fn is_measured(&self) -> bool {
        self.group != Group::Wrong
    }

    /// Returns the outcome that the vendor's manual states.
    pub fn expected(&self, vendor: Vendor) -> Expected {
        match vendor {
            Vendor::Intel => self.intel,
            Vendor::Amd => self.amd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_one_to_one_and_in_order() {
        assert!(EXPERIMENTS.windows(2).all(|pair| pair[0].number < pair[1].number));
        for experiment in EXPERIMENTS {
            assert_eq!(Experiment::by_name(experiment.name), Some(experiment));
            assert_eq!(Experiment::numbered(experiment.number), Some(experiment));
            assert_eq!(experiment.is_measured(), experiment.number < 0x40, "{}", experiment.name);
            assert!(experiment.about.ends_with('.'), "{}", experiment.name);
            let is_refused = |expected| matches!(expected, Expected::Fault { .. });
            let refused = [experiment.intel, experiment.amd].map(is_refused);
            assert!(
                refused == [!experiment.is_measured(); 2] || experiment.is_measured() && refused != [true; 2]
            );
        }
    }

    #[test]
    fn features_have_the_bits_of_the_guest() {
        let source = include_str!("experiments.s");
        for feature in Feature::ALL {
            let line = format!(".set .LHAS_{}, {}\n", feature.name(), feature.bit());
            assert!(source.contains(&line), "{line}");
        }
    }
}
