//! `tollgate compare`: medians of several runs, verdicts, and the facts that differ between the environments.

use std::collections::HashMap;

use serde::Serialize;
use tollgate_model::compare::{Comparison, FactDifference, Row, Verdict};
use tollgate_model::{
    Case, Effect, Environment, Fact, Label, Measured, Measurement, Outcome, Params, Run, RunId, Unit,
};

use crate::args::{CompareArgs, FailOn, Format};
use crate::failure::Failure;
use crate::table::{Look, Table, heading, paragraph};
use crate::trace::blame::Held;
use crate::{causes, estimates, facts, figures, out, store, trace};

const UNPAIRED: &str = "Runs share no rounds: this is an unpaired comparison of the medians of their processes. \
    95 % CIs, corrected for the number of rows.";

/// Compares each other run with the base.
///
/// # Errors
/// When a run cannot be read; and the condition of `--fail-on`.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let base = tollgate_store::find(&args.base)?;
    let others = store::find_all(&args.other)?;
    let compared: Vec<Compared> = others.iter().map(|other| Compared::of(&base, other)).collect();
    match args.format {
        Format::Table => out::print(&text(&base, &compared, out::width()))?,
        Format::Json => out::print_json(&Document::of(&base, &compared))?,
    }
    args.fail_on.map_or(Ok(()), |condition| check(condition, &compared))
}

/// A run compared with the base.
pub struct Compared<'a> {
    /// The run.
    pub other: &'a Run,
    /// Its rows and facts.
    pub comparison: Comparison,
    /// The measurements behind each row, in both runs.
    sides: Vec<Sides<'a>>,
    /// The commands that both runs traced.
    traces: Vec<Held<'a>>,
}

/// The measurements of a case in the base and in the other run.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// In the base.
    pub base: &'a Measured,
    /// In the other.
    pub other: &'a Measured,
}

impl Sides<'_> {
    /// Whether the two have the same unit and provenance.
    fn are_comparable(self) -> bool {
        self.base.unit == self.other.unit && self.base.provenance == self.other.provenance
    }

    /// The ratio of a row, where it has one.
    pub fn ratio(self, row: &Row) -> Option<f64> {
        let known = row.base.is_some() && row.other.is_some() && self.are_comparable();
        Some(row.ratio).filter(|ratio| known && ratio.is_finite())
    }

    /// Takes an emulator's times out of a row: they are no latencies.
    fn without_emulated(self, row: &mut Row) {
        let [base, other] = [self.base, self.other].map(estimates::is_estimate);
        row.base = row.base.filter(|_| base);
        row.other = row.other.filter(|_| other);
        if !(base && other) {
            row.interval = None;
            row.verdict = Verdict::Inconclusive;
            row.why = Some("times are an emulator's".to_owned());
        }
    }
}

fn measured(run: &Run) -> HashMap<&Case, &Measured> {
    fn of(measurement: &Measurement) -> Option<(&Case, &Measured)> {
        match &measurement.outcome {
            Outcome::Measured(measured) => Some((&measurement.case, &**measured)),
            Outcome::Skipped { .. } | Outcome::Failed { .. } => None,
        }
    }
    run.measurements.iter().filter_map(of).collect()
}

impl<'a> Compared<'a> {
    /// Compares a run with the base.
    pub fn of(base: &'a Run, other: &'a Run) -> Self {
        let mut comparison = tollgate_model::compare::compare(base, other);
        // The clock and the isolation of processes are no facts of the environment, but can be causes.
        comparison
            .facts
            .extend([facts::CLOCK, facts::ISOLATION].iter().filter_map(|name| differing(name, base, other)));
        let (of_base, of_other) = (measured(base), measured(other));
        let mut sides = Vec::new();
        comparison.rows.retain_mut(|row| {
            let found = of_base.get(&row.case).zip(of_other.get(&row.case));
            found.is_some_and(|(base, other)| {
                let found = Sides { base, other };
                found.without_emulated(row);
                sides.push(found);
                true
            })
        });
        let differing = comparison.rows.iter().filter(|row| row.verdict.is_difference());
        causes::sort(&mut comparison.facts, differing.map(|row| &row.case));
        let traces = other.measurements.iter().filter_map(|measurement| {
            let (base, other) = (of_base.get(&measurement.case)?, of_other.get(&measurement.case)?);
            let are_estimates = estimates::is_estimate(base) && estimates::is_estimate(other);
            Held::of(&measurement.case, base, other).filter(|_| are_estimates)
        });
        Self { other, traces: traces.collect(), comparison, sides }
    }

