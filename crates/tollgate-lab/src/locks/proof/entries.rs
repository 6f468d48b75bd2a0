//! Every order of two threads that make a call each through an entry of SYSCALL, in a kernel that may be preempted, and a violation step by
//! step.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use tollgate_schedules::search::{self, End, Schedule};
use tollgate_schedules::{Counterexample, Harm, Limits, Step};

use super::{Bounds, Move, Proof};
use crate::interpreter::{Preempted, Stack, State};
use crate::locks::Entry;

/// More states are not looked at.
const MOST_STATES: usize = FEW_STATES << 12;
const FEW_STATES: usize = 1 << 10;

struct System {
    machine: RefCell<Preempted>,
    first: State,
    /// The states in which the timer came.
    preempted: RefCell<HashSet<State>>,
}

impl search::Machine for System {
    type State = State;
    type Move = Move;

    fn start(&self) -> State {
        self.first
    }

    fn moves(&self, at: &State, mut each: impl FnMut(Move, State)) {
        let mut machine = self.machine.borrow_mut();
        if let Some(next) = machine.execute(*at) {
            each(Move::Execute, next);
        }
        if let Some(next) = machine.preempt(*at) {
            self.preempted.borrow_mut().insert(*at);
            each(Move::Preempt, next);
        }
    }

    fn harm(&self, at: &State) -> Option<Harm> {
        let machine = self.machine.borrow();
        if machine.is_stopped(*at) {
            return Some(Harm::Crash);
        }
        let own = Stack::User(machine.thread(*at));
        (machine.is_in_ring_3(*at) && machine.stack(*at) != own).then_some(Harm::Condition)
    }

    fn finished(&self, at: &State) -> bool {
        self.machine.borrow().is_over(*at)
    }
}

/// Looks at every order of two threads that make a call each.
pub(super) fn prove(entry: &Entry) -> Proof {
    let (machine, first) = Preempted::new(entry.place, entry.mask);
    let system = System { machine: RefCell::new(machine), first, preempted: RefCell::default() };
    // A violation is near: behind it the stacks of a wrong entry have hundreds of thousands of states.
    let mut states = FEW_STATES;
    let found = loop {
        let found = search::search(&system, Limits { states, ..Limits::default() });
        if found.end == End::Complete || !found.harms.is_empty() || states >= MOST_STATES {
            break found;
        }
        states *= 8;
    };
    let violation = found.harms.first().map(|(harm, schedule)| system.told(*harm, schedule));
    let machine = system.machine.borrow();
    let preempted = system.preempted.borrow();
    let instructions: BTreeSet<u64> = preempted.iter().map(|state| machine.rip(*state)).collect();
    Proof {
        bounds: Bounds::TWO,
        states: found.states,
        preemptions: preempted.len(),
        instructions: instructions.len(),
        in_primitive: 0,
        restarts: 0,
        is_complete: found.end == End::Complete,
        violation,
    }
}

impl System {
    /// A violation, step by step.
    fn told(&self, harm: Harm, schedule: &Schedule<Self>) -> Counterexample {
        let machine = &mut self.machine.borrow_mut();
        let mut before = self.first;
        let mut steps = Vec::new();
        let (mut kept, mut thread) = (None, machine.thread(self.first));
        for (number, &(step, after)) in (1..).zip(&schedule.steps) {
            if machine.saved_stack(before) != machine.saved_stack(after) {
                kept = Some((number, machine.thread(before)));
            }
            steps.push(told(machine, step, before, after));
            // The handler that shuts the processor down may have chosen the other one already.
            thread = machine.thread(before);
            before = after;
        }
        let so = so(harm, (name(thread), machine.stack(before)), kept);
        Counterexample { harm: Some(harm), steps, back_to: schedule.back_to, so }
    }
}

