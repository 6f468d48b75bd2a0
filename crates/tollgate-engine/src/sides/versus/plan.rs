//! What is compared, for how long, and which ends of a command are accepted.

use std::time::Duration;

use tollgate_alternation::Rounds;
use tollgate_model::traced::Ended;

use super::order::Order;

/// A comparison of commands.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The commands; the first is the one that others are compared with.
    pub commands: Vec<Given>,
    /// The names of the places, for messages.
    pub places: Vec<String>,
    /// What surrounds a command: the same shell with nothing to do, or a process that ends at once. Its time is subtracted where a
    /// command is [`SHORT`]; None where it never is.
    pub start: Option<Order>,
    /// Executions of each that are not kept, before the others.
    pub warmups: u32,
    /// How many executions of each are timed.
    pub rounds: Rounds,
    /// No round begins after this time.
    pub time: Duration,
    /// It ends early when every interval is at most so wide, or a tenth of the difference that it shows: one of less than 1 % that 1 lies
    /// near the middle of is the same.
    pub precision: f64,
    /// No relative difference of up to this counts, as in a comparison of runs.
    pub asked: f64,
    /// Whether it is the processor time that is to be known so well, and not the real time.
    pub by_processor: bool,
    /// It does not end early while a comparison is inconclusive.
    pub until_decided: bool,
    /// Whether others are traced beside those that are timed.
    pub is_traced: bool,
    /// Whether the pages of the files that a command reads are dropped from the page cache before each execution.
    pub is_cold: bool,
    /// The ends that are accepted.
    pub accepts: Accepts,
    /// An execution that takes longer has failed; None for [`Plan::patience`].
    pub timeout: Option<Duration>,
    /// Of the random order.
    pub seed: u64,
}

/// A command whose time without what surrounds it is below this is corrected for that.
pub const SHORT: Duration = Duration::from_millis(5);

/// A command, and what is executed around it.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its name in messages.
    pub name: String,
    /// The command; what is measured of it is set for each execution.
    pub order: Order,
    /// Before all of its executions, once in each place.
    pub setup: Option<Order>,
    /// Before each execution.
    pub prepare: Option<Order>,
    /// After each execution.
    pub conclude: Option<Order>,
    /// After all of its executions, once in each place, however they ended.
    pub cleanup: Option<Order>,
}

/// Which ends of a command are accepted beside exit status 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Accepts {
    /// No other.
    #[default]
    Success,
    /// Every one.
    All,
    /// These exit statuses; a signal is 128 more than its number.
    Statuses(Vec<i32>),
}

impl Accepts {
    /// Whether this end is accepted.
    pub fn takes(&self, ended: Ended) -> bool {
        match (self, ended) {
            (_, Ended::Exit(0)) | (Self::All, _) => true,
            (Self::Statuses(statuses), Ended::Exit(status)) => statuses.contains(&status),
            // As shells say it.
            (Self::Statuses(statuses), Ended::Signal(signal)) => statuses.contains(&(128 + signal)),
            (Self::Success, _) => false,
        }
    }
}

impl Plan {
    /// How long an execution may take when the slowest one so far took this: one that hangs is ended. The first may take for ever.
    pub fn patience(&self, slowest: Option<Duration>) -> Option<Duration> {
        patience(self.timeout, slowest)
    }

    /// The same of an execution that is traced: by ptrace(2) it may take a hundred times as long.
    pub fn patience_of_traced(&self, slowest: Option<Duration>) -> Option<Duration> {
        const TIMES: u32 = 200;
        const MORE: Duration = Duration::from_secs(60);
        Some(slowest?.saturating_mul(TIMES).saturating_add(MORE))
    }
}

/// The same where so long is given by the user.
pub(crate) fn patience(timeout: Option<Duration>, slowest: Option<Duration>) -> Option<Duration> {
    const TIMES: u32 = 20;
    const MORE: Duration = Duration::from_secs(30);
    timeout.or_else(|| Some(slowest?.saturating_mul(TIMES).saturating_add(MORE)))
}
