//! The tables of commands: the timed figures, the traced ones, and the verdicts of many.

use tollgate_model::Unit;
use tollgate_model::traced::blame::Part;
use tollgate_model::versus::{FAULTS, MEMORY, REAL, SYS, USER};
use tollgate_output::figures::{self, thousands};
use tollgate_output::table::{Table, heading};

use super::cells::Cell;
use super::said::real;
use super::split::Middle;
use crate::compare::columns::{self, Compared, Sides};
use crate::comparison::Comparison;
use crate::summary::Figures;

pub(super) fn timed(cells: &[Cell], width: usize) -> String {
    let heads = ["timed", "median", "95 % CI", "min", "user", "sys", "memory", "faults"];
    let row = |cell: &Cell| {
        let median = |case: &str| Some(cell.figures(case)?.estimate.median);
        let real = cell.figures(REAL);
        let figures = [
            real.map(Figures::in_words),
            real.and_then(Figures::interval_in_words),
            real.map(|real| time(real.estimate.min)),
            median(USER).map(time),
            median(SYS).map(time),
            cell.figures(MEMORY).map(Figures::in_words),
            median(FAULTS).map(whole),
        ];
        (cell.label.clone(), figures)
    };
    Table::of_cells(heads, cells.iter().map(row)).lines(Some(width), false)
}

/// The real time of the traced executions, by part: medians. `None` if none was traced.
pub(super) fn traced(cells: &[Cell], width: usize) -> Option<String> {
    let heads = ["traced", "real", "user", "kernel", "disk", "processor", "asleep", "unaccounted", "calls"];
    cells.iter().find(|cell| !cell.traced().is_empty())?;
    let row = |cell: &Cell| {
        let middle = Middle::of(cell.traced());
        let middle = middle.as_ref();
        let part = |part: Part| middle.and_then(|middle| middle.part(part)).map(time);
        let parts = [Part::User, Part::Sys, Part::Disk, Part::Runqueue, Part::Sleep, Part::Unaccounted];
        let real = middle.map(|middle| time(middle.real));
        let calls = middle.map(|middle| whole(middle.calls));
        let figures = std::iter::once(real).chain(parts.map(part)).chain([calls]);
        (cell.label.clone(), figures.collect::<Vec<_>>())
    };
    let table = Table::of_cells(heads, cells.iter().map(row)).with_dispensable(2);
    Some(table.lines(Some(width), false))
}

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

fn time(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { figures::estimate(ns, Unit::Nanoseconds) }
}

fn whole(number: f64) -> String {
    thousands(&format!("{number:.0}"))
}
