//! Kernels that have a feature without its option: those before the option came, or since it went.

use crate::text::Configuration;
use crate::value::Value;

/// The numbers of a kernel's version: 6.18.0, 2.6.32.
type Version = (u32, u32, u32);

/// Kernels that have a feature without its option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Without {
    /// What they do: a clause.
    pub text: &'static str,
    /// The first of them.
    pub since: Version,
    /// The first after them.
    pub before: Version,
    /// On which machines.
    pub machine: Machine,
}

/// The machines that a kernel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// All.
    Any,
    /// x86, of 32 and 64 bits.
    X86,
    /// x86-64.
    X86_64,
}

impl Without {
    /// Kernels in which the feature is older than the option.
    pub(super) const fn between(since: Version, before: Version, text: &'static str) -> Self {
        Self { text, since, before, machine: Machine::Any }
    }

    /// Kernels in which the option is gone.
    pub(super) const fn since(since: Version, text: &'static str) -> Self {
        Self::between(since, (u32::MAX, 0, 0), text)
    }

    pub(super) const fn on(self, machine: Machine) -> Self {
        Self { machine, ..self }
    }

    /// Whether the configuration is of such a kernel; one that does not say its version is not judged.
    pub fn is_of(&self, configuration: &Configuration) -> bool {
        let is_built_in = |name: &str| configuration.value(name) == Some(&Value::BuiltIn);
        let is_machine = match self.machine {
            Machine::Any => true,
            Machine::X86 => configuration.architecture() == Some("x86"),
            Machine::X86_64 => {
                configuration.architecture() == Some("x86") && (is_built_in("64BIT") || is_built_in("X86_64"))
            }
        };
        is_machine
            && configuration.release().is_some_and(|version| self.since <= version && version < self.before)
    }
}
