//! The content of a page as Markdown, for the summary page of a CI job (GitHub Flavored Markdown, which others read too).
//!
//! Text of a document enters as character references alone: a reference never has a meaning for the structure (CommonMark
//! 0.31, 2.5), so no label and no fact can make a link, a cell or an element.

use std::fmt::Write;

use tollgate_model::Run;
use tollgate_model::compare::Verdict;
use tollgate_output::figures;

use super::subject::Subject;
use super::{differences, environment, ruler, split, suites, verdict};
use crate::comparison::{self, Comparison};
use crate::counts;
use crate::page::Text;
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
    table(text, &COLUMNS, rows);
    for suite in suites::suites(std::slice::from_ref(subject)) {
        let rows = || summary.rows.iter().filter(|row| suites::suite_of(row.case) == suite);
        let all = figures::count(rows().count(), "case", "cases");
        folded(
            text,
            &format!("{suite}: {all}"),
            &COLUMNS,
            rows().map(|row| cells(&row.case.to_string(), row)),
        );
    }
}

/// The same of a run that counted instructions.
fn counted(text: &mut String, subject: &Subject) {
    const COLUMNS: [&str; 4] = ["case", "instructions", "batches", "× syscall"];
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
    table(text, &COLUMNS, headlines.filter_map(|(name, case)| Some(cells(&name, summary.row(case)?))));
    for suite in suites::suites(std::slice::from_ref(subject)) {
        let rows = || summary.rows.iter().filter(|row| suites::suite_of(row.case) == suite);
        let all = figures::count(rows().count(), "case", "cases");
        let rows = rows().map(|row| cells(&row.case.to_string(), row));
        folded(text, &format!("{suite}: {all}"), &COLUMNS, rows);
    }
}

const COLUMNS: [&str; 5] = ["case", "median", "95 % CI", "min", "× syscall"];

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

/// A comparison; of turns also what the other adds, and how far they correlate.
fn compared(text: &mut String, other: &Subject, comparison: &Comparison) {
    const HEAD: [&str; 6] = ["case", "base", "this", "ratio", "95 % CI", "verdict"];
    const OF_TURNS: [&str; 8] =
        ["case", "base", "this", "ratio", "95 % CI", "adds", "correlation", "verdict"];
    const OF_COUNTS: [&str; 6] = ["case", "base", "this", "adds", "change", "verdict"];
    match comparison.is_alternated {
        _ if comparison.is_counted() => verdicts(text, other, comparison, &OF_COUNTS, cells_of_counts),
        true => verdicts(text, other, comparison, &OF_TURNS, cells_of_turns),
        false => verdicts(text, other, comparison, &HEAD, ratio_cells),
    }
}

/// The verdicts, the rows that changed, the facts that differ, and the other rows folded.
fn verdicts<const N: usize>(
    text: &mut String,
    other: &Subject,
    comparison: &Comparison,
    head: &[&str; N],
    cells: fn(&comparison::Row) -> [String; N],
) {
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
    let changed: Vec<_> = of(Verdict::Slower).chain(of(Verdict::Faster)).collect();
    match changed.is_empty() {
        true => text.push_str("No significant difference.\n\n"),
        false => table(text, head, changed.into_iter().map(|row| cells(row))),
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
        folded(text, &format!("{caption}, likely causes first"), &["fact", "base", "this"], rows);
        if facts.len() > MOST_FACTS {
            put(text, format_args!("{} more facts differ.\n\n", facts.len() - MOST_FACTS));
        }
    }
    for verdict in [Verdict::Inconclusive, Verdict::Same] {
        if of(verdict).next().is_some() {
            let caption = format!("{name}: {}", count(verdict));
            folded(text, &caption, head, of(verdict).map(|row| cells(row)));
        }
    }
}

/// What a difference of commands consists of.
fn consists_of(text: &mut String, split: &Split) {
    let [parts, calls] =
        split::rows(split).map(|rows| rows.into_iter().map(|row| row.map(|cell| plain(&cell))));
    let parts = parts.map(|[name, base, this, difference, _]| [name, base, this, difference]);
    table(text, &["real time by", "base", "this", "difference"], parts);
    table(text, &["call", "base", "this", "difference", "calls"], calls);
    put(text, format_args!("{}\n\n", plain(split.method)));
}

fn ratio_cells(row: &comparison::Row) -> [String; 6] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let result = &row.result;
    let interval = result.interval.map(|interval| figures::ratio_span(interval.low, interval.high));
    let verdict = match result.verdict {
        Verdict::Slower | Verdict::Faster => format!("**{}**", result.verdict),
        verdict => verdict.to_string(),
    };
    [
        plain(&row.case().to_string()),
        or_none(result.base.map(|base| figures::estimate(base, row.base.unit))),
        or_none(result.other.map(|other| figures::estimate(other, row.other.unit))),
        or_none(row.ratio().map(figures::multiple)),
        or_none(interval),
        verdict,
    ]
}

