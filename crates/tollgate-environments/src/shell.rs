//! The shell that is started in place of an agent.

use std::path::Path;

use crate::error::{EnvironmentError, unusable};

/// A shell command that prints a newline and ends.
pub(crate) const SHELL: [&str; 3] = ["/bin/sh", "-c", "echo"];

/// Refuses an environment that has this machine's programs if this machine has no shell.
pub(crate) fn expect_here() -> Result<(), EnvironmentError> {
    if Path::new(SHELL[0]).exists() {
        Ok(())
    } else {
        Err(unusable!("this machine has no {}, and the environment uses this machine's programs", SHELL[0]))
    }
}
