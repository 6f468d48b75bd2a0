//! The rows of a run as lines, with the pictures and sentences made of them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use tollgate_model::measurement::Status;
use tollgate_model::text::clean;
use tollgate_model::{Case, Facts, Run, Unit, own};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};

use super::columns::{RowKind, Shown, columns};
use super::names::Names;
use crate::summary::{CaseRow, Figures, Note, State, Summary};
use crate::{advice, counts, facts, pictures, rules};

/// How rows are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The columns of the terminal; `None` for a program, which gets whole lines.
    pub width: Option<usize>,
    /// Their order; `None` for that of the document, suite by suite.
    pub order: Option<Order>,
    /// Latencies in cycles of the time-stamp counter, if that was the clock.
    pub in_cycles: bool,
    /// The full notes of each row, even if they are wider than the terminal.
    pub notes: bool,
    /// The engine's own figures and the warnings.
    pub bench: bool,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The slowest first.
    Latency,
    /// By case, as text.
    Name,
    /// The widest interval first.
    Noise,
}

/// Pictures and sentences of a reader without a terminal are at most this wide.
const USUAL_WIDTH: usize = 100;

/// A line for each row, the pictures, the findings, and how the run was made.
pub fn text(summary: &Summary, options: Options) -> String {
    let mut text = String::new();
    let needed = needed(summary);
    for rows in in_order(summary, options.order) {
        text.push_str(&table(&rows, summary, options, &needed).lines(options.width, options.notes));
        text.push('\n');
    }
    text.push_str(&pictures::all(summary, options.width.unwrap_or(USUAL_WIDTH)));
    // For a program each sentence is one line.
    let width = options.width.unwrap_or(usize::MAX);
    for finding in rules::findings(summary) {
        text.push_str(&paragraph(&finding.sentence, width, ""));
    }
    if let Some(why) = summary.without_memory() {
        text.push_str(&paragraph(&clean(&why), width, ""));
    }
    text.push_str(&method(summary, width));
    if options.bench {
        text.push_str(&bench(summary, width));
    }
    text.push_str(&paragraph(&whereabouts(summary.run, None), width, ""));
    text
}

/// The rows that a sentence rests on: the noise of others does not matter.
fn needed(summary: &Summary) -> HashSet<Case> {
    let findings = rules::findings(summary).into_iter().flat_map(|finding| finding.from);
    findings.chain(rules::expenses(summary).into_iter().flat_map(|expense| expense.from)).collect()
}

/// The rows of each table: by suite, so that the columns of one do not narrow those of another, or sorted in one.
fn in_order<'a, 'b>(summary: &'b Summary<'a>, order: Option<Order>) -> Vec<Vec<&'b CaseRow<'a>>> {
    let by_suite = summary.rows.chunk_by(|a, b| a.case.suite() == b.case.suite());
    let Some(order) = order else {
        return by_suite.map(|rows| rows.iter().collect()).collect();
    };
    let mut rows: Vec<&CaseRow> = summary.rows.iter().collect();
    let key = |row: &CaseRow| match (row.figures(), order) {
        // Rows without a figure come last; rows without an interval are the noisiest.
        (None, _) => f64::NEG_INFINITY,
        (Some(figures), Order::Noise) => figures.estimate.relative_half_width().unwrap_or(f64::INFINITY),
        (Some(figures), _) => figures.bounded(),
    };
    match order {
        Order::Name => rows.sort_by_key(|row| row.case.to_string()),
        Order::Latency | Order::Noise => rows.sort_by(|one, other| key(other).total_cmp(&key(one))),
    }
    vec![rows]
}

fn table(rows: &[&CaseRow], summary: &Summary, options: Options, needed: &HashSet<Case>) -> Table {
    let with = |names: &Names| named(names, rows, summary, options, needed);
    let Some(width) = options.width else {
        // A program finds the whole name on each line.
        return with(&Names::default());
    };
    let names = match options.order {
        None => Names::beneath_headings(rows),
        Some(_) => Names::default(),
    };
    let table = with(&names);
    match table.room_for_names(width, NEEDED) {
        Some(room) => with(&names.within(room, rows)),
        None => table,
    }
}

const NEEDED: usize = 4;

