//! A run as tables and sentences.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use tollgate_model::measurement::pairs;
use tollgate_model::text::clean;
use tollgate_model::{Facts, Run, Unit, own};

use super::cells::Columns;
use crate::summary::{Figures, Row, State, Summary};
use crate::table::{Look, Table, paragraph};
use crate::{advice, facts, figures, findings, pictures};
use tollgate_model::measurement::Status;

/// The tables, the pictures, the findings, and how the run was made.
pub fn text(summary: &Summary, kept: Option<&Path>, width: usize) -> String {
    let mut text = String::new();
    for table in tables(summary) {
        text.push_str(&table.render(width));
        text.push('\n');
    }
    text.push_str(&pictures::of(summary, width));
    for finding in findings::of(summary) {
        text.push_str(&paragraph(&finding.sentence, width, ""));
    }
    text.push_str(&method(summary, width));
    text.push_str(&paragraph(&whereabouts(summary.run, kept), width, ""));
    text
}

/// The warnings, which are no result.
pub fn warnings(summary: &Summary, width: usize) -> String {
    let line = |advice: advice::Advice| {
        paragraph(&format!("{}. {}", advice.warning, advice.remedy), width, "warning: ")
    };
    advice::of(summary).into_iter().map(line).collect()
}

/// A table for each suite, so that the columns of one do not narrow those of another.
fn tables(summary: &Summary) -> Vec<Table> {
    summary.rows.chunk_by(|a, b| a.case.suite() == b.case.suite()).map(table).collect()
}

fn table(rows: &[Row]) -> Table {
    let columns = Columns::of(rows);
    let names: Vec<&str> = std::iter::once("benchmark").chain(columns.names().iter().copied()).collect();
    let mut table = Table::new(&names).with_dispensable(if columns == Columns::Multiple { 2 } else { 1 });
    let long = long_names(rows);
    let mut headed = None;
    for row in rows {
        let benchmark = row.case.benchmark.as_str();
        let is_long = long.contains(benchmark);
        if is_long && headed != Some(benchmark) {
            table.heading(benchmark);
        }
        headed = Some(benchmark);
        let name = if is_long { format!("  {}", pairs(&row.case.params)) } else { row.case.to_string() };
        let (look, cells) = match &row.state {
            State::Without(Status::Failed, _) => (Look::Flagged, vec![row.status().to_owned()]),
            State::Without(..) => (Look::Faint, vec![row.status().to_owned()]),
            State::Measured(figures) => {
                (if row.is_noisy() { Look::Flagged } else { Look::Plain }, columns.cells(figures))
            }
        };
        let cells: Vec<String> = std::iter::once(name).chain(cells).collect();
        let notes: Vec<String> = row.notes().iter().map(ToString::to_string).collect();
        table.row(look, &cells, &notes);
    }
    table
}

/// Benchmarks of several rows with long names: each gets a heading, and its rows show the parameters only.
fn long_names<'a>(all: &'a [Row]) -> HashSet<&'a str> {
    const LONG: usize = 33;
    let mut rows: HashMap<&'a str, (usize, usize)> = HashMap::new();
    for row in all {
        let (number, longest) = rows.entry(&row.case.benchmark).or_default();
        *number += 1;
        *longest = row.case.to_string().chars().count().max(*longest);
    }
    let long = rows.into_iter().filter(|(_, (number, longest))| *number > 1 && *longest > LONG);
    long.map(|(benchmark, _)| benchmark).collect()
}

/// The clock of the run, its storage, and the engine's own measurements, one line per group.
fn method(summary: &Summary, width: usize) -> String {
    let facts = &summary.run.facts;
    let mut with = Vec::new();
    if let Some(clock) = facts::text(facts, facts::CLOCK) {
        let clock = if facts::clock_is_tsc(facts) { "the TSC" } else { clock };
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        with.push(format!("{clock}{}", pace.map(|pace| format!(" at {pace}")).unwrap_or_default()));
    }
    if let Some(cpu) = facts::number(facts, facts::CPU) {
        with.push(format!("on processor {cpu}"));
    }
    let mut text = if with.is_empty() { String::new() } else { paragraph(&with.join(" "), width, "clock: ") };
    if let Some(storage) = storage_text(facts) {
        text.push_str(&paragraph(&storage, width, "storage: "));
    }
    for group in summary.groups() {
        let own = own_in_words(summary, group);
        if !own.is_empty() {
            text.push_str(&paragraph(&own.join("; "), width, &format!("{}: ", clean(group))));
        }
    }
    text
}

/// `ext4 on vda (mq-deadline), mounted rw,relatime`; for a device in memory also its memory use.
fn storage_text(facts: &Facts) -> Option<String> {
    let text = |name: &str| facts::text(facts, name);
    let with =
        |begin: &str, what: Option<String>| what.map_or(String::new(), |what| format!("{begin}{what}"));
    let of = |name: &str| text(name).map(str::to_owned);
    let bytes = |name: &str| facts::number(facts, name).map(figures::bytes);
    let memory = text("ram.device").map(|device| {
        let size = with(", ", bytes("ram.size"));
        let used = bytes("ram.taken.before").zip(bytes("ram.taken.after"));
        let used = used.map(|(before, after)| format!("{before} before, {after} after"));
        format!("({device}){size}{}", with(", memory used ", used))
    });
    let words = [
        of("files.fs")?,
        with(" on ", of("files.device")),
        with(" ", of("files.device.scheduler").map(|name| format!("({name})"))),
        with(", mounted ", of("files.options")),
        with("; in memory ", memory),
    ];
    Some(words.concat())
}

/// The engine's own measurements in a group.
pub fn own_in_words(summary: &Summary, group: &str) -> Vec<String> {
    let in_words = |own: &Figures| figures::estimate(own.estimate.median, own.measured.unit);
    let estimate = |benchmark: &str| summary.own(benchmark, group).map(in_words);
    let processes = summary.of_group(group).map(|figures| figures.measured.processes.len()).max();
    let limits = summary.detection_limits(group);
    let limits = limits.map(|(least, most)| [least, most].map(|ns| figures::estimate(ns, Unit::Nanoseconds)));
    let control = summary.own(own::CONTROL, group).and_then(|control| control.paired.as_ref());
    let words = [
        processes.map(|processes| figures::count(processes, "process", "processes")),
        estimate(own::CLOCK_PAIR).map(|pair| format!("timer overhead {pair}")),
        estimate(own::RAW_LOOP).map(|overhead| format!("loop overhead {overhead}, subtracted")),
        limits.map(|[least, most]| match least == most {
            true => format!("detection limit {most}"),
            false => format!("detection limit {least} to {most}, by row"),
        }),
        control.map(|control| format!("A/A difference {}", figures::percent((control.ratio - 1.0).abs()))),
    ];
    words.into_iter().flatten().collect()
}

/// Which run it is, where and when it was made, and where it is kept.
pub fn whereabouts(run: &Run, kept: Option<&Path>) -> String {
    let label = run.label.as_ref().map(|label| format!(" {label}")).unwrap_or_default();
    let kept = kept.map(|path| format!("; kept as {}", path.display())).unwrap_or_default();
    format!("run{label} {} in a {}, {}{kept}", run.id, run.environment, run.started)
}
