//! The arguments of `tollgate compare`.

use clap::{Args, ValueEnum};
use tollgate_view::compare::condition::Condition;

use super::ShowFormat;
use crate::failure::Failure;
use crate::{examples, say};

const AFTER: &str = "\
Exit status of --fail-on: 1 where a row fulfils the condition; else 3 where too little was decided to say that none does: no case has a \
figure in both runs, an inconclusive row looks changed by a factor of 2 or more, or more than half of the rows are inconclusive with \
intervals that include what is asked for. docs/statistics.md has the rule.";

/// `tollgate compare`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("compare", AFTER))]
pub struct CompareArgs {
    /// The baseline: a file, a label (the newest run that has it), an id or
    /// its beginning, `last`, or a directory of stored runs for the newest in it; DIR:RUN is one of those
    pub base: String,
    /// The runs that are compared with it; `last` is the newest of the baseline's kind. None where BASE is a session: its other
    /// environments are compared with its first
    pub other: Vec<String>,
    /// Show every row and every fact, not only those that changed
    #[arg(long)]
    pub all: bool,
    /// Exit with status 1 where any benchmark has this verdict, 3 where that is undecided; several are separated by commas
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// What --fail-on goes by, of commands that alternated
    #[arg(long, value_name = "TIME", value_enum, default_value_t)]
    pub by: Quantity,
    /// What is undecided
    #[command(flatten)]
    pub undecided: UndecidedArgs,
    /// Ignore smaller differences; the noise of a row can raise this [default: 1%, of counted instructions 0%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold, allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub format: ShowFormat,
}

/// How a comparison ends of which too little was decided.
#[derive(Debug, Clone, Default, Args)]
pub struct UndecidedArgs {
    /// Exit with this status instead of 3 where too little was decided; with 125 `git bisect run` leaves a commit out
    #[arg(long, value_name = "STATUS")]
    pub exit_undecided: Option<u8>,
}

impl UndecidedArgs {
    /// The same outcome with that status.
    ///
    /// # Errors
    /// Those of the outcome.
    pub fn applied(&self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        match (outcome, self.exit_undecided) {
            (Err(Failure::Undecided(sentence)), Some(status)) => {
                say::say(&sentence);
                Err(Failure::Status(status))
            }
            (outcome, _) => outcome,
        }
    }
}

/// The verdict that makes a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A benchmark is slower, or has more of what is counted (also `more`)
    #[value(alias = "more")]
    Slower,
    /// A benchmark is faster, or has fewer (also `fewer`)
    #[value(alias = "fewer")]
    Faster,
    /// A benchmark is slower or faster
    Different,
    /// A benchmark is inconclusive, or has no figure in the other run
    Undecided,
}

/// The time that commands are compared by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Quantity {
    /// The time that passes
    #[default]
    Real,
    /// The time that their processes have a processor, without waiting and without what other tasks take
    Cpu,
}

impl From<FailOn> for Condition {
    fn from(asked: FailOn) -> Self {
        match asked {
            FailOn::Slower => Self::Slower,
            FailOn::Faster => Self::Faster,
            FailOn::Different => Self::Different,
            FailOn::Undecided => Self::Undecided,
        }
    }
}

/// A difference in percent, as a share.
///
/// # Errors
/// The fault, and a correct value.
pub fn parse_threshold(text: &str) -> Result<f64, String> {
    const MOST: f64 = 1000.0;
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=MOST).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("it is no difference in percent, such as 5%, from 0% to {MOST}%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_in_percent() {
        assert_eq!(
            ["5%", "0.5 %", "0%", "1000%"].map(parse_threshold),
            [Ok(0.05), Ok(0.005), Ok(0.0), Ok(10.0)]
        );
        for text in ["", "%", "5", "-1%", "1001%", "NaN%", "inf%", "five%"] {
            assert!(parse_threshold(text).is_err(), "{text}");
        }
    }
}
