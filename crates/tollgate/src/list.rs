//! `tollgate list`: what can be measured, from the registry; and what is kept.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use tollgate_engine::Timed;
use tollgate_model::measurement::pairs;
use tollgate_model::{Environment, Label, Params, Reach, RunId, Unit};
use tollgate_store::document::Outline;
use tollgate_store::kept::{Entry, kept};
use tollgate_suites::{Benchmark, Extent, SUITES, Size};

use crate::args::{Format, ListArgs};
use crate::failure::Failure;
use crate::table::{Look, Table, heading, paragraph};
use crate::{out, say};

/// Shows the benchmarks that match, or the kept runs.
///
/// # Errors
/// A pattern that matches nothing; a directory that cannot be read.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    match args.runs {
        true => list_runs(args.format),
        false => list_benchmarks(&args.pattern, args.format),
    }
}

#[derive(Serialize)]
struct BenchmarkRecord {
    name: &'static str,
    suite: &'static str,
    operation: &'static str,
    /// The boundaries that its operation crosses, in any of its cases.
    crosses: Vec<&'static str>,
    /// The instruction that makes the crossing; several where cases differ.
    instruction: Option<String>,
    /// The interface that it calls, where it is no loop of instructions.
    interface: Option<String>,
    unit: Unit,
    /// Events that are counted beside the time.
    counts: Option<&'static str>,
    /// Events that are counted for a share of the operations.
    share: Option<&'static str>,
    /// Further counters.
    counters: &'static [&'static str],
    /// One object per case; a benchmark without parameters has one case, an empty object.
    params: Vec<Params>,
    /// The cases that --thorough adds.
    thorough_params: Vec<Params>,
    baseline: Option<&'static str>,
    /// The parameters of the baseline case of the same benchmark that differ from the others'.
    over: Option<Params>,
}

#[derive(Serialize)]
struct Benchmarks {
    benchmarks: Vec<BenchmarkRecord>,
}

fn list_benchmarks(patterns: &[String], format: Format) -> Result<(), Failure> {
    // Includes suites that are measured on request only.
    let everything = ["*".to_owned()];
    let patterns = if patterns.is_empty() { &everything } else { patterns };
    let selection = tollgate_suites::select(patterns, Extent::Usual, Size::Small)
        .map_err(|unknown| Failure::input(unknown.to_string()))?;
    let chosen: HashSet<String> = selection.cases().map(|case| case.benchmark).collect();
    let is_chosen = |benchmark: &&&'static Benchmark| chosen.contains(benchmark.name);
    match format {
        Format::Json => {
            let benchmarks = SUITES.iter().flat_map(|suite| suite.benchmarks.iter().filter(is_chosen));
            out::print_json(&Benchmarks {
                benchmarks: benchmarks.map(|benchmark| BenchmarkRecord::of(benchmark)).collect(),
            })
        }
        Format::Table => {
            let width = out::width();
            let mut text = String::new();
            for suite in SUITES {
                let benchmarks: Vec<&'static Benchmark> =
                    suite.benchmarks.iter().filter(is_chosen).copied().collect();
                if benchmarks.is_empty() {
                    continue;
                }
                text.push_str(&heading(&format!("{}: {}", suite.name, suite.about), width));
                for benchmark in benchmarks {
                    text.push_str(&format!("  {}\n", benchmark.name));
                    text.push_str(&paragraph(&about(benchmark), width, "      "));
                }
            }
            out::print(&text)
        }
    }
}

/// What a benchmark measures, with which instruction, in which cases, and its baseline.
fn about(benchmark: &Benchmark) -> String {
    let mut about = benchmark.operation.to_owned();
    if let Some(instruction) = instruction(benchmark) {
        about.push_str(&format!(" Instruction: {instruction}."));
    }
    if let Some(interface) = interface(benchmark) {
        about.push_str(&format!(" Through {interface}."));
    }
    if let Some(counts) = benchmark.counts {
        about.push_str(&format!(" Counted: {counts}."));
    }
    if let Some(share) = benchmark.share {
        about.push_str(&format!(" Counted for one in {} operations: {}.", share.one_of, share.what));
    }
    if !benchmark.counters.is_empty() {
        about.push_str(&format!(" Also counted: {}.", benchmark.counters.join(", ")));
    }
    about.push_str(&format!(" Crosses {}.", Reach::Boundaries(benchmark.crosses)));
    about.push_str(&in_words(" Cases: ", &(benchmark.cases)()));
    about.push_str(&in_words(" With --thorough also: ", &(benchmark.thorough_cases)()));
    if let Some(baseline) = benchmark.baseline {
        about.push_str(&format!(" Baseline: {baseline}."));
    }
    if let Some(over) = over(benchmark) {
        about.push_str(&format!(" Baseline: {}.", pairs(&over)));
    }
    about
}

