//! The arguments of `tollgate claims`.

use std::time::Duration;

use clap::Args;

use super::Format;
use crate::{examples, time};

const AFTER: &str = "\
A figure is taken from the first run that has it, by the estimator of the source where that is known. A claim holds, does not hold, or cannot be told here, with the reason. docs/claims.md has the rules.";

/// `tollgate claims`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("claims", AFTER))]
pub struct ClaimsArgs {
    /// An experiment by its name, such as direct-io-buffer-2017; none for all
    #[arg(value_name = "NAME")]
    pub published: Option<String>,
    /// The runs with this machine's figures, as `show` takes them [default: the newest kept ones of this machine, as many as are
    /// needed]
    pub run: Vec<String>,
    /// Measure what the runs have no figures of, and keep that run
    #[arg(long)]
    pub check: bool,
    /// Spend this much time on that, from 1s to 24h, in place of a number of processes; a bare number is seconds
    #[arg(long, value_name = "DURATION", value_parser = time::parse_time, allow_negative_numbers = true, requires = "check")]
    pub time: Option<Duration>,
    /// Measure each of them in this many processes, however long that takes [default: 6, of which an interval is made]
    #[arg(long, value_name = "N", value_parser = super::parse_processes, allow_negative_numbers = true)]
    #[arg(requires = "check", conflicts_with = "time")]
    pub processes: Option<usize>,
    /// Compile the published program (its experiment or its own name is NAME) and execute it, as it was published and with each correction
    #[arg(long, conflicts_with_all = ["check", "run"])]
    pub as_published: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print no progress bar and no warnings on standard error
    #[arg(long, short)]
    pub quiet: bool,
}
