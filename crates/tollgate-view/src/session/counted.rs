//! The rows of environments that count instructions: of two that do as counts and differences, of one that does beside one with
//! times as figures without a ratio.

use std::collections::HashSet;

use tollgate_model::Case;
use tollgate_model::compare::{NotCompared, Verdict};
use tollgate_output::table::{Look, Table};

use super::rows::{in_short, look};
use crate::comparison::{Comparison, Row};
use crate::counts;
use crate::summary::{Figures, Summary};

/// The columns beside the name of a case, and those with its causes.
const FIGURES: [usize; 2] = [46, 52];

/// The table of a screen, with the numbers of the causes where they say something.
pub(super) fn table(rows: &[&Row], causes: Option<&Vec<String>>, width: usize) -> Table {
    let longest = width.saturating_sub(FIGURES[usize::from(causes.is_some())]);
    let mut header = vec!["benchmark", "instructions", "adds", "change", "verdict"];
    header.extend(causes.map(|_| "cause"));
    let mut table = Table::new(&header).with_words(&["verdict", "cause"]);
    for (at, row) in rows.iter().enumerate() {
        let mut cells = cells(row, in_short(row.case(), longest)).to_vec();
        cells.extend(causes.map(|causes| causes[at].clone()));
        table.row(look(row), &cells, &[]);
    }
    table
}

/// The table of all rows: changed ones first.
pub(super) fn whole(comparison: &Comparison) -> Table {
    let mut table =
        Table::new(&["benchmark", "instructions", "adds", "change", "verdict"]).with_words(&["verdict"]);
    let mut rows: Vec<&Row> = comparison.changed();
    rows.extend(comparison.rows.iter().filter(|row| row.result.verdict == Verdict::Same));
    for row in rows {
        let causes = comparison.cause_names(row);
        let causes = (!causes.is_empty() && comparison.proven.is_none())
            .then(|| format!("possible: {}", causes.join(", ")));
        let remark = causes.or_else(|| row.result.why.clone());
        table.row(look(row), &cells(row, row.case().to_string()), remark.as_slice());
    }
    table
}

fn cells(row: &Row, name: String) -> [String; 5] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let verdict = row.result.verdict.to_string();
    [name, counts::from_to(row), or_none(counts::adds(row)), or_none(counts::change(row)), verdict]
}

/// Two environments whose figures have different units.
pub(super) struct Beside<'a, 'b> {
    pub(super) base: &'b Summary<'a>,
    pub(super) other: &'b Summary<'a>,
}

impl Beside<'_, '_> {
    /// The figures of both, at most so many rows, and how many they are: those of the first screen's operations before others.
    pub(super) fn table(
        &self,
        comparison: &Comparison,
        headlines: &HashSet<String>,
        room: usize,
    ) -> (Table, usize) {
        let mut rows: Vec<&NotCompared> = comparison.not_compared.iter().collect();
        if rows.len() > room {
            rows.sort_by_key(|row| !headlines.contains(&row.case.to_string()));
            rows.truncate(room);
        }
        let mut table = Table::new(&["benchmark", "base", "other"]);
        let figure = |summary: &Summary, case: &Case| {
            summary.figures(case).map_or_else(|| "–".to_owned(), Figures::in_words)
        };
        for row in &rows {
            let [base, other] = [self.base, self.other].map(|summary| figure(summary, &row.case));
            table.row(Look::Plain, &[row.case.to_string(), base, other], &[]);
        }
        (table, rows.len())
    }
}
