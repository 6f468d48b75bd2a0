//! The messages between a coordinator and its agents.
//!
//! The agent writes [`MAGIC`] and [`Hello`], then one or more answers to each request. No absolute time crosses the border: another
//! machine counts from another moment. Times are lengths, and run from the receipt of the message.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::Facts;

use super::Moment;
use crate::bench_process::frame::MOST;
use crate::bench_process::record::ProcessRecord;
use crate::bench_process::worker::{InstanceOrder, TurnOrder};
use crate::machine::clock::Clock;
use crate::machine::ending::Ending;
use crate::rounds::commands::{CommandAnswer, CommandRequest};
use crate::sides::versus::{Cooled, Execution, Order};

/// The version of this protocol. Builds of the program that have the same one work together.
pub const PROTOCOL: u32 = 2;

/// The longest [`Hello`], in bytes. Linux on x86-64 has at most 8192 processors (CONFIG_NR_CPUS), whose numbers take 40 KiB.
pub const LONGEST_HELLO: usize = 1 << 16;

/// The first bytes of an agent. No program prints them by chance.
pub const MAGIC: [u8; 8] = *b"\x89tollg8\n";

/// An agent that is silent for so long is given up, also before its first byte: a machine far away is reached in less, a container's
/// image is loaded, and all facts are read. In a test of this crate less: its agents are copies of the test.
pub const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 6 } else { 30 });

/// While a request takes longer than this, the agent says so again and again.
pub const SIGN: Duration = Duration::from_millis(250);

/// The first message of an agent. A later protocol keeps `protocol`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Its protocol.
    pub protocol: u32,
    /// The version of its program.
    #[serde(default)]
    pub version: String,
    /// The processors that it may use.
    #[serde(default)]
    pub allowed: Vec<usize>,
    /// The one that it would measure on.
    #[serde(default)]
    pub usual: Option<usize>,
}

/// From the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Read the facts. Answer: [`Answer::Facts`].
    Facts(Moment),
    /// Stay off this processor from now on, and measure there. Answer: [`Answer::Settled`].
    Settle {
        /// The processor of the bench processes.
        cpu: Option<usize>,
    },
    /// Start a bench process. Answers: [`Answer::Running`] meanwhile; [`Answer::Ready`] where it waits for turns; in the end
    /// [`Answer::Ended`].
    Start {
        /// Its work.
        job: Job,
        /// It counts as hanging after so long without progress.
        stall: Duration,
        /// It is killed after so long; turns, each after so long.
        most: Duration,
    },
    /// Let the bench process make a turn. Answer: [`Answer::Done`], or [`Answer::Ended`] where it ended instead.
    Turn(TurnOrder),
    /// End the bench process. Answer: [`Answer::Ended`].
    End,
    /// A step of whole commands. Answers: [`Answer::Command`].
    Command(CommandRequest),
    /// Execute a command of the user. Answers: [`Answer::Running`] meanwhile, then [`Answer::Executed`]. A request that comes before ends
    /// the command, which gets no answer then.
    Execute {
        /// Of the answer to it.
        number: u64,
        /// The command.
        order: Box<Order>,
    },
    /// Drop these files from the page cache. Answer: [`Answer::Cooled`].
    Cool {
        /// Of the answer to it.
        number: u64,
        /// Their paths.
        files: Vec<String>,
    },
    /// Say how much memory is in use. Answer: [`Answer::Used`].
    Memory,
    /// Write to so many pages that are new. Answer: [`Answer::Done`].
    Touch {
        /// Their number.
        pages: u64,
    },
    /// Name the kernel's functions at these addresses. Answer: [`Answer::Functions`].
    Functions(Vec<u64>),
}

/// The work of a bench process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// Find the clock, and whether an affinity binds.
    Clock,
    /// Calibrate each instance, all within this time.
    Calibration {
        /// The clock.
        clock: Clock,
        /// What to calibrate.
        instances: Vec<InstanceOrder>,
        /// The time for all of them.
        within: Duration,
    },
    /// Run rounds.
    Rounds {
        /// The clock.
        clock: Clock,
        /// What takes part.
        instances: Vec<InstanceOrder>,
        /// Of their order.
        seed: u64,
        /// The time for them.
        within: Duration,
    },
    /// Wait for turns.
    Turns {
        /// The clock.
        clock: Clock,
        /// What takes part.
        instances: Vec<InstanceOrder>,
    },
    /// Count the instructions of each instance, where the time stamp counter goes one tick an instruction.
    Count {
        /// What to count.
        instances: Vec<InstanceOrder>,
    },
    /// Wait for turns, in a process as one that counts, while the coordinator logs what it executes.
    Watched {
        /// What takes part.
        instances: Vec<InstanceOrder>,
    },
}

impl Request {
    /// The longest answer to it, in bytes; None where what an earlier request began may answer.
    pub fn longest_answer(&self) -> Option<usize> {
        /// Of what is not the batches of an instance: texts.
        const FLAT: usize = 1 << 20;
        /// Of an instance: up to 4096 rounds as a number and a batch, in decimal digits, and notes.
        const INSTANCE: usize = 1 << 18;
        match self {
            Self::Settle { .. } | Self::Cool { .. } | Self::Memory | Self::Touch { .. } => Some(FLAT),
            Self::Facts(_) | Self::Functions(_) => Some(16 * FLAT),
            Self::Start { job, .. } => Some(FLAT.saturating_add(job.instances().saturating_mul(INSTANCE))),
            Self::Turn(_) | Self::End => None,
            Self::Command(_) | Self::Execute { .. } => Some(MOST),
        }
    }
}

impl Job {
    /// The number of its instances.
    pub fn instances(&self) -> usize {
        self.orders().len()
    }

    /// Its instances.
    pub fn orders(&self) -> &[InstanceOrder] {
        match self {
            Self::Clock => &[],
            Self::Calibration { instances, .. }
            | Self::Rounds { instances, .. }
            | Self::Turns { instances, .. }
            | Self::Count { instances }
            | Self::Watched { instances } => instances,
        }
    }
}

/// From the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The facts of the environment.
    Facts(Facts),
    /// It stays off the processor.
    Settled {
        /// How bench processes are started there.
        isolation: String,
    },
    /// It is still at it, with this instance.
    Running(Option<usize>),
    /// It is still at it, with this.
    Doing(String),
    /// The bench process is prepared, and waits for its first turn.
    Ready,
    /// The turn is over, or the pages were touched.
    Done,
    /// Bytes of memory that are in use, by the account of the environment's kernel.
    Used(u64),
    /// The bench process has ended, and what it left.
    Ended {
        /// How it ended.
        ending: Ending,
        /// Its batches.
        record: ProcessRecord,
    },
    /// About whole commands.
    Command(CommandAnswer),
    /// The command has ended.
    Executed {
        /// That of the request.
        number: u64,
        /// What it gave.
        execution: Box<Execution>,
    },
    /// The files were dropped.
    Cooled {
        /// That of the request.
        number: u64,
        /// What became of them.
        cooled: Cooled,
    },
    /// The kernel's function at each of the addresses, in their order; None where it has none there.
    Functions(Vec<Option<String>>),
    /// Why a bench process cannot be started, or a request cannot be met.
    Failed(String),
}
