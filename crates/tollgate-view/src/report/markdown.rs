//! The content of a page as Markdown, for the summary page of a CI job.

use std::fmt::Write;

use crate::page::Text;
use tollgate_model::Run;
use tollgate_model::compare::Verdict;
use tollgate_output::figures;
use tollgate_output::markdown::{self, folded, plain};

use super::subject::Subject;
use super::{differences, environment, ruler, split, suites, verdict};
use crate::compare::columns::{self, Compared};
use crate::comparison::{self, Comparison};
use crate::counts;
use crate::session::environments as session;
use crate::show::cells::Columns;
use crate::summary::{Row, State};
use crate::versus::split::Split;

/// More rows of one kind are counted. A job's summary has room for a MiB.
const MOST: usize = 500;
/// More facts are counted.
const MOST_FACTS: usize = 12;

/// The summary of one run, or of several compared with the first.
pub fn markdown(runs: &[Run]) -> String {
    let subjects = Subject::all(runs);
    let comparisons = differences::all(&subjects);
    let mut text = format!("# {}\n\n", plain(super::title(&subjects).as_str()));
    for subject in &subjects {
        about(&mut text, subject);
    }
    match subjects.as_slice() {
        [subject] => alone(&mut text, subject),
        subjects => {
            for (other, comparison) in subjects.iter().skip(1).zip(&comparisons) {
                compared(&mut text, other, comparison);
            }
        }
    }
    text
}

/// The environment and the quality of its figures.
fn about(text: &mut String, subject: &Subject) {
    let environment = environment::of(subject);
    let [machine, around] = environment.about.map(|line| plain(line.as_str()));
    let prefix = plain(&subject.prefix(": "));
    let quality = plain(environment.quality.words.as_str());
    put(text, format_args!("**Environment.** {prefix}{machine}. {around}.\n\n"));
    put(text, format_args!("**Quality:** {quality}\n\n"));
}

/// What is slow, the headline cases, and all others folded.
fn alone(text: &mut String, subject: &Subject) {
    let expensive = verdict::expensive(subject);
    if !expensive.is_empty() {
        text.push_str("## Expensive here, and what to do\n\n");
    }
    for item in expensive {
        let parts = [&item.cause, &item.action].into_iter().filter(|part| !part.is_empty());
        let parts: String = parts.map(|part| format!("; {}", plain(part.as_str()))).collect();
        let benchmark = plain(item.benchmark.as_str());
        put(
            text,
            format_args!("1. **{}**{parts} (tollgate explain {benchmark})\n", plain(item.what.as_str())),
        );
    }
    let summary = &subject.summary;
    let headlines = ruler::headlines(summary).into_iter();
    let rows = headlines.filter_map(|(name, case)| Some(cells(&name, summary.row(case)?)));
    text.push_str("\n## Headline cases\n\n");
    if counts::is_counted(summary) {
        return counted(text, subject);
    }
    text.push_str(&table(COLUMNS, rows));
    for suite in suites::suites(std::slice::from_ref(subject)) {
        let rows = || summary.rows.iter().filter(|row| suites::suite_of(row.case) == suite);
        let all = figures::count(rows().count(), "case", "cases");
        let rows = table(COLUMNS, rows().map(|row| cells(&row.case.to_string(), row)));
        text.push_str(&folded(&format!("{suite}: {all}"), &rows));
    }
}

/// The same of a run that counted instructions.
fn counted(text: &mut String, subject: &Subject) {
    const COLUMNS: [&str; 4] = ["benchmark", "instructions", "batches", "× syscall"];
    let summary = &subject.summary;
    let cells = |name: &str, row: &Row| {
        let mut cells = vec![plain(name)];
        match row.figures() {
            Some(figures) => cells.extend(Columns::Counts.cells(figures)),
            None => cells.push(row.status().to_owned()),
        }
        let mut cells = cells.into_iter();
        std::array::from_fn(|_| cells.next().unwrap_or_default())
    };
    let headlines = ruler::headlines(summary).into_iter();
    let headlines = headlines.filter_map(|(name, case)| Some(cells(&name, summary.row(case)?)));
    text.push_str(&table(COLUMNS, headlines));
    for suite in suites::suites(std::slice::from_ref(subject)) {
        let rows = || summary.rows.iter().filter(|row| suites::suite_of(row.case) == suite);
        let all = figures::count(rows().count(), "case", "cases");
        let rows = rows().map(|row| cells(&row.case.to_string(), row));
        text.push_str(&folded(&format!("{suite}: {all}"), &table(COLUMNS, rows)));
    }
}

const COLUMNS: [&str; 5] = ["benchmark", "median", "95 % CI", "min", "× syscall"];

