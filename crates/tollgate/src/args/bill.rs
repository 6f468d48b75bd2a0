//! The arguments of `tollgate bill`.

use std::time::Duration;

use clap::Args;

use super::Format;
use crate::{examples, time};

/// `tollgate bill`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("bill", ""))]
pub struct BillArgs {
    /// Execute the commands that the list shows, each in turns with the one that takes it back, and boot guests
    #[arg(long)]
    pub yes: bool,
    /// Spend this much time on turns, from 1s to 24h; a bare number is seconds [default: 150s for each state of the machine]
    #[arg(long, value_name = "DURATION", value_parser = time::parse_time, requires = "yes", allow_negative_numbers = true)]
    pub time: Option<Duration>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}
