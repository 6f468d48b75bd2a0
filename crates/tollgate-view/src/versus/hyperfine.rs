//! The files that hyperfine writes, for the scripts that read them: `--export-json`, `--export-csv` and `--export-markdown`. The
//! fields, their order and their rounding are those of its `src/export`. So is the mean, which no other output has.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_model::stats;
use tollgate_model::traced::Ended;
use tollgate_model::versus::{MEMORY, REAL, SYS, USER};
use tollgate_output::spreadsheet::{self, Terminator};

use super::cells::{self, Cell};
use crate::session::Session;

/// The unit of the times of a Markdown table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// `s`
    Second,
    /// `ms`
    Millisecond,
    /// `µs`
    Microsecond,
}

#[derive(Serialize)]
struct HyperfineDocument<'a> {
    results: Vec<Measured<'a>>,
}

/// `BenchmarkResult` of its `src/benchmark/benchmark_result.rs`. Times are in seconds.
#[derive(Serialize)]
struct Measured<'a> {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_usage_byte: Option<Vec<u64>>,
    exit_codes: Vec<i32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: &'a BTreeMap<String, String>,
}

/// The document of `--export-json`.
///
/// # Errors
/// Only by a defect of the program: every figure converts to JSON.
pub fn json(session: &Session) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&HyperfineDocument { results: measured(session, false) })
        .map(|text| text + "\n")
}

/// The table of `--export-csv`, in seconds, with the parameters of the first command as further columns.
pub fn csv(session: &Session) -> String {
    let results = measured(session, false);
    let names = ["command", "mean", "stddev", "median", "user", "system", "min", "max"].map(str::to_owned);
    let parameters = results.first().into_iter().flat_map(|first| first.parameters.keys());
    let parameters: Vec<&String> = parameters.collect();
    let header = names.into_iter().chain(parameters.iter().map(|name| format!("parameter_{name}")));
    let rows = results.iter().map(|result| {
        let Measured { mean, stddev, median, user, system, min, max, .. } = *result;
        let figures = [mean, stddev.unwrap_or(0.0), median, user, system, min, max];
        let values = parameters.iter().map(|name| result.parameters.get(*name).map_or("", String::as_str));
        let command = std::iter::once(result.command.as_str().into());
        command.chain(figures.map(|figure| Some(figure).into())).chain(values.map(Into::into)).collect()
    });
    spreadsheet::rows(header.collect(), rows, Terminator::Any(b'\n'))
}

/// The table of `--export-markdown`, in `unit` or else in that of the first command's mean. Each mean is related to the fastest.
pub fn markdown(session: &Session, unit: Option<TimeUnit>) -> String {
    let results = measured(session, true);
    let unit =
        unit.or_else(|| Some(TimeUnit::for_seconds(results.first()?.mean))).unwrap_or(TimeUnit::Second);
    let name = unit.name();
    let mut text = format!("| Command | Mean [{name}] | Min [{name}] | Max [{name}] | Relative |\n");
    text.push_str("|:---|---:|---:|---:|---:|\n");
    let fastest = results.iter().min_by(|one, another| one.mean.total_cmp(&another.mean));
    for result in &results {
        let command = result.command.replace('|', "\\|").replace(['\n', '\r'], " ");
        let deviation = result.stddev.map(|stddev| format!(" ± {}", unit.show(stddev))).unwrap_or_default();
        let relative = fastest.map(|fastest| relative(result, fastest)).unwrap_or_default();
        let [mean, min, max] = [result.mean, result.min, result.max].map(|time| unit.show(time));
        text.push_str(&format!("| `{command}` | {mean}{deviation} | {min} | {max} | {relative} |\n"));
    }
    text
}

/// `1.73 ± 0.26`: the errors of two independent means (its `src/benchmark/relative_speed.rs`).
fn relative(result: &Measured, fastest: &Measured) -> String {
    if std::ptr::eq(result, fastest) {
        return "1.00".to_owned();
    }
    let ratio = result.mean / fastest.mean;
    let share = |of: &Measured| Some(of.stddev? / of.mean);
    let error = share(result).zip(share(fastest));
    let error = error.map(|(one, another)| format!(" ± {:.2}", ratio * one.hypot(another)));
    format!("{ratio:.2}{}", error.filter(|_| ratio.is_finite()).unwrap_or_default())
}

impl TimeUnit {
    fn for_seconds(seconds: f64) -> Self {
        match seconds {
            short if short < 0.001 => Self::Microsecond,
            short if short < 1.0 => Self::Millisecond,
            _ => Self::Second,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "µs",
        }
    }

    fn show(self, seconds: f64) -> String {
        match self {
            Self::Second => format!("{seconds:.3}"),
            Self::Millisecond => format!("{:.1}", seconds * 1e3),
            Self::Microsecond => format!("{:.1}", seconds * 1e6),
        }
    }
}

/// The timed commands. A Markdown table also names the parameters that the command line does not show.
fn measured<'s>(session: &'s Session, with_unused: bool) -> Vec<Measured<'s>> {
    let cells = cells::all(session);
    let has_environments = cells.iter().any(|cell| cell.environment_number > 0);
    let name = |cell: &Cell| {
        let mut name = cell.command.shown().to_owned();
        if with_unused {
            let is_shown = |value: &str| cell.command.shown().contains(value);
            let unused = cell.command.parameters.iter().filter(|(_, value)| !is_shown(value));
            let unused: Vec<String> = unused.map(|(name, value)| format!("{name} = {value}")).collect();
            name += &if unused.is_empty() { String::new() } else { format!(" ({})", unused.join(", ")) };
        }
        if has_environments {
            name += &format!(" in {}", cell.member.part.environment);
        }
        name
    };
    cells.iter().filter_map(|cell| Measured::new(cell, name(cell))).collect()
}

impl<'s> Measured<'s> {
    fn new(cell: &Cell<'_, 's>, command: String) -> Option<Self> {
        let samples = |case: &str| Some(cell.figures(case)?.measured.samples.as_slice());
        let seconds =
            |case: &str| samples(case).map(|samples| samples.iter().map(|ns| ns / 1e9).collect::<Vec<f64>>());
        // The shell's time may exceed the whole.
        let times: Vec<f64> = seconds(REAL)?.into_iter().map(|time| time.max(0.0)).collect();
        let middle = mean(&times)?;
        let deviation = || {
            let squares = times.iter().map(|time| (time - middle).powi(2)).sum::<f64>();
            (squares / (times.len() - 1) as f64).sqrt()
        };
        let mut exit_codes = vec![0; times.len()];
        for failed in &cell.command.failed {
            if let Some(code) = exit_codes.get_mut(failed.execution as usize) {
                *code = match failed.ended {
                    Ended::Exit(status) => status,
                    Ended::Signal(signal) => signal.saturating_add(128),
                };
            }
        }
        let memory = samples(MEMORY).filter(|memory| memory.len() == times.len());
        Some(Self {
            command,
            mean: middle,
            stddev: (times.len() > 1).then(deviation),
            median: stats::median(&times)?,
            user: mean(&seconds(USER).unwrap_or_default()).unwrap_or(0.0),
            system: mean(&seconds(SYS).unwrap_or_default()).unwrap_or(0.0),
            min: times.iter().copied().reduce(f64::min)?,
            max: times.iter().copied().reduce(f64::max)?,
            memory_usage_byte: memory.map(|memory| memory.iter().map(|bytes| *bytes as u64).collect()),
            exit_codes,
            parameters: &cell.member.part.command.as_deref()?.parameters,
            times,
        })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
