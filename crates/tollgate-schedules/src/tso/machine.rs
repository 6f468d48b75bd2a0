//! Processors with store buffers, and processes that run programs on them.

use super::buffer::{Address, Buffer, Store};
use super::formula::Goal;
use super::program::{Calculation, Op, Operand, Program, Register, Value};
use super::state::{Initial, MOST, Process, REGISTERS, State};
use super::symbols::Symbols;
use crate::search::{Harm, Machine};
use crate::subject::Setting;

/// Process p runs program p, or the only one, on processor p modulo the number of processors.
#[derive(Clone, Copy, Debug)]
pub struct Tso<'a> {
    pub programs: &'a [Program],
    pub symbols: &'a Symbols,
    pub initial: &'a Initial,
    pub setting: Setting,
    /// The final state to look for, if the programs are a litmus test and not a lock.
    pub goal: Option<&'a Goal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A process executes its current line.
    Step(u8),
    /// The oldest store in a processor's buffer reaches memory.
    Drain(u8),
}

impl Move {
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
            if is_there { self.begun(process as u8, self.setting.rounds) } else { Process::default() }
        };
        let buffers = [Buffer::default(); MOST];
        State { buffers, memory: self.initial.memory, processes: std::array::from_fn(begun) }
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
        match self.goal {
            Some(goal) => (self.is_outcome(state) && goal.is_reached(state)).then_some(Harm::Condition),
            None => {
                let inside = (0..self.setting.processes).filter(|&process| self.is_inside(state, process));
                (inside.count() > 1).then_some(Harm::Exclusion)
            }
        }
    }

    fn finished(&self, state: &State) -> bool {
        state.processes.iter().all(|process| process.left == 0)
    }

    fn is_outcome(&self, state: &State) -> bool {
        self.goal.is_some() && self.finished(state) && state.buffers.iter().all(|buffer| buffer.is_empty())
    }
}

impl<'a> Tso<'a> {
    pub fn processor(&self, process: u8) -> u8 {
        process % self.setting.processors
    }

