//! How the program ends: every exit status is decided here.

use std::io;
use std::process::ExitCode;

use tollgate_dump::output::Unfit;
use tollgate_engine::interrupt;
use tollgate_kconfig::output::NoSuchArea;
use tollgate_lab::LabError;
use tollgate_model::traced::Ended;
use tollgate_store::KeepError;
use tollgate_store::destination::{HomeError, NoTime};
use tollgate_store::edit::EditError;
use tollgate_store::fleet::{ContentsError, PrepareError};
use tollgate_store::kept::FindError;

use crate::say;

pub use tollgate_model::text::plainly;

#[derive(Debug)]
pub enum Failure {
    /// Wrong usage or input, or something that could not be written: one sentence. Exit status 2.
    Input(String),
    /// A command or a build of the user failed: one sentence. Exit status 2.
    Failed(String),
    /// The verb is done, and the condition of --fail-on is met. Exit status 1.
    Condition(String),
    /// The verb is done, but too little was decided to say whether the condition of --fail-on is met. Exit status 3.
    Undecided(String),
    /// The run was made but could not be kept: one sentence. Exit status 4.
    NotKept(String),
    /// A signal asked to stop. The program ends by that signal.
    Interrupted(i32),
    /// A command to be run exists but cannot be executed: one sentence. Exit status 126, as in shells.
    NotExecutable(String),
    /// A command to be run does not exist: one sentence. Exit status 127, as in shells.
    NotFound(String),
    /// The verb ends with this status, and has said why.
    Status(u8),
    /// The reader of the output closed it, which is not an error. Exit status 0.
    ClosedPipe,
}

impl Failure {
    pub fn input(sentence: impl Into<String>) -> Self {
        Self::Input(sentence.into())
    }

    pub fn of_output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Input(format!("standard output cannot be written: {}", plainly(error))),
        }
    }
}

macro_rules! input {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Input(error.to_string())
            }
        }
    )*};
}

input!(FindError, EditError, HomeError, NoTime, PrepareError, ContentsError, Unfit, NoSuchArea);

impl From<KeepError> for Failure {
    fn from(error: KeepError) -> Self {
        Self::NotKept(error.to_string())
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Interrupted { signal } => Self::Interrupted(signal),
            error => Self::Input(error.to_string()),
        }
    }
}

/// Fails if a signal has asked to stop. A verb that makes processes or directories calls this after each of its phases.
pub fn go_on() -> Result<(), Failure> {
    interrupt::requested().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
}

/// Reports a failure, and decides the exit status. If a signal has asked to stop, the program ends by that signal.
pub fn conclude(outcome: Result<(), Failure>) -> ExitCode {
    let requested = interrupt::conclude();
    let (status, signal) = match outcome {
        Ok(()) | Err(Failure::ClosedPipe) => (ExitCode::SUCCESS, None),
        Err(Failure::Condition(sentence)) => (said(&sentence, 1), None),
        Err(Failure::Input(sentence) | Failure::Failed(sentence)) => (said(&sentence, 2), None),
        Err(Failure::Undecided(sentence)) => (said(&sentence, 3), None),
        Err(Failure::NotKept(sentence)) => (said(&sentence, 4), None),
        Err(Failure::Status(status)) => (ExitCode::from(status), None),
        Err(Failure::NotExecutable(sentence)) => (said(&sentence, 126), None),
        Err(Failure::NotFound(sentence)) => (said(&sentence, 127), None),
        Err(Failure::Interrupted(signal)) => {
            say::say("interrupted; nothing was kept");
            (ExitCode::FAILURE, Some(signal))
        }
    };
    match requested.or(signal) {
        Some(signal) => tollgate_trace::end_like(Ended::Signal(signal)),
        None => status,
    }
}

fn said(sentence: &str, status: u8) -> ExitCode {
    say::say(sentence);
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_full_disk() {
        assert!(matches!(Failure::of_output(&io::ErrorKind::BrokenPipe.into()), Failure::ClosedPipe));
        assert!(matches!(Failure::of_output(&io::Error::from_raw_os_error(28)), Failure::Input(_)));
    }
}
