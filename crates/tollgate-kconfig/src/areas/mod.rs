//! The table of options: each option's area, former names, description, and the boundaries that it affects. One file
//! per area; there is no other list.
//!
//! An entry covers the option with its name and every option whose name continues after an underscore: `KVM` covers
//! `KVM_INTEL`. If several entries match, the longest name wins, so `KVM_GUEST` can belong to another area. The text of
//! an entry describes only the option with exactly its name.

/// Builds the table of an area from entries that end in `;`. An entry is a name, the boundaries that it affects (`*`
/// for all) and how, with the source in parentheses; or a name and a description. Names without a text follow `_ =>`.
macro_rules! entries {
    ($($name:ident $([$($boundary:ident),+] $how:literal ($source:expr))? $(* $general:literal ($of:expr))?
        $($about:literal)? $(.$part:ident($text:expr))*;)* $(_ => $($other:tt)+)?) => {
        pub(super) static ENTRIES: &[super::Entry] = &[
            $(super::Entry::named(stringify!($name))
                $(.affects(tollgate_model::Effect::on(&[$($boundary),+], $how), $source))?
                $(.affects(tollgate_model::Effect::on_everything($general), $of))?
                $(.about($about))? $(.$part($text))*,)*
            $($(super::Entry::named(stringify!($other)),)+)?
        ];
    };
}

mod cgroups;
mod debugging;
mod drivers;
mod entry;
mod file_systems;
mod guest;
mod host;
mod memory;
mod mitigations;
mod namespaces;
mod networking;
mod processors;
mod scheduling;
mod security;
mod tracing;
mod without;

pub use without::{Machine, Without};

use std::collections::HashMap;
use std::sync::OnceLock;

use tollgate_model::Effect;

use crate::text::Configuration;

/// A group of options with one purpose.
#[derive(Debug)]
pub struct Area {
    /// A short, stable name, such as `file-systems`.
    pub name: &'static str,
    /// A description in a few words.
    pub about: &'static str,
    /// The entries of the table in this area.
    pub entries: &'static [Entry],
}

/// An entry for an option, or for all options whose names begin with its name.
#[derive(Debug)]
pub struct Entry {
    /// The current name, without `CONFIG_`.
    pub name: &'static str,
    /// Former names, without `CONFIG_`.
    pub formerly: &'static [&'static str],
    /// A description, if the name does not explain the option and it matters.
    pub about: Option<&'static str>,
    /// The boundaries that the option affects, if any.
    pub affects: Option<Affects>,
    /// Kernels that have the feature although their configuration lacks the option.
    pub without: &'static [Without],
    /// Parameters of the kernel command line that override the option, with `_` for `-`.
    pub parameters: &'static [&'static str],
}

/// The boundaries that an option affects, and the source of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Affects {
    /// The boundaries, and how the option affects them when it is on.
    pub effect: Effect,
    /// A file of the kernel's source, or of the Kconfig help.
    pub source: &'static str,
}

impl Entry {
    const fn named(name: &'static str) -> Self {
        Self { name, formerly: &[], about: None, affects: None, without: &[], parameters: &[] }
    }

    const fn about(self, about: &'static str) -> Self {
        Self { about: Some(about), ..self }
    }

    const fn affects(self, effect: Effect, source: &'static str) -> Self {
        Self { affects: Some(Affects { effect, source }), ..self }
    }

    const fn formerly(self, formerly: &'static [&'static str]) -> Self {
        Self { formerly, ..self }
    }

    const fn without(self, without: &'static [Without]) -> Self {
        Self { without, ..self }
    }

    const fn parameters(self, parameters: &'static [&'static str]) -> Self {
        Self { parameters, ..self }
    }

    /// Returns how a kernel behaves if its configuration lacks the option; `None` if it simply lacks the feature.
    pub fn without_in(&self, configuration: &Configuration) -> Option<&'static str> {
        self.without.iter().find(|without| without.is_of(configuration)).map(|without| without.text)
    }
}

/// All areas in the order of display: those that affect the most boundaries first. The last one has options without an entry.
pub static AREAS: &[Area] = &[
    area("entry", "kernel entry and exit", entry::ENTRIES),
    area("mitigations", "mitigations of processor vulnerabilities", mitigations::ENTRIES),
    area("scheduling", "preemption, timers, accounting, RCU", scheduling::ENTRIES),
    area("memory", "pages, allocators, copies", memory::ENTRIES),
    area("processors", "processor types, numbers, frequency and idling", processors::ENTRIES),
    area("tracing", "probes, hooks and counters", tracing::ENTRIES),
    area("debugging", "self-checks of the kernel", debugging::ENTRIES),
    area("security", "security modules, keys, ciphers, hardening", security::ENTRIES),
    area("namespaces", "namespaces of a process", namespaces::ENTRIES),
    area("cgroups", "limits of groups of processes", cgroups::ENTRIES),
    area("guest", "support for running as a virtual machine", guest::ENTRIES),
    area("host", "support for running virtual machines", host::ENTRIES),
    area("file-systems", "file systems and their common parts", file_systems::ENTRIES),
    area("networking", "protocols and filters", networking::ENTRIES),
    area("drivers", "devices, by name prefix", drivers::ENTRIES),
    area("other", "options of no other area", &[]),
];

