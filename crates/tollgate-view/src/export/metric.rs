//! A run as a list of metrics.

use std::collections::HashSet;

use tollgate_model::{Case, ParamValue, Unit};

use crate::summary::{CaseRow, Figures, PARTS, Summary};

/// The metric of a case whose unit is a time, and of a case without figures.
pub const LATENCY: &str = "latency";

/// One quantity of one case, with its outcome.
pub struct Metric<'a> {
    pub(crate) row: &'a CaseRow<'a>,
    /// The case.
    pub case: &'a Case,
    /// Its parameters as one text; see [`params_text`].
    pub params: String,
    /// [`LATENCY`], `size` or `instructions`, by the unit; for traced commands also [`PARTS`].
    pub name: &'static str,
    /// Its figures, if it was measured.
    pub figures: Option<&'a Figures<'a>>,
}

impl<'a> Metric<'a> {
    /// The figures, if they are a result: times of an emulator are not.
    pub fn valid(&self) -> Option<&'a Figures<'a>> {
        self.figures.filter(|figures| figures.is_estimate())
    }

    /// `measured`, `skipped` or `failed`.
    pub fn status(&self) -> &'static str {
        self.row.status()
    }

    /// Whether it is a part of a command's time, not the case itself.
    pub fn is_part(&self) -> bool {
        PARTS.contains(&self.name)
    }

    /// Why it has no samples.
    pub fn why(&self) -> Option<&'a str> {
        self.row.why()
    }
}

/// The metrics of all cases, in the run's order, without the engine's own benchmarks. If cases have parameters with the same
/// text, which does not happen in tollgate's runs, only the first is listed: formats have one entry for them.
pub fn metrics<'a>(summary: &'a Summary<'a>) -> Vec<Metric<'a>> {
    let mut seen = HashSet::new();
    let mut metrics = Vec::new();
    for row in &summary.rows {
        let (case, params) = (row.case, params_text(row.case));
        if !seen.insert((&case.benchmark, params.clone())) {
            continue;
        }
        let figures = row.figures();
        let name = name_of(figures);
        let parts = figures.into_iter().flat_map(|figures| &figures.parts);
        let all = std::iter::once((name, figures)).chain(parts.map(|part| (part.name, Some(&part.figures))));
        metrics.extend(all.map(|(name, figures)| Metric {
            row,
            case,
            params: params.clone(),
            name,
            figures,
        }));
    }
    metrics
}

pub(crate) fn name_of(figures: Option<&Figures>) -> &'static str {
    match figures.map(|figures| figures.measured.unit) {
        None | Some(Unit::Nanoseconds | Unit::NanosecondsPerLine | Unit::Cycles) => LATENCY,
        Some(Unit::Bytes) => "size",
        Some(Unit::Count) => "events",
        Some(Unit::Instructions) => "instructions",
    }
}

/// `name=value,name=value`, by name; empty without parameters. A comma, an equals sign or a backslash within has a backslash before it.
pub fn params_text(case: &Case) -> String {
    let pair =
        |(name, value): (&String, &ParamValue)| format!("{}={}", escaped(name), escaped(&value.to_string()));
    case.params.iter().map(pair).collect::<Vec<_>>().join(",")
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, ',' | '=' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
