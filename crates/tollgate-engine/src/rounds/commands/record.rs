//! A whole command on one side, from the choice to its measurement.

use std::time::Duration;

use tollgate_model::Traced;
use tollgate_model::measurement::{Measured, Measurement, Outcome, ProcessRounds, Unit};

use super::executor::{Attempt, NO_TIME};
use crate::cases::benchmark::Chosen;
use crate::machine::ending::Ending;
use crate::refusal::Refusal;

/// What was executed of a case on one side.
#[derive(Debug, Default)]
pub(super) struct ExecutedCase {
    /// Whether it is ready to be executed.
    ready: bool,
    refused: Option<Refusal>,
    /// Whether an execution took longer than there was time: there will be no other.
    over: bool,
    /// For each repetition its trace; None where it was discarded.
    repetitions: Vec<Option<Traced>>,
    notes: Vec<String>,
}

impl ExecutedCase {
    /// Records the result of its preparation.
    pub fn prepared(&mut self, refusal: Option<Refusal>) {
        self.ready = refusal.is_none();
        self.refused = refusal;
    }

    /// Records a step, and the time that it was given.
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

    /// Whether it may be executed again.
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
            notes: self.notes.clone(),
            traced: kept.iter().map(|&traced| traced.clone()).collect(),
            ..Measured::of_executions(
                benchmark.suite(),
                Unit::Nanoseconds,
                kept.iter().map(|traced| traced.wall_ns as f64).collect(),
            )
        })
    }

    /// Whether the time was over before its first repetition.
    pub fn lacks_time(&self) -> bool {
        match &self.refused {
            Some(refusal) => matches!(refusal, Refusal::OutOfTime(_)),
            None => self.repetitions.is_empty(),
        }
    }

    /// Its measurement; `ended` is why the run ended early, if it did.
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

/// Each repetition counts as a process of its own, with one round: fresh programs, and a freshly set page cache. One
/// that was discarded stays, so that repetitions of the same number on two sides are neighbours.
fn process(kept: bool) -> ProcessRounds {
    ProcessRounds { rounds: 1, ran: None, discarded: if kept { Vec::new() } else { vec![0] } }
}
