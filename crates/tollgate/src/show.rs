//! `tollgate show`: a kept run's prices, as `run` shows them too.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Serialize;
use tollgate_model::compare::{Paired, Verdict};
use tollgate_model::measurement::pairs;
use tollgate_model::run::Tool;
use tollgate_model::{Counted, Counter, Environment, Facts, Label, Run, RunId, Traced, own};

use crate::advice::{self, Advice};
use crate::args::{ShowArgs, ShowFormat, ViewArgs};
use crate::estimates::{Doubt, Estimates, Figures, GROUND, Record, Row, State};
use crate::failure::Failure;
use crate::findings::{self, Observation};
use crate::table::{Look, Table, paragraph};
use crate::{facts, figures, out, pictures, say, store, trace};

/// A dropped share above this is remarked upon.
const REMARKABLE_DROPS: f64 = 0.01;
/// Processes that differ by more than this share are remarked upon.
const REMARKABLE_SPREAD: f64 = 0.10;

/// Shows a kept run.
///
/// # Errors
/// When there is no such run, or it cannot be printed.
pub fn show(args: &ShowArgs) -> Result<(), Failure> {
    let run = store::find(&args.run)?;
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

/// Prints a run for eyes.
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
    for observation in findings::of(run, estimates) {
        text.push_str(&paragraph(&observation.sentence, width, ""));
    }
    text.push_str(&summary(run, estimates, width));
    text.push_str(&paragraph(&whereabouts(run, kept), width, ""));
    out::print(&text)
}

/// The warnings of a run, last and to standard error: they are no result.
pub fn print_warnings(run: &Run, estimates: &Estimates) {
    for Advice { warning, remedy } in advice::of(run, estimates) {
        say::warn(&paragraph(&format!("{warning}. {remedy}"), out::width(), "warning: "));
    }
}

/// A table for each suite: what it takes to show one should not make the others narrower.
fn estimate_tables(estimates: &Estimates) -> Vec<Table> {
    let suite = |row: &Row| row.case.benchmark.split('/').next().unwrap_or_default().to_owned();
    estimates.rows.chunk_by(|a, b| suite(a) == suite(b)).map(estimate_table).collect()
}

/// What stands beside a price in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// The interval and the floor; and how many times the plain call, where that was measured.
    Level { has_multiples: bool },
    /// How the single operations are distributed: of a suite whose operations wait for storage.
    Distribution,
}

