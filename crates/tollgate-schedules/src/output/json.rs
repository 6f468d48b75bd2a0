use serde::Serialize;

use super::outcome::{Outcome, Played};
use crate::subject::{Correction, Cost, FinalState, Group, Want, Wish};
use crate::{Counterexample, Harm, Setting, Subject, Verdict};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CheckedPrograms"))]
pub struct SchedulesDocument<'a> {
    /// One object per requested program, in the requested order.
    pub programs: Vec<CheckedProgram<'a>>,
}

/// A program that was checked or played.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedProgram<'a> {
    /// The program's name.
    name: &'a str,
    /// A sentence about it.
    about: &'a str,
    /// The origin of the program.
    group: Group,
    /// Its listing, one instruction per line.
    listing: String,
    /// Lines of a file's listing that are not read as they are written; empty for built-in programs.
    corrections: &'a [Correction],
    /// The number of processes.
    processes: Option<u8>,
    /// The number of executions by each process.
    rounds: Option<u8>,
    /// The number of processors.
    processors: Option<u8>,
    /// Whether a process can lose its processor between any two instructions.
    preempted: Option<bool>,
    /// The work of taking the lock; null if it is never taken.
    cost: Option<Cost>,
    #[serde(flatten)]
    verdict: Answer,
    /// The known result of the program in this setting, or null.
    expected: Option<Answer>,
    /// Whether every state was visited. If not, other harms are not excluded.
    complete: Option<bool>,
    /// The number of different states visited.
    states: Option<usize>,
    /// The time of the search, in seconds.
    seconds: Option<f64>,
    /// A shortest schedule that leads to `harm` or to a requested final state; or null.
    counterexample: Option<&'a Counterexample>,
    /// One schedule for each other harm, the worst first.
    other_counterexamples: Vec<&'a Counterexample>,
    /// For figures 3, 6 and 10, the schedule that they show. With `--preempt`, one schedule for each preemption that was played. Empty
    /// otherwise. With `--preempt` there is no search: `verdict`, `harm`, `lacking`, `expected`, `complete`, `states`, `seconds` and
    /// `counterexample` are null.
    preemptions: Vec<Preemption>,
    /// The question of a litmus test, or null.
    condition: Option<&'a str>,
    /// The final states of a litmus test; empty for other programs.
    final_states: &'a [FinalState],
}

/// A verdict. One that holds has no harm, and a decided one has no limit.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Answer {
    /// `holds`: no order of steps violates a property; `violated`: an order does; `not-decided`: the search was not complete and found
    /// no violation. For a litmus test that asks `exists`, `allowed`: a requested final state is reached; `forbidden`: none is.
    verdict: Option<&'static str>,
    /// The worst violation; null unless `verdict` is `violated`.
    harm: Option<Harm>,
    /// The limit that ended the search; null unless `verdict` is `not-decided`.
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