fn told(machine: &mut Preempted, step: Move, before: State, after: State) -> Step {
    let what = match step {
        Move::Execute => machine.text(before),
        Move::Preempt => "timer".to_owned(),
    };
    let mut changes = Vec::new();
    if machine.is_stopped(after) {
        changes.push("the processor shuts down".to_owned());
    } else if step == Move::Preempt {
        changes.push(format!("{} runs", name(machine.thread(after))));
    } else {
        let stacks = [("rsp", machine.stack(before), machine.stack(after))];
        let stacks =
            stacks.into_iter().chain([("gs:8", machine.saved_stack(before), machine.saved_stack(after))]);
        let changed = stacks.filter(|(_, before, after)| before != after);
        changes.extend(changed.map(|(place, _, after)| format!("{place} = {}", named(after))));
    }
    let ring = if machine.is_in_ring_3(before) { "ring 3" } else { "ring 0" };
    let process = u8::try_from(machine.thread(before)).ok();
    Step { process, processor: 0, place: ring.to_owned(), what, changes }
}

fn name(thread: usize) -> char {
    Step::name(u8::try_from(thread).unwrap_or(u8::MAX))
}

fn named(stack: Stack) -> String {
    match stack {
        Stack::Kernel(thread) => format!("{}'s in the kernel", name(thread)),
        Stack::User(thread) => format!("{}'s", name(thread)),
        Stack::Nowhere => "no stack".to_owned(),
    }
}

/// The outcome in a sentence, of the last step's thread and the stack that it has then. `kept` is the step that last wrote gs:8, and its
/// thread.
fn so(harm: Harm, (thread, stack): (char, Stack), kept: Option<(usize, usize)>) -> String {
    match (harm, kept) {
        (Harm::Condition, Some((step, by))) => format!(
            "{thread} is back in ring 3 with the stack of {}, which {} left in gs:8 in step {step}: its own is lost",
            named(stack).trim_end_matches("'s"),
            name(by)
        ),
        (Harm::Crash, _) => format!(
            "The interrupt finds {thread} in ring 0 with the GS of ring 3: it does not exchange it, and what the kernel then reads or writes by \
             gs is nowhere"
        ),
        (other, _) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::ENTRIES;

    fn proof(name: &str) -> Proof {
        prove(ENTRIES.iter().find(|entry| entry.name == name).expect(name))
    }

    #[test]
    fn a_right_entry_holds_wherever_it_is_preempted_and_a_wrong_one_does_not() {
        for entry in ENTRIES {
            let proof = prove(entry);
            assert_eq!(proof.violation.is_some(), entry.is_wrong, "{}: {proof:?}", entry.name);
            assert!(proof.is_complete || entry.is_wrong, "{}", entry.name);
            assert!(proof.preemptions > 0, "{}", entry.name);
        }
        // In ring 3 two instructions; in ring 0 what stands between STI's shadow and CLI.
        assert!(proof("entry-frame").instructions > proof("entry-gs8-masked").instructions);
        assert_eq!(proof("entry-gs8-masked").instructions, 2);
    }

    #[test]
    fn the_published_entry_loses_a_stack_to_the_other_thread() {
        let violation = proof("entry-gs8").violation.expect("one");
        assert_eq!(violation.harm, Some(Harm::Condition));
        let whats: Vec<&str> = violation.steps.iter().map(|step| step.what.as_str()).collect();
        assert!(
            whats.contains(&"timer") && whats.last().is_some_and(|what| what.starts_with("sysret")),
            "{whats:?}"
        );
        let reads = |step: &&Step| step.what.starts_with("mov rsp,gs:[8]");
        let read = violation.steps.iter().rfind(reads).expect("the reload");
        let own = Step::name(read.process.expect("a thread"));
        assert_eq!(read.changes.len(), 1);
        assert!(!read.changes[0].contains(own), "{read:?}");
        assert!(violation.so.contains("its own is lost"), "{}", violation.so);
    }

    #[test]
    fn without_a_mask_the_processor_shuts_down() {
        for name in ["entry-no-fmask", "entry-no-cli"] {
            let violation = proof(name).violation.expect("one");
            assert_eq!(violation.harm, Some(Harm::Crash), "{name} {violation:?}");
        }
    }
}
