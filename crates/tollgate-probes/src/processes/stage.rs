//! The processes that make others: one for each kind of memory, and the arms that are on with it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tollgate_model::Params;

use crate::bench::room::{self, Taken};
use crate::bench::{Apart, Arm, Refusal, Shared};
use crate::probe::word;

use super::creation::{Creation, What};
use super::memory::{Memory, Region};

/// The arm of a case: what it makes from the memory that its parameters name, and until when it is timed.
///
/// # Errors
/// As [`process_with`].
pub(super) fn arm(what: What, params: &Params) -> Result<Arm, Refusal> {
    let memory = Memory::of(params);
    let apart = process_with(memory)?;
    let index = What::all().iter().position(|other| *other == what).unwrap_or_default();
    let shared = Shared::once(&format!("{what:?} with {memory:?}"), || Ok(apart.experiment(index)))?;
    let question = usize::from(word(params, "until") != "return");
    Ok(shared.question(question).on_stage(format!("{memory:?}")))
}

/// Of a stage: itself, and the child that it makes.
pub(super) const PROCESSES: u64 = 2;

thread_local! {
    /// For all arms of this bench process: memory is written once.
    static STAGES: RefCell<BTreeMap<Memory, (Apart, [Taken; 2])>> = const { RefCell::new(BTreeMap::new()) };
}

/// The process that has `memory` and does the experiments of [`Creation::all`], made where it is not there yet.
///
/// # Errors
/// [`Refusal::Skip`] where the place has not so much memory, or gives other pages.
fn process_with(memory: Memory) -> Result<Apart, Refusal> {
    // One that an experiment has killed, such as one that a filter does not allow, makes room for another.
    let known = STAGES.with_borrow_mut(|stages| {
        stages.retain(|_, (apart, _)| apart.answers());
        stages.get(&memory).map(|(apart, _)| apart.clone())
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let taken = [room::take_processes(PROCESSES)?, room::take_memory(memory.bytes() as u64)?];
    let apart = Apart::start(move || Creation::all(Region::new(memory)?))?;
    STAGES.with_borrow_mut(|stages| stages.insert(memory, (apart.clone(), taken)));
    Ok(apart)
}
