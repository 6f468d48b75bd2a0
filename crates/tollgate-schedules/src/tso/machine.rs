//! Processors with store buffers, and processes that run programs on them.

use super::buffer::{Buffer, Store};
use super::program::{Op, Place, Program, Value};
use crate::search::{Harm, Machine};
use crate::subject::Setting;

/// Processes, and processors, at most.
pub const MOST: usize = 4;

/// The programs and their processes: process p runs program p, or the only one, on processor p modulo their number.
#[derive(Clone, Copy, Debug)]
pub struct Tso<'a> {
    pub programs: &'a [Program],
    pub setting: Setting,
}

/// Everything that the future depends on. Unused fields are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The store buffer of each processor.
    pub buffers: [Buffer; MOST],
    /// x, y and b.
    pub memory: [u8; 2 + MOST],
    pub processes: [Process; MOST],
}

/// Where a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// The line whose step is next; 0 when there is none.
    pub at: u8,
    /// For whom it waits in [`Op::WaitForAll`]; 0 elsewhere.
    pub j: u8,
    /// Rounds that it has not finished.
    pub left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A process takes the step of its line.
    Step(u8),
    /// The oldest store in a processor's buffer reaches memory.
    Drain(u8),
}

impl Move {
    /// The process of the step; None where a store buffer drains.
    pub const fn process(self) -> Option<u8> {
        match self {
            Self::Step(process) => Some(process),
            Self::Drain(_) => None,
        }
    }
}

impl Machine for Tso<'_> {
    type State = State;
    type Move = Move;

    fn start(&self) -> State {
        let begun = |process: usize| {
            let is_there = process < usize::from(self.setting.processes);
            let (at, left) = (self.program(process as u8).first(), self.setting.rounds);
            if is_there { Process { at, j: 0, left } } else { Process::default() }
        };
        State {
            buffers: [Buffer::default(); MOST],
            memory: [0; 2 + MOST],
            processes: std::array::from_fn(begun),
        }
    }

    fn moves(&self, state: &State, mut each: impl FnMut(Move, State)) {
        for process in 0..self.setting.processes {
            if let Some(next) = self.step(state, process) {
                each(Move::Step(process), next);
            }
        }
        for processor in 0..self.setting.processors {
            if let Some(next) = drain(state, processor) {
                each(Move::Drain(processor), next);
            }
        }
    }

    fn harm(&self, state: &State) -> Option<Harm> {
        let inside = (0..self.setting.processes).filter(|&process| self.is_inside(state, process));
        (inside.count() > 1).then_some(Harm::Exclusion)
    }

    fn finished(&self, state: &State) -> bool {
        state.processes.iter().all(|process| process.left == 0)
    }
}

impl<'a> Tso<'a> {
    pub fn processor(&self, process: u8) -> u8 {
        process % self.setting.processors
    }

    pub fn program(&self, process: u8) -> &'a Program {
        &self.programs[usize::from(process) % self.programs.len()]
    }

    /// Is this process in the critical section?
    pub fn is_inside(&self, state: &State, process: u8) -> bool {
        self.op(state, process) == Some(Op::Critical)
    }

    /// The next operation of a process; None when it has finished.
    pub fn op(&self, state: &State, process: u8) -> Option<Op> {
        let Process { at, left, .. } = state.processes[usize::from(process)];
        if left == 0 { None } else { self.program(process).op(at) }
    }

    /// The value of a process's load, and whether that is a store of its own that has not reached memory.
    pub fn load(&self, state: &State, process: u8, address: u8) -> (u8, bool) {
        match self.buffer(state, process).newest_at(address) {
            Some(value) => (value, true),
            None => (state.memory[usize::from(address)], false),
        }
    }

    /// The address that a process reads with its next step.
    pub fn reads(&self, state: &State, process: u8) -> Option<u8> {
        match self.op(state, process)? {
            Op::If(place, ..) | Op::Unless(place, ..) | Op::Wait(place, _) => Some(place.address(process)),
            Op::WaitForAll => Some(Place::B.address(state.processes[usize::from(process)].j)),
            Op::Store(..) | Op::Fence | Op::Goto(_) | Op::Critical => None,
        }
    }

    /// The stores that a process would find in front of its own.
    pub fn buffer(&self, state: &State, process: u8) -> Buffer {
        state.buffers[usize::from(self.processor(process))]
    }

    /// The state after a process has taken the step of its line; nothing where it has to wait for its store buffer.
    fn step(&self, state: &State, process: u8) -> Option<State> {
        let Process { at, j, .. } = state.processes[usize::from(process)];
        let (op, program) = (self.op(state, process)?, self.program(process));
        let buffer = self.buffer(state, process);
        // A switch from the process that stored waits for its stores.
        if buffer.stores().any(|store| store.process != process) {
            return None;
        }
        let is = |place: Place, value: Value| {
            self.load(state, process, place.address(process)).0 == value.of(process)
        };
        let next = program.after(at);
        let mut after = *state;
        match op {
            Op::Store(place, value) => {
                let store = Store { process, address: place.address(process), value: value.of(process) };
                after.buffers[usize::from(self.processor(process))] = buffer.with(store)?;
                self.go_on(&mut after, process, next);
            }
            Op::Fence if !buffer.is_empty() => return None,
            Op::Fence | Op::Goto(_) | Op::Critical => self.go_on(&mut after, process, next),
            Op::If(place, value, label) => {
                self.go_on(&mut after, process, if is(place, value) { program.at(label) } else { next });
            }
            Op::Unless(place, value, label) => {
                self.go_on(&mut after, process, if is(place, value) { next } else { program.at(label) });
            }
            Op::Wait(place, value) => {
                if is(place, value) {
                    self.go_on(&mut after, process, next);
                }
            }
            Op::WaitForAll => {
                if self.load(state, process, Place::B.address(j)).0 != 0 {
                    return Some(after);
                }
                if j + 1 == self.setting.processes {
                    self.go_on(&mut after, process, next);
                } else {
                    after.processes[usize::from(process)].j += 1;
                }
            }
        }
        Some(after)
    }

    /// Puts a process before a line; behind the last one the next round begins, if one is left.
    fn go_on(&self, state: &mut State, process: u8, at: u8) {
        let program = self.program(process);
        let left = state.processes[usize::from(process)].left;
        state.processes[usize::from(process)] = match left {
            _ if !program.is_end(at) => Process { at, j: 0, left },
            2.. => Process { at: program.first(), j: 0, left: left - 1 },
            _ => Process::default(),
        };
    }
}

/// The state after a processor's oldest store has reached memory.
fn drain(state: &State, processor: u8) -> Option<State> {
    let mut after = *state;
    let buffer = &mut after.buffers[usize::from(processor)];
    let (store, others) = buffer.oldest()?;
    *buffer = others;
    after.memory[usize::from(store.address)] = store.value;
    Some(after)
}
