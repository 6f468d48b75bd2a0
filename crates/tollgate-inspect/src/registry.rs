//! The table of all facts, and the only list of their names; help and documentation are generated from it.

use std::path::Path;

use tollgate_arch::architecture::Architecture::{self, Arm64, X86_64};
use tollgate_model::{Effect, Fact, Facts};

use crate::leaves::{Bit, Register};
use crate::machine::{self, Answer, Machine};
use crate::processor as processors;

/// Makes the reader of a fact: `Of` takes a function and its arguments after the machine, `Under` one with a directory before these
/// arguments; `X86` and `Arm64` take what `Of` does, for a fact that only that architecture has. Others read a file's content (`Line`, `Number`,
/// `Flag` for 0 or 1, `Choice` for the one in brackets), a `Parameter` of the kernel's command line, the mitigation of a
/// `Vulnerability`, or a `Limit` of this process by its words in /proc/self/limits and its name and number for getrlimit(2). The rest
/// are variants of [`Reader`].
macro_rules! reader {
    (Of $answer:path $(, $argument:expr)*) => {
        super::Reader::One(|machine| crate::machine::fact($answer(machine $(, $argument)*)))
    };
    (Under $answer:path $(, $argument:expr)*) => {
        super::Reader::Beneath(|machine, directory| {
            crate::machine::fact($answer(machine, directory $(, $argument)*))
        })
    };
    (X86 $answer:path $(, $argument:expr)*) => {
        super::Reader::On(super::X86_64, |machine| crate::machine::fact($answer(machine $(, $argument)*)))
    };
    (Arm64 $answer:path $(, $argument:expr)*) => {
        super::Reader::On(super::Arm64, |machine| crate::machine::fact($answer(machine $(, $argument)*)))
    };
    (Line $path:literal) => { reader!(Of crate::machine::Machine::line, $path) };
    (Number $path:literal) => { reader!(Of crate::machine::Machine::number, $path) };
    (Flag $path:literal) => { reader!(Of crate::machine::Machine::flag, $path) };
    (Choice $path:literal) => { reader!(Of crate::machine::Machine::choice, $path) };
    (Parameter $name:literal) => { reader!(Of crate::kernel::parameter_of, $name) };
    (Vulnerability $name:literal) => { reader!(Of crate::mitigation::named, $name) };
    (Limit $($argument:expr),+) => { reader!(Of crate::limits::soft $(, $argument)+) };
    (Hidden) => { super::Reader::Hidden };
    ($reader:ident $($argument:tt)*) => { super::Reader::$reader($($argument)*) };
}

/// Makes a table of facts. Each ends with `;` and has a name, a reader and a description, then the boundaries that it affects
/// (`*` for everything, `@` before a list of them) and how.
macro_rules! facts {
    ($(#[$doc:meta])* $visible:vis $list:ident $($name:literal $reader:ident($($argument:tt)*) $about:literal
        $([$($boundary:ident),+] $how:literal)? $(* $general:literal)? $(@ $set:ident $of_set:literal)?;)*) => {
        $(#[$doc])* $visible static $list: &[super::FactSpec] = &[
            $(super::FactSpec::new($name, reader!($reader $($argument)*), $about)
                $(.affects(tollgate_model::Effect::on(&[$($boundary),+], $how)))?
                $(.affects(tollgate_model::Effect::on_everything($general)))?
                $(.affects(tollgate_model::Effect::on($set, $of_set)))?,)*
        ];
    };
}

mod caches;
mod clocks;
mod container;
mod features;
mod groups;
mod hypervisor;
mod kernel;
mod memory;
mod mitigations;
mod moments;
mod permissions;
mod power;
mod process;
mod processor;
mod storage;

pub use moments::MOMENTS;
pub use storage::STORAGE;

/// Facts of one subject.
#[derive(Debug)]
pub struct Subject {
    /// Such as `processor`.
    pub name: &'static str,
    /// In the order in which they are shown.
    pub facts: &'static [FactSpec],
}

