//! Visits every state that a machine can reach, nearest first.
//!
//! The search is breadth first, so the first state of a kind has one of the shortest schedules. It stores every state and
//! every step between two states. When it is complete, it goes backwards from the states in which every process has
//! finished; from a state that this does not reach, no schedule finishes. The model of store buffers passes the litmus
//! tests of x86-TSO, and an independent model for SPIN gives the same verdicts and numbers of states.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::Serialize;

/// A machine whose whole state is one value.
pub trait Machine {
    /// Everything that the next steps depend on, and nothing else: two equal states have the same future.
    type State: Copy + Eq + Hash;
    /// A step: its process and its kind.
    type Move: Copy;

    /// Returns the initial state.
    fn start(&self) -> Self::State;

    /// Calls `each` with every possible next step and the state after it, always in the same order.
    fn moves(&self, state: &Self::State, each: impl FnMut(Self::Move, Self::State));

    /// Returns the harm in a state, which depends on that state alone.
    fn harm(&self, state: &Self::State) -> Option<Harm>;

    /// Returns whether every process has finished.
    fn finished(&self, state: &Self::State) -> bool;

    /// Returns whether to keep a state as an outcome, because everything has finished in it.
    fn is_outcome(&self, _state: &Self::State) -> bool {
        false
    }
}

/// The violations of a lock, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// Two processes hold the lock at once.
    Exclusion,
    /// A process is killed.
    Crash,
    /// The lock is taken and has no holder.
    LostLock,
    /// A process can never finish.
    Stuck,
    /// A final state contradicts the condition of a litmus test.
    Condition,
}

impl Harm {
    /// The harms of a lock, the worst first.
    pub const ALL: [Self; 4] = [Self::Exclusion, Self::Crash, Self::LostLock, Self::Stuck];

    const EVERY: [Self; 5] = [Self::Exclusion, Self::Crash, Self::LostLock, Self::Stuck, Self::Condition];
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusion => "two hold the lock at once",
            Self::Crash => "a process is killed",
            Self::LostLock => "the lock is taken but has no holder",
            Self::Stuck => "a process can never finish",
            Self::Condition => "a final state contradicts the condition",
        })
    }
}

/// Resource limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most states to store, up to [`Limits::MOST_STATES`].
    pub states: usize,
    /// The most memory to use, in bytes.
    pub bytes: usize,
}

impl Limits {
    /// The most states that can be numbered.
    pub const MOST_STATES: usize = u32::MAX as usize - 1;
}

impl Default for Limits {
    fn default() -> Self {
        Self { states: 20_000_000, bytes: 4 << 30 }
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every state was visited.
    Complete,
    /// There are more states than allowed.
    OutOfStates,
    /// The states need more memory than allowed, or than there is.
    OutOfMemory,
}

/// A sequence of steps from the initial state.
pub struct Schedule<M: Machine> {
    /// The steps, each with the state after it.
    pub steps: Vec<(M::Move, M::State)>,
    /// For an endless loop, the step after which the final state was already reached (0: the initial state).
    pub back_to: Option<usize>,
}

/// The result of a search.
pub struct SearchResult<M: Machine> {
    /// Number of different states visited.
    pub states: usize,
    /// Number of steps between them.
    pub steps: usize,
    /// Why it ended.
    pub end: End,
    /// A shortest schedule to each harm that was found. Unless the search is [`End::Complete`], a missing harm is not
    /// excluded.
    pub harms: Vec<(Harm, Schedule<M>)>,
    /// The states that the machine keeps as outcomes ([`Machine::is_outcome`]).
    pub outcomes: Vec<M::State>,
}

/// Visits every state that `machine` can reach, within limits.
pub fn search<M: Machine>(machine: &M, limits: Limits) -> SearchResult<M> {
    let mut graph = Graph::new(machine, limits);
    let mut end = graph.explore();
    let mut harms = Vec::new();
    for harm in Harm::EVERY {
        match (harm, end) {
            (Harm::Stuck, End::Complete) => match graph.first_doomed() {
                Ok(Some(doomed)) => harms.push((harm, graph.for_ever(doomed))),
                Ok(None) => {}
                Err(OutOfMemory) => end = End::OutOfMemory,
            },
            _ => {
                if let Some(state) = graph.first[harm as usize] {
                    harms.push((harm, graph.schedule(state)));
                }
            }
        }
    }
    let outcomes = graph.states.iter().filter(|state| machine.is_outcome(state)).copied().collect();
    SearchResult { outcomes, states: graph.states.len(), steps: graph.targets.len(), end, harms }
}

struct OutOfMemory;

fn filled<T: Copy>(value: T, count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
    values.resize(count, value);
    Ok(values)
}

struct Graph<'a, M: Machine> {
    machine: &'a M,
    limits: Limits,
    hasher: DefaultHashBuilder,
    states: Vec<M::State>,
    numbers: HashTable<u32>,
    /// For each state, the one from which it was first reached; the initial state is its own.
    parents: Vec<u32>,
    /// For each state, the end of its steps in `targets`.
    ends: Vec<u32>,
    /// The targets of the steps of each state, state by state.
    targets: Vec<u32>,
    /// For each harm, the first state that has it.
    first: [Option<u32>; Harm::EVERY.len()],
}

