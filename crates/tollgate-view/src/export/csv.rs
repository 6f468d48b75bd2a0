//! Comma-separated values (RFC 4180): one record per metric, several runs in one file.

use tollgate_model::Run;

use super::environment::{KeyFacts, machine};
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
    "ci_low",
    "ci_high",
    "min",
    "p99",
    "max",
    "detection_limit",
    "count",
    "discarded",
    "provenance",
    "why",
];

/// All runs, with the header.
pub fn csv(runs: &[Run]) -> String {
    let mut text = record(HEADER.map(str::to_owned));
    for run in runs {
        let key_facts = KeyFacts::of(&run.facts);
        let machine = machine(&run.facts);
        for metric in &metrics(run) {
            let figures = metric.figures();
            let estimate = figures.map(|figures| &figures.estimate);
            let number = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
            let untrusted = |text: Option<&str>| defused(&short(text.unwrap_or_default()));
            text.push_str(&record([
                run.id.to_string(),
                run.label.as_ref().map(ToString::to_string).unwrap_or_default(),
                untrusted(machine.as_deref()),
                word(&run.environment),
                untrusted(Some(&run.started)),
                untrusted(key_facts.kernel.as_deref()),
                untrusted(key_facts.cpu.as_deref()),
                untrusted(Some(metric.suite())),
                untrusted(Some(&metric.case.benchmark)),
                untrusted(Some(&metric.params)),
                metric.name.to_owned(),
                metric.status().to_owned(),
                figures.map(|figures| figures.unit.to_string()).unwrap_or_default(),
                number(estimate.map(|estimate| estimate.median)),
                number(estimate.map(|estimate| estimate.interval.low)),
                number(estimate.map(|estimate| estimate.interval.high)),
                number(estimate.map(|estimate| estimate.min)),
                number(estimate.map(|estimate| estimate.p99)),
                number(estimate.map(|estimate| estimate.max)),
                number(figures.and_then(|figures| figures.detection_limit)),
                estimate.map_or(0, |estimate| estimate.samples).to_string(),
                figures.map_or(0, |figures| figures.discarded).to_string(),
                figures.map(|figures| word(&figures.provenance)).unwrap_or_default(),
                untrusted(metric.why()),
            ]));
        }
    }
    text
}

/// Spreadsheets compute a field that begins like a formula (OWASP, "CSV Injection"). An apostrophe before it makes it text. A field
/// that begins with an apostrophe gets another, so that removing one always restores the text.
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
