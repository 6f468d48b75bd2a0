//! The commands of a comparison and their figures.

use tollgate_model::versus::Command;
use tollgate_model::{Case, Traced, own, versus};

use super::split::traced;
use crate::comparison::Comparison;
use crate::session::{Member, Session};
use crate::summary::Figures;

/// The names of commands in tables and sentences, in the order in which they were given.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

pub(super) struct Cell<'a, 's> {
    pub(super) command_number: usize,
    pub(super) environment_number: usize,
    /// The command's letter; with the environment if there are several; only the environment if there is one command.
    pub(super) label: String,
    pub(super) command: &'a Command,
    pub(super) member: &'s Member<'a>,
}

pub(super) fn all<'a, 's>(session: &'s Session<'a>) -> Vec<Cell<'a, 's>> {
    // A command that occurs twice in an environment is two commands.
    let mut commands: Vec<(&Command, usize)> = Vec::new();
    let mut environments: Vec<&str> = Vec::new();
    let mut cells: Vec<Cell> = Vec::new();
    for member in &session.members {
        let Some(command) = member.part.command.as_deref() else { continue };
        let environment = member.part.environment.as_str();
        let environment_number = number(&mut environments, environment, |known| *known == environment);
        let is_before =
            |cell: &&Cell| cell.environment_number == environment_number && cell.command.is_same(command);
        let before = cells.iter().filter(is_before).count();
        let is_it = |known: &(&Command, usize)| known.0.is_same(command) && known.1 == before;
        let command_number = number(&mut commands, (command, before), is_it);
        cells.push(Cell { command_number, environment_number, label: String::new(), command, member });
    }
    for cell in &mut cells {
        let letter = letter(cell.command_number);
        let environment = &cell.member.part.environment;
        cell.label = match (commands.len(), environments.len()) {
            (_, 1) => letter,
            (1, _) => environment.clone(),
            _ => format!("{letter} in {environment}"),
        };
    }
    cells
}

fn number<T>(known: &mut Vec<T>, new: T, is_it: impl Fn(&T) -> bool) -> usize {
    known.iter().position(is_it).unwrap_or_else(|| {
        known.push(new);
        known.len() - 1
    })
}

/// `A`; after `Z` a number.
pub fn letter(number: usize) -> String {
    static_letter(number).map_or_else(|| format!("#{}", number + 1), str::to_owned)
}

/// The letter for the header of a table; `None` after `Z`.
pub(super) fn static_letter(number: usize) -> Option<&'static str> {
    LETTERS.get(number..number + 1)
}

impl<'s> Cell<'_, 's> {
    /// The figures of one of [`tollgate_model::versus::CASES`], or [`tollgate_model::versus::COUNTED`].
    pub(super) fn figures(&self, case: &str) -> Option<&'s Figures<'s>> {
        self.member.summary.figures(&Case::plain(case))
    }

    pub(super) fn executions(&self) -> usize {
        let figures = self.figures(versus::REAL).or_else(|| self.figures(versus::INSTRUCTIONS));
        figures.map_or(0, |figures| figures.measured.samples.len())
    }

    pub(super) fn traced(&self) -> &'s [Traced] {
        traced(self.member.summary.run)
    }

    pub(super) fn why_untraced(&self) -> Option<&'s str> {
        let outcome = &self.member.summary.run.measurement(&Case::plain(own::TRACED))?.outcome;
        outcome.why()
    }
}

pub(super) fn comparison_of<'c, 'a>(session: &'c Session<'a>, cell: &Cell) -> Option<&'c Comparison<'a>> {
    session.comparisons.iter().find(|comparison| comparison.other.id == cell.member.summary.run.id)
}
