//! Explores the orders in which the programs of a lock can run. Before each instruction the timer may preempt the
//! program, so a state has two successors: one by the program's next instruction, one by the interrupt and the kernel's
//! choice of the next program. `tollgate_schedules::search` visits every state that can be reached. If preemptions are
//! bounded, a state knows how many are left.

mod entries;
mod steps;

pub use entries::{Point, prove_own};

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tollgate_schedules::search::{self, End, SearchResult};
use tollgate_schedules::{Counterexample, Harm, Limits};

use super::{Kernel, Subject, Work};
use crate::engines::machine;
use crate::interpreter::{Explorer, StateId, Stop};
use crate::{LabError, expect_guest};

/// The search stops at this number of states: a state takes a kilobyte.
const MOST_STATES: usize = FIRST_STATES << 10;
const FIRST_STATES: usize = 1 << 11;
/// Words of 4 bytes that programs share, in the order of `locks.s`: the lock, the number of programs inside, and of passages.
const LOCK: usize = 0;
const INSIDE: usize = 1;
const COUNT: usize = 2;
/// The page of the primitives, and the bytes that each has in it.
const PRIMITIVE: u64 = 0x3fff_f000;
const PLACE: u64 = 64;

/// Bounds of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Number of programs, at most 3.
    pub programs: usize,
    /// How often each program takes the lock.
    pub rounds: u32,
    /// How often the timer may preempt a program; `None` for any number. A program's yield is not a preemption.
    pub preemptions: Option<u8>,
}

impl Bounds {
    /// Two programs, in every order.
    pub const TWO: Self = Self { programs: 2, rounds: 1, preemptions: None };
    /// Three programs, in every order with at most two preemptions.
    pub const THREE: Self = Self { programs: 3, rounds: 1, preemptions: Some(2) };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::TWO
    }
}

