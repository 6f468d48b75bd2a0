//! The messages between a coordinator and its agents.
//!
//! The agent writes [`MAGIC`] and [`Hello`], then one or more answers to each request. Messages contain no absolute times,
//! because another machine counts from another moment. Times are lengths that run from the receipt of the message.

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

/// The version of this protocol. Builds of the program with the same one work together.
pub const PROTOCOL: u32 = 2;

/// Bytes of the longest [`Hello`]. Linux on x86-64 has at most 8192 processors (CONFIG_NR_CPUS), whose numbers take 40 KiB.
pub const LONGEST_HELLO: usize = 1 << 16;

/// The first bytes of an agent. No program prints them by chance.
pub const MAGIC: [u8; 8] = *b"\x89tollg8\n";

/// An agent that is silent this long is given up, even before its first byte. Reaching a distant machine, loading a container's
/// image and reading all facts take less. Tests of this crate use less: their agents are copies of the test.
pub const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 6 } else { 30 });

/// The interval of the agent's signs of life while a request takes longer.
pub const SIGN: Duration = Duration::from_millis(250);

/// The first message of an agent. A later protocol keeps `protocol`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub allowed: Vec<usize>,
    /// The one that it would measure on.
    #[serde(default)]
    pub usual: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Read the facts. Answer: [`Answer::Facts`].
    Facts(Moment),
    /// Stay off this processor from now on, and measure there. Answer: [`Answer::Settled`].
    Settle { cpu: Option<usize> },
    /// Start a bench process. Answers: [`Answer::Running`] meanwhile; [`Answer::Ready`] if it waits for turns; [`Answer::Ended`].
    Start {
        job: Job,
        /// It counts as hanging after this long without progress.
        stall: Duration,
        /// It, or each of its turns, is killed after this long.
        most: Duration,
    },
    /// Let the bench process make a turn. Answer: [`Answer::Done`], or [`Answer::Ended`] if it ended instead.
    Turn(TurnOrder),
    /// End the bench process. Answer: [`Answer::Ended`].
    End,
    /// A step of whole commands. Answers: [`Answer::Command`].
    Command(CommandRequest),
    /// Execute a command of the user. Answers: [`Answer::Running`], then [`Answer::Executed`]. Another request meanwhile ends the
    /// command, without the second answer.
    Execute {
        /// Repeated in the answer.
        number: u64,
        order: Box<Order>,
    },
    /// Drop these files from the page cache. Answer: [`Answer::Cooled`].
    Cool { number: u64, files: Vec<String> },
    /// Report the memory in use. Answer: [`Answer::Used`].
    Memory,
    /// Write to this many new pages. Answer: [`Answer::Done`].
    Touch { pages: u64 },
    /// Name the kernel's functions at these addresses. Answer: [`Answer::Functions`].
    Functions(Vec<u64>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// Find the clock, and whether an affinity binds.
    Clock,
    /// Calibrate each instance, all within this time.
    Calibration {
        clock: Clock,
        instances: Vec<InstanceOrder>,
        within: Duration,
    },
    Rounds {
        clock: Clock,
        instances: Vec<InstanceOrder>,
        seed: u64,
        within: Duration,
    },
    Turns {
        clock: Clock,
        instances: Vec<InstanceOrder>,
    },
    /// Count the instructions of each instance by a time stamp counter that ticks once per instruction.
    Count {
        instances: Vec<InstanceOrder>,
    },
    /// Wait for turns in a process like one that counts, while the coordinator logs what it executes.
    Watched {
        instances: Vec<InstanceOrder>,
    },
}

impl Request {
    /// Bytes of the longest answer to it; `None` if an earlier request may cause the answer.
    pub fn longest_answer(&self) -> Option<usize> {
        /// Everything but the batches of an instance: texts.
        const FLAT: usize = 1 << 20;
        /// An instance: up to 4096 rounds as a number and a batch, in decimal digits, and notes.
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
    pub fn instances(&self) -> usize {
        self.orders().len()
    }

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Facts(Facts),
    Settled {
        /// How bench processes are started there.
        isolation: String,
    },
    /// It still works, on this instance.
    Running(Option<usize>),
    /// It still works, on this.
    Doing(String),
    /// The bench process is prepared, and waits for its first turn.
    Ready,
    /// The turn is over, or the pages were touched.
    Done,
    /// Bytes of memory in use, by the account of the environment's kernel.
    Used(u64),
    Ended {
        ending: Ending,
        record: ProcessRecord,
    },
    Command(CommandAnswer),
    Executed {
        /// The request's.
        number: u64,
        execution: Box<Execution>,
    },
    Cooled {
        number: u64,
        cooled: Cooled,
    },
    /// The kernel's function at each of the addresses, in their order; `None` if there is none.
    Functions(Vec<Option<String>>),
    /// Why a bench process cannot be started, or a request cannot be met.
    Failed(String),
}
