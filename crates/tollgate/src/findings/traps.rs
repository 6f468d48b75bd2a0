//! An emulated instruction compared with the instruction itself.

use tollgate_model::Case;

use super::{Finding, find};
use crate::estimates::Estimates;
use crate::figures;

/// The findings of the suite.
pub(super) fn of(estimates: &Estimates) -> Vec<Finding> {
    trap_against_instruction(estimates).into_iter().collect()
}

/// How many times as long an instruction takes that a signal handler emulates, as the published experiment asked.
fn trap_against_instruction(estimates: &Estimates) -> Option<Finding> {
    let (trap, instruction) = (Case::plain("traps/invalid-opcode"), Case::plain("traps/imul"));
    let emulated = find(estimates, &trap)?;
    let native = find(estimates, &instruction)?;
    let ratio = emulated.estimate.median / native.below.unwrap_or(native.estimate.median);
    let at_least = if native.below.is_some() { "at least " } else { "" };
    (ratio.is_finite() && ratio > 0.0).then(|| Finding {
        sentence: format!(
            "An invalid opcode that a signal handler emulates takes {at_least}{} times as long as a multiplication.",
            figures::significant(ratio, 3)
        ),
        from: vec![trap.to_string(), instruction.to_string()],
    })
}
