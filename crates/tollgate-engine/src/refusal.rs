use serde::{Deserialize, Serialize};
use tollgate_model::{Outcome, text::said_by};

/// Why a case cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// It cannot exist in this environment.
    Skip(String),
    /// The kernel refuses the call with these arguments, as it may.
    Refuse(String),
    /// It exists here, but any figure of it would be wrong.
    NotMeasured(String),
    /// It exists here, but the run had no time for it.
    OutOfTime(String),
    /// It exists here, but failed.
    Fail(String),
}

/// A result whose error is a refusal by default.
pub type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Refusal {
    /// Converts an error to a skip, or to a failure if only a resource has run short.
    pub fn new(what: &str, error: &std::io::Error) -> Self {
        let sentence = format!("{what}: {}", said_by(what, error));
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN | libc::ENOSPC) => {
                Self::Fail(sentence)
            }
            _ => Self::Skip(sentence),
        }
    }

    /// Returns the skip of a case that needs two processors.
    pub fn one_processor() -> Self {
        Self::Skip("two processors are needed, but this process may use only one".to_owned())
    }

    /// Converts the calling thread's last error.
    pub fn last(what: &str) -> Self {
        Self::new(what, &std::io::Error::last_os_error())
    }

    /// Returns the outcome of a refused case.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Skip(why) => Outcome::Skipped { why },
            Self::Refuse(why) => Outcome::Refused { why },
            Self::NotMeasured(why) | Self::OutOfTime(why) => Outcome::NotMeasured { why },
            Self::Fail(error) => Outcome::Failed { error },
        }
    }

    /// Returns the reason, as a sentence.
    pub fn why(&self) -> &str {
        let (Self::Skip(why)
        | Self::Refuse(why)
        | Self::NotMeasured(why)
        | Self::OutOfTime(why)
        | Self::Fail(why)) = self;
        why
    }

    pub(crate) fn why_mut(&mut self) -> &mut String {
        let (Self::Skip(why)
        | Self::Refuse(why)
        | Self::NotMeasured(why)
        | Self::OutOfTime(why)
        | Self::Fail(why)) = self;
        why
    }
}

/// Errors of the operating system as refusals.
pub trait OrRefused<T> {
    /// Converts an error as [`Refusal::new`] does.
    fn or_refused(self, what: &str) -> Result<T>;
}

impl<T> OrRefused<T> for std::io::Result<T> {
    fn or_refused(self, what: &str) -> Result<T> {
        self.map_err(|error| Refusal::new(what, &error))
    }
}

/// Returns a system call's result, or its error if it is negative.
pub fn checked(result: impl Into<i64>) -> std::io::Result<usize> {
    usize::try_from(result.into()).map_err(|_| std::io::Error::last_os_error())
}

/// Makes a [`Refusal::Skip`] with a formatted reason.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => { $crate::Refusal::Skip(format!($($reason)*)) };
}

/// Makes a [`Refusal::Fail`] with a formatted reason.
#[macro_export]
macro_rules! fail {
    ($($reason:tt)*) => { $crate::Refusal::Fail(format!($($reason)*)) };
}
