//! Compares several configurations: counts by area, then the options that differ, those that affect latencies first.

use tollgate_output::figures;
use tollgate_output::table::{Look, Table, heading, paragraph};

use super::asked::Asked;
use super::chosen::Chosen;
use super::text;
use crate::{Configuration, Counts, Difference, DifferenceKind, compare, counter, overridden};

const LETTERS: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];
/// The most options of an area to show if they affect no latency.
const FEW: usize = 10;
/// Up to this number, options that affect latencies fit on a page with their reasons.
const FEW_REASONS: usize = 20;

pub(crate) fn show(chosen: &[Chosen], asked: &Asked, width: usize) -> String {
    let configurations: Vec<&Configuration> = chosen.iter().map(|it| &it.reading.configuration).collect();
    let mut differences = compare(&configurations);
    differences.retain(|it| asked.has(it.area));
    let mut text = letters(chosen, width);
    text.push('\n');
    text.push_str(&counts(&configurations, &differences, asked, width));
    if differences.is_empty() {
        let what = if asked.is_whole() { "No option differs." } else { "No option differs there." };
        text.push('\n');
        text.push_str(&paragraph(what, width, ""));
        return text;
    }
    let (affecting, others): (Vec<&Difference>, Vec<&Difference>) =
        differences.iter().partition(|it| it.entry.is_some_and(|entry| entry.affects.is_some()));
    text.push('\n');
    text.push_str(&of_affecting(chosen, &affecting, asked, width));
    text.push_str(&of_others(chosen, &others, asked, width));
    text.push('\n');
    text.push_str(&paragraph("y built in, m module, n off, - not offered by that kernel", width, ""));
    text.push_str(&renames(chosen, width));
    text.push_str(&parameters(chosen, width));
    text.push_str(&paragraph(text::NOT_STATE, width, ""));
    text
}

fn letters(chosen: &[Chosen], width: usize) -> String {
    let mut text = String::new();
    for (it, letter) in chosen.iter().zip(LETTERS) {
        let line = format!("{} ({})", text::kernel(it), text::source(it));
        text.push_str(&paragraph(&line, width, &format!("{letter}  ")));
        text.push_str(&text::oddities(&it.reading.configuration, width));
    }
    text
}

fn counts(
    configurations: &[&Configuration],
    differences: &[Difference],
    asked: &Asked,
    width: usize,
) -> String {
    let letters = LETTERS.iter().take(configurations.len()).copied();
    let header: Vec<&str> =
        std::iter::once("built in/modules").chain(letters).chain(["differ", "n or -"]).collect();
    let mut table = Table::new(&header).with_dispensable(1);
    let counters: Vec<_> = configurations.iter().map(|configuration| counter(configuration)).collect();
    let number = |kind: DifferenceKind, area: Option<&str>| {
        let there = |it: &&Difference| it.kind == kind && area.is_none_or(|area| it.area.name == area);
        differences.iter().filter(there).count()
    };
    let mut add = |name: &str, counts: Vec<Counts>, area: Option<&str>| {
        let both = |counts: &Counts| format!("{}/{}", counts.built_in, counts.modules);
        let mut cells = vec![name.to_owned()];
        cells.extend(counts.iter().map(both));
        cells.extend(
            [DifferenceKind::Set, DifferenceKind::Offered].map(|kind| number(kind, area).to_string()),
        );
        let quiet = number(DifferenceKind::Set, area) == 0;
        table.row(if quiet { Look::Faint } else { Look::Plain }, &cells, &[]);
    };
    if asked.is_whole() {
        add("all", configurations.iter().map(|configuration| Counts::of(configuration)).collect(), None);
    }
    for area in &asked.areas {
        let of_area = |counters: &Vec<crate::Counter>| {
            let counter = counters.iter().find(|counter| counter.area.name == area.name);
            counter.map(|counter| counter.counts).unwrap_or_default()
        };
        add(area.name, counters.iter().map(of_area).collect(), Some(area.name));
    }
    let mut text = table.render(width);
    text.push_str(&paragraph(
        "n or -: off in some and not offered by others, so nothing of it is built",
        width,
        "",
    ));
    text
}

