//! For how long something is compared, and how precisely.

use std::time::Duration;

/// When a comparison ends.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many rounds.
    pub rounds: Rounds,
    /// No case begins after this time of [`Trial::now`](crate::Trial::now).
    pub time: Duration,
    /// Whether no case begins either where its longest round so far would end after that time.
    pub must_fit: bool,
    /// It ends early when every interval is at most so wide, as a share of the ratio, or a tenth of the difference that it shows. Of a side
    /// alone: as a share of its median.
    pub precision: f64,
    /// Whether every comparison must also be decided then.
    pub until_decided: bool,
    /// No relative difference of up to this counts: 0.02 for 2 %.
    pub asked: f64,
    /// Whether figures are those of whole commands, whose totals must be the same too where they are called the same.
    pub is_whole: bool,
    /// The number of comparisons that intervals are corrected for (Bonferroni); None for those of a case.
    pub comparisons: Option<usize>,
    /// Whether the cases of the first round come in their own order: those that are probably short first, so that few are missing where the
    /// time is.
    pub begins_in_order: bool,
}

impl Plan {
    /// This number of rounds within this time, fewer where every interval is narrow. A case begins even where it ends after that time.
    pub fn new(rounds: Rounds, time: Duration, precision: f64) -> Self {
        Self {
            rounds,
            time,
            must_fit: false,
            precision,
            until_decided: false,
            asked: 0.0,
            is_whole: false,
            comparisons: None,
            begins_in_order: false,
        }
    }
}

/// How many rounds are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// At least so many, also beyond the time.
    pub least: u32,
    /// At most so many.
    pub most: u32,
}

impl Rounds {
    /// No round more than this: a document holds as many processes for each of its cases.
    pub const MOST: u32 = 100_000;

    /// Exactly so many.
    pub fn exactly(number: u32) -> Self {
        Self { least: number, most: number }
    }

    /// Whether neither the time nor what is found ends them.
    pub fn is_exact(self) -> bool {
        self.least == self.most
    }
}