/// A row of figures. Noisy ones have a mark; a row without figures has its status.
fn cells(name: &str, row: &Row) -> [String; 5] {
    let name = format!("{}{}", if row.is_noisy() { "~ " } else { "" }, plain(name));
    let State::Measured(found) = &row.state else {
        return [name, row.status().to_owned(), String::new(), String::new(), String::new()];
    };
    let unit = found.measured.unit;
    let min = found.min().filter(|_| found.below.is_none());
    let min = min.map(|min| figures::estimate(min, unit));
    let multiple = found.multiple.map(|multiple| figures::significant(multiple, 3));
    let [interval, min, multiple] = [found.interval_in_words(), min, multiple].map(Option::unwrap_or_default);
    [name, found.in_words(), interval, min, multiple]
}

/// The verdicts of a comparison, the rows that changed, the facts that differ, and the other rows folded.
fn compared(text: &mut String, other: &Subject, comparison: &Comparison) {
    let name = plain(&other.name);
    let count = |verdict: Verdict| format!("{} {verdict}", comparison.count(verdict));
    let verdicts = [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::Inconclusive].map(count);
    put(text, format_args!("## {name}: {}\n\n", verdicts.join(", ")));
    if let Some(why) = counts::not_compared(comparison) {
        put(text, format_args!("{}\n\n", plain(&why)));
    }
    if let Some(method) = session::method(comparison) {
        put(text, format_args!("{}\n\n", plain(&method)));
    }
    if let Some(proven) = &comparison.proven {
        put(text, format_args!("**Proven cause:** {}\n\n", plain(&proven.to_string())));
    }
    let mut rows: Vec<&comparison::Row> = comparison.rows.iter().collect();
    let size = |row: &comparison::Row| row.ratio().map_or(0.0, |ratio| ratio.ln().abs());
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let of = |verdict: Verdict| rows.iter().filter(move |row| row.result.verdict == verdict);
    let changed: Vec<&comparison::Row> = of(Verdict::Slower).chain(of(Verdict::Faster)).copied().collect();
    match changed.is_empty() {
        true => text.push_str("No significant difference.\n\n"),
        false => text.push_str(&of_rows(comparison, &changed)),
    }
    if let Some(split) = comparison.is_of_commands().then(|| Split::of(comparison)).flatten() {
        consists_of(text, &split);
    }
    let facts = &comparison.facts;
    if !facts.is_empty() {
        let shown = |fact: &Option<tollgate_model::Fact>| {
            let value = fact.as_ref().and_then(tollgate_model::Fact::value).map(ToString::to_string);
            plain(Text::cut(&value.unwrap_or("unknown".to_owned()), 80).as_str())
        };
        let rows = facts
            .iter()
            .take(MOST_FACTS)
            .map(|fact| [plain(&fact.name), shown(&fact.base), shown(&fact.other)]);
        let caption = figures::count(facts.len(), "fact differs", "facts differ");
        let rows = table(["fact", "base", "other"], rows);
        text.push_str(&folded(&format!("{caption}, likely causes first"), &rows));
        if facts.len() > MOST_FACTS {
            put(text, format_args!("{} more facts differ.\n\n", facts.len() - MOST_FACTS));
        }
    }
    for verdict in [Verdict::Inconclusive, Verdict::Same] {
        if of(verdict).next().is_some() {
            let rows: Vec<&comparison::Row> = of(verdict).copied().collect();
            let caption = format!("{name}: {}", count(verdict));
            text.push_str(&folded(&caption, &of_rows(comparison, &rows)));
        }
    }
}

/// What a difference of commands consists of.
fn consists_of(text: &mut String, split: &Split) {
    let [parts, calls] =
        split::rows(split).map(|rows| rows.into_iter().map(|row| row.map(|cell| plain(&cell))));
    let parts = parts.map(|[name, base, this, difference, _]| [name, base, this, difference]);
    text.push_str(&table(["real time by", "base", "other", "difference"], parts));
    text.push_str(&table(["call", "base", "other", "difference", "calls"], calls));
    put(text, format_args!("{}\n\n", plain(split.method)));
}

/// The table of compared rows.
fn of_rows(comparison: &Comparison, rows: &[&comparison::Row]) -> String {
    let shown = rows.iter().take(MOST).map(|row| Compared::of(comparison, *row));
    markdown::table(&columns::of_table(comparison), shown) + &not_shown(rows.len())
}

/// A table; its first column is text, the others are figures.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.collect();
    let all = rows.len();
    markdown::table_of(head, rows.into_iter().take(MOST)) + &not_shown(all)
}

/// How many rows of so many have no room.
fn not_shown(all: usize) -> String {
    match all.saturating_sub(MOST) {
        0 => String::new(),
        more => format!("{more} more rows: tollgate report --format html.\n\n"),
    }
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}
