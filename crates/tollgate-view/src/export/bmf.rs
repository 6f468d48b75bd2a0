//! The Bencher Metric Format: an object of benchmarks, each an object of measures, each a value with its bounds
//! (bencher.dev/docs/reference/bencher-metric-format). Bencher creates unknown measures by their names.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_model::{Run, Unit};

use super::metric::{LATENCY, Metric, metrics};
use crate::session;
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

/// A run in the Bencher Metric Format, without values below the detection limit and emulated times. The format has no labels: the
/// benchmarks of a session have the environment in their names.
///
/// # Errors
/// Only by a defect of the program.
pub fn bmf(run: &Run) -> Result<String, serde_json::Error> {
    of_session(std::slice::from_ref(run))
}

/// The runs of a session, whose environments have different names.
///
/// # Errors
/// Only by a defect of the program.
pub fn of_session(runs: &[Run]) -> Result<String, serde_json::Error> {
    let mut benchmarks: BTreeMap<String, BTreeMap<&'static str, Value>> = BTreeMap::new();
    let names = session::names(runs.iter());
    for (run, place) in runs.iter().zip(names) {
        let place = run.session.as_ref().map(|part| match part.command {
            Some(_) => format!(" of {place}"),
            None => format!(" in {place}"),
        });
        put(&mut benchmarks, run, place.as_deref().unwrap_or_default());
    }
    let mut text = serde_json::to_string_pretty(&benchmarks)?;
    text.push('\n');
    Ok(text)
}

fn put(benchmarks: &mut BTreeMap<String, BTreeMap<&'static str, Value>>, run: &Run, place: &str) {
    for metric in &metrics(&Summary::of(run)) {
        let Some(figures) = metric.valid().filter(|figures| figures.below.is_none()) else { continue };
        let (median, interval) = (figures.estimate.median, figures.estimate.interval);
        let value = Value {
            value: median,
            lower_value: interval.map(|interval| interval.low),
            upper_value: interval.map(|interval| interval.high),
        };
        benchmarks
            .entry(name(metric, place))
            .or_default()
            .insert(measure(metric.name, figures.measured.unit), value);
    }
}

/// `entry/syscall in container`, `versus/real of make -j2`
fn name(metric: &Metric, place: &str) -> String {
    let name = if metric.params.is_empty() {
        metric.case.benchmark.clone()
    } else {
        format!("{}{{{}}}", metric.case.benchmark, metric.params)
    };
    let room = LONGEST_NAME.saturating_sub(place.chars().count());
    name.chars().take(room).chain(place.chars()).take(LONGEST_NAME).collect()
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
        Unit::Count => "events",
        Unit::Instructions => "instructions",
    }
}