/// The parameters of a benchmark's baseline case that differ from the others'.
fn over(benchmark: &Benchmark) -> Option<Params> {
    (benchmark.cases)().iter().find_map(|params| {
        let mut over = (benchmark.baseline_params)(params)?;
        over.retain(|name, value| params.get(name) != Some(value));
        (!over.is_empty()).then_some(over)
    })
}

/// ` Cases: instructions = 1, 32, 256.`; nothing where there is one case without parameters.
fn in_words(what: &str, cases: &[Params]) -> String {
    let mut values: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for (name, value) in cases.iter().flatten() {
        let values = values.entry(name).or_default();
        let value = value.to_string();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let of_each: Vec<String> =
        values.iter().map(|(name, values)| format!("{name} = {}", enumerated(values))).collect();
    // Not every combination is a case.
    let all: usize = values.values().map(Vec::len).product();
    let number = if all == cases.len() { String::new() } else { format!(" ({} in all)", cases.len()) };
    if of_each.is_empty() { String::new() } else { format!("{what}{}{number}.", of_each.join("; ")) }
}

/// All values; of many the first, the last and the number.
fn enumerated(values: &[String]) -> String {
    const MANY: usize = 20;
    match values {
        [first, second, third, .., last] if values.len() > MANY => {
            format!("{first}, {second}, {third}, … {last} ({} values)", values.len())
        }
        _ => values.join(", "),
    }
}

/// The instructions of its cases, each once.
fn instruction(benchmark: &Benchmark) -> Option<String> {
    let mut names = Vec::new();
    for params in (benchmark.cases)() {
        match (benchmark.timed)(&params) {
            Timed::Loop { instruction, .. } | Timed::Together { instruction, .. }
                if !names.contains(&instruction) =>
            {
                names.push(instruction);
            }
            Timed::Loop { .. } | Timed::Together { .. } | Timed::Whole(_) => {}
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// The interfaces that its cases call, each once.
fn interface(benchmark: &Benchmark) -> Option<String> {
    let mut names = Vec::new();
    for params in (benchmark.cases)() {
        match (benchmark.timed)(&params) {
            Timed::Whole(interface) if !names.contains(&interface) => names.push(interface),
            Timed::Loop { .. } | Timed::Together { .. } | Timed::Whole(_) => {}
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

impl BenchmarkRecord {
    fn of(benchmark: &'static Benchmark) -> Self {
        Self {
            name: benchmark.name,
            suite: benchmark.suite(),
            operation: benchmark.operation,
            crosses: benchmark.crosses.iter().map(|boundary| boundary.name()).collect(),
            instruction: instruction(benchmark),
            interface: interface(benchmark),
            unit: benchmark.unit,
            counts: benchmark.counts,
            share: benchmark.share.map(|share| share.what),
            counters: benchmark.counters,
            params: (benchmark.cases)(),
            thorough_params: (benchmark.thorough_cases)(),
            baseline: benchmark.baseline,
            over: over(benchmark),
        }
    }
}

#[derive(Serialize)]
struct Runs {
    runs: Vec<RunRecord>,
}

#[derive(Serialize)]
struct RunRecord {
    id: RunId,
    label: Option<Label>,
    environment: Option<Environment>,
    started: Option<String>,
    rows: Option<usize>,
    path: String,
    /// Why the file does not read as a run.
    fault: Option<String>,
}

fn list_runs(format: Format) -> Result<(), Failure> {
    let runs: Vec<RunRecord> = kept()?.into_iter().map(RunRecord::of).collect();
    match format {
        Format::Json => out::print_json(&Runs { runs }),
        Format::Table if runs.is_empty() => {
            say::say("no run is kept yet; `tollgate run` makes one");
            Ok(())
        }
        Format::Table => {
            let mut table = Table::new(&["run", "label", "environment", "started", "rows"]).with_words(&[
                "label",
                "environment",
                "started",
            ]);
            for run in &runs {
                let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
                let cells = [
                    run.id.to_string(),
                    or_none(run.label.as_ref().map(ToString::to_string)),
                    or_none(run.environment.map(|environment| environment.to_string())),
                    or_none(run.started.clone()),
                    or_none(run.rows.map(|rows| rows.to_string())),
                ];
                let (look, remarks) = match &run.fault {
                    Some(fault) => (Look::Flagged, vec![format!("its file {fault}")]),
                    None => (Look::Plain, Vec::new()),
                };
                table.row(look, &cells, &remarks);
            }
            out::print(&table.render(out::width()))
        }
    }
}

impl RunRecord {
    fn of(entry: Entry) -> Self {
        let (outline, fault) = match entry.outline() {
            Ok(outline) => (Some(outline), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        Self {
            id: entry.id,
            environment: outline.as_ref().map(|outline| outline.environment),
            rows: outline.as_ref().map(Outline::rows),
            started: outline.as_ref().map(|outline| outline.started.clone()),
            label: outline.and_then(|outline| outline.label),
            path: entry.path.display().to_string(),
            fault,
        }
    }
}
