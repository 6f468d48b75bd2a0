//! The fixtures: one process for each kind of memory, which creates the children, and its instances.
//!
//! Threads have another fixture. For the next thread, the C library keeps the stack of one that has ended (nptl/allocatestack.c
//! of glibc), and each fork copies the tables of its pages: 9 µs more of 37 on an EPYC. They share one if small pages are
//! written, because a fork of these takes milliseconds.

use std::rc::Rc;

use super::creation::{Creation, What};
use super::memory::{Memory, Page, Region};
use crate::prelude::*;

pub(super) fn instance(what: What, params: &Params, context: &mut Context) -> Result<Instance> {
    let (memory, until) = (Memory::from_params(params)?, Until::try_from(params)?);
    let own = process_with(memory, what, context)?;
    let index = What::all().iter().position(|other| *other == what).unwrap_or_default();
    let shared = Shared::once(context, &format!("{what:?} with {memory:?}"), |_| Ok(own.experiment(index)))?;
    let question = usize::from(until != Until::Return);
    Ok(shared.question(question).on_fixture(format!("{memory:?}")))
}

words! {
    /// When the time of a creation ends. Cases without the parameter always measure until the child's exit.
    enum Until("until") { Always = "", Return = "return", Exited = "exited" }
}

/// A fixture and its child.
pub(super) const PROCESSES: u64 = 2;

/// Returns the memory of each fixture for these kinds.
pub(super) fn memories(kinds: &[Memory]) -> impl Iterator<Item = Memory> {
    let of_threads = kinds.iter().filter(|memory| !is_shared(**memory));
    kinds.iter().chain(of_threads).copied()
}

/// Returns whether the process that creates the other children also creates threads.
fn is_shared(memory: Memory) -> bool {
    matches!(memory, Memory::Written { page: Page::Small, .. })
}

/// Returns the process that has `memory` and runs the experiments of [`Creation::all`]. All instances of the bench process share
/// it, so that memory is written once. Replaces one that has died, such as by a filter's SIGSYS.
fn process_with(memory: Memory, what: What, context: &mut Context) -> Result<OwnProcess> {
    type Process = (OwnProcess, Rc<[Taken; 2]>);
    let start = |context: &mut Context| -> Result<Process> {
        let (quota, heartbeat) = (context.quota.clone(), context.heartbeat.clone());
        let taken = [quota.take_processes(PROCESSES)?, quota.take_memory(memory.bytes() as u64)?];
        let all = || Creation::all(Region::new(memory, heartbeat)?, quota.clone());
        Ok((OwnProcess::start(&quota, all)?, Rc::new(taken)))
    };
    let answers = |(own, _): &Process| own.answers();
    let makes = if what == What::Thread && !is_shared(memory) { "threads" } else { "all" };
    context.shared_while(&format!("{memory:?}, makes {makes}"), answers, start).map(|(own, _)| own)
}

#[cfg(test)]
mod tests {
    use tollgate_engine::{Allowed, Limits};

    use super::super::raw::tests::in_a_process_of_its_own;
    use super::*;

    /// The reserved tasks show which processes make children of two kinds.
    #[test]
    fn a_process_that_forks_has_made_no_thread() {
        in_a_process_of_its_own(|| {
            let mut context = Context::here();
            // One fixture gets a tenth of them.
            let limit = Allowed { amount: 10 * PROCESSES, by: "a test".to_owned() };
            context.quota = Quota::new(Limits { processes: Some(limit), memory: None });
            let mut made = |what| process_with(Memory::Plain, what, &mut context).map(drop);
            assert_eq!((made(What::Fork), made(What::Clone3)), (Ok(()), Ok(())));
            assert!(matches!(made(What::Thread), Err(Refusal::Skip(_))), "another process is needed");
        });
    }
}