impl Columns {
    /// What suits a suite's rows.
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
                Table::new(&["benchmark", "price", "95 % interval", "floor", "×syscall"]).with_dispensable(2)
            }
            Self::Level { has_multiples: false } => {
                Table::new(&["benchmark", "price", "95 % interval", "floor"]).with_dispensable(1)
            }
            Self::Distribution => {
                Table::new(&["benchmark", "price", "95 % interval", "p99", "max"]).with_dispensable(1)
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

/// The benchmarks of several rows whose names take much room: they get a heading, and their rows the parameters.
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

/// What a row holds after its name's, by the columns.
pub fn estimate_cells(name: String, figures: &Figures, columns: Columns) -> Vec<String> {
    let (estimate, unit) = (&figures.estimate, figures.measured.unit);
    if !figures.is_estimate() {
        return vec![name, "no price".into()];
    }
    if let Some(limit) = figures.below {
        return vec![name, format!("below {}", figures::estimate(limit, unit))];
    }
    let mut cells = vec![
        name,
        figures::estimate(estimate.median, unit),
        figures::range(estimate.interval.low, estimate.interval.high, estimate.median, unit),
    ];
    match columns {
        Columns::Level { .. } => {
            // A floor of nothing is one that could not be told either.
            cells.push(if estimate.min > 0.0 {
                figures::estimate(estimate.min, unit)
            } else {
                String::new()
            });
            cells.push(figures.multiple.map(figures::multiple).unwrap_or_default());
        }
        Columns::Distribution => {
            // Where a sample is the mean of several operations, it says nothing of a single one.
            let single = figures.measured.ops_per_sample == 1;
            let of_single = |value: f64| if single { figures::estimate(value, unit) } else { String::new() };
            cells.extend([of_single(estimate.p99), of_single(estimate.max)]);
        }
    }
    cells
}

/// What is to be known of a price beside its figures.
pub fn remarks(row: &Row, figures: &Figures) -> Vec<String> {
    let (estimate, measured) = (&figures.estimate, figures.measured);
    let mut remarks: Vec<String> = figures.doubts().into_iter().map(in_words).collect();
    if !figures.is_estimate() {
        remarks.push("not executed by hardware: its times are an emulator's".to_owned());
        return remarks;
    }
    if let Some(rate) = figures.bytes_per_second() {
        remarks.push(format!("{} a second", figures::bytes(rate)));
    }
    if let Some(paired) = &figures.paired {
        remarks.push(paired_in_words(paired, row, figures));
    }
    if let ([low, high], None) = (estimate.modes.as_slice(), figures.below) {
        remarks.push(format!(
            "two levels: {} ({}) and {} ({})",
            figures::estimate(low.at, measured.unit),
            figures::percent(low.share),
            figures::estimate(high.at, measured.unit),
            figures::percent(high.share)
        ));
    }
    if estimate.spread > REMARKABLE_SPREAD && figures.below.is_none() {
        remarks.push(spread_in_words(figures));
    }
    let flagged = figures.doubts().iter().any(|doubt| matches!(doubt, Doubt::ManyDropped(_)));
    if estimate.discarded_share > REMARKABLE_DROPS && !flagged {
        remarks.push(format!("{} of blocks dropped", figures::percent(estimate.discarded_share)));
    }
    if let Some(counted) = &measured.counted {
        remarks.push(in_words_counted(counted));
    }
    let operations = (measured.samples.len() as u64).saturating_mul(measured.ops_per_sample);
    remarks.extend(tallies_in_words(&measured.counters, operations));
    remarks.extend(measured.notes.iter().cloned());
    remarks
}

/// `processes differ by 60 %, from 5.1 to 9.3 ns`: of prices with levels that last for a process's life.
fn spread_in_words(figures: &Figures) -> String {
    let (estimate, unit) = (&figures.estimate, figures.measured.unit);
    let medians = || estimate.process_medians.iter().copied();
    let (least, most) = (medians().min_by(f64::total_cmp), medians().max_by(f64::total_cmp));
    let levels = match (least, most) {
        (Some(least), Some(most)) => {
            format!(", from {} to {}", figures::estimate(least, unit), figures::estimate(most, unit))
        }
        _ => String::new(),
    };
    format!("processes differ by {}{levels}", figures::percent(estimate.spread))
}

fn in_words(doubt: Doubt) -> String {
    match doubt {
        Doubt::ManyDropped(share) => {
            format!("unsure: {} of blocks were disturbed and dropped", figures::percent(share))
        }
        Doubt::Wide(share) => format!("unsure: the interval is ±{}", figures::percent(share)),
        Doubt::FewProcesses(processes) => {
            format!(
                "unsure: {} only, and others may differ",
                figures::count(processes, "process", "processes")
            )
        }
    }
}

/// `per operation 0.125 context switches; per million 12 takes restarted`: what is often for one, what is rare among
/// many, what never was not at all.
fn tallies_in_words(counters: &[Counter], operations: u64) -> Vec<String> {
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

fn in_words_counted(counted: &Counted) -> String {
    let Counted { what, events, operations, is_share } = counted;
    if *is_share {
        let share = figures::percent(*events as f64 / (*operations).max(1) as f64);
        let share = if *events == 0 { "none".to_owned() } else { share };
        return format!("{share} of {operations} {what}");
    }
    match events == operations {
        true => format!("{events} {what} counted, one an operation"),
        false => format!("{events} {what} counted in {operations} operations"),
    }
}

fn paired_in_words(paired: &Paired, row: &Row, figures: &Figures) -> String {
    if paired.baseline.benchmark == row.case.benchmark {
        return times_in_words(paired, row);
    }
    let baseline = &paired.baseline.benchmark;
    let adds = figures::difference(paired.adds, figures.measured.unit);
    match (paired.verdict, &paired.why) {
        (Verdict::Slower | Verdict::Faster, _) => format!("{adds}, {} than {baseline}", paired.verdict),
        (Verdict::Same, _) => format!("same as {baseline}"),
        (Verdict::Inconclusive, Some(why)) => format!("cannot be told from {baseline}: {why}"),
        (Verdict::Inconclusive, None) => format!("cannot be told from {baseline}"),
    }
}

/// How many times another case of the same benchmark, named by what is different there.
fn times_in_words(paired: &Paired, row: &Row) -> String {
    let mut different = paired.baseline.params.clone();
    different.retain(|name, value| row.case.params.get(name) != Some(value));
    let other = pairs(&different);
    match (paired.verdict, &paired.why) {
        (Verdict::Inconclusive, Some(why)) => format!("cannot be told from {other}: {why}"),
        (Verdict::Inconclusive, None) => format!("cannot be told from {other}"),
        (Verdict::Same, _) => format!("same as {other}"),
        (Verdict::Slower | Verdict::Faster, _) => {
            format!("{} {other}, {}", figures::multiple(paired.ratio), paired.verdict)
        }
    }
}

/// What the bench measured of itself, and with what: a line a group.
fn summary(run: &Run, estimates: &Estimates, width: usize) -> String {
    let facts = &run.facts;
    let mut with = Vec::new();
    if let Some(clock) = facts::text(facts, facts::CLOCK) {
        let clock = if facts::clock_is_tsc(facts) { "the TSC" } else { clock };
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        with.push(format!(
            "timed with {clock}{}",
            pace.map(|pace| format!(" at {pace}")).unwrap_or_default()
        ));
    }
    if let Some(cpu) = facts::number(facts, facts::CPU) {
        with.push(format!("on processor {cpu}"));
    }
    let mut text = match with.is_empty() {
        true => String::new(),
        false => paragraph(&with.join(" "), width, "bench: "),
    };
    if let Some(storage) = storage_in_words(facts) {
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

/// `ext4 on vda (mq-deadline), mounted rw,relatime`; of a device in memory what it takes.
fn storage_in_words(facts: &Facts) -> Option<String> {
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
            words.push_str(&format!(", {size} large"));
        }
        if let (Some(before), Some(after)) = (bytes("ram.taken.before"), bytes("ram.taken.after")) {
            words.push_str(&format!(", took {before} of memory before and {after} after"));
        }
    }
    Some(words)
}

/// What the bench measured of itself in a group, in words.
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
        words.push(format!("two readings of the clock {pair}"));
    }
    if let Some(turn) = estimate(own::RAW_LOOP) {
        words.push(format!("a turn of the empty loop {turn}, subtracted"));
    }
    if let Some((least, most)) = estimates.resolution(group) {
        let ns = |limit| figures::estimate(limit, tollgate_model::Unit::Nanoseconds);
        words.push(match ns(least) == ns(most) {
            true => format!("least price that can be told from nothing {}", ns(most)),
            false => {
                format!("least price that can be told from nothing {} to {}, by row", ns(least), ns(most))
            }
        });
    }
    if let Some(control) = estimates.own(own::CONTROL, group).and_then(|control| control.paired.as_ref()) {
        words.push(format!("two equal arms differ by {}", figures::percent((control.ratio - 1.0).abs())));
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

/// A run as programs get it.
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
    ground: &'static str,
    measurements: Vec<Record<'a>>,
    bench: Vec<Record<'a>>,
    findings: Vec<Observation>,
    facts: &'a Facts,
    warnings: Vec<Advice>,
}

/// Prints a run for programs.
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
        ground: GROUND,
        measurements: estimates.rows.iter().map(|row| Record::of(row, run)).collect(),
        bench: estimates.own.iter().map(|row| Record::of(row, run)).collect(),
        findings: findings::of(run, estimates),
        facts: &run.facts,
        warnings: advice::of(run, estimates),
    })
}

/// One line a case, by RFC 4180 but for the line ends.
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
