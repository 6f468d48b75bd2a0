//! The content of a page as Markdown, for the summary page of a CI job.

use std::fmt::Write;

use crate::page::Text;
use tollgate_model::compare::{FactDifference, Spread, Verdict};
use tollgate_model::text::quoted;
use tollgate_model::{Fact, Run};
use tollgate_output::column::{Column, Columns};
use tollgate_output::figures;
use tollgate_output::markdown::{self, folded, plain};
use tollgate_output::value::Value;

use super::subject::Subject;
use super::{differences, environment, ruler, split, suites, verdict};
use crate::compare::columns::{self, Compared};
use crate::compare::notes;
use crate::comparison::{ComparedRow, Comparison};
use crate::counts;
use crate::session::environments as session;
use crate::show::columns::{RowKind, Shown};
use crate::summary::CaseRow;
use crate::versus::lines::{Lines, REST};

/// Further rows of one kind are counted. A job's summary may have a MiB.
const MOST: usize = 500;
const MOST_FACTS: usize = 12;
const LONGEST_VALUE: usize = 80;

/// The summary of one run, or of several compared with the first; `spread` is the machine's run-to-run spread, and relative
/// differences up to `asked` do not count.
pub fn markdown(runs: &[Run], spread: &Spread, asked: f64) -> String {
    let subjects = Subject::all(runs);
    let comparisons = differences::all(&subjects, spread, asked);
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

fn about(text: &mut String, subject: &Subject) {
    let environment = environment::of(subject);
    let [machine, around] = environment.about.map(|line| plain(line.as_str()));
    let prefix = plain(&subject.prefix(": "));
    let quality = plain(environment.quality.words.as_str());
    put(text, format_args!("**Environment.** {prefix}{machine}. {around}.\n\n"));
    put(text, format_args!("**Quality:** {quality}\n\n"));
}

fn alone(text: &mut String, subject: &Subject) {
    let expensive = verdict::expensive(subject);
    if !expensive.is_empty() {
        text.push_str("## Expensive here, and what to do\n\n");
    }
    for item in expensive {
        let parts = [&item.cause, &item.action].into_iter().filter(|part| !part.is_empty());
        let parts: String = parts.map(|part| format!("; {}", plain(part.as_str()))).collect();
        let benchmark = plain(&quoted(item.benchmark.as_str()));
        put(
            text,
            format_args!("1. **{}**{parts} (tollgate explain {benchmark})\n", plain(item.what.as_str())),
        );
    }
    let summary = &subject.summary;
    let headlines = ruler::headlines(summary).into_iter();
    let headlines =
        headlines.filter_map(|(name, case)| Some(Shown::new(summary, summary.row(case)?).named(name)));
    let headlines: Vec<Shown> = headlines.collect();
    let kind = if counts::is_counted(summary) { RowKind::Counts } else { RowKind::Multiple };
    text.push_str("\n## Headline cases\n\n");
    text.push_str(&markdown::table(&kind.with_names(), headlines));
    for suite in suites::suites(std::slice::from_ref(subject)) {
        let rows: Vec<&CaseRow> =
            summary.rows.iter().filter(|row| suites::suite_of(row.case) == suite).collect();
        let all = figures::count(rows.len(), "case", "cases");
        let shown = rows.iter().take(MOST).map(|row| Shown::new(summary, row));
        let table = markdown::table(&RowKind::from_rows(rows.iter().copied()).with_names(), shown)
            + &not_shown(rows.len());
        text.push_str(&folded(&format!("{suite}: {all}"), &table));
    }
}

fn compared(text: &mut String, other: &Subject, comparison: &Comparison) {
    let name = plain(&other.name);
    put(text, format_args!("## {name}: {}\n\n", comparison.verdicts()));
    if let Some(method) = session::method(comparison) {
        put(text, format_args!("{}\n\n", plain(&method)));
    }
    if let Some(proven) = &comparison.proven {
        put(text, format_args!("**Proven cause:** {}\n\n", plain(&proven.to_string())));
    }
    let mut shown = comparison.changed();
    if shown.is_empty() {
        text.push_str("No significant difference.\n\n");
    }
    // In a comment on a change, what is open is not to be overlooked. Sessions of benchmarks have too many such rows.
    let mut folds = vec![Verdict::Inconclusive, Verdict::Same];
    if comparison.is_of_commands() || comparison.is_of_builds() {
        shown.extend(comparison.of_verdict(folds.remove(0)));
    }
    if !shown.is_empty() {
        text.push_str(&of_rows(comparison, &shown));
    }
    for note in notes::all(comparison, 0, true) {
        put(text, format_args!("{}\n\n", plain(&note)));
    }
    if let Some(lines) = comparison.is_of_commands().then(|| Lines::of(comparison)).flatten() {
        consists_of(text, &lines);
    }
    let facts = &comparison.facts;
    if !facts.is_empty() {
        let caption = figures::count(facts.len(), "fact differs", "facts differ");
        let rows = markdown::table(&of_facts(), facts.iter().take(MOST_FACTS));
        text.push_str(&folded(&format!("{caption}, likely causes first"), &rows));
        if facts.len() > MOST_FACTS {
            put(text, format_args!("{} more facts differ.\n\n", facts.len() - MOST_FACTS));
        }
    }
    for verdict in folds {
        let rows = comparison.of_verdict(verdict);
        if !rows.is_empty() {
            let caption = format!("{name}: {} {verdict}", rows.len());
            text.push_str(&folded(&caption, &of_rows(comparison, &rows)));
        }
    }
}

fn consists_of(text: &mut String, lines: &Lines) {
    text.push_str(&markdown::table(&lines.of_parts(), lines.parts()));
    text.push_str(&markdown::table(&lines.of_calls(), lines.calls(split::MOST_CALLS)));
    put(text, format_args!("{} {REST}\n\n", plain(lines.split.method)));
}

fn of_rows(comparison: &Comparison, rows: &[&ComparedRow]) -> String {
    let shown = rows.iter().take(MOST).map(|row| Compared::new(comparison, *row));
    markdown::table(&columns::of_wide_table(comparison), shown) + &not_shown(rows.len())
}

fn of_facts<'a>() -> Columns<&'a FactDifference> {
    fn value(fact: &Option<Fact>) -> Option<Value> {
        let value = fact.as_ref().and_then(Fact::value).map_or("unknown".to_owned(), ToString::to_string);
        Some(Value::text(Text::cut(&value, LONGEST_VALUE).as_str()))
    }
    Columns::new([
        Column::new("fact", "fact", "its name", |it: &&FactDifference| Some(Value::text(it.name.as_str()))),
        Column::new("base", "base", "its value in the base", |it| value(&it.base)),
        Column::new("other", "other", "its value in the other", |it| value(&it.other)),
    ])
}

fn not_shown(all: usize) -> String {
    match all.saturating_sub(MOST) {
        0 => String::new(),
        more => format!("{more} more rows: tollgate report --format html.\n\n"),
    }
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}
