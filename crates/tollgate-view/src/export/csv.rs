//! Comma-separated values (RFC 4180): one record a measurement, several runs in one file.

use tollgate_model::Run;

use super::environment::{Hot, machine};
use super::metric::metrics;
use super::{short, word};

/// The first record.
pub const HEADER: [&str; 24] = [
    "run",
    "label",
    "machine",
    "environment",
    "started",
    "kernel",
    "cpu",
    "suite",
    "benchmark",
    "params",
    "metric",
    "status",
    "unit",
    "median",
    "low",
    "high",
    "min",
    "p99",
    "max",
    "below",
    "count",
    "discarded",
    "provenance",
    "why",
];

/// All runs, with the header.
pub fn csv(runs: &[Run]) -> String {
    let mut text = record(HEADER.map(str::to_owned));
    for run in runs {
        let hot = Hot::of(&run.facts);
        let machine = machine(&run.facts);
        for metric in &metrics(run) {
            let figures = metric.figures();
            let estimate = figures.map(|figures| &figures.estimate);
            let number = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
            let from_elsewhere = |text: Option<&str>| defused(&short(text.unwrap_or_default()));
            text.push_str(&record([
                run.id.to_string(),
                run.label.as_ref().map(ToString::to_string).unwrap_or_default(),
                from_elsewhere(machine.as_deref()),
                word(&run.environment),
                from_elsewhere(Some(&run.started)),
                from_elsewhere(hot.kernel.as_deref()),
                from_elsewhere(hot.cpu.as_deref()),
                from_elsewhere(Some(metric.suite())),
                from_elsewhere(Some(&metric.case.benchmark)),
                from_elsewhere(Some(&metric.params)),
                metric.name.to_owned(),
                metric.status().to_owned(),
                figures.map(|figures| figures.unit.to_string()).unwrap_or_default(),
                number(estimate.map(|estimate| estimate.median)),
                number(estimate.map(|estimate| estimate.interval.low)),
                number(estimate.map(|estimate| estimate.interval.high)),
                number(estimate.map(|estimate| estimate.min)),
                number(estimate.map(|estimate| estimate.p99)),
                number(estimate.map(|estimate| estimate.max)),
                number(figures.and_then(|figures| figures.below)),
                estimate.map_or(0, |estimate| estimate.samples).to_string(),
                figures.map_or(0, |figures| figures.discarded).to_string(),
                figures.map(|figures| word(&figures.provenance)).unwrap_or_default(),
                from_elsewhere(metric.why()),
            ]));
        }
    }
    text
}

/// Spreadsheets compute what begins like a formula (OWASP, "CSV Injection"). An apostrophe in front makes it text; one that is there
/// already gets another, so that taking one away always gives the text as it was.
fn defused(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\'']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

fn record<const N: usize>(fields: [String; N]) -> String {
    let mut record = fields.map(|field| quoted(&field)).join(",");
    record.push_str("\r\n");
    record
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
