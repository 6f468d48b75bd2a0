//! How long a run may take, and how that time is spent.

use std::time::Duration;

use tollgate_model::Fact;

use crate::{machine::limits::Limits, machine::storage::Storage};

/// How a run spends its time. More time means narrower CIs, never other benchmarks.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The time of everything, from start to end.
    pub budget: Duration,
    /// Each case is measured in this many processes, however long that takes. `None` if the time ends the run.
    pub processes: Option<usize>,
    /// Rounds end early when the half width of every CI is within this share of its median.
    pub precision: f64,
    /// With fewer processes, no comparison of two runs could be significant.
    pub least_processes: usize,
    /// The most processes of a case.
    pub most_processes: usize,
    /// An instance without progress for this long counts as hanging.
    pub stall: Duration,
    /// The processor to stay on; `None` for the default, see [`crate::machine::topology::usual`].
    pub cpu: Option<usize>,
    /// The least time of an environment's turn, if it takes long to change the machine's settings for it. Zero: a turn is one batch of a case.
    pub turn: Duration,
    /// Whether the program's `main` begins with [`serve_if_worker`](crate::serve_if_worker). Then bench processes are started
    /// anew from its file, with new addresses and pages. A test's program only forks them.
    pub executes: bool,
    /// The environment's limits.
    pub limits: Limits,
    /// The directory for files, or why there is none.
    pub storage: Result<Storage, String>,
}

/// The condition that ends a run, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// This time since it began.
    Time(Duration),
    /// A number of these, such as `process`, and the current one.
    Number(&'static str, Ordinal),
}

/// A position among the suites of a run, or among other things of one kind, counted from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ordinal {
    /// Its number.
    pub number: usize,
    /// The number of positions.
    pub of: usize,
}

/// Time of a process whose preparation is short. A machine keeps its speed for seconds: many short processes see more of its speeds.
pub(crate) const SLICE: Duration = Duration::from_millis(60);

impl Plan {
    /// 10 s.
    pub const QUICK: Duration = Duration::from_secs(10);
    /// 60 s, for rounds. Whole commands have their own time, see [`Selection::usual_time`](crate::Selection::usual_time).
    pub const STANDARD: Duration = Duration::from_secs(60);
    /// 20 s, for the starts of an environment.
    pub const STARTS: Duration = Duration::from_secs(20);
    /// 10 minutes.
    pub const THOROUGH: Duration = Duration::from_secs(600);
    /// A day, the longest.
    pub const LONGEST: Duration = Duration::from_secs(24 * 3600);
    /// The most processes of a case.
    pub const MOST_PROCESSES: usize = 2000;

    /// Processes to try for each that is asked for, because a process may keep no batch of a case.
    const TRIES: usize = 5;

    /// Returns a plan for any budget.
    pub fn within(budget: Duration) -> Self {
        Self {
            budget,
            processes: None,
            precision: 0.005,
            least_processes: if budget < Self::STANDARD / 2 { 8 } else { 10 },
            most_processes: Self::MOST_PROCESSES,
            // With less, a starved instance would count as hanging; with more, a hanging one would take the whole budget.
            stall: (budget / 4).clamp(Duration::from_millis(750), Duration::from_secs(10)),
            cpu: None,
            turn: Duration::ZERO,
            executes: false,
            limits: Limits::default(),
            storage: Err("no directory for files was named".to_owned()),
        }
    }

    /// Returns a plan for a number of processes of each case, at least 1.
    pub fn of_processes(number: usize) -> Self {
        Self {
            processes: Some(number),
            least_processes: number,
            // A case whose batches are always discarded must not delay the others forever.
            most_processes: (number * Self::TRIES).min(Self::MOST_PROCESSES),
            ..Self::within(Self::LONGEST)
        }
    }

    /// The condition that ends the run, after `done` processes of a suite.
    pub(crate) fn length(&self, done: usize) -> Length {
        match self.processes {
            Some(of) => Length::Number("process", Ordinal { number: (done + 1).min(of), of }),
            None => Length::Time(self.budget),
        }
    }

    pub(crate) fn fact(&self) -> (String, Fact) {
        match self.processes {
            Some(number) => ("run.processes".to_owned(), Fact::known(number as i64, "--processes")),
            None => ("run.budget_s".to_owned(), Fact::known(self.budget.as_secs_f64(), "--time")),
        }
    }
}