/// All subjects, in the order in which they are shown.
pub static SUBJECTS: &[Subject] = &[
    Subject { name: "kernel", facts: kernel::FACTS },
    Subject { name: "mitigations", facts: mitigations::FACTS },
    Subject { name: "hypervisor", facts: hypervisor::FACTS },
    Subject { name: "container", facts: container::FACTS },
    Subject { name: "control groups", facts: groups::FACTS },
    Subject { name: "process", facts: process::FACTS },
    Subject { name: "permissions", facts: permissions::FACTS },
    Subject { name: "processor", facts: processor::FACTS },
    Subject { name: "processor features", facts: features::FACTS },
    Subject { name: "caches", facts: caches::FACTS },
    Subject { name: "clocks", facts: clocks::FACTS },
    Subject { name: "memory", facts: memory::FACTS },
    Subject { name: "power", facts: power::FACTS },
];

/// All facts of all [`SUBJECTS`].
pub fn facts() -> impl Iterator<Item = &'static FactSpec> {
    SUBJECTS.iter().flat_map(|subject| subject.facts)
}

/// One fact, or a family of facts whose members depend on the machine.
#[derive(Debug)]
pub struct FactSpec {
    /// Dotted and stable, such as `kernel.release`. A family ends in `.*`.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// The boundaries that it affects, and how.
    pub effect: Option<Effect>,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    One(fn(&Machine) -> Fact),
    On(Architecture, fn(&Machine) -> Fact),
    /// A bit of CPUID: leaf, subleaf, register and number.
    Feature(u32, u32, Register, u32),
    /// A word among the features that arm64's kernel lists, which is the last part of the name, and the field of the ID register that
    /// it stands for (Documentation/arch/arm64/elf_hwcaps.rst; Arm ARM, D19.2).
    Hwcap(&'static str),
    /// A field of an ID register of arm64 that the kernel shows as 0 (Documentation/arch/arm64/cpu-feature-registers.rst).
    Hidden,
    Family(fn(&Machine) -> Vec<(String, Fact)>),
    /// Reads which of the `cpu.feature.*` facts are true, by the last part of their names.
    Features(fn(&Machine, &[&str]) -> Answer<Vec<String>>),
    Beneath(fn(&Machine, &Path) -> Fact),
}

impl FactSpec {
    /// The only architecture that has such a fact; `None` if all have.
    pub fn only(&self) -> Option<Architecture> {
        match self.reader {
            Reader::On(architecture, _) => Some(architecture),
            Reader::Feature(..) => Some(X86_64),
            Reader::Hwcap(_) | Reader::Hidden => Some(Arm64),
            _ => None,
        }
    }

    /// Reads one fact, or the members of the family; none if the machine's architecture has no such fact. A family that could not be
    /// listed gives one fact, under the name without `.*`, that says why.
    pub fn read(&self, machine: &Machine) -> Vec<(String, Fact)> {
        if self.only().is_some_and(|only| (only == Arm64) != machine.is_arm64()) {
            return Vec::new();
        }
        let fact = match self.reader {
            Reader::Family(read) => return read(machine),
            Reader::One(read) | Reader::On(_, read) => read(machine),
            Reader::Feature(leaf, subleaf, register, number) => {
                machine::fact(processors::feature(machine, Bit { leaf, subleaf, register, number }))
            }
            Reader::Hwcap(field) => {
                let word = self.name.rsplit('.').next().unwrap_or_default();
                machine::fact(processors::capability(machine, word, field))
            }
            Reader::Hidden => {
                Fact::absent("the kernel does not show this field of an ID register to programs")
            }
            Reader::Features(read) => {
                let names = facts().filter_map(|spec| spec.name.strip_prefix("cpu.feature."));
                machine::fact(read(machine, &names.collect::<Vec<_>>()))
            }
            Reader::Beneath(_) => Fact::absent("no directory was named"),
        };
        vec![(self.name.to_owned(), fact)]
    }

