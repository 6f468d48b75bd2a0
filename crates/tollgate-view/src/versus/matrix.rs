//! Several commands in several environments: one table of ratios.

use tollgate_output::table::{Table, heading};

use super::cells::{Cell, comparison_of, static_letter};
use super::said::real;
use crate::compare::columns::Compared;
use crate::session::Session;

/// The ratios to the first command in the first environment; `None` unless there are several of both.
pub(super) fn text(session: &Session, cells: &[Cell], width: usize) -> Option<String> {
    let number = |of: fn(&Cell) -> usize| cells.iter().map(of).max().map_or(0, |last| last + 1);
    let commands = number(|cell| cell.command_number);
    let environments = number(|cell| cell.environment_number);
    let first = cells.first().filter(|_| commands > 1 && environments > 1)?;
    let letters: Vec<&'static str> = (0..commands).map_while(static_letter).collect();
    let row = |environment: usize| {
        let of_row = || cells.iter().filter(move |cell| cell.environment_number == environment);
        let ratio_of = |command: usize| shown(session, of_row().find(|cell| cell.command_number == command)?);
        let ratios: Vec<Option<String>> = (0..letters.len()).map(ratio_of).collect();
        Some((of_row().next()?.member.part.environment.clone(), ratios))
    };
    let heads = std::iter::once("environment").chain(letters.iter().copied());
    let table = Table::of_cells(heads, (0..environments).filter_map(row));
    let title = format!("Real time as a multiple of {} (~ inconclusive; CIs: --all)", first.label);
    Some(heading(&title, width) + &table.lines(Some(width), false))
}

fn shown(session: &Session, cell: &Cell) -> Option<String> {
    let Some(comparison) = comparison_of(session, cell) else { return Some("1".to_owned()) };
    Compared::new(comparison, real(comparison)).words("multiple")
}
