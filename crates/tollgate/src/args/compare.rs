//! The arguments of `tollgate compare`.

use clap::{Args, ValueEnum};
use tollgate_view::compare::condition::Condition;

use super::ShowFormat;
use crate::failure::Failure;
use crate::{examples, say};

const AFTER: &str = "\
Exit status of --fail-on: 1 if a row meets the condition; otherwise 3 if too little was decided to say that none does: no case has a \
figure in both runs, an inconclusive row looks changed by a factor of 2 or more, or more than half of the rows are inconclusive and their intervals include the condition. docs/statistics.md has the rule.";

/// `tollgate compare`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("compare", AFTER))]
pub struct CompareArgs {
    /// The baseline: a file, a label (the newest run that has it), an id or its beginning, `last`, or a
    /// directory of stored runs, for the newest run in it; DIR:RUN is one run of a directory
    pub base: String,
    /// The runs to compare with the baseline; `last` is the newest run of the baseline's kind. If BASE is a
    /// session, name no other run: its environments are compared with its first
    pub other: Vec<String>,
    /// Show every row and every fact, not only those that changed
    #[arg(long)]
    pub all: bool,
    /// Exit with status 1 if any benchmark has this verdict, 3 if that is undecided; separate several by
    /// commas
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// The time that --fail-on uses for commands that alternated
    #[arg(long, value_name = "TIME", value_enum, default_value_t)]
    pub by: Quantity,
    /// The status of an undecided comparison
    #[command(flatten)]
    pub undecided: UndecidedArgs,
    /// Ignore smaller differences; the noise of a row can raise this [default: 1%; 0% for counted
    /// instructions]
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold, allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: ShowFormat,
}

/// The exit status of a comparison that decided too little.
#[derive(Debug, Clone, Default, Args)]
pub struct UndecidedArgs {
    /// Exit with this status instead of 3 if too little was decided; with 125 `git bisect run` skips the
    /// commit
    #[arg(long, value_name = "STATUS")]
    pub exit_undecided: Option<u8>,
}

impl UndecidedArgs {
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
    /// A benchmark is slower or has a higher count
    Slower,
    /// As `slower`, but for commands `versus` compares calls, page faults and counted instructions instead
    /// of times
    More,
    /// A benchmark is faster or has a lower count (also `fewer`)
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
    /// The processor time of their processes, without waiting and without the time of other tasks
    Cpu,
}

impl From<FailOn> for Condition {
    fn from(asked: FailOn) -> Self {
        match asked {
            FailOn::Slower | FailOn::More => Self::Slower,
            FailOn::Faster => Self::Faster,
            FailOn::Different => Self::Different,
            FailOn::Undecided => Self::Undecided,
        }
    }
}

pub fn parse_threshold(text: &str) -> Result<f64, String> {
    const MOST: f64 = 1000.0;
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=MOST).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("it is not a difference in percent from 0% to {MOST}%, such as 5%")),
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
