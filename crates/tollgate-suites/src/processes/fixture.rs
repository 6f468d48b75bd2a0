//! The fixtures: one process for each kind of memory, which creates the children, and its instances.

use std::rc::Rc;

use super::creation::{Creation, What};
use super::memory::{Memory, Region};
use crate::prelude::*;

/// The instance of a case, by its parameters of memory and end.
pub(super) fn instance(what: What, params: &Params, context: &mut Context) -> Result<Instance> {
    let memory = Memory::of(params);
    let own = process_with(memory, context)?;
    let index = What::all().iter().position(|other| *other == what).unwrap_or_default();
    let shared = Shared::once(context, &format!("{what:?} with {memory:?}"), |_| Ok(own.experiment(index)))?;
    let question = usize::from(word(params, "until") != "return");
    Ok(shared.question(question).on_fixture(format!("{memory:?}")))
}

/// Tasks of a fixture: itself, and its child.
pub(super) const PROCESSES: u64 = 2;

/// The process that has `memory` and runs the experiments of [`Creation::all`]. All instances of the bench process
/// share it, so that memory is written once. One that has died, such as by a filter's SIGSYS, is replaced.
fn process_with(memory: Memory, context: &mut Context) -> Result<OwnProcess> {
    type Process = (OwnProcess, Rc<[Taken; 2]>);
    let start = |context: &mut Context| -> Result<Process> {
        let (quota, heartbeat) = (context.quota.clone(), context.heartbeat.clone());
        let taken = [quota.take_processes(PROCESSES)?, quota.take_memory(memory.bytes() as u64)?];
        let all = || Creation::all(Region::new(memory, heartbeat)?, quota.clone());
        Ok((OwnProcess::start(&quota, all)?, Rc::new(taken)))
    };
    let answers = |(own, _): &Process| own.answers();
    context.shared_while(&format!("{memory:?}"), answers, start).map(|(own, _)| own)
}
