//! Every order in which the programs of a lock can run. Before each instruction of a program the timer may take the processor from it,
//! as often as it likes: a state goes on in two ways, by the program's next instruction, or by the interrupt and the kernel's choice of
//! the next program. `tollgate_schedules::search` looks at every state that is reached so.

use std::cell::RefCell;

use tollgate_schedules::search::{self, End, Found, Schedule};
use tollgate_schedules::{Harm, Limits};

use super::{Kernel, Lock, Mutant, Work};
use crate::LabError;
use crate::engines::machine;
use crate::guest::BASE;
use crate::interpreter::{Explorer, State, Stop};
use crate::system::ADDRESSES;

/// More states are not looked at: a state takes a kilobyte.
const MOST_STATES: usize = FIRST_STATES << 10;
const FIRST_STATES: usize = 1 << 11;
/// The words that programs share, 4 bytes each, in the order of `locks.s`: who is inside, and how often it was passed.
const INSIDE: usize = 1;
const COUNT: usize = 2;
/// The page of the primitive, and bytes of each primitive in it.
const PRIMITIVE: u64 = 0x3fff_f000;
const PLACE: u64 = 64;

/// What came of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// How many programs ran.
    pub programs: usize,
    /// How often each took the lock.
    pub rounds: u32,
    /// How many different states there are.
    pub states: usize,
    /// At how many of them the running program was preempted, before its next instruction.
    pub preemptions: usize,
    /// At how many of the preempted ones it was in the primitive.
    pub in_primitive: usize,
    /// Whether all states were seen.
    pub is_complete: bool,
    /// The worst violation, and a shortest sequence of steps to it.
    pub violation: Option<(Harm, Vec<Step>)>,
}

/// A step of a counterexample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The program, from 0.
    pub program: usize,
    /// Its next instruction: the address, by page, and the text.
    pub place: String,
    /// In Intel's syntax.
    pub text: String,
    /// What happened at it.
    pub event: Event,
}

/// What happened in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The instruction was executed.
    Executed,
    /// It was executed, and its program came into the critical section.
    Entered,
    /// It faulted, and the handler sent the program to the primitive's beginning.
    Restarted,
    /// The timer came before it.
    Preempted,
    /// Its fault ended the program.
    Died,
}

/// Looks at every order of a lock.
///
/// # Errors
/// A guest that cannot go on, for a defect of the kernel's or the interpreter's.
pub fn prove(lock: &Lock, programs: usize, rounds: u32) -> Result<Proof, LabError> {
    explore(Work { program: lock.program, kernel: Kernel::RIGHT, programs, rounds, alone: false })
}

/// Looks at every order of a mutant.
///
/// # Errors
/// As of [`prove`].
pub fn prove_mutant(mutant: &Mutant, programs: usize, rounds: u32) -> Result<Proof, LabError> {
    explore(Work { program: mutant.program, kernel: mutant.kernel, programs, rounds, alone: false })
}

fn explore(work: Work) -> Result<Proof, LabError> {
    let (explorer, first) = Explorer::new(&work.image()?, machine(None), work.programs)?;
    let system = System {
        inner: RefCell::new(Inner { explorer, next: Vec::new(), error: None }),
        first,
        expected: work.programs as u32 * work.rounds,
    };
    // A violation is most often near: the whole search is only for those that have none. What was executed once is remembered.
    let mut states = FIRST_STATES;
    loop {
        let found = search::search(&system, Limits { states, ..Limits::default() });
        if let Some(error) = system.inner.borrow_mut().error.take() {
            return Err(error);
        }
        if found.end == End::Complete || !found.harms.is_empty() || states >= MOST_STATES {
            return Ok(system.proof(work, found));
        }
        states *= 4;
    }
}

/// A step, as the search names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Execute,
    Preempt,
}

struct System {
    inner: RefCell<Inner>,
    first: State,
    /// How often the critical section is passed.
    expected: u32,
}

struct Inner {
    explorer: Explorer,
    /// Where each state leads, for those that were executed: by the next instruction, and by the interrupt.
    next: Vec<Option<[Option<State>; 2]>>,
    /// Why the guest could not go on somewhere.
    error: Option<LabError>,
}

