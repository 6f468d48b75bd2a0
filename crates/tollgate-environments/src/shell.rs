//! The shell that is started in an agent's place.

use std::path::Path;

use crate::error::{EnvironmentError, unusable};

/// A shell's command that says a newline and ends.
pub(crate) const SHELL: [&str; 3] = ["/bin/sh", "-c", "echo"];

/// Refuses an environment with the programs of this machine where they have no shell.
pub(crate) fn expect_here() -> Result<(), EnvironmentError> {
    match Path::new(SHELL[0]).exists() {
        true => Ok(()),
        false => Err(unusable!("this machine has no {}, and the environment has its programs", SHELL[0])),
    }
}
