//! The arguments of `tollgate doctor`.

use clap::{Args, ValueEnum};

use super::Format;
use crate::examples;

/// `tollgate doctor`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("doctor", ""))]
pub struct DoctorArgs {
    /// Exit with status 1 if a check has this state
    #[arg(long, value_name = "STATE", value_enum)]
    pub fail_on: Option<FailOnState>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The state that makes the checks of a machine fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOnState {
    /// A check is poor
    Poor,
}
