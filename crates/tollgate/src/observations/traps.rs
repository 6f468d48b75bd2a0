//! What an exception costs against doing without.

use tollgate_model::Case;

use super::{Observation, find};
use crate::figures;
use crate::prices::Prices;

/// What there is to say of the suite.
pub(super) fn of(prices: &Prices) -> Vec<Observation> {
    trap_against_instruction(prices).into_iter().collect()
}

/// What the published experiment asked: how much dearer is an instruction that a handler plays?
fn trap_against_instruction(prices: &Prices) -> Option<Observation> {
    let (trap, instruction) = (Case::plain("traps/invalid-opcode"), Case::plain("traps/imul"));
    let dear = find(prices, &trap)?;
    let cheap = find(prices, &instruction)?;
    let ratio = dear.price.median / cheap.below.unwrap_or(cheap.price.median);
    let at_least = if cheap.below.is_some() { "at least " } else { "" };
    (ratio.is_finite() && ratio > 0.0).then(|| Observation {
        sentence: format!(
            "An invalid opcode that a signal handler emulates costs {at_least}{} times a multiplication.",
            figures::significant(ratio, 3)
        ),
        from: vec![trap.to_string(), instruction.to_string()],
    })
}
