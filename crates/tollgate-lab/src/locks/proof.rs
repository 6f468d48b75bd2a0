//! The orders in which the programs of a lock can run. Before each instruction of a program the timer may take the processor from it: a
//! state goes on in two ways, by the program's next instruction, or by the interrupt and the kernel's choice of the next program.
//! `tollgate_schedules::search` looks at every state that is reached so. Where preemptions are bounded a state knows how many are left.

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
use crate::LabError;
use crate::engines::machine;
use crate::interpreter::{Explorer, State, Stop};

/// More states are not looked at: a state takes a kilobyte.
const MOST_STATES: usize = FIRST_STATES << 10;
const FIRST_STATES: usize = 1 << 11;
/// The words that programs share, 4 bytes each, in the order of `locks.s`: the lock, how many are inside, and how often it was passed.
const LOCK: usize = 0;
const INSIDE: usize = 1;
const COUNT: usize = 2;
/// The page of the primitive, and bytes of each primitive in it.
const PRIMITIVE: u64 = 0x3fff_f000;
const PLACE: u64 = 64;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How many programs run, 3 at most.
    pub programs: usize,
    /// How often each takes the lock.
    pub rounds: u32,
    /// How often the timer takes the processor from a program, at most; none for any number. That a program yields is no preemption.
    pub preemptions: Option<u8>,
}

impl Bounds {
    /// Two programs, in every order.
    pub const TWO: Self = Self { programs: 2, rounds: 1, preemptions: None };
    /// Three programs, in every order with two preemptions at most.
    pub const THREE: Self = Self { programs: 3, rounds: 1, preemptions: Some(2) };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::TWO
    }
}

impl Subject {
    /// What is tried of it: the violation of a mutant needs two programs, and an entry has two threads.
    pub fn bounds(self) -> &'static [Bounds] {
        match self {
            Self::Lock(_) => &[Bounds::TWO, Bounds::THREE],
            Self::Mutant(_) | Self::Entry(_) => &[Bounds::TWO],
        }
    }
}

/// What came of the search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proof {
    /// What was tried.
    pub bounds: Bounds,
    /// How many different states were seen; of a bounded search each counts once for each number of preemptions that are left.
    pub states: usize,
    /// At how many of them the running program was preempted, before its next instruction.
    pub preemptions: usize,
    /// Before how many different instructions.
    pub instructions: usize,
    /// How many of those are of the page with the test-and-set.
    pub in_primitive: usize,
    /// In how many states a store faulted and the handler sent its program back to the beginning.
    pub restarts: usize,
    /// Whether all states were seen.
    pub is_complete: bool,
    /// The worst violation: a shortest sequence of steps to it.
    pub violation: Option<Counterexample>,
    /// Of an entry of SYSCALL what the violation loses, as a verdict.
    pub lost: Option<&'static str>,
    /// Of an entry of one's own what interruptions lose, instruction by instruction.
    pub points: Vec<Point>,
}

impl Proof {
    /// Whether nothing is lost: in no order, and at no point.
    pub fn holds(&self) -> bool {
        let lost = |point: &Point| point.outcomes.iter().flatten().any(|lost| !lost.is_empty());
        self.violation.is_none() && self.is_complete && !self.points.iter().any(lost)
    }
}

/// Does several proofs, on as many processors as there are. `interrupted` is asked before each; a signal that it returns ends them.
///
/// # Errors
/// As of [`prove`]; [`LabError::Interrupted`] with the signal.
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
        // Where no thread can be made, this one does the rest.
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

/// Looks at the orders of a lock, a mutant or an entry.
///
/// # Errors
/// A guest that cannot go on, for a defect of the kernel's or the interpreter's.
pub fn prove(subject: Subject, bounds: Bounds) -> Result<Proof, LabError> {
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
    // A violation is most often near: the whole search is only for those that have none. What was executed once is remembered.
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

/// A step, as the search names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Execute,
    Preempt,
}

/// A state, and how many preemptions are left; none where they are not bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct At {
    state: State,
    left: Option<u8>,
}

struct System {
    inner: RefCell<Inner>,
    first: At,
    /// How often the critical section is passed.
    expected: u32,
}

struct Inner {
    explorer: Explorer,
    /// Where each state leads, for those that were asked for: by the next instruction, and by the interrupt.
    next: Vec<[Option<State>; 2]>,
    /// Why the guest could not go on somewhere.
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
    /// The state after the program's next instruction; none where no program runs.
    fn executed(&mut self, state: State) -> Option<State> {
        self.next(state, Move::Execute, Explorer::execute)
    }

    /// The state after an interrupt; none where none can come.
    fn preempted(&mut self, state: State) -> Option<State> {
        if !self.explorer.can_be_interrupted(state) {
            return None;
        }
        self.next(state, Move::Preempt, Explorer::preempt)
    }

    fn next(
        &mut self,
        state: State,
        step: Move,
        take: fn(&mut Explorer, State) -> Result<State, LabError>,
    ) -> Option<State> {
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

    /// What was executed already.
    fn known(&self, state: State, step: Move) -> Option<State> {
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
        for state in (0..inner.next.len() as u32).map(State) {
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

/// Whether the handler of page faults sent the program back, in place of its next instruction: to the beginning of its piece of the page,
/// where a jump leads too.
fn restarts_at(explorer: &mut Explorer, before: State, after: State) -> bool {
    let rip = explorer.rip(before);
    is_in_primitive(rip)
        && explorer.rip(after) == rip & !(PLACE - 1)
        && explorer.thread(after) == explorer.thread(before)
        && !explorer.text(before).starts_with('j')
}
