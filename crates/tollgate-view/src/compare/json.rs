//! Comparisons of runs with a base, as JSON. With several others, each list holds those of all, one run after the other.

use serde::Serialize;
use tollgate_model::compare::{FactDifference, NotCompared};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, Effect, Environment, Label, Part, Run, RunId};
use tollgate_output::json::Record;

use super::alternating;
use super::columns::{self, Compared, Sides};
use crate::blame::{self, Held};
use crate::comparison::Comparison;
use crate::versus::record::SplitRecord;
use crate::versus::split::Split;

/// The document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedRuns"))]
pub struct CompareDocument<'a> {
    /// The run that the others are compared with.
    base: Heading<'a>,
    /// The other runs.
    others: Vec<Heading<'a>>,
    /// Whether the runs belong to one session, whose turns alternated on one machine: then rows compare turn with turn.
    paired: bool,
    /// The command that would alternate the environments of two runs without a common session; None if all belong to one session.
    alternating: Option<String>,
    #[serde(flatten)]
    lists: Lists<'a>,
    /// One object for each case with traced commands in both runs.
    traces: Vec<blame::ComparedTraces<'a>>,
    /// For [commands](#versus): what their differences consist of. Absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<OfCommands<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Side"))]
struct Heading<'a> {
    /// Its id.
    id: &'a RunId,
    /// The user's name for it, or None.
    label: Option<&'a Label>,
    /// The innermost known layer.
    environment: Environment,
    /// Its part in a session, or None.
    session: Option<&'a Part>,
    /// Time of the first measurement.
    started: &'a str,
}

/// A statement about two sides.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "{T}BetweenRuns"))]
struct Between<T> {
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "columns::schema::Sides"))]
    sides: Record,
    #[serde(flatten)]
    it: T,
}

/// A case that only one of the two measured.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Only<'a> {
    #[serde(flatten)]
    case: &'a Case,
    /// Why it was not measured in the other.
    why: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DifferentFact"))]
struct FactRecord<'a> {
    #[serde(flatten)]
    fact: &'a FactDifference,
    /// The boundaries that this fact affects and how, or None.
    affects: Option<String>,
    /// Whether it shows the only setting by which the two of a session differ.
    proven: bool,
}

/// The lists that the documents of all verbs have about comparisons with one base.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Comparison"))]
pub(crate) struct Lists<'a> {
    /// One object for each case that both measured.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<columns::schema::ComparedRow>"))]
    rows: Vec<Record>,
    /// Cases that only the base measured.
    only_base: Vec<Between<Only<'a>>>,
    /// Cases that only the other measured.
    only_other: Vec<Between<Only<'a>>>,
    /// Cases that were counted in one run and timed in the other.
    not_compared: Vec<Between<&'a NotCompared>>,
    /// The facts that differ. Those that affect a boundary of a case that differs come first, then others with `affects`.
    facts: Vec<Between<FactRecord<'a>>>,
}

/// The parts of the difference of two commands.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OfCommands<'a> {
    /// The id of the other run.
    other_run: &'a RunId,
    /// The parts of the difference of the two commands.
    split: SplitRecord,
}

/// The commands that both runs of each comparison traced.
pub fn traces<'a>(comparisons: &'a [Comparison<'a>]) -> Vec<(&'a RunId, Vec<Held<'a>>)> {
    comparisons.iter().map(|comparison| (&comparison.other.id, blame::of(comparison).collect())).collect()
}

impl<'a> CompareDocument<'a> {
    /// The document of comparisons with a base, and their [`traces`].
    pub fn new(
        base: &'a Run,
        comparisons: &'a [Comparison<'a>],
        traces: &'a [(&'a RunId, Vec<Held<'a>>)],
    ) -> Self {
        let apart = comparisons.iter().find(|comparison| !comparison.is_of_one_session());
        let traces = traces.iter().flat_map(|(id, traced)| traced.iter().map(|traced| traced.record(id)));
        Self {
            base: Heading::from_run(base),
            others: comparisons.iter().map(|comparison| Heading::from_run(comparison.other)).collect(),
            paired: !comparisons.is_empty() && comparisons.iter().all(|comparison| comparison.is_alternated),
            alternating: apart.map(|comparison| alternating::command(comparison.base, comparison.other)),
            lists: Lists::from_comparisons(
                comparisons.iter().map(|comparison| (Sides::of(comparison), comparison)),
            ),
            traces: traces.collect(),
            splits: comparisons.iter().filter_map(OfCommands::from_comparison).collect(),
        }
    }
}

impl<'a> OfCommands<'a> {
    fn from_comparison(comparison: &'a Comparison<'a>) -> Option<Self> {
        let split = comparison.is_of_commands().then(|| Split::of(comparison)).flatten()?;
        Some(Self { other_run: &comparison.other.id, split: SplitRecord::from_split(&split) })
    }
}

impl<'a> Heading<'a> {
    fn from_run(run: &'a Run) -> Self {
        Self {
            id: &run.id,
            label: run.label.as_ref(),
            environment: run.environment,
            session: run.session.as_ref(),
            started: &run.started,
        }
    }
}

pub(crate) fn ends(interval: Option<Interval>) -> (Option<f64>, Option<f64>) {
    interval.map(|interval| (interval.low, interval.high)).unzip()
}

impl<'a> Lists<'a> {
    pub(crate) fn from_comparisons(all: impl Iterator<Item = (Sides<'a>, &'a Comparison<'a>)>) -> Self {
        let all: Vec<(Sides, &Comparison)> = all.collect();
        let (columns, of_sides) = (columns::columns(), columns::columns().pick(&columns::SIDES));
        let mut lists = Self {
            rows: Vec::new(),
            only_base: Vec::new(),
            only_other: Vec::new(),
            not_compared: Vec::new(),
            facts: Vec::new(),
        };
        for (sides, comparison) in &all {
            for row in &comparison.rows {
                lists.rows.push(Record::from_row(&columns, &Compared::new(comparison, row).between(sides)));
            }
            let sides = Record::from_row(&of_sides, &Compared::new(comparison, None).between(sides));
            lists.only_base.extend(only(&sides, &comparison.only_base));
            lists.only_other.extend(only(&sides, &comparison.only_other));
            lists.not_compared.extend(comparison.not_compared.iter().map(|it| Between::new(&sides, it)));
            let fact = |fact: &'a FactDifference| Between::new(&sides, FactRecord::new(comparison, fact));
            lists.facts.extend(comparison.facts.iter().map(fact));
        }
        lists
    }
}

fn only<'a>(sides: &Record, cases: &'a [(Case, String)]) -> impl Iterator<Item = Between<Only<'a>>> {
    cases.iter().map(|(case, why)| Between::new(sides, Only { case, why }))
}

impl<T> Between<T> {
    fn new(sides: &Record, it: T) -> Self {
        Self { sides: sides.clone(), it }
    }
}

impl<'a> FactRecord<'a> {
    fn new(comparison: &Comparison, fact: &'a FactDifference) -> Self {
        Self {
            fact,
            affects: tollgate_inspect::effect(&fact.name).map(Effect::to_string),
            proven: comparison.proven.as_ref().is_some_and(|proven| proven.facts.contains(&fact.name)),
        }
    }
}
