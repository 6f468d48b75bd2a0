//! The difference of two commands as text: the parts of the real time, and the system calls.

use tollgate_model::text::clean;
use tollgate_output::column::Columns;
use tollgate_output::figures::count;
use tollgate_output::table::{Table, cut, heading, paragraph};
use unicode_width::UnicodeWidthStr;

use super::lines::{Lines, REST, Shown, numbers};
use crate::comparison::{self, Comparison};
use tollgate_trace::output::text as words;

const FEW_CALLS: usize = 4;
const LONGEST: usize = 32;

pub(crate) struct Difference {
    labels: [String; 2],
    names: [&'static str; 2],
    lines: Lines,
}

impl Difference {
    pub(crate) fn of(comparison: &Comparison) -> Option<Self> {
        let labels = [comparison.base, comparison.other].map(comparison::name);
        Self::named(labels, ["base", "other"], comparison)
    }

    /// With labels of a screen and names in the header of a table. `None` if either was not traced, or not timed.
    pub(super) fn named(
        labels: [String; 2],
        names: [&'static str; 2],
        comparison: &Comparison,
    ) -> Option<Self> {
        Some(Self { labels, names, lines: Lines::of(comparison)? })
    }

    pub(crate) fn text(&self, most: usize, width: usize) -> String {
        let [base, other] = &self.labels;
        let split = &self.lines.split;
        let insignificant = if self.lines.is_different { "" } else { ", which is not significant" };
        let title = format!(
            "{other} less {base}: {}{insignificant}, by {}",
            self.lines.show(split.timed.difference),
            count(split.pairs, "pair of traced executions", "pairs of traced executions")
        );
        let method = paragraph(&format!("{} {REST}", split.shares), width, "");
        heading(&title, width) + &self.tables(most, width) + &method
    }

    /// The calls in one line: `B less A by calls: unlink +0.600 ms (100 → 400), …`.
    pub(super) fn line(&self, width: usize) -> String {
        let split = &self.lines.split;
        let differ = split.calls.iter().filter(|call| call.line.difference != 0).take(FEW_CALLS);
        let call = |call: &super::split::Call| {
            let name = words::cut(&call.name, LONGEST);
            format!("{name} {} ({})", self.lines.show(call.line.difference), numbers(call.counts))
        };
        let outside = format!("outside of calls {}", self.lines.show(split.outside.difference));
        let calls: Vec<String> = std::iter::once(outside).chain(differ.map(call)).collect();
        let line = format!("{} less {}: {}", self.labels[1], self.labels[0], calls.join(", "));
        let line = clean(&line).into_owned();
        format!("{}\n", if line.width() > width { cut(&line, width) } else { line })
    }

    fn tables(&self, most: usize, width: usize) -> String {
        let table = |columns, rows| table(columns, rows, self.names).lines(Some(width), false);
        let lines = &self.lines;
        table(lines.of_parts(), lines.parts()) + &table(lines.of_calls(), lines.calls(most))
    }
}

fn table(columns: Columns<Shown>, rows: Vec<Shown>, [base, other]: [&'static str; 2]) -> Table {
    let columns = columns.headed("base", base).headed("other", other);
    Table::from_rows(&columns, rows.into_iter().map(|row| (row, None)))
}
