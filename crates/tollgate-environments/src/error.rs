use rustix::io::Errno;

/// Why an environment cannot be made or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// One sentence.
    #[error("{0}")]
    Unusable(String),
    /// Another user could replace what is used there: a sentence that says what to do.
    #[error("{0}")]
    Unsafe(String),
    /// The operation needs root: a sentence without its subject.
    #[error("needs root: {0}")]
    NeedsRoot(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

macro_rules! unusable {
    ($($said:tt)+) => { $crate::error::EnvironmentError::Unusable(format!($($said)+)) };
}
pub(crate) use unusable;

impl EnvironmentError {
    pub(crate) fn new(what: impl std::fmt::Display, error: Errno) -> Self {
        Self::Unusable(format!("{what}: {}", plainly(error)))
    }
}

/// An error's text without its number: `No space left on device`.
pub(crate) fn plainly(error: impl Into<std::io::Error>) -> String {
    tollgate_model::text::plainly(&error.into())
}

pub(crate) fn bytes(amount: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let at = (0..UNITS.len() - 1).find(|&at| amount >> (10 * at) < 4096).unwrap_or(UNITS.len() - 1);
    format!("{} {}", amount >> (10 * at), UNITS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        let shown = [0, 2000, 4 << 10, 3 << 20, 69 << 30, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 bytes", "2000 bytes", "4 KiB", "3072 KiB", "69 GiB", "16777215 TiB"]);
    }

    #[test]
    fn an_error_loses_its_number() {
        assert_eq!(EnvironmentError::new("/x", Errno::NOSPC).to_string(), "/x: No space left on device");
    }
}