    /// The rows, each with what it was made from.
    pub fn rows(&self) -> impl Iterator<Item = (&Row, Sides<'a>)> {
        self.comparison.rows.iter().zip(self.sides.iter().copied())
    }
}

fn differing(name: &str, base: &Run, other: &Run) -> Option<FactDifference> {
    let (base, other) = (base.facts.get(name), other.facts.get(name));
    let differ = base.and_then(Fact::value) != other.and_then(Fact::value);
    differ.then(|| FactDifference { name: name.to_owned(), base: base.cloned(), other: other.cloned() })
}

/// A run's label, or its id.
pub fn name(run: &Run) -> String {
    run.label.as_ref().map_or_else(|| run.id.to_string(), ToString::to_string)
}

fn check(condition: FailOn, compared: &[Compared]) -> Result<(), Failure> {
    let (is_met, word): (fn(Verdict) -> bool, _) = match condition {
        FailOn::Slower => (|verdict| verdict == Verdict::Slower, "slower"),
        FailOn::Faster => (|verdict| verdict == Verdict::Faster, "faster"),
        FailOn::Different => (|verdict| matches!(verdict, Verdict::Slower | Verdict::Faster), "different"),
    };
    let rows = compared.iter().flat_map(|compared| &compared.comparison.rows);
    let met: Vec<String> = rows.filter(|row| is_met(row.verdict)).map(|row| row.case.to_string()).collect();
    match met.as_slice() {
        [] => Ok(()),
        [first] => Err(Failure::Condition(format!("{first} is {word}"))),
        [first, rest @ ..] => Err(Failure::Condition(format!("{first} and {} more are {word}", rest.len()))),
    }
}

fn text(base: &Run, compared: &[Compared], width: usize) -> String {
    let mut text = String::new();
    for (at, compared) in compared.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&heading(
            &format!("{} compared with {}", described(compared.other), described(base)),
            width,
        ));
        text.push_str(&facts_text(&compared.comparison.facts, width));
        if let Some(pace) = compared.comparison.pace.and_then(pace_text) {
            text.push_str(&paragraph(&pace, width, ""));
        }
        if base.id == compared.other.id {
            text.push_str(&paragraph(
                "Both are the same run: its differences show the noise of one run.",
                width,
                "",
            ));
        }
        text.push('\n');
        text.push_str(&rows_table(compared).render(width));
        text.push_str(&only_text("the base only", &compared.comparison.only_base, width));
        text.push_str(&only_text("the other only", &compared.comparison.only_other, width));
        text.push_str(&paragraph(&counts(&compared.comparison.rows), width, ""));
        for traced in &compared.traces {
            text.push_str(&traced.text(width));
        }
    }
    text.push_str(&paragraph(UNPAIRED, width, ""));
    text
}

fn described(run: &Run) -> String {
    format!("{} ({}, {})", name(run), run.environment, run.started)
}

