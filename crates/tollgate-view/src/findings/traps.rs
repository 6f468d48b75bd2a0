//! An emulated instruction compared with the instruction itself.

use tollgate_model::Case;

use super::finding::{Finding, find};
use crate::figures;
use crate::summary::Summary;

/// The findings of the suite.
pub(super) fn of(summary: &Summary) -> Vec<Finding> {
    trap_against_instruction(summary).into_iter().collect()
}

/// How many times as long an instruction takes that a signal handler emulates, as the published experiment asked.
fn trap_against_instruction(summary: &Summary) -> Option<Finding> {
    let (trap, instruction) = (Case::plain("traps/invalid-opcode"), Case::plain("traps/imul"));
    let emulated = find(summary, &trap)?;
    let native = find(summary, &instruction)?;
    let ratio = emulated.estimate.median / native.bounded();
    let at_least = if native.below.is_some() { "at least " } else { "" };
    (ratio.is_finite() && ratio > 0.0).then(|| Finding {
        sentence: format!(
            "An invalid opcode that a signal handler emulates takes {at_least}{} times as long as a multiplication.",
            figures::significant(ratio, 3)
        ),
        from: vec![trap, instruction],
    })
}
