//! The subject of a check: a program, its machine, and the number of processes.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use crate::counterexample::Counterexample;
use crate::search::{End, Harm, Limits, Machine, SearchResult};

/// The processes and processors that run a program, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Processes, all of which run the same program.
    pub processes: u8,
    /// How often each takes and releases the lock.
    pub rounds: u8,
    /// Processors that they share.
    pub processors: u8,
    /// Can a process lose its processor between any two instructions? Where it cannot, another one runs only while it is
    /// outside of the lock's code or in its critical section, or where it enters the kernel by an instruction of its own; an interrupt
    /// goes back to it.
    pub preempted: bool,
}

impl Setting {
    /// With preemption between any two instructions.
    #[must_use]
    pub const fn new(processes: u8, rounds: u8, processors: u8) -> Self {
        Self { processes, rounds, processors, preempted: true }
    }
}

/// Overrides of a subject's own setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Processes, if not the subject's own number.
    pub processes: Option<u8>,
    /// Rounds, if not the subject's own number.
    pub rounds: Option<u8>,
    /// Processors, if not the subject's own number.
    pub processors: Option<u8>,
    /// Preemption, if not as the subject has it.
    pub preempted: Option<bool>,
}

impl Wish {
    /// The setting that it comes to, for a subject with a setting of its own and a machine with at most so many.
    pub(crate) fn fitted(self, name: &str, own: Setting, most: Setting) -> Result<Setting, Unfit> {
        let fit = |what, asked: Option<u8>, own, most| match asked.unwrap_or(own) {
            number if (1..=most).contains(&number) => Ok(number),
            asked => {
                Err(Unfit::OutOfRange { name: name.to_owned(), what, least: 1, most, asked: asked.into() })
            }
        };
        Ok(Setting {
            processes: fit("processes", self.processes, own.processes, most.processes)?,
            rounds: fit("rounds", self.rounds, own.rounds, most.rounds)?,
            processors: fit("processors", self.processors, own.processors, most.processors)?,
            preempted: self.preempted.unwrap_or(own.preempted),
        })
    }
}

/// A wish that a machine cannot fulfil, or an instruction that is not there.
#[expect(missing_docs, reason = "the message of a problem speaks of its fields")]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// A number that the machine does not have, of `processes`, `rounds` or `processors`.
    #[error("{name} runs with {} {what}, not with {asked}", range(*.least, *.most))]
    OutOfRange { name: String, what: &'static str, least: u8, most: u8, asked: u64 },
    /// A preemption was asked for after an instruction that the program does not have.
    #[error("{name} has {points} instructions at which it can be preempted (0 to {}), not number {asked}", .points - 1)]
    NoSuchPoint { name: String, points: usize, asked: usize },
    /// A subject that has no preemption points to play.
    #[error("{name} {why}")]
    NotPlayed { name: String, why: &'static str },
}

/// `1 to 4`, or the only number.
fn range(least: u8, most: u8) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// The answer to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In no order of steps does anything go wrong.
    Holds,
    /// There is an order in which it does; the worst that was found.
    Violated(Harm),
    /// The final state that a litmus test asks for can be reached.
    Allowed,
    /// In no order of steps is it reached.
    Forbidden,
    /// Not every order was looked at, and nothing was wrong in those that were.
    NotDecided(Want),
}

/// The limit that a search reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// The number of states that was allowed.
    States,
    /// Memory.
    Memory,
}

/// A subject that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The subject's name.
    pub name: String,
    /// The setting in which it ran.
    pub setting: Setting,
    /// The answer.
    pub verdict: Verdict,
    /// Was every state seen? Where not, harms that are not among the counterexamples are not excluded.
    pub complete: bool,
    /// Different states that were seen.
    pub states: usize,
    /// For each harm that was met, the worst first, a shortest schedule that leads to it.
    pub counterexamples: Vec<Counterexample>,
    /// The final states of a litmus test.
    pub outcomes: Vec<FinalState>,
}

/// A final state of a litmus test, as far as the test speaks of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinalState {
    /// The values that it speaks of: `0:EAX=0; 1:EAX=1;`.
    pub values: String,
    /// Whether its condition holds.
    pub holds: bool,
}

impl Verdict {
    /// Is a property violated, or is that not decided? What a litmus test asks with `exists` is no property.
    #[must_use]
    pub const fn fails(self) -> bool {
        matches!(self, Self::Violated(_) | Self::NotDecided(_))
    }
}