    pub fn program(&self, process: u8) -> &'a Program {
        &self.programs[usize::from(process) % self.programs.len()]
    }

    pub fn is_inside(&self, state: &State, process: u8) -> bool {
        self.op(state, process) == Some(Op::Critical)
    }

    pub fn op(&self, state: &State, process: u8) -> Option<Op> {
        let Process { at, left, .. } = state.processes[usize::from(process)];
        if left == 0 { None } else { self.program(process).op(at) }
    }

    /// Returns the value that a process loads, and whether it comes from a store of its own that has not reached memory.
    pub fn load(&self, state: &State, process: u8, address: Address) -> (u8, bool) {
        match self.buffer(state, process).newest_at(address) {
            Some(value) => (value, true),
            None => (state.memory[usize::from(address)], false),
        }
    }

    /// Returns the address that a process reads with its next step.
    pub fn reads(&self, state: &State, process: u8) -> Option<Address> {
        let of = |operand: Operand| match operand {
            Operand::Memory(place) => Some(place.address(process)),
            Operand::Value(_) => None,
        };
        match self.op(state, process)? {
            Op::If { place, .. } | Op::Wait { place, .. } | Op::Load(_, place) => {
                Some(place.address(process))
            }
            Op::WaitForAll(place) => Some(place.base + state.processes[usize::from(process)].j),
            Op::Calculate { target, source, .. } => of(source).or_else(|| of(target)),
            Op::Exchange(target, _) | Op::CompareExchange { target, .. } | Op::ExchangeAdd { target, .. } => {
                of(target)
            }
            Op::Store(..) | Op::Set(..) | Op::Fence | Op::Goto(_) | Op::Critical => None,
            Op::Branch { .. } | Op::Nothing => None,
        }
    }

    pub fn buffer(&self, state: &State, process: u8) -> Buffer {
        state.buffers[usize::from(self.processor(process))]
    }

    /// Returns the state after a process has executed its line; `None` if it must wait for its store buffer.
    pub fn step(&self, state: &State, process: u8) -> Option<State> {
        let Process { at, j, flags, .. } = state.processes[usize::from(process)];
        let (op, program) = (self.op(state, process)?, self.program(process));
        if !self.setting.preempted && self.another_keeps_its_processor(state, process) {
            return None;
        }
        let buffer = self.buffer(state, process);
        // A switch from the process that stored waits for its stores.
        if buffer.stores().any(|store| store.process != process) {
            return None;
        }
        // An instruction with the LOCK prefix drains the buffer, and works in memory.
        let locked = is_locked(op);
        if (locked || op == Op::Fence) && !buffer.is_empty() {
            return None;
        }
        let is = |place, equal, value| {
            (self.get(state, process, Operand::Memory(place)) == self.value(state, process, value)) == equal
        };
        let mut next = program.after(at);
        let mut after = *state;
        let mut put = |operand, value| self.put(&mut after, process, operand, value, locked);
        let get = |operand| self.get(state, process, operand);
        let register = |register| Operand::Value(Value::Register(register));
        let mut set = flags;
        match op {
            Op::Store(place, value) => put(Operand::Memory(place), self.value(state, process, value))?,
            Op::Load(to, place) => put(register(to), get(Operand::Memory(place)))?,
            Op::Set(to, value) => put(register(to), self.value(state, process, value))?,
            Op::Fence | Op::Goto(_) | Op::Critical | Op::Nothing => {}
            Op::If { place, equal, value, to } => {
                if is(place, equal, value) {
                    next = program.at(to);
                }
            }
            Op::Wait { place, equal, value } => {
                if !is(place, equal, value) {
                    return Some(after);
                }
            }
            Op::WaitForAll(place) => {
                if self.load(state, process, place.base + j).0 != 0 {
                    return Some(after);
                }
                if j + 1 < self.setting.processes {
                    after.processes[usize::from(process)].j += 1;
                    return Some(after);
                }
            }
            Op::Calculate { what, target, source, .. } => {
                let (result, flags) = what.result(get(target), get(source));
                set = flags;
                if what.writes() {
                    put(target, result)?;
                }
            }
            Op::Exchange(target, with) => {
                put(target, get(register(with)))?;
                put(register(with), get(target))?;
            }
            Op::CompareExchange { target, source, accumulator, .. } => {
                let old = get(target);
                set = Calculation::Compare.result(get(register(accumulator)), old).1;
                if old == get(register(accumulator)) {
                    put(target, get(register(source)))?;
                } else {
                    put(register(accumulator), old)?;
                }
            }
            Op::ExchangeAdd { target, source, .. } => {
                let (sum, flags) = Calculation::Add.result(get(target), get(register(source)));
                set = flags;
                put(register(source), get(target))?;
                put(target, sum)?;
            }
            Op::Branch { condition, wanted, to } => {
                if condition.holds(flags) == wanted {
                    next = program.at(to);
                }
            }
        }
        after.processes[usize::from(process)].flags = set;
        self.go_on(&mut after, process, next);
        Some(after)
    }

    /// Returns whether another process of its processor is past the first line, and not in the critical section.
    fn another_keeps_its_processor(&self, state: &State, process: u8) -> bool {
        let is_between = |other: u8| {
            let Process { at, left, .. } = state.processes[usize::from(other)];
            left > 0 && at != self.program(other).first() && !self.is_inside(state, other)
        };
        (0..self.setting.processes).any(|other| {
            other != process && self.processor(other) == self.processor(process) && is_between(other)
        })
    }

    fn value(&self, state: &State, process: u8, value: Value) -> u8 {
        value.number(process, &state.processes[usize::from(process)].registers)
    }

    fn get(&self, state: &State, process: u8, operand: Operand) -> u8 {
        match operand {
            Operand::Memory(place) => self.load(state, process, place.address(process)).0,
            Operand::Value(value) => self.value(state, process, value),
        }
    }

    /// Writes a register or a word of memory, through the store buffer unless memory is locked. `None` if the buffer is
    /// full.
    fn put(&self, state: &mut State, process: u8, operand: Operand, value: u8, locked: bool) -> Option<()> {
        match operand {
            Operand::Value(Value::Register(register)) => {
                *register_of(&mut state.processes[usize::from(process)], register) = value;
            }
            Operand::Value(_) => {}
            Operand::Memory(place) if locked => {
                state.memory[usize::from(place.address(process))] = value;
            }
            Operand::Memory(place) => {
                let buffer = &mut state.buffers[usize::from(self.processor(process))];
                *buffer = buffer.with(Store { process, address: place.address(process), value })?;
            }
        }
        Some(())
    }

    fn begun(&self, process: u8, left: u8) -> Process {
        let registers = self.initial.registers[usize::from(process)];
        match self.program(process).first() {
            // A program without a step ends at once.
            at if self.program(process).is_end(at) => Process { registers, ..Process::default() },
            at => Process { at, left, registers, ..Process::default() },
        }
    }

    /// Moves a process to a line; after the last one the next round begins, if any. Only litmus tests need the registers at
    /// the end.
    fn go_on(&self, state: &mut State, process: u8, at: u8) {
        let program = self.program(process);
        let now = state.processes[usize::from(process)];
        state.processes[usize::from(process)] = match now.left {
            _ if !program.is_end(at) => Process { at, j: 0, ..now },
            2.. => self.begun(process, now.left - 1),
            _ if self.goal.is_some() => Process { registers: now.registers, ..Process::default() },
            _ => Process::default(),
        };
    }
}

fn register_of(process: &mut Process, register: Register) -> &mut u8 {
    &mut process.registers[usize::from(register) % REGISTERS]
}

pub fn is_locked(op: Op) -> bool {
    match op {
        Op::Exchange(Operand::Memory(_), _) => true,
        Op::Calculate { locked, .. }
        | Op::CompareExchange { locked, .. }
        | Op::ExchangeAdd { locked, .. } => locked,
        _ => false,
    }
}

/// Returns the state after a processor's oldest store has reached memory.
pub fn drain(state: &State, processor: u8) -> Option<State> {
    let mut after = *state;
    let buffer = &mut after.buffers[usize::from(processor)];
    let (store, others) = buffer.oldest()?;
    *buffer = others;
    after.memory[usize::from(store.address)] = store.value;
    Some(after)
}
