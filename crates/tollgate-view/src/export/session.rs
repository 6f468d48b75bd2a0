//! The part of a run in a session, for systems that look for pairs: the runs of one session have the same id, and the base is at
//! place 0.

use serde::{Deserialize, Serialize};
use tollgate_model::Run;

use super::short;
use crate::comparison;

/// The columns of a run that is part of a session. Other runs have none of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InSession {
    /// The session's id.
    pub session: String,
    /// The environment as the user named it.
    pub session_environment: String,
    /// Its position among the environments; the base's is 0.
    pub session_place: u32,
    /// Whether its turns are neighbours of the base's.
    pub session_paired: bool,
    /// The setting of the machine that differed there: `PATH=VALUE`, or the names of the states that were on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_knob: Option<String>,
    /// The user's command that was compared there with others: its name, or else its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_command: Option<String>,
}

impl InSession {
    /// `None` if the run was measured alone.
    pub fn of(run: &Run) -> Option<Self> {
        let part = run.session.as_ref()?;
        Some(Self {
            session: part.id.to_string(),
            session_environment: short(&part.environment),
            session_place: part.place,
            session_paired: part.paired,
            session_knob: {
                let knob = part.knob.as_ref().map(|knob| format!("{}={}", knob.path, knob.value));
                knob.or_else(|| comparison::switches(part)).map(|text| short(&text))
            },
            session_command: part.command.as_ref().map(|command| short(command.shown())),
        })
    }
}
