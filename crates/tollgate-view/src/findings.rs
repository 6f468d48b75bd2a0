//! Sentences made from several rows of a run. Only measured rows are used, and only if their intervals are disjoint.

mod files;
mod finding;
mod locks;
mod memory;
mod processes;
mod traps;
mod workloads;

use crate::summary::Summary;

pub use finding::Finding;
pub(crate) use memory::{SharingCurves, THRASH, sharing_curves, sharing_rows};

/// The findings of a run.
pub fn of(summary: &Summary) -> Vec<Finding> {
    let mut findings = traps::findings(summary);
    findings.extend(memory::findings(summary));
    findings.extend(locks::findings(summary));
    findings.extend(processes::findings(summary));
    findings.extend(files::findings(summary));
    findings.extend(workloads::findings(summary));
    findings
}
