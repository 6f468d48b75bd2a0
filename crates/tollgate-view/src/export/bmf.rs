//! The Bencher Metric Format: an object of benchmarks, each an object of measures, each a value with its bounds
//! (bencher.dev/docs/reference/bencher-metric-format). Bencher creates unknown measures by their names.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_model::{Run, Unit};

use super::metric::{LATENCY, Metric, metrics};
use crate::summary::Summary;

const LONGEST_NAME: usize = 1024;

#[derive(Debug, Serialize)]
struct Value {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// A run in the Bencher Metric Format, without values below the detection limit and emulated times.
///
/// # Errors
/// Only by a defect of the program.
pub fn bmf(run: &Run) -> Result<String, serde_json::Error> {
    let mut benchmarks: BTreeMap<String, BTreeMap<&'static str, Value>> = BTreeMap::new();
    for metric in &metrics(&Summary::of(run)) {
        let Some(figures) = metric.valid().filter(|figures| figures.below.is_none()) else { continue };
        let (median, interval) = (figures.estimate.median, figures.estimate.interval);
        let value = Value {
            value: median,
            lower_value: interval.map(|interval| interval.low),
            upper_value: interval.map(|interval| interval.high),
        };
        benchmarks
            .entry(name(metric))
            .or_default()
            .insert(measure(metric.name, figures.measured.unit), value);
    }
    let mut text = serde_json::to_string_pretty(&benchmarks)?;
    text.push('\n');
    Ok(text)
}

fn name(metric: &Metric) -> String {
    let name = match metric.params.is_empty() {
        true => metric.case.benchmark.clone(),
        false => format!("{}{{{}}}", metric.case.benchmark, metric.params),
    };
    name.chars().take(LONGEST_NAME).collect()
}

/// `latency` is Bencher's own measure, in nanoseconds.
fn measure(metric: &'static str, unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds if metric == LATENCY => "latency",
        Unit::Nanoseconds => match metric {
            "real" => "real-time",
            "user" => "user-time",
            "sys" => "system-time",
            _ => "waiting-time",
        },
        Unit::NanosecondsPerLine => "latency-per-line",
        Unit::Cycles => "cycles",
        Unit::Bytes => "size",
        Unit::Instructions => "instructions",
    }
}
