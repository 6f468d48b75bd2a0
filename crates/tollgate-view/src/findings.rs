//! Sentences made from several rows of a run. Only measured rows are used, and only where their intervals are disjoint.

mod files;
mod finding;
mod locks;
mod memory;
mod processes;
mod workloads;

use tollgate_model::Case;

use crate::summary::Summary;

pub use finding::Finding;

/// The findings of a run.
pub fn of(summary: &Summary) -> Vec<Finding> {
    let mut findings = Vec::from_iter(trap_against_instruction(summary));
    findings.extend(memory::of(summary));
    findings.extend(locks::of(summary));
    findings.extend(processes::of(summary));
    findings.extend(files::of(summary));
    findings.extend(workloads::of(summary));
    findings
}

/// How many times as long an instruction takes that a signal handler emulates, as the published experiment asked.
fn trap_against_instruction(summary: &Summary) -> Option<Finding> {
    let (trap, instruction) = (Case::plain("traps/invalid-opcode"), Case::plain("traps/imul"));
    finding::bounded_times(summary, trap, instruction, 0.0, |times| {
        format!(
            "An invalid opcode that a signal handler emulates takes {times} times as long as a multiplication."
        )
    })
}
