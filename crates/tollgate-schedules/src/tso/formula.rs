use super::buffer::Address;
use super::program::Register;
use super::state::State;

/// A condition on registers and memory once every process has finished and every store has reached memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    True,
    Is(Term, u8),
    Not(Box<Formula>),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    Cell(Address),
    Register(u8, Register),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    pub formula: Formula,
    /// Whether the formula must hold in the state that is looked for, or must not hold.
    pub wanted: bool,
}

impl Goal {
    pub fn is_reached(&self, state: &State) -> bool {
        self.formula.holds(state) == self.wanted
    }
}

impl Formula {
    pub fn holds(&self, state: &State) -> bool {
        match self {
            Self::True => true,
            Self::Is(term, value) => term.value(state) == *value,
            Self::Not(formula) => !formula.holds(state),
            Self::And(one, other) => one.holds(state) && other.holds(state),
            Self::Or(one, other) => one.holds(state) || other.holds(state),
        }
    }
}

impl Term {
    pub fn value(self, state: &State) -> u8 {
        match self {
            Self::Cell(address) => state.memory[usize::from(address)],
            Self::Register(process, register) => {
                state.processes[usize::from(process)].registers[usize::from(register)]
            }
        }
    }
}
