//! Comma-separated values (RFC 4180): one record a measurement, several runs in one file.

use tollgate_model::Run;

use super::metric::metrics;
use super::place::{Hot, machine};
use super::{short, word};

/// The first record.
pub const HEADER: [&str; 24] = [
    "run",
    "label",
    "machine",
    "place",
    "started",
    "kernel",
    "cpu",
    "suite",
    "probe",
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
    "dropped",
    "provenance",
    "why",
];

/// All runs, with the header.
pub fn csv(runs: &[Run]) -> String {
    let mut text = record(HEADER.map(str::to_owned));
    for run in runs {
        let hot = Hot::of(&run.environment);
        let machine = machine(&run.environment);
        for metric in &metrics(run) {
            let figures = metric.figures();
            let price = figures.map(|figures| &figures.price);
            let number = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
            let from_elsewhere = |text: Option<&str>| defused(&short(text.unwrap_or_default()));
            text.push_str(&record([
                run.id.to_string(),
                run.label.as_ref().map(ToString::to_string).unwrap_or_default(),
                from_elsewhere(machine.as_deref()),
                word(&run.place),
                from_elsewhere(Some(&run.started)),
                from_elsewhere(hot.kernel.as_deref()),
                from_elsewhere(hot.cpu.as_deref()),
                from_elsewhere(Some(metric.suite())),
                from_elsewhere(Some(&metric.case.probe)),
                from_elsewhere(Some(&metric.params)),
                metric.name.to_owned(),
                metric.status().to_owned(),
                figures.map(|figures| figures.unit.to_string()).unwrap_or_default(),
                number(price.map(|price| price.median)),
                number(price.map(|price| price.interval.low)),
                number(price.map(|price| price.interval.high)),
                number(price.map(|price| price.min)),
                number(price.map(|price| price.p99)),
                number(price.map(|price| price.max)),
                number(figures.and_then(|figures| figures.below)),
                price.map_or(0, |price| price.samples).to_string(),
                figures.map_or(0, |figures| figures.dropped).to_string(),
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
