//! `tollgate show`: the tables of a kept run, which `run` shows too.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Serialize;
use tollgate_model::compare::{Paired, Verdict};
use tollgate_model::measurement::pairs;
use tollgate_model::run::Tool;
use tollgate_model::{Counted, Counter, Environment, Facts, Label, Run, RunId, Traced, own};

use crate::advice::{self, Advice};
use crate::args::{ShowArgs, ShowFormat, ViewArgs};
use crate::estimates::{BASELINE, Doubt, Estimates, Figures, Record, Row, State};
use crate::failure::Failure;
use crate::findings::{self, Finding};
use crate::table::{Look, Table, paragraph};
use crate::{facts, figures, out, pictures, say, trace};

/// A larger share of discarded samples gets a note.
const NOTABLE_DISCARDS: f64 = 0.01;
/// A larger range across processes gets a note.
const NOTABLE_RANGE: f64 = 0.10;

/// Shows a kept run.
///
/// # Errors
/// When there is no such run, or it cannot be printed.
pub fn show(args: &ShowArgs) -> Result<(), Failure> {
    let run = tollgate_store::find(&args.run)?;
    let estimates = Estimates::of(&run);
    match args.format {
        ShowFormat::Table => {
            if let Some(traced) = trace::command_of(&run) {
                return print_traced(&run, traced, &args.view);
            }
            print_table(&run, &estimates, None)?;
            print_warnings(&run, &estimates);
            Ok(())
        }
        ShowFormat::Json => print_json(&run, &estimates, None),
        ShowFormat::Csv => out::print_raw(csv(&run, &estimates).as_bytes()),
    }
}

/// Prints where a command's time went, as `trace` does.
fn print_traced(run: &Run, traced: &Traced, view: &ViewArgs) -> Result<(), Failure> {
    let width = out::width();
    let page = trace::page(traced, &trace::View::of(view, traced), width);
    out::print(&format!("{page}{}", paragraph(&whereabouts(run, None), width, "")))
}

/// Prints a run as tables and sentences.
///
/// # Errors
/// When standard output is closed or full.
pub fn print_table(run: &Run, estimates: &Estimates, kept: Option<&Path>) -> Result<(), Failure> {
    let width = out::width();
    let mut text = String::new();
    for table in estimate_tables(estimates) {
        text.push_str(&table.render(width));
        text.push('\n');
    }
    text.push_str(&pictures::of(run, estimates, width));
    for finding in findings::of(run, estimates) {
        text.push_str(&paragraph(&finding.sentence, width, ""));
    }
    text.push_str(&summary(run, estimates, width));
    text.push_str(&paragraph(&whereabouts(run, kept), width, ""));
    out::print(&text)
}

/// Prints the warnings of a run, last and to standard error: they are no result.
pub fn print_warnings(run: &Run, estimates: &Estimates) {
    for Advice { warning, remedy } in advice::of(run, estimates) {
        say::warn(&paragraph(&format!("{warning}. {remedy}"), out::width(), "warning: "));
    }
}

/// A table for each suite, so that the columns of one do not narrow those of another.
fn estimate_tables(estimates: &Estimates) -> Vec<Table> {
    let suite = |row: &Row| row.case.benchmark.split('/').next().unwrap_or_default().to_owned();
    estimates.rows.chunk_by(|a, b| suite(a) == suite(b)).map(estimate_table).collect()
}

/// The columns beside the median in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// The interval and the minimum; and the multiple of the plain call, where that was measured.
    Level { has_multiples: bool },
    /// The distribution of single operations, for suites whose operations wait for storage.
    Distribution,
}

impl Columns {
    /// The columns for a suite's rows.
    pub fn of<'a, 'b: 'a>(rows: impl IntoIterator<Item = &'a Row<'b>> + Clone) -> Self {
        let measured = || rows.clone().into_iter().filter_map(Row::figures);
        if measured().any(|figures| figures.measured.bytes_per_op.is_some()) {
            return Self::Distribution;
        }
        // Without the plain call nothing is a multiple of it.
        Self::Level { has_multiples: measured().any(|figures| figures.multiple.is_some()) }
    }

    fn table(self) -> Table {
        match self {
            Self::Level { has_multiples: true } => {
                Table::new(&["benchmark", "median", "95 % CI", "min", "× syscall"]).with_dispensable(2)
            }
            Self::Level { has_multiples: false } => {
                Table::new(&["benchmark", "median", "95 % CI", "min"]).with_dispensable(1)
            }
            Self::Distribution => {
                Table::new(&["benchmark", "median", "95 % CI", "p99", "max"]).with_dispensable(1)
            }
        }
    }
}

