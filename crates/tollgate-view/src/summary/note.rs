//! The notes beside the figures of a row: each a phrase and a number.

use std::fmt;

use tollgate_model::compare::{Paired, Verdict};
use tollgate_model::measurement::pairs;
use tollgate_model::stats::Mode;
use tollgate_model::{Case, Counted, Counter, Unit};
use tollgate_output::figures::{self, percent};

use super::figures::{Figures, Noise};

/// A larger share of discarded samples gets a note.
const NOTABLE_DISCARDS: f64 = 0.01;
/// A larger range across processes gets a note.
const NOTABLE_RANGE: f64 = 0.10;
/// Less frequent events are counted per million operations.
const OFTEN: f64 = 0.01;

#[derive(Debug, Clone, PartialEq)]
pub enum Note<'a> {
    Noisy(Noise),
    Emulated,
    BelowLimit,
    /// The batches of a count that had another event, such as a timer tick, and were left out; and the number of all batches.
    Apart(u64, u64),
    Throughput(f64),
    /// Operations per second of this many threads or processes together.
    Together(f64, u64, &'a str),
    /// It was compared with its baseline, round by round.
    Paired {
        paired: &'a Paired,
        case: &'a Case,
        unit: Unit,
    },
    Bimodal {
        modes: &'a [Mode; 2],
        unit: Unit,
    },
    Range {
        share: f64,
        /// From the smallest median to the largest.
        ends: Option<(f64, f64)>,
        unit: Unit,
    },
    Discarded(f64),
    /// Events that were counted beside the time.
    Counted(&'a Counted),
    /// Other events: frequent ones, per operation.
    Often(Vec<&'a Counter>, u64),
    /// Rare ones, per million operations.
    Rarely(Vec<&'a Counter>, u64),
    Said(&'a str),
}

pub(super) fn notes_of<'b>(case: &'b Case, figures: &'b Figures<'_>) -> Vec<Note<'b>> {
    let measured = &*figures.measured;
    let noise = figures.noise();
    let is_noted = noise.iter().any(|noise| matches!(noise, Noise::Discarded(_)));
    let mut notes: Vec<Note> = noise.into_iter().map(Note::Noisy).collect();
    if !figures.is_estimate() {
        notes.push(Note::Emulated);
        return notes;
    }
    notes.extend(figures.below.map(|_| Note::BelowLimit));
    notes.extend(figures.bytes_per_second().map(Note::Throughput));
    let tasks = case.number("tasks").filter(|tasks| *tasks > 1 && figures.below.is_none());
    let kind = case.word("kind").unwrap_or("tasks");
    notes
        .extend(tasks.map(|tasks| Note::Together(tasks as f64 * 1e9 / figures.estimate.median, tasks, kind)));
    notes.extend(figures.paired.as_ref().map(|paired| Note::Paired { paired, case, unit: measured.unit }));
    if figures.is_count() {
        notes.extend(of_count(figures))
    } else {
        notes.extend(of_times(figures, is_noted))
    }
    notes.extend(measured.counted.as_ref().map(Note::Counted));
    let operations = figures.operations();
    let (often, rare): (Vec<&Counter>, Vec<&Counter>) = (measured.counters.iter())
        .filter(|counter| counter.number > 0)
        .partition(|counter| rate(counter, operations) >= OFTEN);
    notes.extend((!often.is_empty()).then_some(Note::Often(often, operations)));
    notes.extend((!rare.is_empty()).then_some(Note::Rarely(rare, operations)));
    notes.extend(measured.notes.iter().map(|note| Note::Said(note)));
    notes
}

fn of_count<'b>(figures: &Figures<'_>) -> Option<Note<'b>> {
    let apart = figures.measured.discarded;
    let all = (figures.estimate.samples as u64).saturating_add(apart);
    (apart > 0).then_some(Note::Apart(apart, all))
}

fn of_times<'b>(figures: &'b Figures<'_>, has_noted_discards: bool) -> Vec<Note<'b>> {
    let (estimate, unit, is_known) = (&figures.estimate, figures.measured.unit, figures.below.is_none());
    let mut notes = Vec::new();
    let modes = <&[Mode; 2]>::try_from(estimate.modes.as_slice()).ok().filter(|_| is_known);
    notes.extend(modes.map(|modes| Note::Bimodal { modes, unit }));
    if estimate.spread > NOTABLE_RANGE && is_known {
        let medians = || estimate.process_medians.iter().copied();
        let ends = medians().min_by(f64::total_cmp).zip(medians().max_by(f64::total_cmp));
        notes.push(Note::Range { share: estimate.spread, ends, unit });
    }
    if estimate.discarded_share > NOTABLE_DISCARDS && !has_noted_discards {
        notes.push(Note::Discarded(estimate.discarded_share));
    }
    notes
}

