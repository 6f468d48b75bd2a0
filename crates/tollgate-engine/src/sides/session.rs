//! A session: several environments that are measured in turns, on the same processor of the same machine.
//!
//! An agent, which is this program, serves in each environment. It prepares bench processes there as a run does, and lets one
//! make its turn when this side says so. A turn is a batch of each due case, up to about 2 ms. One environment at a time is
//! awake. An environment whose instructions are counted takes no turns.

mod agent_side;
mod commands;
mod connection;
mod count;
mod counting;
mod execute;
mod explain;
mod iterations;
mod joint;
mod life;
mod measure;
mod pairs;
mod running;
mod stacks;
mod starts;
mod teller;
#[cfg(test)]
mod tests;
mod turn_plan;
mod turns;
mod whole;

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use tollgate_model::{Fact, Facts};

use crate::cases::run::Findings;

pub use count::{Counted, Counting, Inside, UNASKED, count_in, watch};
pub use execute::{Work, execute_in};
pub use explain::{Functions, explain_in};
pub use iterations::{FunctionCount, Lengths, is_kernel};
pub use life::{About, Life, Mark};
pub use measure::measure_in;
pub use stacks::Stacks;
pub use starts::{Answered, first_answers};

/// The pipes to a started agent.
pub struct Link {
    /// Its standard input.
    pub to: OwnedFd,
    /// Its standard output.
    pub from: OwnedFd,
    /// Returns why the environment ended or did not begin, in its own words: the first line of its standard error.
    pub said: Box<dyn FnMut() -> Option<String>>,
}

/// An environment of a session.
pub struct Side<'a> {
    /// As the user named it.
    pub name: String,
    /// Starts it with an agent in it, also again after the previous start has ended.
    ///
    /// # Errors
    /// A sentence.
    pub start: Box<dyn FnMut() -> Result<Link, String> + 'a>,
    /// How often it is started in the session, at least 1.
    pub starts: usize,
    /// Is called before its processes are prepared and before each of its turns, to make the machine's setting that these need.
    ///
    /// # Errors
    /// A sentence; the session ends.
    pub wake: Option<Box<dyn FnMut() -> Result<(), String> + 'a>>,
    /// The processor to stay on; `None` for the session's.
    pub cpu: Option<usize>,
    /// Whether its turns can be paired with the base's: it runs on this machine.
    pub is_paired: bool,
    /// Whether its time stamp counter ticks once per instruction. Then its batches are counted, once, and not timed.
    pub is_counting: bool,
    /// Whether its files are on a disk that the host serves.
    pub has_disk: bool,
    /// Reads what this machine knows of it while it runs, in addition to its agent's facts.
    pub outside: Option<Outside<'a>>,
    /// Starts and ends it to measure the start and the end; `None` if these are not measured.
    pub life: Option<Box<dyn Life + 'a>>,
}

/// Reads facts.
pub type Outside<'a> = Box<dyn Fn() -> Vec<(String, Fact)> + 'a>;

/// The instructions that an environment executes between the marks of [`mark`](tollgate_arch::mark).
pub trait InstructionLog {
    /// Begins to watch them, even before the environment starts.
    ///
    /// # Errors
    /// A sentence.
    fn begin(&mut self, watch: Watch) -> Result<(), String>;

    /// Ends it. Returns what was executed in each window.
    ///
    /// # Errors
    /// A sentence, also if a mark is missing.
    fn end(&mut self) -> Result<Vec<Sums>, String>;
}

/// Windows between marks, and what is kept of them.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// How many windows are left out first.
    pub skip: u64,
    /// How many are watched.
    pub take: u64,
    /// Whether no windows are watched after them until the environment ends.
    pub is_last: bool,
    /// Whether addresses are kept in order.
    pub has_order: bool,
    /// Stacks to track.
    pub stacks: Option<Stacks>,
}

/// The kernel's instructions while it handles an interrupt.
pub const INTERRUPTS: u64 = 1;
/// Those of its own threads.
pub const OTHER_THREADS: u64 = 2;

/// Sums of executed instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// In user mode, each execution of an instruction once.
    pub user: u64,
    /// In the kernel, each execution of an instruction once.
    pub kernel: u64,
    /// Iterations of repeated instructions (`rep`), without the first of each: in user mode, and in the kernel.
    pub repeated: [u64; 2],
    /// By address, and by a number that stands for the contents of a program's page; for the kernel it is 0, [`INTERRUPTS`] or
    /// [`OTHER_THREADS`]. The values are the executions, and the iterations of repeated instructions without the first of each.
    pub addresses: HashMap<(u64, u64), [u64; 2]>,
    /// All addresses in order, if requested.
    pub order: Vec<u64>,
    /// The stacks of the kernel's functions, if requested.
    pub stacks: Option<Stacks>,
}

impl Sums {
    /// Returns the instructions of programs, counting each iteration of `rep`.
    pub fn program(&self) -> u64 {
        self.user + self.repeated[0]
    }
}

/// The findings in one environment of a session.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentFindings {
    /// The facts that the agent read there.
    pub facts: Facts,
    /// Its measurements, and the facts of the measuring.
    pub findings: Findings,
    /// Why the environment gave nothing more, if it ended early or never began.
    pub lost: Option<String>,
}

/// The results of a session.
#[derive(Debug, Clone, Default)]
pub struct SessionFindings {
    /// One for each side, in their order.
    pub found: Vec<EnvironmentFindings>,
    /// Facts of the session as a whole, for each of its runs: pairs of processes, and the turns in each with the reason.
    pub facts: Vec<(String, Fact)>,
    /// The signal that stopped it early.
    pub interrupted: Option<i32>,
}