fn facts_text(facts: &[FactDifference], width: usize) -> String {
    if facts.is_empty() {
        return paragraph("No fact differs between the environments.", width, "");
    }
    let value = |fact: &Option<Fact>| fact.as_ref().is_some_and(|fact| fact.value().is_some());
    let of_kind = |base: bool, other: bool| {
        facts.iter().filter(move |fact| value(&fact.base) == base && value(&fact.other) == other)
    };
    let mut text = String::new();
    if of_kind(true, true).next().is_some() {
        let heading = "Facts that differ, base → other; likely causes first:";
        text.push_str(&paragraph(heading, width, ""));
    }
    for fact in of_kind(true, true) {
        let line =
            format!("{}: {} → {}", fact.name, in_words(fact.base.as_ref()), in_words(fact.other.as_ref()));
        text.push_str(&paragraph(&line, width, "  "));
        if let Some(effect) = tollgate_inspect::effect(&fact.name) {
            text.push_str(&paragraph(&format!("affects {effect}"), width, "      "));
        }
    }
    // Facts that one run lacks are named only; `show --format json` has the reasons.
    for (base, other, heading) in [
        (true, false, "Known in the base only"),
        (false, true, "Known in the other only"),
        (false, false, "Unknown in both, for different reasons"),
    ] {
        /// Up to this many are shown with their values.
        const FEW: usize = 8;
        let few = of_kind(base, other).count() <= FEW;
        let named = |fact: &FactDifference| {
            let value = fact.base.iter().chain(&fact.other).find_map(Fact::value).filter(|_| few);
            value.map_or_else(|| fact.name.clone(), |value| format!("{} ({value})", fact.name))
        };
        let names: Vec<String> = of_kind(base, other).map(named).collect();
        if !names.is_empty() {
            text.push_str(&paragraph(&format!("{heading}: {}.", names.join(", ")), width, ""));
        }
    }
    text
}

/// How the processor's pace differed, where it did: every threshold rises by that.
fn pace_text((base, other): (f64, f64)) -> Option<String> {
    /// A smaller ratio is the same pace.
    const APART: f64 = 1.01;
    (base.max(other) / base.min(other) > APART).then(|| {
        let [base, other] = [base, other].map(|turn| figures::estimate(turn, Unit::Nanoseconds));
        format!(
            "Loop overhead {base} in the base, {other} in the other: the processor's frequency differed. The \
             thresholds include that."
        )
    })
}

fn in_words(fact: Option<&Fact>) -> String {
    /// A list such as the processor's flags would bury the others.
    const MOST: usize = 60;
    let words = match fact {
        None => "not recorded".to_owned(),
        Some(Fact::Known { value, .. }) => value.to_string(),
        Some(Fact::Unknown { why }) => why.to_string(),
    };
    match words.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

fn rows_table(compared: &Compared) -> Table {
    let mut table =
        Table::new(&["benchmark", "base", "other", "ratio", "95 % CI", "verdict"]).with_words(&["verdict"]);
    for (row, sides) in compared.rows() {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let estimate = |estimate: Option<f64>, unit: Unit| {
            or_none(estimate.map(|estimate| figures::estimate(estimate, unit)))
        };
        let cells = [
            row.case.to_string(),
            estimate(row.base, sides.base.unit),
            estimate(row.other, sides.other.unit),
            or_none(sides.ratio(row).map(figures::ratio)),
            row.interval.map(|interval| figures::ratio_span(interval.low, interval.high)).unwrap_or_default(),
            row.verdict.to_string(),
        ];
        let look = match row.verdict {
            Verdict::Slower | Verdict::Faster => Look::Coloured,
            Verdict::Same => Look::Plain,
            Verdict::Inconclusive => Look::Faint,
        };
        table.row(look, &cells, row.why.as_slice());
    }
    table
}

fn only_text(where_from: &str, only: &[(Case, String)], width: usize) -> String {
    let line = |(case, why): &(Case, String)| {
        paragraph(&format!("{case}: measured in {where_from}; {why}"), width, "  ")
    };
    only.iter().map(line).collect()
}

fn counts(rows: &[Row]) -> String {
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let of = |verdict: Verdict| format!("{} {verdict}", count(verdict));
    [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::Inconclusive].map(of).join(", ")
}

/// A comparison as JSON; with several others the lists hold them all, each with its run.
#[derive(Serialize)]
struct Document<'a> {
    base: Heading<'a>,
    others: Vec<Heading<'a>>,
    paired: bool,
    rows: Vec<RowRecord<'a>>,
    only_base: Vec<OnlyRecord<'a>>,
    only_other: Vec<OnlyRecord<'a>>,
    facts: Vec<FactRecord<'a>>,
    traces: Vec<trace::blame::Record<'a>>,
    comparisons: Vec<Section<'a>>,
}

#[derive(Serialize)]
struct Section<'a> {
    other: Heading<'a>,
    rows: Vec<RowRecord<'a>>,
    only_base: Vec<OnlyRecord<'a>>,
    only_other: Vec<OnlyRecord<'a>>,
    facts: Vec<FactRecord<'a>>,
    traces: Vec<trace::blame::Record<'a>>,
}

