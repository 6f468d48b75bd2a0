//! The first screen: which case a row shows, and in which group of rows.

use tollgate_model::measurement::Params;

/// A case on the first screen. A short run measures it, and the summary of any run shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headline {
    /// The group of rows that it belongs to.
    pub section: Section,
    /// The name of its row, at most 28 characters.
    pub name: &'static str,
    /// Parameters with their values as text. The first case that has all of them is meant.
    pub params: &'static [(&'static str, &'static str)],
}

impl Headline {
    /// Makes a row for the case with these parameters.
    pub const fn of(
        section: Section,
        name: &'static str,
        params: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { section, name, params }
    }

    /// Whether a case has its parameters.
    pub fn names(&self, params: &Params) -> bool {
        let has =
            |(name, value): &(&str, &str)| params.get(*name).is_some_and(|own| own.to_string() == *value);
        self.params.iter().all(has)
    }
}

/// The groups of rows on the first screen, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// System calls and their alternatives.
    Entry,
    /// Exceptions, page faults and signals.
    Faults,
    /// Loads by working-set size, on one line.
    Loads,
    /// Shared cache lines.
    Memory,
    /// Locks, scheduling, processes.
    Processes,
    /// Files in the directory of the run.
    Files,
}
