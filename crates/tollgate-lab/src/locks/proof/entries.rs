//! Explores every order of two threads that each make one call through an entry of SYSCALL in a preemptible kernel, and
//! tells a violation step by step.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tollgate_schedules::search::{self, End, Schedule};
use tollgate_schedules::{Counterexample, Harm, Limits, Step};
use tollgate_x86::walk::SegmentRegister;

use super::{Move, Proof};
use crate::interpreter::StateId;
use crate::interpreter::preempted::{Kernel, Loss, Preempted, Stack};
use crate::locks::Entry;
use crate::locks::own::{OwnEntry, OwnError};

const MOST_STATES: usize = 1 << 15;
/// The limit of steps of two threads that are no longer interrupted.
const MOST_STEPS: usize = 1 << 14;

/// An instruction of an entry, and the effect of interruptions before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Address of the instruction.
    pub address: u64,
    /// Offset of the instruction from the beginning of the entry; `None` in ring 3.
    pub offset: Option<i64>,
    /// The instruction in Intel's syntax.
    pub instruction: String,
    /// Whether RSP is the caller's in some state.
    pub on_caller_stack: bool,
    /// Whether GS has ring 3's base in some state.
    pub has_user_gs: bool,
    /// Losses by an interrupt, an NMI and a #MC, a word and a sentence each; `None` if it cannot come.
    pub outcomes: [Option<Vec<(&'static str, String)>>; 3],
}

struct System {
    machine: RefCell<Preempted>,
    first: StateId,
    /// The states whose successors were searched, and those in which the timer came.
    seen: RefCell<BTreeSet<u32>>,
    preempted: RefCell<HashSet<StateId>>,
}

impl search::Machine for System {
    type State = StateId;
    type Move = Move;

    fn start(&self) -> StateId {
        self.first
    }

    fn moves(&self, at: &StateId, mut each: impl FnMut(Move, StateId)) {
        let mut machine = self.machine.borrow_mut();
        // Nothing after a loss needs to be searched.
        if machine.loss(*at).is_some() || machine.unmodelled().is_some() {
            return;
        }
        self.seen.borrow_mut().insert(at.0);
        if let Some(next) = machine.execute(*at) {
            each(Move::Execute, next);
        }
        if let Some(next) = machine.preempt(*at) {
            self.preempted.borrow_mut().insert(*at);
            each(Move::Preempt, next);
        }
    }

    fn harm(&self, at: &StateId) -> Option<Harm> {
        self.machine.borrow().loss(*at).map(|loss| match loss {
            Loss::Stops { .. } => Harm::Crash,
            _ => Harm::Condition,
        })
    }

    fn finished(&self, at: &StateId) -> bool {
        self.machine.borrow().is_over(*at)
    }
}

pub(super) fn prove(entry: &Entry) -> Proof {
    explore(Kernel::of_place(entry.place, entry.mask)).map(|(_, proof)| proof).unwrap_or_default()
}

/// Explores a user's own entry, and finds at each instruction what an interrupt, an NMI and a #MC lose.
///
/// # Errors
/// [`OwnError`] for an instruction that is not modelled, or too many states.
pub fn prove_own(entry: &OwnEntry) -> Result<Proof, OwnError> {
    let (system, mut proof) = explore(entry.kernel.clone()).ok_or(OwnError::Segments)?;
    let refused = |machine: &Preempted| machine.unmodelled().map(|why| OwnError::Unmodelled(why.to_owned()));
    let mut machine = system.machine.into_inner();
    if let Some(error) = refused(&machine) {
        return Err(error);
    }
    if !proof.is_complete && proof.violation.is_none() {
        return Err(OwnError::States(MOST_STATES));
    }
    let mut ends = HashMap::new();
    // If the entry loses something by itself, no interruption needs to be tried.
    if finish(&mut machine, system.first, &mut ends).is_none() {
        proof.points = points(&mut machine, &system.seen.into_inner(), entry.kernel.entry, &mut ends);
    }
    refused(&machine).map_or(Ok(proof), Err)
}

/// Returns `None` if the GDT lacks a segment.
fn explore(kernel: Kernel) -> Option<(System, Proof)> {
    let (machine, first) = Preempted::new(kernel)?;
    let (seen, preempted) = (RefCell::default(), RefCell::default());
    let system = System { machine: RefCell::new(machine), first, seen, preempted };
    let found = search::search(&system, Limits { states: MOST_STATES, ..Limits::default() });
    // A state that cannot reach the end has usually lost something.
    let worst = |harm: Harm| [Harm::Crash, Harm::Condition].iter().position(|it| *it == harm).unwrap_or(2);
    let first = found.harms.iter().min_by_key(|(harm, _)| worst(*harm));
    let loss = first.map(|(_, schedule)| system.loss(schedule));
    let violation = first.map(|(harm, schedule)| system.told(*harm, schedule));
    let (preemptions, instructions) = {
        let (machine, preempted) = (system.machine.borrow(), system.preempted.borrow());
        let instructions: BTreeSet<u64> = preempted.iter().map(|state| machine.rip(*state)).collect();
        (preempted.len(), instructions.len())
    };
    let proof = Proof {
        states: found.states,
        preemptions,
        instructions,
        is_complete: found.end == End::Complete,
        violation,
        lost: loss.map(|loss| word(loss).1),
        ..Proof::default()
    };
    Some((system, proof))
}

/// Returns what is lost until both threads have made their calls without further interruptions.
fn finish(machine: &mut Preempted, from: StateId, ends: &mut HashMap<StateId, Option<Loss>>) -> Option<Loss> {
    let (mut state, mut path) = (from, Vec::new());
    let end = loop {
        if let Some(known) = ends.get(&state) {
            break *known;
        }
        if let Some(loss) = machine.loss(state) {
            break Some(loss);
        }
        if machine.is_over(state) {
            break None;
        }
        path.push(state);
        let next = if machine.is_done(state) { machine.preempt(state) } else { machine.execute(state) };
        match next {
            Some(next) if path.len() < MOST_STEPS => state = next,
            _ => break Some(Loss::Endless),
        }
    };
    ends.extend(path.into_iter().map(|state| (state, end)));
    end
}

/// Finds the effect of interruptions at each instruction, in ring 3 and in ring 0.
fn points(
    machine: &mut Preempted,
    seen: &BTreeSet<u32>,
    entry: u64,
    ends: &mut HashMap<StateId, Option<Loss>>,
) -> Vec<Point> {
    let mut all: BTreeMap<(bool, u64), Point> = BTreeMap::new();
    for state in seen.iter().copied().map(StateId) {
        let (in_ring_3, address) = (machine.is_in_ring_3(state), machine.rip(state));
        // A loss that happens even without this interrupt does not count as its effect.
        let is_sound = finish(machine, state, ends).is_none();
        let next = machine.preempt(state);
        let losses = [
            next.map(|next| finish(machine, next, ends).filter(|_| is_sound)),
            Some(machine.strike(state, 0)),
            Some(machine.strike(state, 1)),
        ];
        let own = Stack::Kernel(machine.thread(state));
        let (on_caller_stack, has_user_gs) = (machine.stack(state) != own, !machine.has_kernel_gs(state));
        let instruction = shortened(machine.text(state));
        let point = all.entry((!in_ring_3, address)).or_insert_with(|| Point {
            address,
            offset: (!in_ring_3).then(|| address.wrapping_sub(entry) as i64),
            instruction,
            on_caller_stack: false,
            has_user_gs: false,
            outcomes: [const { None }; 3],
        });
        point.on_caller_stack |= on_caller_stack;
        point.has_user_gs |= has_user_gs;
        for (outcome, loss) in point.outcomes.iter_mut().zip(losses) {
            let Some(loss) = loss else { continue };
            let lost = outcome.get_or_insert_default();
            if let Some(loss) = loss {
                let said = (word(loss).0, sentence(loss));
                if !lost.contains(&said) {
                    lost.push(said);
                }
            }
        }
    }
    all.into_values().collect()
}

fn shortened(text: String) -> String {
    const DIGITS: usize = 16;
    match text.rsplit_once(' ') {
        Some((front, target)) if target.len() == DIGITS + 1 => {
            format!("{front} {}", target.trim_start_matches('0'))
        }
        _ => text,
    }
}

fn word(loss: Loss) -> (&'static str, &'static str) {
    match loss {
        Loss::Stops { with_user_gs: true } => ("GS", "the processor stops"),
        Loss::Stops { .. } => ("stops", "the processor stops"),
        Loss::Arrival => ("stack", "a stack is exposed"),
        Loss::Place => ("RIP", "a return is lost"),
        Loss::Stack => ("stack", "a stack is lost"),
        Loss::Gs => ("GS", "a base of GS is lost"),
        Loss::Registers(_) => ("registers", "registers are lost"),
        Loss::Flags => ("flags", "flags are lost"),
        Loss::Segment(..) => ("segments", "a segment is lost"),
        Loss::Endless => ("no return", "a call never ends"),
    }
}

fn sentence(loss: Loss) -> String {
    const REGISTERS: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
    match loss {
        Loss::Stops { with_user_gs: true } => {
            "the processor shuts down: there is no memory where the kernel reads or writes through GS, because GS has the base of ring 3".to_owned()
        }
        Loss::Stops { .. } => "the processor shuts down: the kernel faults without a handler here".to_owned(),
        Loss::Arrival => "its frame is pushed on the caller's stack, which is still loaded".to_owned(),
        Loss::Place => "the thread does not return after its SYSCALL".to_owned(),
        Loss::Stack => "a thread is back in ring 3 with a stack that is not its own".to_owned(),
        Loss::Gs => "GS comes back with another base".to_owned(),
        Loss::Registers(bits) => {
            let names = (0..16).filter(|at| bits >> at & 1 != 0).map(|at| REGISTERS[at]);
            format!("changed on return: {}", names.collect::<Vec<_>>().join(", "))
        }
        Loss::Flags => "RFLAGS are not the caller's on return".to_owned(),
        Loss::Segment(register, selector) => {
            let (name, right) = match register {
                SegmentRegister::Cs => ("CS", "64-bit code"),
                _ => ("SS", "writable data"),
            };
            format!(
                "SYSRET makes {name} {:x}h, where the GDT has no {right} of ring 3: the next IRETQ to it faults. SYSRET needs STAR[63:48] + 8 to be data and + 16 to be 64-bit code",
                selector.0
            )
        }
        Loss::Endless => "it never comes back".to_owned(),
    }
}

impl System {
    fn loss(&self, schedule: &Schedule<Self>) -> Loss {
        let last = schedule.steps.last().and_then(|(_, last)| self.machine.borrow().loss(*last));
        last.unwrap_or(Loss::Endless)
    }

    fn told(&self, harm: Harm, schedule: &Schedule<Self>) -> Counterexample {
        let machine = &mut self.machine.borrow_mut();
        let mut before = self.first;
        let mut steps = Vec::new();
        let (mut kept, mut thread) = (None, machine.thread(self.first));
        let loss = schedule.steps.last().and_then(|(_, last)| machine.loss(*last));
        for (number, &(step, after)) in (1..).zip(&schedule.steps) {
            if machine.saved_stack(before) != machine.saved_stack(after) {
                kept = Some((number, machine.thread(before)));
            }
            steps.push(told(machine, step, before, after));
            // The handler that shuts the processor down may have chosen the other thread already.
            thread = machine.thread(before);
            before = after;
        }
        let so = so(loss, (name(thread), machine.stack(before)), kept);
        Counterexample { harm: Some(harm), steps, back_to: schedule.back_to, so }
    }
}

fn told(machine: &mut Preempted, step: Move, before: StateId, after: StateId) -> Step {
    let what = match step {
        Move::Execute => machine.text(before),
        Move::Preempt => "timer".to_owned(),
    };
    let mut changes = Vec::new();
    if matches!(machine.loss(after), Some(Loss::Stops { .. })) {
        let fault = if step == Move::Execute { machine.fault(before) } else { None };
        let after = fault.map_or(String::new(), |fault| format!(" after {fault}"));
        changes.push(format!("the processor shuts down{after}"));
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

/// Describes the outcome in a sentence, for the last step's thread and its stack then. `kept` is the step that last
/// wrote gs:8, and its thread.
fn so(loss: Option<Loss>, (thread, stack): (char, Stack), kept: Option<(usize, usize)>) -> String {
    match (loss, kept) {
        (Some(Loss::Stack), Some((step, by))) => format!(
            "{thread} is back in ring 3 with the stack of {}, which {} left in gs:8 in step {step}: its own is lost",
            named(stack).trim_end_matches("'s"),
            name(by)
        ),
        (loss, _) => format!("{thread}: {}", sentence(loss.unwrap_or(Loss::Endless))),
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
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
        // Two instructions in ring 3; in ring 0, those between STI's shadow and CLI.
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
