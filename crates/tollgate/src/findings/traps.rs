//! What an exception costs against doing without.

use tollgate_model::Case;

use super::{Observation, find};
use crate::estimates::Estimates;
use crate::figures;

/// What there is to say of the suite.
pub(super) fn of(estimates: &Estimates) -> Vec<Observation> {
    trap_against_instruction(estimates).into_iter().collect()
}

/// What the published experiment asked: how much dearer is an instruction that a handler plays?
fn trap_against_instruction(estimates: &Estimates) -> Option<Observation> {
    let (trap, instruction) = (Case::plain("traps/invalid-opcode"), Case::plain("traps/imul"));
    let dear = find(estimates, &trap)?;
    let cheap = find(estimates, &instruction)?;
    let ratio = dear.estimate.median / cheap.below.unwrap_or(cheap.estimate.median);
    let at_least = if cheap.below.is_some() { "at least " } else { "" };
    (ratio.is_finite() && ratio > 0.0).then(|| Observation {
        sentence: format!(
            "An invalid opcode that a signal handler emulates costs {at_least}{} times a multiplication.",
            figures::significant(ratio, 3)
        ),
        from: vec![trap.to_string(), instruction.to_string()],
    })
}
