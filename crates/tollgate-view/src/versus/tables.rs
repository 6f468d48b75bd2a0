//! The tables of commands: what was timed, what was traced, and the verdicts of many.

use tollgate_model::traced::blame::{Account, Part};
use tollgate_model::versus::{FAULTS, MEMORY, REAL, SYS, USER};
use tollgate_model::{Unit, stats};
use tollgate_output::figures::{self, thousands};
use tollgate_output::table::{Look, Table, heading};
use tollgate_output::value::NONE;

use super::cells::Cell;
use super::said::real;
use crate::compare::columns::{self, Compared, Sides};
use crate::comparison::Comparison;
use crate::summary::Figures;

/// The figures of the timed executions.
pub(super) fn timed(cells: &[Cell], width: usize) -> String {
    let mut table = Table::new(&["timed", "median", "95 % CI", "min", "user", "sys", "memory", "faults"]);
    for cell in cells {
        let figures = |case: &str| cell.figures(case);
        let median = |case: &str| figures(case).map(|figures| figures.estimate.median);
        let row = [
            cell.label.clone(),
            or_none(figures(REAL).map(Figures::in_words)),
            or_none(figures(REAL).and_then(Figures::interval_in_words)),
            or_none(figures(REAL).map(|real| time(real.estimate.min))),
            or_none(median(USER).map(time)),
            or_none(median(SYS).map(time)),
            or_none(figures(MEMORY).map(Figures::in_words)),
            or_none(median(FAULTS).map(whole)),
        ];
        table.row(Look::Plain, &row, &[]);
    }
    table.lines(Some(width), false)
}

/// Where the real time of the traced executions went: medians. None where none was traced.
pub(super) fn traced(cells: &[Cell], width: usize) -> Option<String> {
    let header = ["traced", "real", "user", "kernel", "disk", "processor", "asleep", "unaccounted", "calls"];
    let mut table = Table::new(&header).with_dispensable(2);
    cells.iter().find(|cell| !cell.traced().is_empty())?;
    for cell in cells {
        let traced = cell.traced();
        let accounts: Vec<Account> = traced.iter().map(Account::from_traced).collect();
        let has_idle = traced.iter().all(|traced| traced.idle.is_some());
        let part = |wanted: Part| {
            let of = |account: &Account| account.parts().into_iter().find(|(part, _)| *part == wanted);
            let is_known = has_idle || matches!(wanted, Part::User | Part::Sys | Part::Unaccounted);
            let times = accounts.iter().filter_map(|account| Some(of(account)?.1));
            or_none(middle(times).filter(|_| is_known).map(time))
        };
        let calls = middle(traced.iter().map(tollgate_model::Traced::count));
        let parts =
            [Part::User, Part::Sys, Part::Disk, Part::Runqueue, Part::Sleep, Part::Unaccounted].map(part);
        let row: Vec<String> =
            [cell.label.clone(), or_none(middle(accounts.iter().map(|account| account.real)).map(time))]
                .into_iter()
                .chain(parts)
                .chain([or_none(calls.map(whole))])
                .collect();
        table.row(Look::Plain, &row, &[]);
    }
    Some(table.lines(Some(width), false))
}

/// Each of these compared with the first, a row each.
pub(super) fn verdicts<'c>(base: &'c str, others: &[(&'c Cell, &'c Comparison<'c>)], width: usize) -> String {
    let sides = others
        .iter()
        .map(|(cell, comparison)| Sides::named(comparison, [base.into(), cell.label.as_str().into()]));
    let sides: Vec<Sides> = sides.collect();
    let rows = others
        .iter()
        .zip(&sides)
        .map(|((_, comparison), sides)| (Compared::new(comparison, real(comparison)).between(sides), None));
    let Some((_, first)) = others.first() else { return String::new() };
    let table = Table::from_rows(&columns::of_commands(first), rows).with_dispensable(1);
    heading(&format!("Compared with {base}"), width) + &table.lines(Some(width), false)
}

fn middle(values: impl Iterator<Item = u64>) -> Option<f64> {
    stats::median(&values.map(|value| value as f64).collect::<Vec<f64>>())
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

/// A time that may be nothing.
fn time(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { figures::estimate(ns, Unit::Nanoseconds) }
}

fn whole(number: f64) -> String {
    thousands(&format!("{number:.0}"))
}