impl<'a, M: Machine> Graph<'a, M> {
    fn new(machine: &'a M, limits: Limits) -> Self {
        Self {
            machine,
            limits: Limits { states: limits.states.min(Limits::MOST_STATES), ..limits },
            hasher: DefaultHashBuilder::default(),
            states: Vec::new(),
            numbers: HashTable::new(),
            parents: Vec::new(),
            ends: Vec::new(),
            targets: Vec::new(),
            first: [None; Harm::EVERY.len()],
        }
    }

    fn explore(&mut self) -> End {
        let mut next = Vec::new();
        if let Err(end) = self.number(self.machine.start(), 0) {
            return end;
        }
        while self.ends.len() < self.states.len() {
            let from = self.ends.len();
            next.clear();
            self.machine.moves(&self.states[from], |_, state| next.push(state));
            for &state in &next {
                // The number fits in a u32: MOST_STATES.
                match self.number(state, from as u32) {
                    Ok(number) => self.targets.push(number),
                    Err(end) => return end,
                }
            }
            let Ok(end) = u32::try_from(self.targets.len()) else { return End::OutOfMemory };
            self.ends.push(end);
        }
        End::Complete
    }

    fn number(&mut self, state: M::State, parent: u32) -> Result<u32, End> {
        let hash = self.hasher.hash_one(state);
        if let Some(&number) = self.numbers.find(hash, |&number| self.states[number as usize] == state) {
            return Ok(number);
        }
        self.make_room()?;
        let number = self.states.len() as u32;
        self.numbers
            .insert_unique(hash, number, |&number| self.hasher.hash_one(self.states[number as usize]));
        self.states.push(state);
        self.parents.push(parent);
        if let Some(harm) = self.machine.harm(&state) {
            self.first[harm as usize].get_or_insert(number);
        }
        Ok(number)
    }

    /// Makes room for one more state, or stops before memory runs out.
    fn make_room(&mut self) -> Result<(), End> {
        if self.states.len() >= self.limits.states {
            return Err(End::OutOfStates);
        }
        if self.states.len() < self.states.capacity() && self.targets.len() + 64 < self.targets.capacity() {
            return Ok(());
        }
        let more = self.states.len().clamp(1 << 10, 1 << 20);
        let fits = self.bytes(more) <= self.limits.bytes
            && self.states.try_reserve_exact(more).is_ok()
            && self.parents.try_reserve_exact(more).is_ok()
            && self.ends.try_reserve_exact(more).is_ok()
            && self.targets.try_reserve(4 * more).is_ok()
            && self.numbers.try_reserve(more, |&n| self.hasher.hash_one(self.states[n as usize])).is_ok();
        if fits { Ok(()) } else { Err(End::OutOfMemory) }
    }

    /// Returns the memory needed with `more` states, including the backward search ([`Graph::first_doomed`]).
    fn bytes(&self, more: usize) -> usize {
        const NUMBER: usize = size_of::<u32>();
        let states = self.states.len() + more;
        let steps = self.targets.len() + 4 * more;
        // The hash table stores one byte with each number, and doubles when it is seven eighths full.
        states * (size_of::<M::State>() + 4 * NUMBER + 3 * (NUMBER + 1)) + steps * 2 * NUMBER
    }

    fn first_doomed(&self) -> Result<Option<u32>, OutOfMemory> {
        let (starts, sources) = self.backwards()?;
        let mut hopeful = filled(false, self.states.len())?;
        // Each state is reached once.
        let mut reached = filled(0_u32, self.states.len())?;
        reached.clear();
        for (number, state) in self.states.iter().enumerate() {
            if self.machine.finished(state) {
                hopeful[number] = true;
                reached.push(number as u32);
            }
        }
        while let Some(number) = reached.pop() {
            let number = number as usize;
            for &source in &sources[starts[number] as usize..starts[number + 1] as usize] {
                if !std::mem::replace(&mut hopeful[source as usize], true) {
                    reached.push(source);
                }
            }
        }
        Ok(hopeful.iter().position(|&hopeful| !hopeful).map(|number| number as u32))
    }

    /// Inverts the steps: for each state the start of its sources, and all sources, state by state.
    fn backwards(&self) -> Result<(Vec<u32>, Vec<u32>), OutOfMemory> {
        let mut starts = filled(0_u32, self.states.len() + 2)?;
        let mut sources = filled(0_u32, self.targets.len())?;
        for &target in &self.targets {
            starts[target as usize + 2] += 1;
        }
        for number in 2..starts.len() {
            starts[number] += starts[number - 1];
        }
        for number in 0..self.states.len() {
            for &target in self.targets_of(number) {
                let place = &mut starts[target as usize + 1];
                sources[*place as usize] = number as u32;
                *place += 1;
            }
        }
        Ok((starts, sources))
    }

