//! Runs of the lab's kernel, and of programs under it, as text and as JSON.

mod entry;
mod explain;
mod json;
mod locks;
mod orders;
mod programs;
mod setup;
mod text;

pub use entry::{Entries, benchmarks, shares};
pub use explain::{Explained, Instruction, explained};
pub use json::LabDocument;
pub use locks::Locks;
pub use orders::Orders;
pub use programs::{Programs, ended};
pub use setup::{BOOT, Boot, boot, shown_by};
pub use text::{defect, mistake, name, note, obstacle, page, sample};

use crate::guest::EXPERIMENTS;
use crate::locks::LOCKS;

/// The suite that the cases of a kept run belong to.
pub const SUITE: &str = "lab";

/// Describes a case of a kept run, an experiment or a lock, in a sentence.
pub fn about(case: &str) -> Option<&'static str> {
    let name = case.strip_prefix(SUITE)?.strip_prefix('/')?;
    let experiments = EXPERIMENTS.iter().map(|experiment| (experiment.name, experiment.about));
    let mut all = experiments.chain(LOCKS.iter().map(|lock| (lock.name, lock.about)));
    all.find(|(known, _)| *known == name).map(|(_, about)| about)
}
