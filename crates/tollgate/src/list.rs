//! `tollgate list`: what can be measured, from the registry; and what is kept.

use std::collections::HashSet;

use serde::Serialize;
use tollgate_model::{Environment, Label, RunId};
use tollgate_store::document::Outline;
use tollgate_store::kept::{Entry, kept};
use tollgate_suites::{Benchmark, Extent, Size};
use tollgate_view::benchmarks;
use tollgate_view::table::{Look, Table};

use crate::args::{Format, ListArgs};
use crate::failure::Failure;
use crate::{out, say};

/// Shows the benchmarks that match, or the kept runs.
///
/// # Errors
/// A pattern that matches nothing; a directory that cannot be read.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    if args.runs { list_runs(args.format) } else { list_benchmarks(&args.pattern, args.format) }
}

fn list_benchmarks(patterns: &[String], format: Format) -> Result<(), Failure> {
    // Includes suites that are measured on request only.
    let everything = ["*".to_owned()];
    let patterns = if patterns.is_empty() { &everything } else { patterns };
    let selection = tollgate_suites::select(patterns, Extent::Usual, Size::Small)
        .map_err(|unknown| Failure::input(unknown.to_string()))?;
    let chosen: HashSet<String> = selection.cases().map(|case| case.benchmark).collect();
    let is_chosen = |benchmark: &Benchmark| chosen.contains(benchmark.name);
    match format {
        Format::Json => out::print_json(&benchmarks::List::of(is_chosen)),
        Format::Table => out::print(&benchmarks::text(is_chosen, out::width())),
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