fn of_affecting(chosen: &[Chosen], affecting: &[&Difference], asked: &Asked, width: usize) -> String {
    let (shown, offered): (Vec<&Difference>, Vec<&Difference>) =
        affecting.iter().partition(|it| asked.every_option || it.kind == DifferenceKind::Set);
    let mut text = heading("Options that affect latencies", width);
    match shown.as_slice() {
        [] => text.push_str(&paragraph("No known one.", width, "")),
        shown => {
            let explained = asked.explained || shown.len() <= FEW_REASONS;
            text.push_str(&table(chosen, shown, explained).render(width));
            if !explained {
                text.push_str(&paragraph(
                    "--explain says which boundaries each of them affects and how.",
                    width,
                    "",
                ));
            }
        }
    }
    if !offered.is_empty() {
        let names: Vec<&str> = offered.iter().map(|it| it.name).collect();
        text.push_str(&paragraph(&format!("off or not offered: {}", names.join(", ")), width, ""));
    }
    text
}

/// Lists the options that affect no latency by area; only counts them if there are too many.
fn of_others(chosen: &[Chosen], others: &[&Difference], asked: &Asked, width: usize) -> String {
    let mut shown: Vec<&Difference> = Vec::new();
    let mut hidden = Vec::new();
    for area in &asked.areas {
        let there = |it: &&Difference| {
            it.area.name == area.name && (asked.every_option || it.kind == DifferenceKind::Set)
        };
        let of_area: Vec<&Difference> = others.iter().copied().filter(there).collect();
        match of_area.len() {
            0 => {}
            number if number <= FEW || asked.every_option => shown.extend(of_area),
            number => hidden.push(format!("{number} of {}", area.name)),
        }
    }
    let mut text = String::new();
    if !shown.is_empty() {
        text.push('\n');
        text.push_str(&heading("What else differs", width));
        text.push_str(&table(chosen, &shown, true).render(width));
    }
    if !hidden.is_empty() {
        let more = format!(
            "Not shown: {}; --area NAME lists those of an area, --all everything.",
            hidden.join(", ")
        );
        text.push('\n');
        text.push_str(&paragraph(&more, width, ""));
    }
    text
}

fn table(chosen: &[Chosen], rows: &[&Difference], explained: bool) -> Table {
    let letters: Vec<&str> = LETTERS.iter().take(chosen.len()).copied().collect();
    let header: Vec<&'static str> = std::iter::once("option").chain(letters.iter().copied()).collect();
    let mut table = Table::new(&header).with_words(&letters);
    let mut headed = "";
    for it in rows {
        if headed != it.area.name {
            headed = it.area.name;
            table.heading(headed);
        }
        let mut cells = vec![format!("  {}", it.name)];
        cells.extend(it.values.iter().map(|value| text::value(*value)));
        let output = it.entry.filter(|_| explained).and_then(text::about);
        let mut remarks: Vec<String> = output.into_iter().collect();
        let configurations: Vec<_> = chosen.iter().map(|it| &it.reading.configuration).collect();
        remarks.extend(it.without(&configurations).map(str::to_owned));
        for (value, letter) in it.values.iter().zip(LETTERS) {
            remarks.extend(text::long_value(*value).map(|text| format!("{letter} {text}")));
        }
        table.row(Look::Plain, &cells, &remarks);
    }
    table
}

/// Lists options that are compared under different names. A former name that all configurations use is left out.
fn renames(chosen: &[Chosen], width: usize) -> String {
    let everywhere = |name: &str| chosen.iter().all(|it| it.reading.configuration.value(name).is_some());
    let mut text = String::new();
    for (it, letter) in chosen.iter().zip(LETTERS) {
        let renamed = text::renamed(&it.reading.configuration).filter(|(was, _)| !everywhere(was));
        let names: Vec<String> = renamed.map(|(was, is)| format!("{was} as {is}")).collect();
        if !names.is_empty() {
            let number = figures::count(names.len(), "option", "options");
            let line = format!("{letter} has {number} under an older name, compared under the current one:");
            text.push_str(&paragraph(&format!("{line} {}", names.join(", ")), width, ""));
        }
    }
    text
}

fn parameters(chosen: &[Chosen], width: usize) -> String {
    let mut text = String::new();
    for (it, letter) in chosen.iter().zip(LETTERS) {
        let given = it.command_line.as_deref().map(overridden).unwrap_or_default();
        let given = text::parameters(&given);
        if !given.is_empty() {
            let line =
                format!("{letter} is running, and its command line overrides some: {}.", given.join(" "));
            text.push_str(&paragraph(&line, width, ""));
        }
    }
    text
}
