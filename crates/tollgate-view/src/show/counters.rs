//! Event counts per operation: context switches, faults, and with a PMU cycles, instructions and misses.

use std::collections::BTreeSet;

use tollgate_model::events::{
    BRANCH_MISSES, CACHE_MISSES, CONTEXT_SWITCHES, KERNEL_CYCLES, KERNEL_INSTRUCTIONS, MAJOR_FAULTS,
    MIGRATIONS, MINOR_FAULTS, USER_CYCLES, USER_INSTRUCTIONS, per_operation,
};
use tollgate_model::measurement::Measured;
use tollgate_output::figures::{estimate, significant, thousands};
use tollgate_output::table::{Look, Table, paragraph};

use crate::facts;
use crate::summary::{Figures, Summary};

const BY_KERNEL: [(&str, &str); 4] = [
    ("switches", CONTEXT_SWITCHES),
    ("migrations", MIGRATIONS),
    ("minor faults", MINOR_FAULTS),
    ("major faults", MAJOR_FAULTS),
];
const BY_PMU: [(&str, &str); 6] = [
    ("user cycles", USER_CYCLES),
    ("kernel cycles", KERNEL_CYCLES),
    ("user instr.", USER_INSTRUCTIONS),
    ("kernel instr.", KERNEL_INSTRUCTIONS),
    ("branch misses", BRANCH_MISSES),
    ("cache misses", CACHE_MISSES),
];

const NOTHING: &str = "–";

/// A line for each case with its counts per operation, what counted them, and why there are no hardware events.
pub fn text(summary: &Summary, width: Option<usize>) -> String {
    let rows: Vec<_> =
        summary.measured().filter(|(_, figures)| !figures.measured.events.is_empty()).collect();
    let whole = width.unwrap_or(usize::MAX);
    if rows.is_empty() {
        let why = "this run has no event counts: the trace of a command has its own, and counted instructions need none";
        return paragraph(why, whole, "");
    }
    let is_counted =
        |what: &str| rows.iter().any(|(_, figures)| per_operation(&figures.measured.events, what).is_some());
    let hardware: Vec<_> = BY_PMU.into_iter().filter(|(_, what)| is_counted(what)).collect();
    let columns: Vec<_> = hardware.iter().copied().chain(BY_KERNEL).collect();
    let mut text = String::new();
    for suite in rows.chunk_by(|(one, _), (other, _)| one.suite() == other.suite()) {
        let names = ["per operation", "median"].into_iter().chain(columns.iter().map(|(name, _)| *name));
        let mut table = Table::new(&names.collect::<Vec<_>>());
        for (case, figures) in suite {
            table.row(Look::Plain, &cells(&case.to_string(), figures, &columns), &[]);
        }
        text.push_str(&table.render(whole));
        text.push('\n');
    }
    let measured = || rows.iter().map(|(_, figures)| &*figures.measured);
    text.push_str(&paragraph(&sources(measured()), whole, "counted by: "));
    text.push_str(&hardware_in_words(summary, measured(), whole));
    text
}

fn cells(name: &str, figures: &Figures, columns: &[(&str, &str)]) -> Vec<String> {
    let measured = &figures.measured;
    let counts = columns
        .iter()
        .map(|(_, what)| per_operation(&measured.events, what).map_or(NOTHING.to_owned(), in_words));
    let median = estimate(figures.estimate.median, measured.unit);
    [name.to_owned(), median].into_iter().chain(counts).collect()
}

/// `0`, `1.00`, `0.018`, `1,390`; never zero for events that happened.
fn in_words(number: f64) -> String {
    const LEAST: f64 = 0.001;
    match number {
        0.0 => "0".to_owned(),
        number if number < LEAST => format!("<{LEAST}"),
        number if number < 0.1 => significant(number, 2),
        number => thousands(&significant(number, 3)),
    }
}

fn sources<'a>(all: impl Iterator<Item = &'a Measured>) -> String {
    let sources: BTreeSet<&str> =
        all.flat_map(|measured| &measured.events).map(|counts| counts.source.as_str()).collect();
    sources.into_iter().collect::<Vec<_>>().join("; ")
}

/// The counts of the PMU, or why it counted nothing, and how many batches it did not count.
fn hardware_in_words<'a>(summary: &Summary, all: impl Iterator<Item = &'a Measured>, width: usize) -> String {
    let uncounted = all
        .flat_map(|measured| &measured.events)
        .fold(0_u64, |sum, counts| sum.saturating_add(counts.uncounted));
    let mut text = match summary.run.facts.get(facts::COUNTERS) {
        None => String::new(),
        Some(fact) => match (fact, fact.value()) {
            (_, Some(value)) => paragraph(&value.to_string(), width, "hardware events: "),
            (tollgate_model::Fact::Unknown { why }, _) => {
                paragraph(&format!("none: {}", why.kind_and_why().1), width, "hardware events: ")
            }
            _ => String::new(),
        },
    };
    if uncounted > 0 {
        let words = format!(
            "{uncounted} batches are not in the hardware counts, because other users of the PMU held its counters for part of the time (multiplexing)"
        );
        text.push_str(&paragraph(&words, width, "warning: "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_seldom_is_not_zero() {
        for (number, text) in [
            (0.0, "0"),
            (0.000_2, "<0.001"),
            (0.018_3, "0.018"),
            (1.0, "1.00"),
            (64.25, "64.2"),
            (1_390.0, "1,390"),
        ] {
            assert_eq!(in_words(number), text);
        }
    }
}
