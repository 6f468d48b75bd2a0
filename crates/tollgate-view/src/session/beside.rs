//! One environment that counts instructions beside one with times: their figures, without a ratio.

use std::collections::HashSet;

use tollgate_model::Case;
use tollgate_model::compare::NotCompared;
use tollgate_model::sorting::Ordered as _;
use tollgate_output::table::{Look, Table};
use tollgate_output::value::NONE;

use crate::comparison::Comparison;
use crate::summary::{Figures, Summary};

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
            rows.order_by_key(|row| !headlines.contains(&row.case.to_string()));
            rows.truncate(room);
        }
        let mut table = Table::new(&["benchmark", "base", "other"]);
        let figure = |summary: &Summary, case: &Case| {
            summary.figures(case).map_or_else(|| NONE.to_owned(), Figures::in_words)
        };
        for row in &rows {
            let [base, other] = [self.base, self.other].map(|summary| figure(summary, &row.case));
            table.row(Look::Plain, &[row.case.to_string(), base, other], &[]);
        }
        (table, rows.len())
    }
}
