//! What was found, for programs that read it.

use serde::Serialize;
use tollgate_schedules::subject::{Group, Want, Wish};
use tollgate_schedules::{Harm, Setting, Step, Subject, Verdict, Witness};

use super::checks::Outcome;
use super::plays::Played;

/// What `--format json` prints.
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
    processes: Option<u8>,
    rounds: Option<u8>,
    processors: Option<u8>,
    #[serde(flatten)]
    verdict: Answer,
    expected: Option<Answer>,
    complete: Option<bool>,
    states: Option<usize>,
    seconds: Option<f64>,
    witness: Option<Told<'a>>,
    other_witnesses: Vec<Told<'a>>,
    preemptions: Vec<Preemption<'a>>,
}

/// A verdict: what holds has no harm, what is decided lacks nothing.
#[derive(Default, Serialize)]
struct Answer {
    verdict: Option<&'static str>,
    harm: Option<Harm>,
    lacking: Option<Want>,
}

/// A schedule.
#[derive(Serialize)]
struct Told<'a> {
    harm: Option<Harm>,
    so: &'a str,
    back_to: Option<usize>,
    steps: Vec<ToldStep<'a>>,
}

#[derive(Serialize)]
struct ToldStep<'a> {
    process: Option<u8>,
    processor: u8,
    place: &'a str,
    what: &'a str,
    changes: &'a [String],
}

#[derive(Serialize)]
struct Preemption<'a> {
    before: usize,
    #[serde(flatten)]
    told: Told<'a>,
}

impl<'a> Record<'a> {
    /// A program that was checked.
    pub fn of_check(outcome: &'a Outcome) -> Self {
        let checked = &outcome.checked;
        let mut witnesses = checked.witnesses.iter().map(Told::of);
        Self {
            verdict: Answer::of(checked.verdict),
            expected: outcome.expected().map(Answer::of),
            complete: Some(checked.complete),
            states: Some(checked.states),
            seconds: Some(outcome.seconds),
            witness: witnesses.next(),
            other_witnesses: witnesses.collect(),
            ..Self::of(outcome.subject, Some(checked.setting))
        }
    }

    /// A program that was played forward, as it is by itself.
    pub fn of_plays(subject: &'a dyn Subject, plays: &'a [Played]) -> Self {
        let preemptions =
            plays.iter().map(|played| Preemption { before: played.point, told: Told::of(&played.witness) });
        let setting = subject.setting(Wish::default()).ok();
        Self { preemptions: preemptions.collect(), ..Self::of(subject, setting) }
    }

    fn of(subject: &'a dyn Subject, setting: Option<Setting>) -> Self {
        Self {
            name: subject.name(),
            about: subject.about(),
            group: subject.group(),
            listing: subject.listing(),
            processes: setting.map(|setting| setting.processes),
            rounds: setting.map(|setting| setting.rounds),
            processors: setting.map(|setting| setting.processors),
            verdict: Answer::default(),
            expected: None,
            complete: None,
            states: None,
            seconds: None,
            witness: None,
            other_witnesses: Vec::new(),
            preemptions: Vec::new(),
        }
    }
}

impl Answer {
    fn of(verdict: Verdict) -> Self {
        let (verdict, harm, lacking) = match verdict {
            Verdict::Holds => ("holds", None, None),
            Verdict::Violated(harm) => ("violated", Some(harm), None),
            Verdict::NotDecided(want) => ("not-decided", None, Some(want)),
        };
        Self { verdict: Some(verdict), harm, lacking }
    }
}

impl<'a> Told<'a> {
    fn of(witness: &'a Witness) -> Self {
        let Witness { harm, steps, back_to, so } = witness;
        let steps = steps.iter().map(|step| {
            let Step { process, processor, place, what, changes } = step;
            ToldStep { process: *process, processor: *processor, place, what, changes }
        });
        Self { harm: *harm, so, back_to: *back_to, steps: steps.collect() }
    }
}
