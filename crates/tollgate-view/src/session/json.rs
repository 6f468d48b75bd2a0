//! A session as JSON: its runs as each is shown alone, and the comparison of the others with the first.

use std::path::PathBuf;

use serde::Serialize;
use tollgate_model::compare::{FactDifference, NotCompared, Verdict};
use tollgate_model::{Case, Effect, RunId, Unit};

use super::{Member, Session};
use crate::compare::json::ends;
use crate::comparison::{self, Comparison};
use crate::show::json as run;

/// The document.
#[derive(Serialize)]
pub struct Document<'a> {
    session: &'a RunId,
    runs: Vec<run::Document<'a>>,
    comparison: Compared<'a>,
}

#[derive(Serialize)]
struct Compared<'a> {
    rows: Vec<Row<'a>>,
    not_compared: Vec<Apart<'a>>,
    facts: Vec<FactRecord<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    case: &'a Case,
    unit: Option<Unit>,
    base: Option<f64>,
    other: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    adds: Option<f64>,
    adds_low: Option<f64>,
    adds_high: Option<f64>,
    verdict: Verdict,
    threshold: f64,
    correlation: Option<f64>,
    narrowed: Option<f64>,
    pairs: Option<usize>,
    turns: Option<usize>,
    base_environment: &'a str,
    other_environment: &'a str,
    why: Option<&'a str>,
    causes: Vec<&'a str>,
}

/// A case that one side counted and the other timed.
#[derive(Serialize)]
struct Apart<'a> {
    base_environment: &'a str,
    other_environment: &'a str,
    #[serde(flatten)]
    apart: &'a NotCompared,
}

#[derive(Serialize)]
struct FactRecord<'a> {
    base_environment: &'a str,
    other_environment: &'a str,
    #[serde(flatten)]
    fact: &'a FactDifference,
    affects: Option<String>,
    /// It differs by the one setting that was changed.
    proven: bool,
}

impl<'a> Document<'a> {
    /// The document, with the files in which the runs are kept, in the order of the session's environments; fewer where they are not
    /// kept.
    pub fn of(session: &'a Session<'a>, kept: &[PathBuf]) -> Self {
        let files = kept.iter().map(|file| Some(file.as_path())).chain(std::iter::repeat(None));
        let members = session.members.iter();
        let sides = || {
            let base = session.members.first();
            session.others().filter_map(move |(other, comparison)| Some((base?, other, comparison)))
        };
        Self {
            session: session.id,
            runs: members.zip(files).map(|(member, kept)| run::Document::of(&member.summary, kept)).collect(),
            comparison: Compared {
                rows: sides()
                    .flat_map(|(base, other, comparison)| Row::all(base, other, comparison))
                    .collect(),
                not_compared: sides()
                    .flat_map(|(base, other, comparison)| Apart::all(base, other, comparison))
                    .collect(),
                facts: sides()
                    .flat_map(|(base, other, comparison)| FactRecord::all(base, other, comparison))
                    .collect(),
            },
        }
    }
}

impl<'a> Row<'a> {
    fn all(
        base: &'a Member<'a>,
        other: &'a Member<'a>,
        comparison: &'a Comparison<'a>,
    ) -> impl Iterator<Item = Self> {
        let of = |row: &'a comparison::Row<'a>| {
            let result = &row.result;
            let found = result.alternation.as_ref();
            let (ratio_low, ratio_high) = ends(result.interval);
            let (adds_low, adds_high) = ends(found.and_then(|found| found.adds_interval));
            Self {
                case: &result.case,
                unit: row.unit(),
                base: result.base,
                other: result.other,
                ratio: row.ratio(),
                ratio_low,
                ratio_high,
                adds: row.adds(),
                adds_low,
                adds_high,
                verdict: result.verdict,
                threshold: result.threshold,
                correlation: found.and_then(|found| found.correlation),
                narrowed: found.and_then(|found| found.narrowed),
                pairs: found.map(|found| found.pairs),
                turns: found.map(|found| found.turns),
                base_environment: &base.name,
                other_environment: &other.name,
                why: result.why.as_deref(),
                causes: comparison.cause_names(row),
            }
        };
        comparison.rows.iter().map(of)
    }
}

impl<'a> Apart<'a> {
    fn all(
        base: &'a Member<'a>,
        other: &'a Member<'a>,
        comparison: &'a Comparison<'a>,
    ) -> impl Iterator<Item = Self> {
        comparison.not_compared.iter().map(|apart| Self {
            base_environment: &base.name,
            other_environment: &other.name,
            apart,
        })
    }
}

impl<'a> FactRecord<'a> {
    fn all(
        base: &'a Member<'a>,
        other: &'a Member<'a>,
        comparison: &'a Comparison<'a>,
    ) -> impl Iterator<Item = Self> {
        comparison.facts.iter().map(|fact| Self {
            base_environment: &base.name,
            other_environment: &other.name,
            fact,
            affects: tollgate_inspect::effect(&fact.name).map(Effect::to_string),
            proven: comparison.proven.as_ref().is_some_and(|proven| proven.facts.contains(&fact.name)),
        })
    }
}
