//! The commands to compare, for how long, and the accepted ends of a command.

use std::time::Duration;

use tollgate_alternation::Rounds;
use tollgate_model::traced::Ended;

use super::order::Order;

/// A comparison of commands.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The commands; the others are compared with the first.
    pub commands: Vec<Given>,
    /// The names of the places, for messages.
    pub places: Vec<String>,
    /// The start of a command: the same shell with nothing to do, or a process that ends at once. Its time is subtracted if a command is
    /// [`SHORT`]; `None` to never subtract it.
    pub start: Option<Order>,
    /// The number of warm-up executions of each command, which are not kept.
    pub warmups: u32,
    /// The number of timed executions of each command.
    pub rounds: Rounds,
    /// No round begins after this time.
    pub time: Duration,
    /// The width of intervals at which it ends early: each must be at most this wide, or a tenth of the difference that it shows. An
    /// interval of less than 1 % that has 1 near its middle counts as equal.
    pub precision: f64,
    /// Relative differences up to this do not count, as in a comparison of runs.
    pub asked: f64,
    /// Whether the precision is that of the processor time instead of the real time.
    pub by_processor: bool,
    /// Whether it continues while a comparison is inconclusive.
    pub until_decided: bool,
    /// Whether further executions are traced, in addition to the timed ones.
    pub is_traced: bool,
    /// Whether the pages of the files that a command reads are dropped from the page cache before each execution.
    pub is_cold: bool,
    /// The accepted ends.
    pub accepts: Accepts,
    /// The time after which an execution has failed; `None` for [`Plan::patience`].
    pub timeout: Option<Duration>,
    /// Seed of the random order.
    pub seed: u64,
}

/// If a command's time without its start is below this, the start is subtracted.
pub const SHORT: Duration = Duration::from_millis(5);

/// A command, and what is executed around it.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its name in messages.
    pub name: String,
    /// The command. Its measurement is set for each execution.
    pub order: Order,
    /// If it has several programs, linked with their functions in another order: the command with each. Execution n uses program
    /// n modulo their number. All commands of a comparison have the same number of programs.
    pub layouts: Vec<Order>,
    /// Executed before all of its executions, once in each place.
    pub setup: Option<Order>,
    /// Executed before each execution.
    pub prepare: Option<Order>,
    /// Executed after each execution.
    pub conclude: Option<Order>,
    /// Executed after all of its executions, once in each place, even if they failed.
    pub cleanup: Option<Order>,
}

/// Accepted ends of a command other than exit status 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Accepts {
    /// No other end.
    #[default]
    Success,
    /// Every end.
    All,
    /// These exit statuses; a signal is 128 more than its number.
    Statuses(Vec<i32>),
}

impl Accepts {
    /// Returns whether this end is accepted.
    pub fn takes(&self, ended: Ended) -> bool {
        match (self, ended) {
            (_, Ended::Exit(0)) | (Self::All, _) => true,
            (Self::Statuses(statuses), Ended::Exit(status)) => statuses.contains(&status),
            // Shells report a signal in this way.
            (Self::Statuses(statuses), Ended::Signal(signal)) => statuses.contains(&(128 + signal)),
            (Self::Success, _) => false,
        }
    }
}

impl Given {
    /// Returns the command as its execution of this number is executed.
    pub fn order_of(&self, number: u32) -> &Order {
        let at = number as usize % self.layouts.len().max(1);
        self.layouts.get(at).unwrap_or(&self.order)
    }
}

impl Plan {
    /// Returns how many programs each command has.
    pub fn layouts(&self) -> usize {
        self.commands.iter().map(|command| command.layouts.len()).max().unwrap_or(1).max(1)
    }

    /// Returns how long an execution may take before it is killed, given the slowest one so far. The first has no limit.
    pub fn patience(&self, slowest: Option<Duration>) -> Option<Duration> {
        patience(self.timeout, slowest)
    }

    /// Returns how long a traced execution may take. With ptrace(2), it may take a hundred times as long as an untraced one.
    pub fn patience_of_traced(&self, slowest: Option<Duration>) -> Option<Duration> {
        const TIMES: u32 = 200;
        const MORE: Duration = Duration::from_secs(60);
        Some(slowest?.saturating_mul(TIMES).saturating_add(MORE))
    }
}

/// Returns how long an execution may take: `timeout` if the user gave one, else a limit derived from the slowest one so far.
pub(crate) fn patience(timeout: Option<Duration>, slowest: Option<Duration>) -> Option<Duration> {
    const TIMES: u32 = 20;
    const MORE: Duration = Duration::from_secs(30);
    timeout.or_else(|| Some(slowest?.saturating_mul(TIMES).saturating_add(MORE)))
}
