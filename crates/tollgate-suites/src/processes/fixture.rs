//! The fixtures: one process for each kind of memory, which creates the children, and its instances.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tollgate_model::Params;

use tollgate_engine::benchmark::word;
use tollgate_engine::limits::{self, Taken};
use tollgate_engine::{Instance, Isolated, Refusal, Shared};

use super::creation::{Creation, What};
use super::memory::{Memory, Region};

/// The instance of a case, by its parameters of memory and end.
///
/// # Errors
/// As [`process_with`].
pub(super) fn instance(what: What, params: &Params) -> Result<Instance, Refusal> {
    let memory = Memory::of(params);
    let isolated = process_with(memory)?;
    let index = What::all().iter().position(|other| *other == what).unwrap_or_default();
    let shared = Shared::once(&format!("{what:?} with {memory:?}"), || Ok(isolated.experiment(index)))?;
    let question = usize::from(word(params, "until") != "return");
    Ok(shared.question(question).on_fixture(format!("{memory:?}")))
}

/// Tasks of a fixture: itself, and its child.
pub(super) const PROCESSES: u64 = 2;

thread_local! {
    /// Shared by all instances of this bench process, so that memory is written once.
    static STAGES: RefCell<BTreeMap<Memory, (Isolated, [Taken; 2])>> = const { RefCell::new(BTreeMap::new()) };
}

/// The process that has `memory` and runs the experiments of [`Creation::all`], started on first use.
///
/// # Errors
/// [`Refusal::Skip`] if the environment has not so much memory, or gives other pages.
fn process_with(memory: Memory) -> Result<Isolated, Refusal> {
    // A process that has died, such as by a filter's SIGSYS, is replaced.
    let known = STAGES.with_borrow_mut(|fixtures| {
        fixtures.retain(|_, (isolated, _)| isolated.answers());
        fixtures.get(&memory).map(|(isolated, _)| isolated.clone())
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let taken = [limits::take_processes(PROCESSES)?, limits::take_memory(memory.bytes() as u64)?];
    let isolated = Isolated::start(move || Creation::all(Region::new(memory)?))?;
    STAGES.with_borrow_mut(|fixtures| fixtures.insert(memory, (isolated.clone(), taken)));
    Ok(isolated)
}
