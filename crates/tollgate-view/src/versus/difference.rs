//! The difference of two commands as text: the parts of the real time, and the system calls.

use tollgate_model::text::clean;
use tollgate_model::traced::blame::Part;
use tollgate_output::figures::count;
use tollgate_output::table::{Look, Table, cut, heading, paragraph};
use unicode_width::UnicodeWidthStr;

use super::said;
use super::split::{Line, Split};
use crate::comparison::{self, Comparison};
use crate::trace::blame::in_words_of_part;
use crate::trace::text as words;

/// Calls of a line.
const FEW_CALLS: usize = 4;
/// The longest name of a call.
const LONGEST: usize = 32;

/// A command less the first, and what the difference consists of.
pub(crate) struct Difference {
    /// The labels of the base and of the other.
    labels: [String; 2],
    /// The same in the header of a table.
    names: [&'static str; 2],
    split: Split,
    /// Whether it has a verdict: shares of noise say nothing.
    is_different: bool,
    column: Column,
}

impl Difference {
    /// Of two runs of commands.
    pub(crate) fn of(comparison: &Comparison) -> Option<Self> {
        let labels = [comparison.base, comparison.other].map(comparison::name);
        Self::named(labels, ["base", "other"], comparison)
    }

    /// The same with labels of a screen and names in the header of a table. None where either was not traced, or not timed.
    pub(super) fn named(
        labels: [String; 2],
        names: [&'static str; 2],
        comparison: &Comparison,
    ) -> Option<Self> {
        let split = Split::of(comparison)?;
        let is_different = said::real(comparison)?.result.verdict.is_difference();
        Some(Self { column: Column::of(&split), labels, names, split, is_different })
    }

    /// The tables, with at most so many calls.
    pub(crate) fn text(&self, most: usize, width: usize) -> String {
        let [base, other] = &self.labels;
        let insignificant = if self.is_different { "" } else { ", which is not significant" };
        let title = format!(
            "{other} less {base}: {}{insignificant}, by {}",
            self.column.show(self.split.timed.difference),
            count(self.split.pairs, "pair of traced executions", "pairs of traced executions")
        );
        let tables = [self.parts(), self.calls(most)].map(|table| table.lines(Some(width), false)).concat();
        let shares = match (self.split.is_exact, self.split.has_idle) {
            (true, _) => "One thread: the calls' shares are exact.",
            (false, true) => "Several threads: the calls' shares are estimates.",
            (false, false) => "ptrace(2) does not know the waiting: the calls' shares are estimates.",
        };
        let rest = "rest: tracing, and medians over the pairs, which do not sum.";
        let method = paragraph(&format!("{shares} {rest}"), width, "");
        heading(&title, width) + &tables + &method
    }

    /// The calls in one line: `B less A by calls: unlink +0.600 ms (100 → 400), …`.
    pub(super) fn line(&self, width: usize) -> String {
        let differ = self.split.calls.iter().filter(|call| call.line.difference != 0).take(FEW_CALLS);
        let call = |call: &super::split::Call| {
            let name = words::cut(&call.name, LONGEST);
            format!("{name} {} ({})", self.column.show(call.line.difference), call.numbers())
        };
        let outside = format!("outside of calls {}", self.column.show(self.split.outside.difference));
        let calls: Vec<String> = std::iter::once(outside).chain(differ.map(call)).collect();
        let line = format!("{} less {}: {}", self.labels[1], self.labels[0], calls.join(", "));
        let line = clean(&line).into_owned();
        format!("{}\n", if line.width() > width { cut(&line, width) } else { line })
    }

    fn parts(&self) -> Table {
        let mut table = self.table("real time by", false);
        for (part, line) in self.split.parts.iter().filter(|(_, line)| *line != Line::default()) {
            self.row(&mut table, in_words_of_part(*part, self.split.has_ptrace()), *line, None);
        }
        self.end(&mut table, self.split.rest_of_parts());
        table
    }

    fn calls(&self, most: usize) -> Table {
        let mut table = self.table("call", true);
        let differ = self.split.calls.iter().take_while(|call| call.line.difference != 0).count();
        let (shown, others) = self.split.calls.split_at(most.min(differ));
        for call in shown {
            self.row(&mut table, &words::cut(&call.name, LONGEST), call.line, Some(call.numbers()));
        }
        let sum =
            |of: &dyn Fn(&Line) -> i64| others.iter().map(|call| of(&call.line)).fold(0, i64::saturating_add);
        let line = Line {
            sides: [sum(&|line| line.sides[0]), sum(&|line| line.sides[1])],
            difference: sum(&|line| line.difference),
        };
        if line != Line::default() {
            self.row(&mut table, &count(others.len(), "other", "others"), line, None);
        }
        self.row(&mut table, "outside of calls", self.split.outside, None);
        let beside = [(Part::Runqueue, self.split.runqueue), (Part::Unaccounted, self.split.unaccounted)];
        for (part, line) in beside.into_iter().filter(|(_, line)| *line != Line::default()) {
            self.row(&mut table, in_words_of_part(part, false), line, None);
        }
        self.end(&mut table, self.split.rest_of_calls());
        table
    }

    fn table(&self, first: &'static str, has_calls: bool) -> Table {
        let [base, other] = self.names;
        let mut header = vec![first, base, other, "difference"];
        header.extend(self.is_different.then_some("share"));
        header.extend(has_calls.then_some("calls"));
        Table::new(&header)
    }

    fn row(&self, table: &mut Table, name: &str, line: Line, calls: Option<String>) {
        let side = |ns: i64| if ns == 0 { "0".to_owned() } else { words::signed(ns as f64) };
        let [base, other] = line.sides.map(side);
        let mut cells = vec![name.to_owned(), base, other, self.column.show(line.difference)];
        cells.extend(self.share(line.difference));
        cells.extend(calls);
        table.row(Look::Plain, &cells, &[]);
    }

    /// What is left of the timed difference, and that.
    fn end(&self, table: &mut Table, rest: i64) {
        let mut cells = vec!["rest".to_owned(), String::new(), String::new(), self.column.show(rest)];
        cells.extend(self.share(rest));
        table.row(Look::Faint, &cells, &[]);
        self.row(table, "real, timed", self.split.timed, None);
    }

    /// A share of the difference: below 0 and above 100 % where other parts go the other way. None without a verdict.
    fn share(&self, ns: i64) -> Option<String> {
        self.is_different.then(|| match ns as f64 / self.split.timed.difference as f64 * 100.0 {
            none if none == 0.0 || !none.is_finite() => "0".to_owned(),
            small if small.abs() < 0.5 => "<1 %".to_owned(),
            percent => format!("{percent:.0} %"),
        })
    }
}

/// How the differences of a column are written: in one unit, with the same decimals, so that a reader can add them.
struct Column {
    divisor: f64,
    unit: &'static str,
    decimals: usize,
}

impl Column {
    /// Four digits of the largest.
    fn of(split: &Split) -> Self {
        const DIGITS: usize = 4;
        let parts = split.parts.iter().map(|(_, line)| line.difference);
        let calls = split.calls.iter().map(|call| call.line.difference);
        let all = parts.chain(calls).chain([
            split.timed.difference,
            split.outside.difference,
            split.rest_of_calls(),
        ]);
        let largest = all.map(i64::unsigned_abs).max().unwrap_or(0).max(1) as f64;
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
        let unit = units.into_iter().find(|(divisor, _)| largest >= *divisor);
        let Some((divisor, unit)) = unit else { return Self { divisor: 1.0, unit: "ns", decimals: 0 } };
        let whole = 1 + (largest / divisor).log10().max(0.0) as usize;
        Self { divisor, unit, decimals: DIGITS.saturating_sub(whole) }
    }

    fn show(&self, ns: i64) -> String {
        let decimals = self.decimals;
        match ns {
            0 => "0".to_owned(),
            ns => format!("{:+.decimals$} {}", ns as f64 / self.divisor, self.unit),
        }
    }
}
