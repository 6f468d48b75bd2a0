//! The arguments of `tollgate claims`.

use std::time::Duration;

use clap::Args;

use super::Format;
use crate::{examples, time};

const AFTER: &str = "\
Each figure comes from the first run that has it, by the source's estimator if that is known. A claim holds, does not hold, or cannot be told here, with the reason. docs/claims.md has the rules.";

/// `tollgate claims`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("claims", AFTER))]
pub struct ClaimsArgs {
    /// The name of an experiment, such as direct-io-buffer-2017 [default: all]
    #[arg(value_name = "NAME")]
    pub published: Option<String>,
    /// The runs to take this machine's figures from, as for `show` [default: the newest kept runs of this
    /// machine, as many as are needed]
    pub run: Vec<String>,
    /// Measure the cases that the runs lack, and keep the new run
    #[arg(long)]
    pub check: bool,
    /// Spend this much time on --check, from 1s to 24h, instead of a number of processes; a bare number is
    /// seconds
    #[arg(long, value_name = "DURATION", value_parser = time::parse_time, allow_negative_numbers = true, requires = "check")]
    pub time: Option<Duration>,
    /// Measure each case of --check in this many processes, however long that takes [default: 6, the fewest
    /// that give an interval]
    #[arg(long, value_name = "N", value_parser = super::parse_processes, allow_negative_numbers = true)]
    #[arg(requires = "check", conflicts_with = "time")]
    pub processes: Option<usize>,
    /// Compile the published program that NAME means (its own name or its experiment's), and execute it as
    /// published and with each correction
    #[arg(long, conflicts_with_all = ["check", "run"])]
    pub as_published: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print no progress bar and no warnings on standard error
    #[arg(long, short)]
    pub quiet: bool,
}
