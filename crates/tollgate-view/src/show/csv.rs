//! A run as comma-separated values, one line a case.

use tollgate_model::text::clean;
use tollgate_output::spreadsheet::{Cell, Terminator, table};

use super::cycles;
use crate::summary::{Figures, Row, Summary};

const COLUMNS: [&str; 26] = [
    "benchmark",
    "params",
    "status",
    "unit",
    "median",
    "median_cycles",
    "ci_low",
    "ci_high",
    "min",
    "samples",
    "discarded",
    "detection_limit",
    "multiple_of_syscall",
    "spread",
    "baseline",
    "ratio",
    "adds",
    "verdict",
    "noisy",
    "why",
    "notes",
    "counted",
    "p99",
    "max",
    "bytes_per_second",
    "exact",
];

/// A header and a line for each case; what is unknown is empty. What commands a terminal is written out.
pub fn csv(summary: &Summary) -> String {
    table(COLUMNS, summary.rows.iter().map(|row| record(row, summary)), Terminator::Any(b'\n'))
}

fn record(row: &Row, summary: &Summary) -> [Cell; COLUMNS.len()] {
    let text = |text: &str| Cell::from(&*clean(text));
    let words = |words: Option<String>| text(&words.unwrap_or_default());
    let figures = row.figures();
    let (measured, estimate) = figures.map(|figures| (&*figures.measured, &figures.estimate)).unzip();
    let paired = figures.and_then(|figures| figures.paired.as_ref());
    let params: Vec<String> = row.case.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let exact = figures.filter(|figures| figures.is_count());
    let exact = exact.map(|figures| if figures.is_exact() { "true" } else { "false" });
    let counted = measured.and_then(|measured| measured.counted.as_ref());
    [
        text(&row.case.benchmark),
        text(&params.join(" ")),
        row.status().into(),
        words(measured.map(|measured| measured.unit.to_string())),
        estimate.map(|estimate| estimate.median).into(),
        figures.and_then(|figures| cycles(figures, summary)).into(),
        estimate.and_then(|estimate| Some(estimate.interval?.low)).into(),
        estimate.and_then(|estimate| Some(estimate.interval?.high)).into(),
        figures.and_then(Figures::min).into(),
        estimate.map_or(0, |estimate| estimate.samples as u64).into(),
        measured.map_or(0, |measured| measured.discarded).into(),
        figures.and_then(|figures| figures.below).into(),
        figures.and_then(|figures| figures.multiple).into(),
        estimate.map(|estimate| estimate.spread).into(),
        text(paired.map_or("", |paired| &paired.baseline.benchmark)),
        paired.map(|paired| paired.ratio).into(),
        paired.map(|paired| paired.adds).into(),
        words(paired.map(|paired| paired.verdict.to_string())),
        if row.is_noisy() { "true" } else { "false" }.into(),
        text(row.why().unwrap_or_default()),
        text(&measured.map_or(String::new(), |measured| measured.notes.join("; "))),
        words(counted.map(|counted| format!("{} {}", counted.events, counted.what))),
        estimate.and_then(|estimate| estimate.p99).into(),
        estimate.map(|estimate| estimate.max).into(),
        figures.and_then(|figures| figures.bytes_per_second()).into(),
        exact.unwrap_or_default().into(),
    ]
}
