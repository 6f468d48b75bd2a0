//! The record of a whole command on one side, from its choice to its measurement.

use std::time::Duration;

use tollgate_model::Traced;
use tollgate_model::measurement::{Measured, Measurement, Outcome, ProcessRounds, Unit};
use tollgate_model::traced::Backend;

use super::stage::{Attempt, NO_TIME};
use crate::cases::benchmark::Chosen;
use crate::machine::ending::Ending;
use crate::refusal::Refusal;

/// The executions of a case on one side.
#[derive(Debug, Default)]
pub(super) struct ExecutedCase {
    /// Whether it is ready to be executed.
    ready: bool,
    refused: Option<Refusal>,
    /// Whether an execution took longer than its time limit. It is not executed again.
    over: bool,
    /// The times of each timed repetition; `None` if it was discarded.
    repetitions: Vec<Option<Traced>>,
    /// The traced executions, which are separate from the timed ones.
    traced: Vec<Traced>,
    /// Why it is no longer traced.
    untraced: Option<String>,
    notes: Vec<String>,
}

impl ExecutedCase {
    /// Records the result of the preparation.
    pub fn prepared(&mut self, refusal: Option<Refusal>) {
        self.ready = refusal.is_none();
        self.refused = refusal;
    }

    /// Records a step, and its time limit.
    pub fn add(&mut self, attempt: Attempt, given: Duration) {
        match attempt {
            Attempt::Executed(execution) => {
                self.repetitions.push(execution.traced);
                self.notes = execution.notes;
            }
            // Another phase follows.
            Attempt::Passed => {}
            Attempt::Refused(why) => self.refused = Some(why),
            Attempt::OutOfTime if self.repetitions.is_empty() => {
                self.refused = Some(Refusal::OutOfTime(Ending::OutOfTime.describe(given)));
            }
            // Earlier repetitions stay.
            Attempt::OutOfTime => self.over = true,
        }
    }

    /// Records a step of a traced execution. If that fails, the case is still timed.
    pub fn add_traced(&mut self, attempt: Attempt) {
        let why = match attempt {
            Attempt::Passed => return,
            Attempt::Executed(execution) => match execution.traced {
                Some(traced) if traced.backend == Backend::Rusage => {
                    traced.notes.into_iter().next().unwrap_or_else(|| "nothing can trace it here".to_owned())
                }
                traced => return self.traced.extend(traced),
            },
            Attempt::Refused(refusal) => refusal.why().to_owned(),
            Attempt::OutOfTime => "its traced execution took longer than the time that was left".to_owned(),
        };
        self.untraced = Some(why);
    }

    /// Returns whether it is no longer traced.
    pub fn is_untraced(&self) -> bool {
        self.untraced.is_some()
    }

    /// Returns the tracer, once it is known.
    pub fn backend(&self) -> Option<Backend> {
        self.traced.first().map(|traced| traced.backend)
    }

    /// Returns whether it may be executed again.
    pub fn is_open(&self) -> bool {
        self.ready && self.refused.is_none() && !self.over
    }

    pub fn repetitions(&self) -> usize {
        self.repetitions.len()
    }

    fn measured(&self, (benchmark, params): &Chosen) -> Option<Measured> {
        let kept: Vec<&Traced> = self.repetitions.iter().flatten().collect();
        (!kept.is_empty()).then(|| Measured {
            discarded: (self.repetitions.len() - kept.len()) as u64,
            processes: self.repetitions.iter().map(|traced| process(traced.is_some())).collect(),
            baseline: benchmark.baseline_of(params),
            notes: self.notes.iter().cloned().chain(self.note_on_tracing()).collect(),
            traced: kept.iter().map(|&traced| traced.clone()).collect(),
            traced_apart: self.traced.clone(),
            ..Measured::of_executions(
                benchmark.suite(),
                Unit::Nanoseconds,
                kept.iter().map(|traced| traced.wall_ns as f64).collect(),
            )
        })
    }

    fn note_on_tracing(&self) -> Option<String> {
        match (self.backend(), &self.untraced) {
            (Some(Backend::Ptrace), _) => {
                Some("traced with ptrace(2): the times of calls include its two stops per call".to_owned())
            }
            (Some(_), _) => None,
            (None, Some(why)) => Some(format!("not traced: {why}")),
            (None, None) => Some("not traced: the time was over".to_owned()),
        }
    }

    /// Returns whether the time was over before its first repetition.
    pub fn lacks_time(&self) -> bool {
        match &self.refused {
            Some(refusal) => matches!(refusal, Refusal::OutOfTime(_)),
            None => self.repetitions.is_empty(),
        }
    }

    /// Returns its measurement; `ended` is why the run ended early, if it did.
    pub fn conclude(self, case: &Chosen, ended: Option<&str>) -> Measurement {
        let outcome = match (&self.refused, self.measured(case)) {
            (Some(refusal), _) => refusal.clone().outcome(),
            (None, Some(measured)) => Outcome::Measured(Box::new(measured)),
            (None, None) if !self.repetitions.is_empty() => Outcome::Failed {
                error: "each repetition was discarded: some input was not in the required cache state"
                    .to_owned(),
            },
            (None, None) => Outcome::NotMeasured { why: ended.unwrap_or(NO_TIME).to_owned() },
        };
        Measurement { case: case.0.case(case.1.clone()), outcome }
    }
}

/// Each repetition counts as a process of its own with one round, since it has fresh programs and a freshly set page cache. A discarded
/// repetition keeps its place, so that repetitions with the same number on two sides are neighbours.
fn process(kept: bool) -> ProcessRounds {
    ProcessRounds { rounds: 1, ran: None, discarded: if kept { Vec::new() } else { vec![0] } }
}