    fn targets_of(&self, number: usize) -> &[u32] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.targets[start..self.ends[number] as usize]
    }

    fn schedule(&self, state: u32) -> Schedule<M> {
        let mut numbers = vec![state];
        let mut at = state;
        while self.parents[at as usize] != at {
            at = self.parents[at as usize];
            numbers.push(at);
        }
        numbers.reverse();
        let steps = numbers.windows(2).filter_map(|pair| self.step(pair[0], pair[1])).collect();
        Schedule { steps, back_to: None }
    }

    fn step(&self, from: u32, to: u32) -> Option<(M::Move, M::State)> {
        let to = self.states[to as usize];
        let mut found = None;
        self.machine.moves(&self.states[from as usize], |step, state| {
            if state == to && found.is_none() {
                found = Some((step, state));
            }
        });
        found
    }

    /// Returns the path to a state from which no path leads to the end, and on until it loops or stops. It takes the first
    /// step of each state, since no other helps either.
    fn for_ever(&self, doomed: u32) -> Schedule<M> {
        let mut schedule = self.schedule(doomed);
        let arrived = schedule.steps.len();
        let mut seen = vec![doomed];
        loop {
            let at = seen[seen.len() - 1];
            let Some(&next) = self.targets_of(at as usize).first() else { break };
            schedule.steps.extend(self.step(at, next));
            if let Some(place) = seen.iter().position(|&number| number == next) {
                schedule.back_to = Some(arrived + place);
                break;
            }
            seen.push(next);
        }
        schedule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk on small numbers: the table names the successors of each state.
    struct Walk {
        steps: Vec<Vec<u8>>,
        broken: Vec<u8>,
        ends: Vec<u8>,
    }

    impl Machine for Walk {
        type State = u8;
        type Move = ();

        fn start(&self) -> u8 {
            0
        }

        fn moves(&self, state: &u8, mut each: impl FnMut((), u8)) {
            self.steps[usize::from(*state)].iter().for_each(|&next| each((), next));
        }

        fn harm(&self, state: &u8) -> Option<Harm> {
            self.broken.contains(state).then_some(Harm::Exclusion)
        }

        fn finished(&self, state: &u8) -> bool {
            self.ends.contains(state)
        }
    }

    fn states(schedule: &Schedule<Walk>) -> Vec<u8> {
        schedule.steps.iter().map(|&((), state)| state).collect()
    }

    #[test]
    fn the_shortest_way_to_a_harm_is_shown() {
        // 0 → 1 → 2 → 5 and 0 → 3 → 5: five has the harm, and four cannot be reached.
        let walk = Walk {
            steps: vec![vec![1, 3], vec![2], vec![5], vec![5], vec![0], vec![]],
            broken: vec![5, 4],
            ends: vec![5],
        };
        let found = search(&walk, Limits::default());
        assert_eq!((found.states, found.steps, found.end), (5, 5, End::Complete));
        assert_eq!(found.harms.len(), 1);
        assert_eq!(found.harms[0].0, Harm::Exclusion);
        assert_eq!(states(&found.harms[0].1), [3, 5]);
    }

    #[test]
    fn a_loop_with_a_way_out_is_no_harm_and_one_without_is() {
        let steps = vec![vec![1, 2], vec![0], vec![3], vec![4], vec![3, 2]];
        let with_end = Walk { steps: steps.clone(), broken: vec![], ends: vec![4] };
        assert!(search(&with_end, Limits::default()).harms.is_empty());
        let without = Walk { steps, broken: vec![], ends: vec![1] };
        let found = search(&without, Limits::default());
        assert_eq!(found.harms[0].0, Harm::Stuck);
        // 2 is the first doomed state; from there 3, 4, and back to the state after the second step.
        assert_eq!(states(&found.harms[0].1), [2, 3, 4, 3]);
        assert_eq!(found.harms[0].1.back_to, Some(2));
    }

    #[test]
    fn a_process_that_stops_without_having_finished_is_stuck() {
        let walk = Walk { steps: vec![vec![1], vec![]], broken: vec![], ends: vec![] };
        let found = search(&walk, Limits::default());
        assert_eq!((found.harms[0].0, states(&found.harms[0].1)), (Harm::Stuck, vec![1]));
        assert_eq!(found.harms[0].1.back_to, None);
    }

    #[test]
    fn what_was_not_looked_through_is_not_called_stuck() {
        let walk = Walk {
            steps: (1..=100).map(|n| vec![n]).chain([vec![]]).collect(),
            broken: vec![3],
            ends: vec![],
        };
        let found = search(&walk, Limits { states: 50, ..Limits::default() });
        assert_eq!((found.states, found.end), (50, End::OutOfStates));
        // A harm that was found is certain; the absence of others is not.
        assert_eq!(found.harms.iter().map(|(harm, _)| *harm).collect::<Vec<_>>(), [Harm::Exclusion]);
        let found = search(&walk, Limits { bytes: 1000, ..Limits::default() });
        assert_eq!((found.end, found.harms.len()), (End::OutOfMemory, 0));
    }
}
