//! The messages about whole commands between a coordinator and an agent: one request, then its answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::{Case, Fact};

use super::stage::{Attempt, Phase};
use crate::refusal::Refusal;

/// From the coordinator, which waits for the answer. Where its line ends instead, the work in hand ends, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum CommandRequest {
    /// Make the fixture of these cases, and each of them ready.
    Prepare {
        /// They share a fixture.
        cases: Vec<Case>,
        /// The time for it.
        within: Duration,
    },
    /// Go through a phase of a repetition.
    Pass {
        /// The case's place among those of the preparation.
        case: usize,
        /// The phase.
        phase: Phase,
        /// The time for it.
        within: Duration,
    },
    /// Remove the fixture.
    Finish,
}

/// From the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum CommandAnswer {
    /// For each case the reason if it cannot be executed.
    Prepared(Vec<Option<Refusal>>),
    /// The result of a phase.
    Did(Attempt),
    /// The fixture is gone. Facts of what was executed.
    Finished(Vec<(String, Fact)>),
}