fn estimate_table(rows: &[Row]) -> Table {
    let columns = Columns::of(rows);
    let mut table = columns.table();
    let long = long_names(rows);
    let mut headed = None;
    for row in rows {
        let benchmark = row.case.benchmark.as_str();
        let name = match long.contains(benchmark) {
            true => format!("  {}", pairs(&row.case.params)),
            false => row.case.to_string(),
        };
        if long.contains(benchmark) && headed != Some(benchmark) {
            table.heading(benchmark);
        }
        headed = Some(benchmark);
        let blank = |estimate: &str| vec![name.clone(), estimate.to_owned()];
        match &row.state {
            State::Skipped(why) => table.row(Look::Faint, &blank("skipped"), &[(*why).to_owned()]),
            State::Failed(error) => table.row(Look::Flagged, &blank("failed"), &[(*error).to_owned()]),
            State::Measured(figures) => {
                let look = if figures.doubts().is_empty() { Look::Plain } else { Look::Flagged };
                table.row(look, &estimate_cells(name, figures, columns), &remarks(row, figures));
            }
        }
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

/// The cells of a row, its name first.
pub fn estimate_cells(name: String, figures: &Figures, columns: Columns) -> Vec<String> {
    let (estimate, unit) = (&figures.estimate, figures.measured.unit);
    if !figures.is_estimate() {
        return vec![name, "emulated".into()];
    }
    if let Some(limit) = figures.below {
        return vec![name, format!("< {}", figures::estimate(limit, unit))];
    }
    let mut cells = vec![
        name,
        figures::estimate(estimate.median, unit),
        figures::range(estimate.interval.low, estimate.interval.high, estimate.median, unit),
    ];
    match columns {
        Columns::Level { .. } => {
            // A minimum of zero is below the detection limit.
            cells.push(if estimate.min > 0.0 {
                figures::estimate(estimate.min, unit)
            } else {
                String::new()
            });
            cells.push(figures.multiple.map(figures::multiple).unwrap_or_default());
        }
        Columns::Distribution => {
            // A sample that is the mean of several operations says nothing about a single one.
            let single = figures.measured.ops_per_sample == 1;
            let of_single = |value: f64| if single { figures::estimate(value, unit) } else { String::new() };
            cells.extend([of_single(estimate.p99), of_single(estimate.max)]);
        }
    }
    cells
}

/// The notes beside a row's figures.
pub fn remarks(row: &Row, figures: &Figures) -> Vec<String> {
    let (estimate, measured) = (&figures.estimate, figures.measured);
    let mut remarks: Vec<String> = figures.doubts().into_iter().map(in_words).collect();
    if !figures.is_estimate() {
        remarks.push("times are an emulator's".to_owned());
        return remarks;
    }
    if figures.below.is_some() {
        remarks.push("detection limit".to_owned());
    }
    if let Some(rate) = figures.bytes_per_second() {
        remarks.push(format!("{}/s", figures::bytes(rate)));
    }
    if let Some(paired) = &figures.paired {
        remarks.push(paired_in_words(paired, row, figures));
    }
    if let ([low, high], None) = (estimate.modes.as_slice(), figures.below) {
        remarks.push(format!(
            "bimodal: {} ({}), {} ({})",
            figures::estimate(low.at, measured.unit),
            figures::percent(low.share),
            figures::estimate(high.at, measured.unit),
            figures::percent(high.share)
        ));
    }
    if estimate.spread > NOTABLE_RANGE && figures.below.is_none() {
        remarks.push(range_text(figures));
    }
    let is_noted = figures.doubts().iter().any(|doubt| matches!(doubt, Doubt::ManyDiscarded(_)));
    if estimate.discarded_share > NOTABLE_DISCARDS && !is_noted {
        remarks.push(discarded_text(estimate.discarded_share));
    }
    if let Some(counted) = &measured.counted {
        remarks.push(counted_text(counted));
    }
    let operations = (measured.samples.len() as u64).saturating_mul(measured.ops_per_sample);
    remarks.extend(counters_text(&measured.counters, operations));
    remarks.extend(measured.notes.iter().cloned());
    remarks
}

/// `range across processes 60 %, 5.1 ns to 9.3 ns`: for latencies that last for a process's life.
fn range_text(figures: &Figures) -> String {
    let (estimate, unit) = (&figures.estimate, figures.measured.unit);
    let medians = || estimate.process_medians.iter().copied();
    let (least, most) = (medians().min_by(f64::total_cmp), medians().max_by(f64::total_cmp));
    let ends = match (least, most) {
        (Some(least), Some(most)) => {
            format!(", {} to {}", figures::estimate(least, unit), figures::estimate(most, unit))
        }
        _ => String::new(),
    };
    format!("range across processes {}{ends}", figures::percent(estimate.spread))
}

fn in_words(doubt: Doubt) -> String {
    match doubt {
        Doubt::ManyDiscarded(share) => format!("noisy: {}", discarded_text(share)),
        Doubt::Wide(share) => format!("noisy: CI ±{}", figures::percent(share)),
        Doubt::FewProcesses(processes) => {
            format!("noisy: {} only", figures::count(processes, "process", "processes"))
        }
    }
}

fn discarded_text(share: f64) -> String {
    format!("{} of samples discarded (preempted)", figures::percent(share))
}

/// `per operation 0.125 context switches; per million operations 12 takes restarted`: frequent events per operation, rare ones per
/// million, and none that did not occur.
fn counters_text(counters: &[Counter], operations: u64) -> Vec<String> {
    const OFTEN: f64 = 0.01;
    let rate = |counter: &Counter| counter.number as f64 / operations.max(1) as f64;
    let words = |scale: f64| {
        move |counter: &&Counter| {
            format!("{} {}", figures::significant(rate(counter) * scale, 3), counter.what)
        }
    };
    let (often, rare): (Vec<&Counter>, Vec<&Counter>) =
        counters.iter().filter(|counter| counter.number > 0).partition(|counter| rate(counter) >= OFTEN);
    let often: Vec<String> = often.iter().map(words(1.0)).collect();
    let rare: Vec<String> = rare.iter().map(words(1e6)).collect();
    let lists = [("per operation", often), ("per million operations", rare)];
    let lists = lists.into_iter().filter(|(_, words)| !words.is_empty());
    lists.map(|(per, words)| format!("{per} {}", words.join(", "))).collect()
}

fn counted_text(counted: &Counted) -> String {
    let Counted { what, events, operations, is_share } = counted;
    if *is_share {
        let share = figures::percent(*events as f64 / (*operations).max(1) as f64);
        let share = if *events == 0 { "none".to_owned() } else { share };
        return format!("{share} of {operations} {what}");
    }
    match events == operations {
        true => format!("{what} counted: 1 per operation"),
        false => format!("{events} {what} counted in {operations} operations"),
    }
}

fn paired_in_words(paired: &Paired, row: &Row, figures: &Figures) -> String {
    if paired.baseline.benchmark == row.case.benchmark {
        return times_in_words(paired, row);
    }
    let baseline = &paired.baseline.benchmark;
    let adds = figures::difference(paired.adds, figures.measured.unit);
    match paired.verdict {
        Verdict::Slower | Verdict::Faster => format!("{adds}, {} than {baseline}", paired.verdict),
        Verdict::Same => same_text(baseline, paired),
        Verdict::Inconclusive => inconclusive_text(baseline, paired),
    }
}

/// The multiple of another case of the same benchmark, which is named by the parameters that differ.
fn times_in_words(paired: &Paired, row: &Row) -> String {
    let mut different = paired.baseline.params.clone();
    different.retain(|name, value| row.case.params.get(name) != Some(value));
    let other = pairs(&different);
    match paired.verdict {
        Verdict::Inconclusive => inconclusive_text(&other, paired),
        Verdict::Same => same_text(&other, paired),
        Verdict::Slower | Verdict::Faster => {
            format!("{} {other}, {}", figures::multiple(paired.ratio), paired.verdict)
        }
    }
}

/// `same as entry/syscall within 0.5 %`.
fn same_text(baseline: &str, paired: &Paired) -> String {
    format!("same as {baseline} within {}", figures::percent(paired.threshold))
}

fn inconclusive_text(baseline: &str, paired: &Paired) -> String {
    let why = paired.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("no significant difference from {baseline}{why}")
}

/// The clock of the run, its storage, and the engine's own measurements, one line per group.
fn summary(run: &Run, estimates: &Estimates, width: usize) -> String {
    let facts = &run.facts;
    let mut with = Vec::new();
    if let Some(clock) = facts::text(facts, facts::CLOCK) {
        let clock = if facts::clock_is_tsc(facts) { "the TSC" } else { clock };
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        with.push(format!("{clock}{}", pace.map(|pace| format!(" at {pace}")).unwrap_or_default()));
    }
    if let Some(cpu) = facts::number(facts, facts::CPU) {
        with.push(format!("on processor {cpu}"));
    }
    let mut text = match with.is_empty() {
        true => String::new(),
        false => paragraph(&with.join(" "), width, "clock: "),
    };
    if let Some(storage) = storage_text(facts) {
        text.push_str(&paragraph(&storage, width, "storage: "));
    }
    for group in estimates.groups() {
        let own = own_in_words(estimates, group);
        if !own.is_empty() {
            text.push_str(&paragraph(&own.join("; "), width, &format!("{}: ", say::clean(group))));
        }
    }
    text
}

/// `ext4 on vda (mq-deadline), mounted rw,relatime`; for a device in memory also its memory use.
fn storage_text(facts: &Facts) -> Option<String> {
    let text = |name: &str| facts::text(facts, name);
    let mut words = text("files.fs")?.to_owned();
    if let Some(device) = text("files.device") {
        words.push_str(&format!(" on {device}"));
    }
    if let Some(scheduler) = text("files.device.scheduler") {
        words.push_str(&format!(" ({scheduler})"));
    }
    if let Some(options) = text("files.options") {
        words.push_str(&format!(", mounted {options}"));
    }
    if let Some(device) = text("ram.device") {
        let bytes = |name: &str| facts::number(facts, name).map(figures::bytes);
        words.push_str(&format!("; in memory ({device})"));
        if let Some(size) = bytes("ram.size") {
            words.push_str(&format!(", {size}"));
        }
        if let (Some(before), Some(after)) = (bytes("ram.taken.before"), bytes("ram.taken.after")) {
            words.push_str(&format!(", memory used {before} before, {after} after"));
        }
    }
    Some(words)
}

/// The engine's own measurements in a group.
pub fn own_in_words(estimates: &Estimates, group: &str) -> Vec<String> {
    let mut words = Vec::new();
    let estimate = |benchmark: &str| {
        let figures = estimates.own(benchmark, group)?;
        Some(figures::estimate(figures.estimate.median, figures.measured.unit))
    };
    let of_group = estimates.measured().filter(|(_, figures)| figures.measured.group == group);
    if let Some(processes) = of_group.map(|(_, figures)| figures.measured.processes.len()).max() {
        words.push(figures::count(processes, "process", "processes"));
    }
    if let Some(pair) = estimate(own::CLOCK_PAIR) {
        words.push(format!("timer overhead {pair}"));
    }
    if let Some(overhead) = estimate(own::RAW_LOOP) {
        words.push(format!("loop overhead {overhead}, subtracted"));
    }
    if let Some((least, most)) = estimates.detection_limits(group) {
        let ns = |limit| figures::estimate(limit, tollgate_model::Unit::Nanoseconds);
        words.push(match ns(least) == ns(most) {
            true => format!("detection limit {}", ns(most)),
            false => {
                format!("detection limit {} to {}, by row", ns(least), ns(most))
            }
        });
    }
    if let Some(control) = estimates.own(own::CONTROL, group).and_then(|control| control.paired.as_ref()) {
        words.push(format!("A/A difference {}", figures::percent((control.ratio - 1.0).abs())));
    }
    words
}

/// Which run it is, where and when it was made, and where it is kept.
pub fn whereabouts(run: &Run, kept: Option<&Path>) -> String {
    let label = run.label.as_ref().map(|label| format!(" {label}")).unwrap_or_default();
    let kept = kept.map(|path| format!("; kept as {}", path.display())).unwrap_or_default();
    format!("run{label} {} in {}, {}{kept}", run.id, with_article(run.environment), run.started)
}

fn with_article(environment: Environment) -> String {
    format!("a {environment}")
}

/// A run as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    tool: &'a Tool,
    id: &'a RunId,
    label: Option<&'a Label>,
    environment: Environment,
    started: &'a str,
    finished: &'a str,
    kept: Option<String>,
    baseline: &'static str,
    measurements: Vec<Record<'a>>,
    bench: Vec<Record<'a>>,
    findings: Vec<Finding>,
    facts: &'a Facts,
    warnings: Vec<Advice>,
}

/// Prints a run as JSON.
///
/// # Errors
/// When standard output is closed or full.
pub fn print_json(run: &Run, estimates: &Estimates, kept: Option<&Path>) -> Result<(), Failure> {
    out::print_json(&Document {
        schema: run.schema,
        tool: &run.tool,
        id: &run.id,
        label: run.label.as_ref(),
        environment: run.environment,
        started: &run.started,
        finished: &run.finished,
        kept: kept.map(|path| path.display().to_string()),
        baseline: BASELINE,
        measurements: estimates.rows.iter().map(|row| Record::of(row, run)).collect(),
        bench: estimates.own.iter().map(|row| Record::of(row, run)).collect(),
        findings: findings::of(run, estimates),
        facts: &run.facts,
        warnings: advice::of(run, estimates),
    })
}

/// One line per case, by RFC 4180 but for the line ends.
fn csv(run: &Run, estimates: &Estimates) -> String {
    let mut text = Record::CSV_HEADER.join(",");
    text.push('\n');
    for row in &estimates.rows {
        let fields = Record::of(row, run).csv_fields();
        text.push_str(&fields.map(|field| quoted(&field)).join(","));
        text.push('\n');
    }
    text
}

fn quoted(field: &str) -> String {
    let field = say::clean(field);
    match field.contains([',', '"']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_spreadsheet_are_quoted_where_they_must_be() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("two\nlines"), "two\\nlines");
    }
}
