//! Kernels that have a feature without its option, because the option came later or was removed.

use crate::text::Configuration;
use crate::value::Value;

/// A kernel version: 6.18.0, 2.6.32.
type Version = (u32, u32, u32);

/// A range of kernels that have a feature without its option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Without {
    /// A clause that says how these kernels behave.
    pub text: &'static str,
    /// The first of these kernels.
    pub since: Version,
    /// The first kernel after them.
    pub before: Version,
    /// The machines to which this applies.
    pub machine: Machine,
}

/// The machines to which a [`Without`] applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// Every machine.
    Any,
    /// x86, 32-bit or 64-bit.
    X86,
    /// x86-64 only.
    X86_64,
}

impl Without {
    /// Kernels whose feature is older than the option.
    pub(super) const fn between(since: Version, before: Version, text: &'static str) -> Self {
        Self { text, since, before, machine: Machine::Any }
    }

    /// Kernels from which the option was removed.
    pub(super) const fn since(since: Version, text: &'static str) -> Self {
        Self::between(since, (u32::MAX, 0, 0), text)
    }

    pub(super) const fn on(self, machine: Machine) -> Self {
        Self { machine, ..self }
    }

    /// Returns whether the configuration belongs to such a kernel; `false` if it does not name its version.
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
