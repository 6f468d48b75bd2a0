//! The subject of a check: a program, its machine, and the number of processes.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use crate::counterexample::Counterexample;
use crate::search::{End, Harm, Limits, Machine, SearchResult};

/// How many processes and processors run a program, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Number of processes, which all run the same program.
    pub processes: u8,
    /// How often each takes and releases the lock.
    pub rounds: u8,
    /// Number of processors that they share.
    pub processors: u8,
    /// Whether a process can lose its processor between any two instructions. If not, another one runs only while it is
    /// outside the lock's code, in its critical section, or entering the kernel by an instruction of its own; an interrupt
    /// returns to it.
    pub preempted: bool,
}

impl Setting {
    /// Returns a setting with preemption between any two instructions.
    #[must_use]
    pub const fn new(processes: u8, rounds: u8, processors: u8) -> Self {
        Self { processes, rounds, processors, preempted: true }
    }
}

/// Overrides of a subject's own setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Number of processes, if overridden.
    pub processes: Option<u8>,
    /// Number of rounds, if overridden.
    pub rounds: Option<u8>,
    /// Number of processors, if overridden.
    pub processors: Option<u8>,
    /// Preemption, if overridden.
    pub preempted: Option<bool>,
}

impl Wish {
    /// Applies the overrides to a subject's own setting, up to the machine's maximum.
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

/// A setting that a machine cannot have, or an instruction that does not exist.
#[expect(missing_docs, reason = "the message of a problem speaks of its fields")]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// An unsupported number of `processes`, `rounds` or `processors`.
    #[error("{name} runs with {} {what}, not with {asked}", range(*.least, *.most))]
    OutOfRange { name: String, what: &'static str, least: u8, most: u8, asked: u64 },
    /// The program has no such instruction to be preempted at.
    #[error("{name} has {points} instructions at which it can be preempted (0 to {}), not number {asked}", .points - 1)]
    NoSuchPoint { name: String, points: usize, asked: usize },
    /// The subject has no preemption points to play.
    #[error("{name} {why}")]
    NotPlayed { name: String, why: &'static str },
}

fn range(least: u8, most: u8) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// The answer to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No order of steps violates a property.
    Holds,
    /// Some order of steps violates a property; with the worst harm found.
    Violated(Harm),
    /// The final state that a litmus test asks for can be reached.
    Allowed,
    /// No order of steps reaches that final state.
    Forbidden,
    /// Some orders were not visited, and the others violate nothing; with the limit.
    NotDecided(Want),
}

/// The limit that a search reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// The number of states that was allowed.
    States,
    /// The memory that was allowed.
    Memory,
}

/// The result of checking a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The subject's name.
    pub name: String,
    /// The setting in which it ran.
    pub setting: Setting,
    /// The answer.
    pub verdict: Verdict,
    /// Whether every state was visited. If not, harms without a counterexample are not excluded.
    pub complete: bool,
    /// Number of different states visited.
    pub states: usize,
    /// A shortest schedule to each harm that was found, the worst first.
    pub counterexamples: Vec<Counterexample>,
    /// The final states of a litmus test.
    pub outcomes: Vec<FinalState>,
}

/// The part of a final state that a litmus test mentions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinalState {
    /// The values that the test mentions: `0:EAX=0; 1:EAX=1;`.
    pub values: String,
    /// Whether the test's condition holds.
    pub holds: bool,
}

impl Verdict {
    /// Returns whether a property is violated or undecided. The question of a litmus test with `exists` is not a property.
    #[must_use]
    pub const fn fails(self) -> bool {
        matches!(self, Self::Violated(_) | Self::NotDecided(_))
    }
}

impl Checked {
    /// Summarises a search, with each schedule described by `describe`.
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

    /// Returns whether this harm was searched for everywhere and never found.
    #[must_use]
    pub fn never(&self, harm: Harm) -> bool {
        self.complete && !self.counterexamples.iter().any(|counterexample| counterexample.harm == Some(harm))
    }
}

/// The work of a process until it has the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Instructions that it executes in user mode; for a program in sentences, its loads, stores and fences.
    pub instructions: usize,
    /// How often one of its own instructions enters the kernel, by a system call or a fault. Interrupts are not counted.
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

/// Limit of steps for a process that runs alone: a counting loop takes billions before it repeats a state.
pub(crate) const MOST_STEPS: usize = 5000;

/// The work that a lock takes on the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// The work without a rival.
    pub alone: Work,
    /// For each instruction, the work if the process is preempted once, before that instruction, while another process takes the lock
    /// and gives it back. Instructions for which it did not take the lock are left out; empty for a program that is not played.
    pub preempted: Vec<Work>,
}

/// A line of a user's program that is not read as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Correction {
    /// The line, from 1.
    pub line: usize,
    /// The original text, and how it is read.
    pub text: String,
}

/// The role of B in a played schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Takes and releases the lock before A continues.
    GivesBack,
    /// Holds the lock when A continues.
    Holds,
    /// Does not exist.
    Absent,
}

/// The description of a subject before it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// A program as it was published.
    Published,
    /// A published program in which one thing that it depends on is changed.
    Mutant,
    /// The algorithm of Lamport on a machine with store buffers.
    Lamport,
    /// A program of the user's own.
    Own,
}

/// Something that can be checked.
pub trait Subject: Sync {
    /// Returns its name in commands, such as `figure-8`.
    fn name(&self) -> &str;

    /// Returns its description, in one sentence.
    fn about(&self) -> &str;

    /// Returns its group.
    fn group(&self) -> Group;

    /// Returns the published verdict, or the one that a mutant must have; `None` for a user's own program.
    fn expected(&self) -> Option<Verdict>;

    /// Returns its program, one instruction per line, as shown.
    fn listing(&self) -> String;

    /// Returns the question of a litmus test: `exists (0:EAX=0 /\ 1:EAX=0)`.
    fn condition(&self) -> Option<&str> {
        None
    }

    /// Returns what was read differently from how it was written; empty for built-in programs.
    fn corrections(&self) -> &[Correction] {
        &[]
    }

    /// Returns the subject's setting with these overrides.
    ///
    /// # Errors
    /// [`Unfit::OutOfRange`] if the machine does not support a number.
    fn setting(&self, wish: Wish) -> Result<Setting, Unfit>;

    /// Visits every interleaving.
    fn check(&self, setting: Setting, limits: Limits) -> Checked;

    /// Returns the number of instructions at which a process can be preempted; 0 if the subject is not played.
    fn points(&self) -> usize;

    /// Plays a schedule as in figures 3 and 10: A is preempted just before instruction number `point`, B takes the lock if
    /// it can, and A runs to its end.
    ///
    /// # Errors
    /// [`Unfit::NoSuchPoint`], [`Unfit::NotPlayed`].
    fn play(&self, point: usize, rival: Rival) -> Result<Counterexample, Unfit>;

    /// Returns the work of taking the lock, if the program takes it and its steps can be counted.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// Returns the one schedule that a figure shows, with the instruction before which A is preempted.
    fn shown(&self) -> Option<(usize, Counterexample)> {
        None
    }
}
