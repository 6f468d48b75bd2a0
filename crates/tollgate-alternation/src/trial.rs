//! What is executed: the interface between the order of executions and the executions.

use std::time::Duration;

use tollgate_statistics::Neighbours;

use crate::{Halt, Places};

/// Something that is executed in alternation. It has the clock, and whatever else an execution needs.
pub trait Trial {
    /// Why everything ends.
    type Stop;

    /// The time since a moment of its choice.
    fn now(&self) -> Duration;

    /// Makes a side ready. It is called for all sides of a case before the first of them is executed, so that executions lie close together.
    ///
    /// # Errors
    /// See [`Halt`].
    fn prepare(&mut self, _turn: &Turn, _so_far: &SoFar) -> Result<Outcome, Halt<Self::Stop>> {
        Ok(Outcome::Done)
    }

    /// Executes a case on a side.
    ///
    /// # Errors
    /// See [`Halt`].
    fn execute(&mut self, turn: &Turn, so_far: &SoFar) -> Result<Outcome, Halt<Self::Stop>>;

    /// Judges an execution, after the last side of the case was executed: `outcome` is what [`Trial::execute`] gave.
    ///
    /// # Errors
    /// See [`Halt`].
    fn conclude(
        &mut self,
        _turn: &Turn,
        outcome: Outcome,
        _so_far: &SoFar,
    ) -> Result<Outcome, Halt<Self::Stop>> {
        Ok(outcome)
    }

    /// What else belongs to a round that was timed.
    ///
    /// # Errors
    /// See [`Halt`].
    fn after_round(&mut self, _places: &mut Places, _so_far: &SoFar) -> Result<(), Halt<Self::Stop>> {
        Ok(())
    }

    /// What is subtracted from the figures of a side before they are compared.
    fn less(&self, _side: usize) -> f64 {
        0.0
    }

    /// At most so many rounds are traced; 0 where nothing is.
    fn most_traced(&self) -> u32 {
        0
    }

    /// Whether a side finds what the execution before it left, so that its figure may depend on the order.
    fn inherits(&self, _side: usize) -> bool {
        false
    }

    /// All figures are dropped: the order matters, and the sides take turns from now on.
    fn begin_anew(&mut self) {}
}

/// One execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The case.
    pub case: usize,
    /// The side.
    pub side: usize,
    /// What it is for.
    pub how: How,
    /// How many rounds of this kind there were before.
    pub number: u32,
}

/// What an execution is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Its figure is not kept: caches are as they were.
    Warm,
    /// Its figure is kept.
    Timed,
    /// It says where the time goes. Its figure is not kept.
    Traced,
}

/// What came of an execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// A figure. 0 where it has none, as too many of these say something.
    Figure(f64),
    /// None, for a reason that says nothing of the figure: its round keeps its place, and is not compared.
    Discarded,
    /// Nothing was executed, or nothing that is compared.
    Done,
    /// The case is not executed on this side any more.
    LeaveSide,
    /// The case is not executed any more.
    LeaveCase,
}

/// What is known so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SoFar {
    /// Rounds that were timed.
    pub rounds: u32,
    /// The last comparison: its case, the side that was compared with the first one, and what was found.
    pub compared: Option<(usize, usize, Neighbours)>,
}
