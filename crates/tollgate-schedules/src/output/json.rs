use serde::Serialize;

use super::outcome::{Outcome, Played};
use crate::subject::{Correction, Cost, FinalState, Group, Want, Wish};
use crate::{Counterexample, Harm, Setting, Subject, Verdict};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CheckedPrograms"))]
pub struct SchedulesDocument<'a> {
    /// One object for each requested program, in that order.
    pub programs: Vec<CheckedProgram<'a>>,
}

/// A program that was checked or played.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedProgram<'a> {
    /// The program.
    name: &'a str,
    /// A sentence about it.
    about: &'a str,
    /// Where it is from.
    group: Group,
    /// Its program, one instruction a line.
    listing: String,
    /// What a listing in a file has otherwise than it was read; empty for built-in programs.
    corrections: &'a [Correction],
    /// Number of processes.
    processes: Option<u8>,
    /// Executions by each.
    rounds: Option<u8>,
    /// Number of processors.
    processors: Option<u8>,
    /// Whether a process can lose its processor between any two instructions.
    preempted: Option<bool>,
    /// The work of taking the lock, or None where it is never taken.
    cost: Option<Cost>,
    #[serde(flatten)]
    verdict: Answer,
    /// The known result of the program in this setting, or None.
    expected: Option<Answer>,
    /// Whether every state was visited. Where not, other harms are not excluded.
    complete: Option<bool>,
    /// Number of different states visited.
    states: Option<usize>,
    /// Time of the search.
    seconds: Option<f64>,
    /// A shortest schedule that leads to `harm`, or to a final state as asked for; or None.
    counterexample: Option<&'a Counterexample>,
    /// One for each other harm, the worst first.
    other_counterexamples: Vec<&'a Counterexample>,
    /// Of figures 3, 6 and 10 the schedule that they show. With `--preempt`: one schedule for each preemption that was played; else
    /// empty. With `--preempt` there is no search: `verdict`, `harm`, `lacking`, `expected`, `complete`, `states`, `seconds` and
    /// `counterexample` are null.
    preemptions: Vec<Preemption>,
    /// The question of a litmus test, or None.
    condition: Option<&'a str>,
    /// Of a litmus test; else empty.
    final_states: &'a [FinalState],
}

/// A verdict: one that holds has no harm, and a decided one needs no limit.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Answer {
    /// `holds`: no order of steps violates a property; `violated`: an order does; `not-decided`: the search was not complete and found
    /// no violation; of a litmus test that asks `exists`, `allowed`: a final state as asked for is reached, and `forbidden`: it is not.
    verdict: Option<&'static str>,
    /// The worst violation; None unless violated.
    harm: Option<Harm>,
    /// The limit that ended the search; None unless not decided.
    lacking: Option<Want>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Preemption {
    /// The number of the instruction before which process 0 was preempted, from 0.
    before: usize,
    #[serde(flatten)]
    schedule: Counterexample,
}

impl<'a> CheckedProgram<'a> {
    /// Describes a program that was checked.
    pub fn of_check(outcome: &'a Outcome) -> Self {
        let checked = &outcome.checked;
        let mut counterexamples = checked.counterexamples.iter();
        Self {
            verdict: Answer::of(checked.verdict),
            expected: outcome.expected().map(Answer::of),
            final_states: &checked.outcomes,
            complete: Some(checked.complete),
            states: Some(checked.states),
            seconds: Some(outcome.seconds),
            counterexample: counterexamples.next(),
            other_counterexamples: counterexamples.collect(),
            preemptions: outcome.subject.shown().into_iter().map(Preemption::from).collect(),
            ..Self::new(outcome.subject, Some(checked.setting))
        }
    }

    /// Describes a program that was played, without a search.
    pub fn of_plays(subject: &'a dyn Subject, plays: &'a [Played]) -> Self {
        let preemptions =
            plays.iter().map(|played| Preemption::from((played.point, played.counterexample.clone())));
        let setting = subject.setting(Wish::default()).ok();
        Self { preemptions: preemptions.collect(), ..Self::new(subject, setting) }
    }

    fn new(subject: &'a dyn Subject, setting: Option<Setting>) -> Self {
        Self {
            name: subject.name(),
            about: subject.about(),
            group: subject.group(),
            listing: subject.listing(),
            corrections: subject.corrections(),
            processes: setting.map(|setting| setting.processes),
            rounds: setting.map(|setting| setting.rounds),
            processors: setting.map(|setting| setting.processors),
            preempted: setting.map(|setting| setting.preempted),
            cost: subject.cost(),
            verdict: Answer::default(),
            expected: None,
            complete: None,
            states: None,
            seconds: None,
            counterexample: None,
            other_counterexamples: Vec::new(),
            preemptions: Vec::new(),
            condition: subject.condition(),
            final_states: &[],
        }
    }
}

impl Answer {
    fn of(verdict: Verdict) -> Self {
        let (verdict, harm, lacking) = match verdict {
            Verdict::Holds => ("holds", None, None),
            Verdict::Violated(harm) => ("violated", Some(harm), None),
            Verdict::Allowed => ("allowed", None, None),
            Verdict::Forbidden => ("forbidden", None, None),
            Verdict::NotDecided(want) => ("not-decided", None, Some(want)),
        };
        Self { verdict: Some(verdict), harm, lacking }
    }
}

impl From<(usize, Counterexample)> for Preemption {
    fn from((before, schedule): (usize, Counterexample)) -> Self {
        Self { before, schedule }
    }
}