#[derive(Serialize)]
struct Heading<'a> {
    id: &'a RunId,
    label: Option<&'a Label>,
    environment: Environment,
    started: &'a str,
}

#[derive(Serialize)]
struct RowRecord<'a> {
    other_run: &'a RunId,
    benchmark: &'a str,
    params: &'a Params,
    unit: Option<Unit>,
    base: Option<f64>,
    other: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    verdict: Verdict,
    threshold: f64,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct OnlyRecord<'a> {
    other_run: &'a RunId,
    benchmark: &'a str,
    params: &'a Params,
    why: &'a str,
}

#[derive(Serialize)]
struct FactRecord<'a> {
    other_run: &'a RunId,
    name: &'a str,
    base: Option<&'a Fact>,
    other: Option<&'a Fact>,
    affects: Option<String>,
}

impl<'a> Document<'a> {
    fn of(base: &'a Run, compared: &'a [Compared<'a>]) -> Self {
        Self {
            base: Heading::of(base),
            others: compared.iter().map(|compared| Heading::of(compared.other)).collect(),
            paired: false,
            rows: compared.iter().flat_map(RowRecord::all).collect(),
            only_base: compared.iter().flat_map(|c| OnlyRecord::all(c, &c.comparison.only_base)).collect(),
            only_other: compared.iter().flat_map(|c| OnlyRecord::all(c, &c.comparison.only_other)).collect(),
            facts: compared.iter().flat_map(FactRecord::all).collect(),
            traces: compared.iter().flat_map(traces_of).collect(),
            comparisons: compared.iter().map(Section::of).collect(),
        }
    }
}

impl<'a> Section<'a> {
    fn of(compared: &'a Compared<'a>) -> Self {
        Self {
            other: Heading::of(compared.other),
            rows: RowRecord::all(compared).collect(),
            only_base: OnlyRecord::all(compared, &compared.comparison.only_base).collect(),
            only_other: OnlyRecord::all(compared, &compared.comparison.only_other).collect(),
            facts: FactRecord::all(compared).collect(),
            traces: traces_of(compared).collect(),
        }
    }
}

fn traces_of<'a>(compared: &'a Compared<'a>) -> impl Iterator<Item = trace::blame::Record<'a>> {
    compared.traces.iter().map(|traced| traced.record(&compared.other.id))
}

impl<'a> Heading<'a> {
    fn of(run: &'a Run) -> Self {
        Self { id: &run.id, label: run.label.as_ref(), environment: run.environment, started: &run.started }
    }
}

impl<'a> RowRecord<'a> {
    fn all(compared: &'a Compared<'a>) -> impl Iterator<Item = Self> {
        compared.rows().map(|(row, sides)| Self {
            other_run: &compared.other.id,
            benchmark: &row.case.benchmark,
            params: &row.case.params,
            unit: Some(sides.base.unit).filter(|unit| *unit == sides.other.unit),
            base: row.base,
            other: row.other,
            ratio: sides.ratio(row),
            ratio_low: row.interval.map(|interval| interval.low),
            ratio_high: row.interval.map(|interval| interval.high),
            verdict: row.verdict,
            threshold: row.threshold,
            why: row.why.as_deref(),
        })
    }
}

impl<'a> OnlyRecord<'a> {
    fn all(compared: &'a Compared<'a>, only: &'a [(Case, String)]) -> impl Iterator<Item = Self> {
        let other_run = &compared.other.id;
        only.iter().map(move |(case, why)| Self {
            other_run,
            benchmark: &case.benchmark,
            params: &case.params,
            why,
        })
    }
}

impl<'a> FactRecord<'a> {
    fn all(compared: &'a Compared<'a>) -> impl Iterator<Item = Self> {
        compared.comparison.facts.iter().map(|fact| Self {
            other_run: &compared.other.id,
            name: &fact.name,
            base: fact.base.as_ref(),
            other: fact.other.as_ref(),
            affects: tollgate_inspect::effect(&fact.name).map(Effect::to_string),
        })
    }
}