fn named<'c>(
    names: &Names,
    rows: &[&'c CaseRow<'c>],
    summary: &'c Summary<'c>,
    options: Options,
    needed: &HashSet<Case>,
) -> Table {
    let kind = RowKind::from_rows(rows.iter().copied());
    let shown = |row: &'c CaseRow<'c>| {
        let shown = Shown::new(summary, row);
        if options.in_cycles { shown.in_cycles() } else { shown }
    };
    // The distribution of single operations replaces a rate.
    let has = |key: &&&str| rows.iter().any(|row| !columns().value(key, &shown(row)).words().is_empty());
    let rates: Vec<&str> =
        RATES.iter().filter(|_| kind != RowKind::Distribution).filter(has).copied().collect();
    // After the median and its interval.
    let mut keys = kind.keys().to_vec();
    keys.splice(2..2, rates.iter().copied());
    let columns = columns().arranged(&keys);
    let header: Vec<Cow<str>> =
        std::iter::once("benchmark".into()).chain(columns.iter().map(|it| it.head.clone())).collect();
    let dispensable = if kind == RowKind::Multiple { 2 } else { 1 };
    let mut table = Table::of_columns(header).with_dispensable(dispensable + rates.len());
    let mut headed = None;
    for row in rows {
        let benchmark = row.case.benchmark.as_str();
        if headed != Some(benchmark) {
            names.heading(benchmark).iter().for_each(|heading| table.heading(heading));
        }
        headed = Some(benchmark);
        let look = match &row.state {
            State::Without(Status::Failed, _) => Look::Coloured,
            State::Without(..) => Look::Faint,
            // For a program the mark would be a field; the note says it.
            State::Measured(_) if options.width.is_some() && row.is_noisy() && needed.contains(row.case) => {
                Look::Flagged
            }
            State::Measured(_) => Look::Plain,
        };
        let cells = columns.values(&shown(row)).into_iter().map(|value| value.words().to_owned());
        let cells: Vec<String> = std::iter::once(names.name(row.case)).chain(cells).collect();
        let notes = row.notes();
        let is_said = |note: &&Note| !(rates.contains(&THROUGHPUT) && matches!(note, Note::Throughput(_)));
        let notes: Vec<String> = notes.iter().filter(is_said).map(ToString::to_string).collect();
        table.row(look, &cells, &notes);
    }
    table
}

const RATES: [&str; 2] = [THROUGHPUT, "tasks"];
const THROUGHPUT: &str = "bytes_per_second";

fn method(summary: &Summary, width: usize) -> String {
    let facts = &summary.run.facts;
    if counts::is_counted(summary) {
        let words = format!("instructions, by {}; {}", counts::counter(summary), counts::exactness(summary));
        return paragraph(&words, width, "counted: ");
    }
    let mut with = Vec::new();
    if let Some(clock) = facts::text(facts, facts::CLOCK) {
        let clock = if facts::clock_is_tsc(facts) { "the TSC" } else { clock };
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        with.push(format!("{clock}{}", pace.map(|pace| format!(" at {pace}")).unwrap_or_default()));
    }
    if let Some(cpu) = facts::number(facts, facts::CPU) {
        let is_bound = facts::text(facts, facts::AFFINITY) != Some("does not bind");
        let (begin, end) = if is_bound { ("on", "") } else { ("pinned to", ", which does not bind") };
        with.push(format!("{begin} processor {cpu}{end}"));
    }
    let mut text = if with.is_empty() { String::new() } else { paragraph(&with.join(" "), width, "clock: ") };
    if let Some(storage) = storage_text(facts) {
        text.push_str(&paragraph(&storage, width, "storage: "));
    }
    text
}

fn bench(summary: &Summary, width: usize) -> String {
    let own = |group| {
        let words = own_in_words(summary, group).join("; ");
        (!words.is_empty()).then(|| paragraph(&words, width, &format!("{}: ", clean(group))))
    };
    let groups: String = summary.groups().into_iter().filter_map(own).collect();
    let warning = |advice: advice::Advice| {
        paragraph(&format!("{}. {}", advice.warning, advice.remedy), width, "warning: ")
    };
    groups + &advice::of(summary).into_iter().map(warning).collect::<String>()
}

/// For a device in memory also its memory use.
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
    let disturbed = summary.disturbance.share_of(group).disturbed;
    let words = [
        processes.map(|processes| figures::count(processes, "process", "processes")),
        (disturbed > 0).then(|| format!("{disturbed} of them left out, disturbed")),
        estimate(own::CLOCK_PAIR).map(|pair| format!("timer overhead {pair}")),
        estimate(own::RAW_LOOP).map(|overhead| format!("loop overhead {overhead}, subtracted")),
        limits.map(|[least, most]| {
            if least == most {
                format!("detection limit {most}")
            } else {
                format!("detection limit {least} to {most}, by row")
            }
        }),
        control.map(|control| format!("A/A difference {}", figures::percent((control.ratio - 1.0).abs()))),
    ];
    words.into_iter().flatten().collect()
}

/// The run, where and when it was made, and where it is kept.
pub fn whereabouts(run: &Run, kept: Option<&Path>) -> String {
    let label = run.label.as_ref().map(|label| format!(" {label}")).unwrap_or_default();
    let kept = kept.map(|path| format!("; kept as {}", path.display())).unwrap_or_default();
    format!("run{label} {} in a {}, {}{kept}", run.id, run.environment, run.started)
}