impl Checked {
    /// Sums up a search, with each schedule described by `describe`.
    pub fn new<M: Machine>(
        name: &str,
        setting: Setting,
        found: SearchResult<M>,
        describe: impl Fn(Harm, &crate::search::Schedule<M>) -> Counterexample,
    ) -> Self {
        let worst = found.harms.iter().map(|(harm, _)| *harm).min();
        let verdict = match (worst, found.end) {
            (Some(harm), _) => Verdict::Violated(harm),
            (None, End::Complete) => Verdict::Holds,
            (None, End::OutOfStates) => Verdict::NotDecided(Want::States),
            (None, End::OutOfMemory) => Verdict::NotDecided(Want::Memory),
        };
        Self {
            name: name.to_owned(),
            setting,
            verdict,
            complete: found.end == End::Complete,
            states: found.states,
            counterexamples: found.harms.iter().map(|(harm, schedule)| describe(*harm, schedule)).collect(),
            outcomes: vec![],
        }
    }

    /// Was this harm looked for everywhere and never met?
    #[must_use]
    pub fn never(&self, harm: Harm) -> bool {
        self.complete && !self.counterexamples.iter().any(|counterexample| counterexample.harm == Some(harm))
    }
}

/// The work of a process until it has the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Instructions in user mode that it executes; of a program in sentences its loads, stores and fences.
    pub instructions: usize,
    /// How often an instruction of its own enters the kernel: system calls and faults. Interrupts are not among them.
    pub entries: usize,
}

/// `10 instructions, no kernel entry`
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.instructions == 1 { "" } else { "s" };
        write!(f, "{} instruction{plural}, ", self.instructions)?;
        match self.entries {
            0 => f.write_str("no kernel entry"),
            1 => f.write_str("1 kernel entry"),
            many => write!(f, "{many} kernel entries"),
        }
    }
}

/// Steps of a process that runs alone: a loop that counts does not come round to where it was for billions of them.
pub(crate) const MOST_STEPS: usize = 5000;

/// The work that a lock takes on the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Without a rival.
    pub alone: Work,
    /// For each instruction in turn: preempted once, before it, while another process takes the lock and gives it back. Without those
    /// where it did not take the lock; empty for a program that is not played.
    pub preempted: Vec<Work>,
}

/// A line of a user's program that is not read as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Correction {
    /// The line, from 1.
    pub line: usize,
    /// What was there, and what it is read as.
    pub text: String,
}

/// What B does in a schedule that is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// It takes the lock and gives it back before A goes on.
    GivesBack,
    /// It has the lock when A goes on.
    Holds,
    /// There is none.
    Absent,
}

/// The description of a subject before it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// A program as it was published.
    Published,
    /// A published program with one thing changed that it depends on.
    Mutant,
    /// The algorithm of Lamport on a machine with store buffers.
    Lamport,
    /// A program of the user's own.
    Own,
}

/// Something that can be checked.
pub trait Subject: Sync {
    /// Its name in commands, such as `figure-8`.
    fn name(&self) -> &str;

    /// Its description, in one sentence.
    fn about(&self) -> &str;

    /// Where it belongs.
    fn group(&self) -> Group;

    /// The published verdict, or the one that a mutant must have; absent for a user's own program.
    fn expected(&self) -> Option<Verdict>;

    /// Its program, one instruction a line, as it is shown.
    fn listing(&self) -> String;

    /// The question of a litmus test: `exists (0:EAX=0 /\ 1:EAX=0)`.
    fn condition(&self) -> Option<&str> {
        None
    }

    /// What was read otherwise than it was written; nothing for built-in programs.
    fn corrections(&self) -> &[Correction] {
        &[]
    }

    /// The setting that a wish comes to.
    ///
    /// # Errors
    /// [`Unfit::OutOfRange`] where the machine has not so many.
    fn setting(&self, wish: Wish) -> Result<Setting, Unfit>;

    /// Looks at every interleaving.
    fn check(&self, setting: Setting, limits: Limits) -> Checked;

    /// At how many instructions a process can be preempted; 0 where that is not played.
    fn points(&self) -> usize;

    /// Process A is preempted just before instruction number `point`, B takes the lock if it can, and A goes on to its end, as in
    /// figures 3 and 10.
    ///
    /// # Errors
    /// [`Unfit::NoSuchPoint`], [`Unfit::NotPlayed`].
    fn play(&self, point: usize, rival: Rival) -> Result<Counterexample, Unfit>;

    /// The work of taking the lock, where the program takes it and its steps can be counted.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// The one schedule that a figure shows, with the instruction before which A is preempted.
    fn shown(&self) -> Option<(usize, Counterexample)> {
        None
    }
}