impl Subject {
    /// Returns the bounds to try: the violation of a mutant needs two programs, and an entry has two threads.
    pub fn bounds(self) -> &'static [Bounds] {
        match self {
            Self::Lock(_) => &[Bounds::TWO, Bounds::THREE],
            Self::Mutant(_) | Self::Entry(_) => &[Bounds::TWO],
        }
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proof {
    /// Bounds of the search.
    pub bounds: Bounds,
    /// Number of different states. In a bounded search, a state counts once for each number of preemptions left.
    pub states: usize,
    /// Number of states in which the running program was preempted before its next instruction.
    pub preemptions: usize,
    /// Number of different instructions that a preemption came before.
    pub instructions: usize,
    /// Number of these instructions in the page with the test-and-set.
    pub in_primitive: usize,
    /// Number of states in which a store faulted and the handler sent its program back to the beginning.
    pub restarts: usize,
    /// Whether all states were visited.
    pub is_complete: bool,
    /// The worst violation, with a shortest sequence of steps to it.
    pub violation: Option<Counterexample>,
    /// The verdict on what the violation loses, for an entry of SYSCALL.
    pub lost: Option<&'static str>,
    /// Losses by interruptions at each instruction, for a user's own entry.
    pub points: Vec<Point>,
}

impl Proof {
    /// Returns whether nothing is lost, in any order and at any point.
    pub fn holds(&self) -> bool {
        let lost = |point: &Point| point.outcomes.iter().flatten().any(|lost| !lost.is_empty());
        self.violation.is_none() && self.is_complete && !self.points.iter().any(lost)
    }
}

/// Does several proofs, on all processors. `interrupted` is asked before each; a signal that it returns ends them.
///
/// # Errors
/// Those of [`prove`]; [`LabError::Interrupted`] with the signal.
pub fn prove_all(
    tasks: &[(Subject, Bounds)],
    interrupted: &(dyn Fn() -> Option<i32> + Sync),
) -> Result<Vec<Proof>, LabError> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Proof, LabError>>>> =
        tasks.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((&(subject, bounds), result)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            tasks.get(at).zip(results.get(at))
        } {
            let proof = match interrupted() {
                Some(signal) => Err(LabError::Interrupted { signal }),
                None => prove(subject, bounds),
            };
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(proof);
        }
    };
    let helpers = std::thread::available_parallelism().map_or(0, |all| all.get() - 1).min(tasks.len());
    std::thread::scope(|scope| {
        // If no thread can be made, this one does the rest.
        for _ in 0..helpers {
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let done = results.into_iter().map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
    done.map(|result| {
        result.unwrap_or_else(|| Err(LabError::Unfinished { why: "a proof is missing".to_owned() }))
    })
    .collect()
}

/// Explores the orders of a lock, a mutant or an entry.
///
/// # Errors
/// [`LabError::NoGuest`]; another [`LabError`] if the guest cannot go on, which is a defect of the kernel or the interpreter.
pub fn prove(subject: Subject, bounds: Bounds) -> Result<Proof, LabError> {
    expect_guest()?;
    match subject {
        Subject::Lock(lock) => explore(lock.program, Kernel::RIGHT, bounds),
        Subject::Mutant(mutant) => explore(mutant.program, mutant.kernel, bounds),
        Subject::Entry(entry) => Ok(entries::prove(entry)),
    }
}

fn explore(program: usize, kernel: Kernel, bounds: Bounds) -> Result<Proof, LabError> {
    let work = Work { programs: vec![program; bounds.programs], kernel, rounds: bounds.rounds, alone: false };
    let (explorer, first) = Explorer::new(&work.image()?, machine(None), bounds.programs)?;
    let system = System {
        inner: RefCell::new(Inner { explorer, next: Vec::new(), error: None }),
        first: At { state: first, left: bounds.preemptions },
        expected: bounds.programs as u32 * bounds.rounds,
    };
    // A violation is usually near, so a small limit comes first; only subjects without one need the whole search.
    // Executed steps are cached.
    let mut states = FIRST_STATES;
    loop {
        let found = search::search(&system, Limits { states, ..Limits::default() });
        if let Some(error) = system.inner.borrow_mut().error.take() {
            return Err(error);
        }
        if found.end == End::Complete || !found.harms.is_empty() || states >= MOST_STATES {
            return Ok(system.proof(bounds, found));
        }
        states *= 4;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Execute,
    Preempt,
}

/// A state, and how many preemptions are left; `None` if they are not bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct At {
    state: StateId,
    left: Option<u8>,
}

struct System {
    inner: RefCell<Inner>,
    first: At,
    /// Passages of the critical section that the programs make together.
    expected: u32,
}

struct Inner {
    explorer: Explorer,
    /// The cached successors of each state: by the next instruction, and by the interrupt.
    next: Vec<[Option<StateId>; 2]>,
    error: Option<LabError>,
}

impl search::Machine for System {
    type State = At;
    type Move = Move;

    fn start(&self) -> At {
        self.first
    }

    fn moves(&self, at: &At, mut each: impl FnMut(Move, At)) {
        let mut inner = self.inner.borrow_mut();
        if let Some(state) = inner.executed(at.state) {
            each(Move::Execute, At { state, left: at.left });
        }
        let left = match at.left {
            Some(0) => return,
            left => left.map(|left| left - 1),
        };
        if let Some(state) = inner.preempted(at.state) {
            each(Move::Preempt, At { state, left });
        }
    }

    fn harm(&self, at: &At) -> Option<Harm> {
        let explorer = &self.inner.borrow().explorer;
        if explorer.shared(at.state, INSIDE) > 1 {
            return Some(Harm::Exclusion);
        }
        match explorer.place(at.state) {
            Stop::Dead => Some(Harm::Crash),
            Stop::Over if explorer.shared(at.state, COUNT) != self.expected => Some(Harm::Condition),
            _ => None,
        }
    }

    fn finished(&self, at: &At) -> bool {
        self.inner.borrow().explorer.place(at.state) == Stop::Over
    }
}

impl Inner {
    /// Returns the state after the program's next instruction; `None` if no program runs.
    fn executed(&mut self, state: StateId) -> Option<StateId> {
        self.next(state, Move::Execute, Explorer::execute)
    }

    fn preempted(&mut self, state: StateId) -> Option<StateId> {
        if !self.explorer.can_be_interrupted(state) {
            return None;
        }
        self.next(state, Move::Preempt, Explorer::preempt)
    }

    fn next(
        &mut self,
        state: StateId,
        step: Move,
        take: fn(&mut Explorer, StateId) -> Result<StateId, LabError>,
    ) -> Option<StateId> {
        if let Some(known) = self.known(state, step) {
            return Some(known);
        }
        if self.error.is_some() || self.explorer.place(state) != Stop::Program {
            return None;
        }
        let next = take(&mut self.explorer, state).map_err(|error| self.error = Some(error)).ok()?;
        let number = state.0 as usize;
        if self.next.len() <= number {
            self.next.resize(number + 1, [None; 2]);
        }
        self.next[number][step as usize] = Some(next);
        Some(next)
    }

    fn known(&self, state: StateId, step: Move) -> Option<StateId> {
        self.next.get(state.0 as usize)?[step as usize]
    }
}

impl System {
    fn proof(&self, bounds: Bounds, found: SearchResult<Self>) -> Proof {
        let is_complete = found.end == End::Complete;
        let violation = found.harms.into_iter().next().map(|(harm, schedule)| self.told(harm, &schedule));
        let inner = &mut *self.inner.borrow_mut();
        let (mut preemptions, mut restarts) = (0, 0);
        let mut instructions = BTreeSet::new();
        for state in (0..inner.next.len() as u32).map(StateId) {
            if inner.known(state, Move::Preempt).is_some() {
                preemptions += 1;
                instructions.insert(inner.explorer.rip(state));
            }
            let executed = inner.known(state, Move::Execute);
            restarts +=
                usize::from(executed.is_some_and(|after| restarts_at(&mut inner.explorer, state, after)));
        }
        let in_primitive = instructions.iter().filter(|rip| is_in_primitive(**rip)).count();
        Proof {
            bounds,
            states: found.states,
            preemptions,
            instructions: instructions.len(),
            in_primitive,
            restarts,
            is_complete,
            violation,
            ..Proof::default()
        }
    }
}

fn is_in_primitive(rip: u64) -> bool {
    rip & !0xfff == PRIMITIVE
}

/// Returns whether the page-fault handler sent the program back instead of executing its next instruction: to the
/// beginning of its piece of the page, which is also the target of a jump.
fn restarts_at(explorer: &mut Explorer, before: StateId, after: StateId) -> bool {
    let rip = explorer.rip(before);
    is_in_primitive(rip)
        && explorer.rip(after) == rip & !(PLACE - 1)
        && explorer.thread(after) == explorer.thread(before)
        && !explorer.text(before).starts_with('j')
}
