use std::time::Duration;

/// When a comparison ends.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The bounds of the number of rounds.
    pub rounds: Rounds,
    /// No case begins after this [`Trial::now`](crate::Trial::now).
    pub time: Duration,
    /// Whether a case also does not begin if a round as long as its longest so far would end after that time.
    pub must_fit: bool,
    /// Rounds end early when every interval is at most this wide, as a share of the ratio (of the median for a single side), or
    /// as a tenth of the difference that it shows.
    pub precision: f64,
    /// Whether every comparison must also be decided by then.
    pub until_decided: bool,
    /// Relative differences up to this do not count: 0.02 for 2 %.
    pub asked: f64,
    /// Whether figures are of whole commands, which are the same only if their totals are the same too.
    pub is_whole: bool,
    /// The number of comparisons that intervals are corrected for (Bonferroni); `None` for the comparisons of each case.
    pub comparisons: Option<usize>,
    /// The number of programs of each side, whose executions take turns: each was linked in another order, see [`Layouts`]. 1 if
    /// each side is one program.
    ///
    /// [`Layouts`]: tollgate_statistics::Layouts
    pub layouts: usize,
    /// Whether the first round keeps the order of the cases. With short ones first, few are missing when the time is over.
    pub begins_in_order: bool,
}

impl Plan {
    /// Plans this number of rounds within this time, fewer if every interval is narrow. A case may begin that ends after that time.
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
            layouts: 1,
            begins_in_order: false,
        }
    }
}

/// How many rounds are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// The least, even beyond the time.
    pub least: u32,
    /// The most.
    pub most: u32,
}

impl Rounds {
    /// The most rounds of any plan: a document holds as many processes for each case.
    pub const MOST: u32 = 100_000;

    /// Returns bounds that allow only this number.
    pub fn exactly(number: u32) -> Self {
        Self { least: number, most: number }
    }

    /// Whether neither the time nor the results end the rounds.
    pub fn is_exact(self) -> bool {
        self.least == self.most
    }
}
