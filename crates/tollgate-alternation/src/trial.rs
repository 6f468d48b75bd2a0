//! The interface between the order of executions and the executions.

use std::time::Duration;

use tollgate_statistics::Neighbours;

use crate::{Halt, Places};

/// Something that is executed in alternation. It has the clock, and everything else that an execution needs.
pub trait Trial {
    /// The reason why everything ends.
    type Stop;

    /// Returns the time since a moment of its choice.
    fn now(&self) -> Duration;

    /// Makes a side ready. All sides of a case become ready before the first is executed, so that executions lie close together.
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

    /// Judges an execution after the case's last side was executed. `outcome` is what [`Trial::execute`] returned.
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

    /// Does what else belongs to a timed round.
    ///
    /// # Errors
    /// See [`Halt`].
    fn after_round(&mut self, _places: &mut Places, _so_far: &SoFar) -> Result<(), Halt<Self::Stop>> {
        Ok(())
    }

    /// Returns what is subtracted from the figures of a side before they are compared.
    fn less(&self, _side: usize) -> f64 {
        0.0
    }

    /// Returns the largest number of traced rounds; 0 if none are traced.
    fn most_traced(&self) -> u32 {
        0
    }

    /// Whether a side inherits what the previous execution left, so that its figure may depend on the order.
    fn inherits(&self, _side: usize) -> bool {
        false
    }

    /// Drops all figures, because the order matters. From now on the sides take turns.
    fn begin_anew(&mut self) {}
}

/// One execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The index of the case.
    pub case: usize,
    /// The number of the side.
    pub side: usize,
    /// The purpose.
    pub how: How,
    /// The number of earlier rounds of this kind.
    pub number: u32,
}

/// The purpose of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Warms up caches. The figure is dropped.
    Warm,
    /// The figure is kept.
    Timed,
    /// Shows where the time goes. The figure is dropped.
    Traced,
}

/// The result of an execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// A figure. 0 if it has none; too many of these prevent a comparison.
    Figure(f64),
    /// No figure, for a reason unrelated to it: the round keeps its place and is not compared.
    Discarded,
    /// Nothing was executed, or nothing to compare.
    Done,
    /// The case is no longer executed on this side.
    LeaveSide,
    /// The case is no longer executed.
    LeaveCase,
}

/// The progress of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SoFar {
    /// The number of timed rounds.
    pub rounds: u32,
    /// The last comparison: its case, the side that was compared with the first one, and the result.
    pub compared: Option<(usize, usize, Neighbours)>,
}