fn cells_of_counts(row: &comparison::Row) -> [String; 6] {
    let [name, .., verdict] = ratio_cells(row);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let [base, other] = [(row.result.base, row.base.unit), (row.result.other, row.other.unit)]
        .map(|(count, unit)| or_none(count.map(|count| counts::count(count, unit))));
    [name, base, other, or_none(counts::adds(row)), or_none(counts::change(row)), verdict]
}

fn cells_of_turns(row: &comparison::Row) -> [String; 8] {
    let [name, base, other, ratio, interval, verdict] = ratio_cells(row);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let adds = row.adds().map(|adds| figures::difference(adds, row.base.unit));
    let correlation = row.result.alternation.as_ref().and_then(|found| found.correlation);
    let correlation = correlation.map(|correlation| format!("{correlation:.2}"));
    // The ratio around 1 has thousandths.
    let ratio = row.ratio().map(figures::ratio).unwrap_or(ratio);
    [name, base, other, ratio, interval, or_none(adds), or_none(correlation), verdict]
}

fn folded<const N: usize>(
    text: &mut String,
    caption: &str,
    head: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    put(text, format_args!("<details><summary>{caption}</summary>\n\n"));
    table(text, head, rows);
    text.push_str("</details>\n\n");
}

/// A table; its first column is text, the others are figures. Its cells are safe already.
fn table<const N: usize>(text: &mut String, head: &[&str; N], mut rows: impl Iterator<Item = [String; N]>) {
    put(text, format_args!("| {} |\n|---|{}\n", head.join(" | "), "--:|".repeat(N - 1)));
    for row in rows.by_ref().take(MOST) {
        put(text, format_args!("| {} |\n", row.join(" | ")));
    }
    let more = rows.count();
    text.push('\n');
    if more > 0 {
        put(text, format_args!("{more} more rows: tollgate report --format html.\n\n"));
    }
}

/// Text of a document, which is only text in any place.
fn plain(text: &str) -> String {
    let mut safe = String::new();
    let mut before = ' ';
    let text = Text::new(text);
    let mut characters = text.as_str().chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied().unwrap_or_default();
        match c {
            c if c.is_whitespace() => safe.push(' '),
            // A joiner after it keeps an address and a mention from becoming a link.
            '@' => safe.push_str("&#64;&#8288;"),
            // `www.` begins a link.
            '.' if before.eq_ignore_ascii_case(&'w') => safe.push_str("&#46;"),
            // Within a word it emphasizes nothing, and before a space it begins no link.
            '_' if before.is_ascii_alphanumeric() && next.is_ascii_alphanumeric() => safe.push('_'),
            ':' if next == ' ' => safe.push(':'),
            '.' | ',' | ';' | '/' | '-' | '+' | '=' | '%' | '(' | ')' | '{' | '}' | '?' | '\'' | '"' => {
                safe.push(c)
            }
            c if c.is_ascii_punctuation() => {
                let _ = write!(safe, "&#{};", u32::from(c));
            }
            c => safe.push(c),
        }
        before = c;
    }
    safe
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_cases_and_figures_stay_readable() {
        assert_eq!(plain("entry/seccomp{instructions=32}"), "entry/seccomp{instructions=32}");
        assert_eq!(plain("6.18.44-fc (Debian), 12 %"), "6.18.44-fc (Debian), 12 %");
        assert_eq!(plain("a|b\n`c`"), "a&#124;b&#92;n&#96;c&#96;");
        assert_eq!(plain("<b>[x](https://y)"), "&#60;b&#62;&#91;x&#93;(https&#58;//y)");
        assert_eq!(plain("dirty_mib: _a_"), "dirty_mib: &#95;a&#95;");
        assert_eq!(plain("www.a.org a@b.org"), "www&#46;a.org a&#64;&#8288;b.org");
    }

    proptest! {
        #[test]
        fn no_text_has_a_meaning_for_the_structure(text in any::<String>()) {
            let safe = plain(&text);
            prop_assert!(!safe.contains(['<', '>', '|', '`', '*', '[', ']', '\\', '!', '~', '$', '@', '\n', '\r']));
            prop_assert!(!safe.to_lowercase().contains("www."));
            prop_assert!(safe.split(':').skip(1).all(|rest| rest.starts_with(' ')), "{safe}");
            let words: Vec<&str> = safe.split('_').collect();
            for pair in words.windows(2) {
                let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                prop_assert!(word(pair[0].chars().last()) && word(pair[1].chars().next()), "{safe}");
            }
            for (at, _) in safe.match_indices('&') {
                let end = safe[at..].find(';').expect("a reference ends");
                prop_assert!(safe[at + 1..at + end].starts_with('#'), "{safe}");
                prop_assert!(safe[at + 2..at + end].chars().all(|c| c.is_ascii_digit()), "{safe}");
            }
            for (at, _) in safe.match_indices('#') {
                prop_assert!(safe[..at].ends_with('&'), "{safe}");
            }
        }
    }
}
