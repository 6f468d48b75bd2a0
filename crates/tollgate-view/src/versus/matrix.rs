//! Several commands in several environments: one table of ratios.

use tollgate_output::table::{Look, Table, heading};
use tollgate_output::value::NONE;

use super::cells::{Cell, comparison_of, static_letter};
use super::said::real;
use crate::compare::columns::Compared;
use crate::session::Session;

/// The ratios to the first command in the first environment; None where there are not several of both.
pub(super) fn text(session: &Session, cells: &[Cell], width: usize) -> Option<String> {
    let number = |of: fn(&Cell) -> usize| cells.iter().map(of).max().map_or(0, |last| last + 1);
    let commands = number(|cell| cell.command_number);
    let environments = number(|cell| cell.environment_number);
    let first = cells.first().filter(|_| commands > 1 && environments > 1)?;
    let letters = (0..commands).map_while(static_letter);
    let header: Vec<&'static str> = std::iter::once("environment").chain(letters).collect();
    let mut table = Table::new(&header);
    for environment in 0..environments {
        let of_row: Vec<&Cell> = cells.iter().filter(|cell| cell.environment_number == environment).collect();
        let name = of_row.first()?.member.part.environment.clone();
        let ratio_of = |command: usize| {
            let cell = of_row.iter().find(|cell| cell.command_number == command);
            cell.and_then(|cell| shown(session, cell)).unwrap_or_else(|| NONE.to_owned())
        };
        let row: Vec<String> = std::iter::once(name).chain((0..header.len() - 1).map(ratio_of)).collect();
        table.row(Look::Plain, &row, &[]);
    }
    let title = format!("Real time as a multiple of {} (~ inconclusive; CIs: --all)", first.label);
    Some(heading(&title, width) + &table.lines(Some(width), false))
}

fn shown(session: &Session, cell: &Cell) -> Option<String> {
    let Some(comparison) = comparison_of(session, cell) else { return Some("1".to_owned()) };
    Compared::new(comparison, real(comparison)).words("multiple")
}
