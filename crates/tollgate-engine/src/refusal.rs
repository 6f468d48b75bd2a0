//! Why a case cannot be measured.

use serde::{Deserialize, Serialize};
use tollgate_model::text::said_by;

/// Why a case cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// It cannot exist in this environment.
    Skip(String),
    /// It exists here and failed.
    Fail(String),
}

impl Refusal {
    /// Maps an error to a skip, or to a failure if only a resource has run short.
    pub fn of(what: &str, error: &std::io::Error) -> Self {
        let sentence = format!("{what}: {}", said_by(what, error));
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN | libc::ENOSPC) => {
                Self::Fail(sentence)
            }
            _ => Self::Skip(sentence),
        }
    }

    /// The reason, as a sentence.
    pub(super) fn why_mut(&mut self) -> &mut String {
        let (Self::Skip(why) | Self::Fail(why)) = self;
        why
    }
}
