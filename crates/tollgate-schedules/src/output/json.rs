//! The results as JSON.

use serde::Serialize;

use super::outcome::{Outcome, Played};
use crate::subject::{Correction, FinalState, Group, Want, Wish};
use crate::{Counterexample, Harm, Setting, Subject, Verdict};

/// The output of `--format json`.
#[derive(Serialize)]
pub struct Document<'a> {
    /// One for each that was asked for, in that order.
    pub programs: Vec<Record<'a>>,
}

/// A program that was checked or played.
#[derive(Serialize)]
pub struct Record<'a> {
    name: &'a str,
    about: &'a str,
    group: Group,
    listing: String,
    corrections: &'a [Correction],
    processes: Option<u8>,
    rounds: Option<u8>,
    processors: Option<u8>,
    #[serde(flatten)]
    verdict: Answer,
    expected: Option<Answer>,
    complete: Option<bool>,
    states: Option<usize>,
    seconds: Option<f64>,
    counterexample: Option<&'a Counterexample>,
    other_counterexamples: Vec<&'a Counterexample>,
    preemptions: Vec<Preemption>,
    condition: Option<&'a str>,
    final_states: &'a [FinalState],
}

/// A verdict: one that holds has no harm, and a decided one needs no limit.
#[derive(Default, Serialize)]
struct Answer {
    verdict: Option<&'static str>,
    harm: Option<Harm>,
    lacking: Option<Want>,
}

#[derive(Serialize)]
struct Preemption {
    before: usize,
    #[serde(flatten)]
    schedule: Counterexample,
}

impl<'a> Record<'a> {
    /// A program that was checked.
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
            ..Self::of(outcome.subject, Some(checked.setting))
        }
    }

    /// A program that was played forward, as it is by itself.
    pub fn of_plays(subject: &'a dyn Subject, plays: &'a [Played]) -> Self {
        let preemptions =
            plays.iter().map(|played| Preemption::from((played.point, played.counterexample.clone())));
        let setting = subject.setting(Wish::default()).ok();
        Self { preemptions: preemptions.collect(), ..Self::of(subject, setting) }
    }

    fn of(subject: &'a dyn Subject, setting: Option<Setting>) -> Self {
        Self {
            name: subject.name(),
            about: subject.about(),
            group: subject.group(),
            listing: subject.listing(),
            corrections: subject.corrections(),
            processes: setting.map(|setting| setting.processes),
            rounds: setting.map(|setting| setting.rounds),
            processors: setting.map(|setting| setting.processors),
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
