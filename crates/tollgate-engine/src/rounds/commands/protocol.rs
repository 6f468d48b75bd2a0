//! The messages about whole commands between a coordinator and an agent: one request, then its answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::{Case, Fact};

use super::stage::{Attempt, Phase};
use crate::refusal::Refusal;

/// A request from the coordinator, which waits for the answer. If its connection ends instead, the current work ends too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum CommandRequest {
    /// Make the fixture of these cases, and prepare each of them.
    Prepare {
        /// The cases, which share a fixture.
        cases: Vec<Case>,
        /// The time limit.
        within: Duration,
    },
    /// Execute a phase of a repetition.
    Pass {
        /// The case's index among those of the preparation.
        case: usize,
        /// The phase.
        phase: Phase,
        /// The time limit.
        within: Duration,
    },
    /// Remove the fixture.
    Finish,
}

/// An answer from the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum CommandAnswer {
    /// For each case, the reason if it cannot be executed.
    Prepared(Vec<Option<Refusal>>),
    /// The result of a phase.
    Did(Attempt),
    /// The fixture is removed; facts about the executions.
    Finished(Vec<(String, Fact)>),
}
