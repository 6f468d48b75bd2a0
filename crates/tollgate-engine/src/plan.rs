//! The plan: how long a run may take, and how that time is spent.

use std::time::Duration;

use super::limits::Limits;
use super::storage::Storage;

/// How a run spends its time. More time means narrower intervals, never other benchmarks.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// For everything, from start to end.
    pub budget: Duration,
    /// Rounds end early when every interval is within this share of its median, on either side.
    pub precision: f64,
    /// Fresh processes at the least: fewer and two runs cannot be told apart at all.
    pub least_processes: usize,
    /// Fresh processes at the most: more would narrow what no longer matters.
    pub most_processes: usize,
    /// An instance that makes no progress for this long is taken to hang.
    pub stall: Duration,
    /// The processor to stay on; None for the usual one, see [`super::cpu::usual`].
    pub cpu: Option<usize>,
    /// What the place allows to take.
    pub limits: Limits,
    /// Where files are measured, or why they cannot be.
    pub storage: Result<Storage, String>,
}

/// A process's part of a group's time, at the most: long enough for hundreds of rounds, short enough
/// that a run sees several processes.
pub(super) const LONGEST_SLICE: Duration = Duration::from_millis(1000);

/// Not less, although time is short: a process must be made ready and warm up before its first round.
pub(super) const LEAST_SLICE: Duration = Duration::from_millis(60);

/// Not less, although all is narrow: a machine's moods last longer than a few milliseconds.
pub(super) const SHORTEST_SLICE: Duration = Duration::from_millis(350);

impl Plan {
    /// 10 s.
    pub const QUICK: Duration = Duration::from_secs(10);
    /// 60 s, for everything that is measured in rounds; whole commands have a time of their own, see
    /// [`Selection::usual_time`](crate::Selection::usual_time).
    pub const STANDARD: Duration = Duration::from_secs(60);
    /// 10 minutes.
    pub const THOROUGH: Duration = Duration::from_secs(600);

    /// A plan for any budget.
    pub fn within(budget: Duration) -> Self {
        let minutes = budget.as_secs_f64() / 60.0;
        Self {
            budget,
            precision: 0.005,
            least_processes: if minutes < 0.5 { 8 } else { 10 },
            most_processes: ((minutes * 16.0) as usize).clamp(8, 64),
            // Shorter and starving would be taken for hanging; longer and one that hangs would eat it all.
            stall: (budget / 4).clamp(Duration::from_millis(750), Duration::from_secs(10)),
            cpu: None,
            limits: Limits::default(),
            storage: Err("no directory was named to measure files in".to_owned()),
        }
    }
}
