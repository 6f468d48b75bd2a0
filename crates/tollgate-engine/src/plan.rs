//! The plan: how long a run may take, and how that time is spent.

use std::time::Duration;

use super::{limits::Limits, storage::Storage};

/// How a run spends its time. More time means narrower CIs, never other benchmarks.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// For everything, from start to end.
    pub budget: Duration,
    /// Rounds end early when the half width of every CI is within this share of its median.
    pub precision: f64,
    /// Least number of processes: with fewer, no comparison of two runs could be significant.
    pub least_processes: usize,
    /// Greatest number of processes.
    pub most_processes: usize,
    /// An instance without progress for this long counts as hanging.
    pub stall: Duration,
    /// The processor to stay on; None for the default, see [`super::cpu::usual`].
    pub cpu: Option<usize>,
    /// Whether the program's `main` begins with [`serve_if_worker`](crate::serve_if_worker): then bench processes are
    /// started anew from its file, with new addresses and pages. A test's program only forks them.
    pub executes: bool,
    /// The environment's limits.
    pub limits: Limits,
    /// The directory for files, or why there is none.
    pub storage: Result<Storage, String>,
}

/// Time of a process whose preparation is short. Neighbouring processes share the machine's pace, which lasts for seconds:
/// many short processes see more paces than few long ones.
pub(super) const SLICE: Duration = Duration::from_millis(60);

impl Plan {
    /// 10 s.
    pub const QUICK: Duration = Duration::from_secs(10);
    /// 60 s, for everything that is measured in rounds; whole commands have a time of their own, see
    /// [`Selection::usual_time`](crate::Selection::usual_time).
    pub const STANDARD: Duration = Duration::from_secs(60);
    /// 20 s, for the starts of an environment.
    pub const STARTS: Duration = Duration::from_secs(20);
    /// 10 minutes.
    pub const THOROUGH: Duration = Duration::from_secs(600);

    /// A plan for any budget.
    pub fn within(budget: Duration) -> Self {
        Self {
            budget,
            precision: 0.005,
            least_processes: if budget < Self::STANDARD / 2 { 8 } else { 10 },
            most_processes: 2000,
            // With less, a starved instance would count as hanging; with more, a hanging one would take the whole
            // budget.
            stall: (budget / 4).clamp(Duration::from_millis(750), Duration::from_secs(10)),
            cpu: None,
            executes: false,
            limits: Limits::default(),
            storage: Err("no directory for files was named".to_owned()),
        }
    }
}
