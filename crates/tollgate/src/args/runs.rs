//! The arguments of `tollgate runs`.

use clap::{Args, Subcommand};
use tollgate_model::Label;

use super::Format;
use crate::examples;

/// `tollgate runs`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("runs", ""))]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// The action; without it the kept runs are listed, oldest first
    #[command(subcommand)]
    pub verb: Option<RunsVerb>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The verbs for kept runs.
#[derive(Debug, Subcommand)]
pub enum RunsVerb {
    /// Give a kept run another label
    Rename(RenameArgs),
    /// Delete kept runs
    Delete(DeleteArgs),
}

/// `tollgate runs rename`.
#[derive(Debug, Args)]
pub struct RenameArgs {
    /// The run: a label (the newest run that has it), an id or its beginning, or `last`, the newest of any kind
    pub run: String,
    /// Its new label
    pub label: Label,
}

/// `tollgate runs delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The runs: labels (each the newest run that has it), ids or their beginnings, or `last`, the newest of any kind
    #[arg(required = true)]
    pub run: Vec<String>,
}