fn rate(counter: &Counter, operations: u64) -> f64 {
    counter.number as f64 / operations.max(1) as f64
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noisy(noise) => write!(f, "noisy: {noise}"),
            Self::Emulated => f.write_str("times are an emulator's"),
            Self::BelowLimit => f.write_str("detection limit"),
            Self::Apart(apart, all) => {
                write!(f, "{apart} of {all} batches had other events and were left out")
            }
            Self::Together(rate, tasks, kind) => {
                write!(f, "{} by {tasks} {kind} together", figures::per_second(*rate))
            }
            Self::Throughput(rate) => write!(f, "{}/s", figures::bytes(*rate)),
            Self::Paired { paired, case, unit } => paired_in_words(f, paired, case, *unit),
            Self::Bimodal { modes: [low, high], unit } => {
                let mode =
                    |mode: &Mode| format!("{} ({})", figures::estimate(mode.at, *unit), percent(mode.share));
                write!(f, "bimodal: {}, {}", mode(low), mode(high))
            }
            Self::Range { share, ends, unit } => {
                write!(f, "range across processes {}", percent(*share))?;
                let Some((least, most)) = ends else { return Ok(()) };
                write!(f, ", {} to {}", figures::estimate(*least, *unit), figures::estimate(*most, *unit))
            }
            Self::Discarded(share) => Noise::Discarded(*share).fmt(f),
            Self::Counted(counted) => counted_in_words(f, counted),
            Self::Often(counters, operations) => {
                write!(f, "per operation {}", counters_in_words(counters, *operations, 1.0))
            }
            Self::Rarely(counters, operations) => {
                write!(f, "per million operations {}", counters_in_words(counters, *operations, 1e6))
            }
            Self::Said(text) => f.write_str(text),
        }
    }
}

fn counters_in_words(counters: &[&Counter], operations: u64, scale: f64) -> String {
    let words = |counter: &&Counter| {
        format!("{} {}", figures::significant(rate(counter, operations) * scale, 3), counter.what)
    };
    counters.iter().map(words).collect::<Vec<_>>().join(", ")
}

fn counted_in_words(f: &mut fmt::Formatter<'_>, counted: &Counted) -> fmt::Result {
    let Counted { what, events, operations, is_share } = counted;
    match (*is_share, *events) {
        (true, 0) => write!(f, "none of {operations} {what}"),
        (true, _) => {
            write!(f, "{} of {operations} {what}", percent(*events as f64 / (*operations).max(1) as f64))
        }
        (false, events) if events == *operations => write!(f, "{what} counted: 1 per operation"),
        (false, events) => write!(f, "{events} {what} counted in {operations} operations"),
    }
}

/// The baseline is named by its benchmark; a case of the same benchmark, by the parameters that differ.
fn paired_in_words(f: &mut fmt::Formatter<'_>, paired: &Paired, case: &Case, unit: Unit) -> fmt::Result {
    let Case { benchmark, params } = &paired.baseline;
    let is_of_same = *benchmark == case.benchmark;
    let name = if is_of_same {
        let mut different = params.clone();
        different.retain(|name, value| case.params.get(name) != Some(value));
        pairs(&different)
    } else {
        benchmark.clone()
    };
    match paired.verdict {
        Verdict::Same if paired.threshold == 0.0 => write!(f, "same as {name}"),
        Verdict::Same => write!(f, "same as {name} within {}", percent(paired.threshold)),
        Verdict::Inconclusive => match &paired.why {
            Some(why) if why.ends_with("in common") => write!(f, "{why} with {name}"),
            Some(why) => write!(f, "no significant difference from {name}: {why}"),
            None => write!(f, "no significant difference from {name}"),
        },
        _ if is_of_same => write!(f, "{} than {name}", figures::compared(paired.ratio, figures::words(unit))),
        verdict => write!(f, "{}, {verdict} than {name}", figures::difference(paired.adds, unit)),
    }
}