const fn area(name: &'static str, about: &'static str, entries: &'static [Entry]) -> Area {
    Area { name, about, entries }
}

/// An option under its current name, whichever of its names was looked up.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The current name, without `CONFIG_`.
    pub name: &'a str,
    /// The area of the option.
    pub area: &'static Area,
    /// The entry for exactly this option.
    pub entry: Option<&'static Entry>,
}

type Index = HashMap<&'static str, (&'static Area, &'static Entry)>;

/// Maps every current and former name to its entry.
fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let entries = AREAS.iter().flat_map(|area| area.entries.iter().map(move |entry| (area, entry)));
        let names = |(area, entry): (&'static Area, &'static Entry)| {
            let names = std::iter::once(&entry.name).chain(entry.formerly);
            names.map(move |&name| (name, (area, entry)))
        };
        entries.flat_map(names).collect()
    })
}

/// Looks up an option by any of its names, without `CONFIG_`.
pub fn identity(name: &str) -> Identity<'_> {
    let index = index();
    if let Some(&(area, entry)) = index.get(name) {
        return Identity { name: entry.name, area, entry: Some(entry) };
    }
    let beginnings = name.rmatch_indices('_').map(|(at, _)| &name[..at]);
    let area = beginnings.filter_map(|beginning| index.get(beginning)).map(|&(area, _)| area).next();
    let area = area.unwrap_or(&AREAS[AREAS.len() - 1]);
    Identity { name, area, entry: None }
}

#[cfg(test)]
mod tests {
    use tollgate_model::Reach;

    use super::*;

    #[test]
    fn every_name_stands_once_and_is_one() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in AREAS.iter().flat_map(|area| area.entries) {
            for name in std::iter::once(&entry.name).chain(entry.formerly) {
                assert!(seen.insert(*name), "{name} twice");
                assert!(!name.is_empty() && !name.starts_with("CONFIG_"), "{name}");
                assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{name}");
            }
            assert!(entry.parameters.iter().all(|parameter| !parameter.contains('-')), "{}", entry.name);
        }
    }

    #[test]
    fn what_is_said_is_a_sentence_with_its_source() {
        for entry in AREAS.iter().flat_map(|area| area.entries) {
            let how = entry.affects.map(|affects| affects.effect.how);
            for text in
                entry.about.into_iter().chain(entry.without.iter().map(|without| without.text)).chain(how)
            {
                assert!(
                    !text.is_empty() && text.len() <= 160 && !text.ends_with('.'),
                    "{}: {text}",
                    entry.name
                );
            }
            if let Some(Affects { effect, source }) = entry.affects {
                if let Reach::Boundaries(boundaries) = effect.reach {
                    let distinct: std::collections::BTreeSet<_> = boundaries.iter().collect();
                    assert!(!boundaries.is_empty() && distinct.len() == boundaries.len(), "{}", entry.name);
                }
                assert!(source.contains('/') && !source.contains(' '), "{}", entry.name);
            }
        }
    }

    #[test]
    fn the_longest_beginning_counts() {
        let area = |name| identity(name).area.name;
        assert_eq!(area("KVM_INTEL"), "host");
        assert_eq!(area("SECURITYFS"), "security");
        assert_eq!(area("PREEMPTIRQ_TRACEPOINTS"), "tracing");
        assert_eq!(area("KVM_GUEST"), "guest");
        assert_eq!(area("NET_NS"), "namespaces");
        assert_eq!(area("NET_VENDOR_INTEL"), "drivers");
        assert_eq!(area("NETFILTER_XTABLES"), "networking");
        assert_eq!(area("EXT4_FS"), "file-systems");
        assert_eq!(area("CGROUP_PIDS"), "cgroups");
        assert_eq!(area("KVMX"), "other");
        assert_eq!(area(""), "other");
        assert!(identity("KVM_INTEL_SOMETHING").entry.is_none());
    }

    #[test]
    fn an_option_that_was_renamed_is_the_same() {
        for (before, now) in [
            ("PAGE_TABLE_ISOLATION", "MITIGATION_PAGE_TABLE_ISOLATION"),
            ("CPU_SRSO", "MITIGATION_SRSO"),
            ("CC_STACKPROTECTOR_STRONG", "STACKPROTECTOR_STRONG"),
            ("CFI_CLANG", "CFI"),
        ] {
            assert_eq!(identity(before).name, now);
            assert_eq!(identity(now).name, now);
        }
    }
}