    fn covers(&self, name: &str) -> bool {
        match self.name.strip_suffix(".*") {
            Some(family) => {
                name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            None => name == self.name,
        }
    }

    const fn new(name: &'static str, reader: Reader, about: &'static str) -> Self {
        Self { name, about, effect: None, reader }
    }

    const fn affects(self, effect: Effect) -> Self {
        Self { effect: Some(effect), ..self }
    }
}

/// Reads all of [`STORAGE`] for a directory.
pub fn storage(machine: &Machine, directory: &Path) -> Vec<(String, Fact)> {
    let read = |spec: &FactSpec| match spec.reader {
        Reader::Beneath(read) => vec![(spec.name.to_owned(), read(machine, directory))],
        _ => spec.read(machine),
    };
    STORAGE.iter().flat_map(read).collect()
}

/// Reads all facts of all [`SUBJECTS`].
pub fn read_facts(machine: &Machine) -> Facts {
    facts().flat_map(|spec| spec.read(machine)).collect()
}

/// Reads all of [`MOMENTS`] and appends `when` to their names: `load.before`, `load.after`.
pub fn strain(machine: &Machine, when: &str) -> Vec<(String, Fact)> {
    let facts = MOMENTS.iter().flat_map(|spec| spec.read(machine));
    facts.map(|(name, fact)| (format!("{name}.{when}"), fact)).collect()
}

/// Returns the boundaries that the fact with this name affects, and how; for one of [`MOMENTS`], with any suffix.
pub fn effect(name: &str) -> Option<&'static Effect> {
    spec(name)?.effect.as_ref()
}

/// Returns the entry of the fact with this name; for one of [`MOMENTS`], with any suffix.
pub fn spec(name: &str) -> Option<&'static FactSpec> {
    let own = facts().chain(STORAGE).find(|spec| spec.covers(name));
    let momentary = || {
        let name = name.rsplit_once('.').map_or(name, |(name, _when)| name);
        MOMENTS.iter().find(|spec| spec.covers(name))
    };
    own.or_else(momentary)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tollgate_model::{Boundary, Reach};

    use super::*;

    fn all() -> impl Iterator<Item = &'static FactSpec> {
        facts().chain(MOMENTS).chain(STORAGE)
    }

    #[test]
    fn names_are_dotted_and_there_once() {
        let mut seen = BTreeSet::new();
        for spec in all() {
            let name = spec.name.strip_suffix(".*").unwrap_or(spec.name);
            let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
            assert!(
                name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed),
                "{name}"
            );
            assert!(seen.insert(spec.name), "{name} occurs twice");
            assert_eq!(matches!(spec.reader, Reader::Family(_)), spec.name.ends_with(".*"), "{name}");
        }
    }

    #[test]
    fn each_says_what_it_is_in_a_sentence() {
        for spec in all() {
            assert!(spec.about.ends_with('.') && spec.about.len() > 10, "{}", spec.name);
            let Some(Effect { reach, how }) = spec.effect else { continue };
            assert!(how.len() > 10 && !how.ends_with('.'), "{}", spec.name);
            if let Reach::Boundaries(boundaries) = reach {
                let distinct: BTreeSet<_> = boundaries.iter().collect();
                assert!(!boundaries.is_empty() && distinct.len() == boundaries.len(), "{}", spec.name);
            }
        }
    }

    #[test]
    fn effects_are_found_by_any_name_that_a_fact_can_have() {
        let reaches =
            |name, boundary| effect(name).is_some_and(|effect| effect.reach.meets([boundary].into_iter()));
        assert!(reaches("mitigation.meltdown", Boundary::KernelEntry));
        assert!(!reaches("mitigation.meltdown", Boundary::LockContention));
        assert_eq!(effect("mitigation.unheard_of"), None);
        assert!(reaches("cache.l1d", Boundary::MemoryAccess));
        assert!(effect("load.before").is_some_and(Effect::is_general));
        assert!(effect("pressure.cpu.after").is_some_and(Effect::is_general));
        assert!(reaches("files.device.scheduler", Boundary::BlockRead));
        assert_eq!(effect("pressure"), None);
        assert_eq!(effect("cached"), None, "not of the family of caches");
        assert_eq!(effect("kernel.version"), None);
        assert_eq!(effect(""), None);
    }

    #[test]
    fn the_environment_comes_from_facts_that_exist() {
        for name in ["sandbox.kernel", "container.layers", "hypervisor.layers"] {
            assert!(facts().any(|spec| spec.name == name), "{name}");
        }
    }
}