impl search::Machine for System {
    type State = State;
    type Move = Move;

    fn start(&self) -> State {
        self.first
    }

    fn moves(&self, state: &State, mut each: impl FnMut(Move, State)) {
        let Some([execute, preempt]) = self.inner.borrow_mut().next(*state) else { return };
        if let Some(state) = execute {
            each(Move::Execute, state);
        }
        if let Some(state) = preempt {
            each(Move::Preempt, state);
        }
    }

    fn harm(&self, state: &State) -> Option<Harm> {
        let inner = self.inner.borrow();
        let explorer = &inner.explorer;
        if explorer.shared(*state, INSIDE) > 1 {
            return Some(Harm::Exclusion);
        }
        match explorer.place(*state) {
            Stop::Dead => Some(Harm::Crash),
            Stop::Over if explorer.shared(*state, COUNT) != self.expected => Some(Harm::Condition),
            _ => None,
        }
    }

    fn finished(&self, state: &State) -> bool {
        self.inner.borrow().explorer.place(*state) == Stop::Over
    }
}

impl Inner {
    fn next(&mut self, state: State) -> Option<[Option<State>; 2]> {
        let number = state.0 as usize;
        if let Some(known) = self.next.get(number).copied().flatten() {
            return Some(known);
        }
        if self.error.is_some() || self.explorer.place(state) != Stop::Program {
            return None;
        }
        let interrupt = self.explorer.can_be_interrupted(state);
        let next = self.explorer.execute(state).and_then(|execute| {
            let preempt = if interrupt { Some(self.explorer.preempt(state)?) } else { None };
            Ok([Some(execute), preempt])
        });
        let next = next.map_err(|error| self.error = Some(error)).ok()?;
        if self.next.len() <= number {
            self.next.resize(number + 1, None);
        }
        self.next[number] = Some(next);
        Some(next)
    }
}

impl System {
    fn proof(&self, work: Work, found: Found<Self>) -> Proof {
        let (mut preemptions, mut in_primitive) = (0, 0);
        {
            let explorer = &self.inner.borrow().explorer;
            for state in (0..found.states as u32).map(State) {
                if explorer.place(state) == Stop::Program && explorer.can_be_interrupted(state) {
                    preemptions += 1;
                    in_primitive += usize::from(explorer.rip(state) & !0xfff == PRIMITIVE);
                }
            }
        }
        let violation = found.harms.into_iter().next();
        Proof {
            programs: work.programs,
            rounds: work.rounds,
            states: found.states,
            preemptions,
            in_primitive,
            is_complete: found.end == End::Complete,
            violation: violation.map(|(harm, schedule)| (harm, self.steps(&schedule))),
        }
    }

    fn steps(&self, schedule: &Schedule<Self>) -> Vec<Step> {
        let mut before = self.first;
        let mut steps = Vec::new();
        for (step, after) in &schedule.steps {
            steps.push(self.step(before, *step, *after));
            before = *after;
        }
        steps
    }

    fn step(&self, before: State, step: Move, after: State) -> Step {
        let explorer = &mut self.inner.borrow_mut().explorer;
        let rip = explorer.rip(before);
        let went_back = explorer.rip(after) == rip & !(PLACE - 1) && rip & !0xfff == PRIMITIVE;
        let text = explorer.text(before);
        let event = match step {
            Move::Preempt => Event::Preempted,
            Move::Execute if explorer.place(after) == Stop::Dead => Event::Died,
            Move::Execute if explorer.shared(after, INSIDE) > explorer.shared(before, INSIDE) => {
                Event::Entered
            }
            Move::Execute if went_back && !text.starts_with('j') => Event::Restarted,
            Move::Execute => Event::Executed,
        };
        Step { program: explorer.thread(before), place: place_of(rip), text, event }
    }
}

fn place_of(rip: u64) -> String {
    match rip {
        PRIMITIVE..0x4000_0000 => format!("primitive+{:x}h", (rip - PRIMITIVE) % PLACE),
        _ if ADDRESSES.contains(&rip) => format!("program+{:x}h", rip - ADDRESSES.start),
        _ => format!("{rip:x}h (the image is at {BASE:x}h)"),
    }
}
