//! The screen of compared commands: at most 40 lines of at most 80 columns that say which is faster, by how much, and where the
//! time went. With all, as many lines as they need.

use tollgate_model::compare::Verdict;
use tollgate_model::text::clean;
use tollgate_model::traced::Backend;
use tollgate_output::figures::count;
use tollgate_output::table::{Look, cut, paragraph, styled};

use super::cells::{self, Cell, letter, static_letter};
use super::difference::Difference;
use super::{counted, matrix, notes, said, tables};
use crate::atlas::Atlas;
use crate::compare::{layouts, processor};
use crate::comparison::Comparison;
use crate::session::text::line;
use crate::session::{Session, atlas, environments};
use tollgate_trace::output::text as words;

/// The lines of the screen, and its columns if the terminal has as many.
const LINES: usize = 40;
const COLUMNS: usize = 80;
const MOST_COMMANDS: usize = 6;
const MOST_CALLS: usize = 8;
const FEWEST_CALLS: usize = 2;
const MOST_ENVIRONMENTS: usize = 4;
const MOST_SENTENCES: usize = 2;

/// The screen, for a terminal of this width. With `all` every command, every call and every note.
pub fn text(session: &Session, all: bool, width: usize) -> String {
    let width = if all { width } else { width.min(COLUMNS) };
    let cells = cells::all(session);
    let screen = Screen { session, cells: &cells, all, width };
    if counted::is_counted(&cells) {
        return screen.counted();
    }
    let mut text =
        format!("{}{}\n{}", screen.head(), screen.commands(), tables::timed(screen.shown(), width));
    let notes: String = notes::all(session, &cells).iter().map(|note| paragraph(note, width, "")).collect();
    // Each with a blank line before it, as far as there is room.
    let differences: Vec<Difference> = screen.differences().collect();
    let mut blocks = vec![matrix::text(session, &cells, width), screen.verdicts()];
    let is_matrix = blocks[0].is_some();
    if is_matrix && !all {
        blocks.pop();
    }
    match differences.as_slice() {
        [difference] if cells.len() == 2 => {
            let before = blocks.iter().flatten().map(|block| 1 + block.lines().count()).sum::<usize>();
            let used = text.lines().count() + before + notes.lines().count() + 3;
            let fits = |block: &String| used + block.lines().count() <= LINES;
            let text = |most: usize| difference.text(most, width);
            let fitting = (FEWEST_CALLS..=MOST_CALLS).rev().map(text).find(fits);
            blocks.push(Some(if all {
                text(usize::MAX)
            } else {
                fitting.unwrap_or_else(|| text(FEWEST_CALLS))
            }));
        }
        differences => {
            blocks.push(tables::traced(screen.shown(), width));
            let lines: Vec<String> = differences.iter().map(|difference| difference.line(width)).collect();
            if all {
                blocks.extend(differences.iter().map(|difference| Some(difference.text(usize::MAX, width))))
            } else if !is_matrix {
                blocks.push(Some(screen.shortened(lines).concat()).filter(|lines| !lines.is_empty()))
            }
        }
    }
    blocks.push(Some(notes).filter(|notes| !notes.is_empty()));
    let mut left_out = false;
    for block in blocks.into_iter().flatten() {
        let has_room = all || text.lines().count() + block.lines().count() + 2 <= LINES;
        left_out |= !has_room;
        if has_room {
            text.push('\n');
            text.push_str(&block);
        }
    }
    let more = if left_out { "Not everything fits: " } else { "More: " };
    text + &cut(&format!("{more}{}", screen.more()), width) + "\n"
}

struct Screen<'a, 's> {
    session: &'s Session<'a>,
    cells: &'s [Cell<'a, 's>],
    all: bool,
    width: usize,
}

impl<'s> Screen<'s, 's> {
    fn differences(&self) -> impl Iterator<Item = Difference> {
        let cells = self.cells;
        let others = cells.iter().skip(1).zip(&self.session.comparisons);
        others.filter_map(move |(other, comparison)| {
            let both = [cells.first()?, other];
            let names = match both.map(|cell| static_letter(cell.command_number)) {
                [Some(base), Some(other)] if base != other => [base, other],
                _ => ["base", "other"],
            };
            Difference::named(both.map(|cell| cell.label.clone()), names, comparison)
        })
    }
}

impl Screen<'_, '_> {
    fn head(&self) -> String {
        let executions = of_each(self.cells.iter().map(Cell::executions));
        let mut shown: Vec<&str> = Vec::new();
        let mut lines = vec![line(self.session, "versus", &[executions], self.width)];
        for (member, (_, about)) in self.session.members.iter().zip(environments::lines(self.session)) {
            let name = member.part.environment.as_str();
            if !shown.contains(&name) && (self.all || shown.len() < MOST_ENVIRONMENTS) {
                shown.push(name);
                lines.push(format!("{}\n", cut(&clean(&format!("in {name}: {about}")), self.width)));
            }
        }
        lines.concat() + &paragraph(&self.method(), self.width, "")
    }

    fn counted(&self) -> String {
        let width = self.width;
        let mut text = format!("{}{}\n", self.head(), self.commands());
        let base = self.cells.first().map_or("", |base| base.label.as_str());
        let summaries: Vec<_> = self.session.members.iter().map(|member| &member.summary).collect();
        let kernels = Atlas::of_command(&summaries);
        text.push_str(&match &kernels {
            Some(kernels) => atlas::of_command(kernels, self.all, width),
            None => counted::table(self.shown(), width),
        });
        let others = self.cells.iter().skip(1).zip(&self.session.comparisons);
        for (cell, comparison) in others.filter(|_| kernels.is_none()) {
            text.push('\n');
            text.push_str(&counted::compared(base, &cell.label, comparison, width));
        }
        let notes = notes::all(self.session, self.cells);
        let notes: String = notes.iter().map(|note| paragraph(note, width, "")).collect();
        if !notes.is_empty() {
            text.push('\n');
            text.push_str(&notes);
        }
        text + &cut(&format!("More: {}", self.more()), width) + "\n"
    }

    fn method(&self) -> String {
        if counted::is_counted(self.cells) {
            return counted::METHOD.to_owned();
        }
        let timed = match self.session.comparisons.first().map(environments::method) {
            None => "One command: nothing to compare it with.".to_owned(),
            Some(Some(how)) => format!("{}.", how.trim_end_matches('.')),
            Some(None) => "Not alternated.".to_owned(),
        };
        let backend = self.cells.iter().find_map(|cell| cell.traced().first()).map(|traced| traced.backend);
        let traced = match backend {
            Some(Backend::Rusage) => "Not traced: rusage only.".to_owned(),
            Some(backend) => {
                let number = of_each(self.cells.iter().map(|cell| cell.traced().len()));
                format!("Traced with {}: {number}, in addition to those timed.", words::backend(backend))
            }
            None => match self.cells.iter().find_map(Cell::why_untraced) {
                Some(why) => format!("Not traced: {}.", why.trim_end_matches('.')),
                None => "Not traced.".to_owned(),
            },
        };
        format!("{timed} {traced}")
    }

    fn commands(&self) -> String {
        let mut seen = Vec::new();
        let mut lines = Vec::new();
        for cell in self.cells {
            if seen.contains(&cell.command_number) {
                continue;
            }
            seen.push(cell.command_number);
            let name = cell.command.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
            let line = format!("{}  {name}{}", letter(cell.command_number), one_line(&cell.command.line));
            lines.push(format!("{}\n", cut(&clean(&line), self.width)));
        }
        self.shortened(lines).concat()
    }

    /// Leaves out what does not fit, and says how much.
    fn shortened(&self, mut lines: Vec<String>) -> Vec<String> {
        let more = lines.len().saturating_sub(MOST_COMMANDS);
        if more > 0 && !self.all {
            lines.truncate(MOST_COMMANDS);
            lines.push(format!("   and {more} more\n"));
        }
        lines
    }

    fn shown(&self) -> &[Cell<'_, '_>] {
        let most = if self.all { usize::MAX } else { MOST_COMMANDS };
        &self.cells[..most.min(self.cells.len())]
    }

    /// The text about each other command compared with the first. `None` if there is no other.
    fn verdicts(&self) -> Option<String> {
        let base = &self.cells.first()?.label;
        let others: Vec<(&Cell, &Comparison)> =
            self.cells.iter().skip(1).zip(&self.session.comparisons).collect();
        let number = others.len();
        if number > MOST_SENTENCES && !self.all {
            return Some(tables::verdicts(base, &others[..number.min(MOST_COMMANDS - 1)], self.width));
        }
        let coloured = |sentence: String, verdict: Option<Verdict>| -> String {
            let look = if verdict.is_some_and(Verdict::is_difference) { Look::Coloured } else { Look::Plain };
            paragraph(&sentence, self.width, "").lines().map(|line| styled(look, line)).collect()
        };
        let sentence = |(cell, comparison): &(&Cell, &Comparison)| -> String {
            let names = [base.as_str(), &cell.label];
            let row = said::real(comparison);
            let by_real = coloured(said::sentence(names, comparison), row.map(|row| row.result.verdict));
            let by_processor = row.and_then(|row| {
                let is_corrected = cell.command.is_corrected;
                let cpu = row.result.processor.as_ref()?;
                let sentence = processor::sentence(names, comparison, row, is_corrected)?;
                Some(coloured(sentence, Some(cpu.verdict)))
            });
            let layouts = row.and_then(|row| layouts::of_row(names, row, comparison.asked));
            let layouts = layouts.map(|sentence| coloured(sentence, None));
            by_real + &by_processor.unwrap_or_default() + &layouts.unwrap_or_default()
        };
        Some(others.iter().map(sentence).collect::<String>()).filter(|text| !text.is_empty())
    }

    fn more(&self) -> String {
        match self.session.members.first().and_then(|member| member.summary.run.label.as_ref()) {
            Some(label) => format!("tollgate show {label} --all | tollgate report {label}"),
            None => "--format json; --label NAME keeps it for show, compare, report".to_owned(),
        }
    }
}

/// `42 executions of each`; where the numbers differ, their span.
fn of_each(numbers: impl Iterator<Item = usize> + Clone) -> String {
    match (numbers.clone().min(), numbers.max()) {
        (Some(least), Some(most)) if least == most => {
            format!("{} of each", count(least, "execution", "executions"))
        }
        (Some(least), Some(most)) => format!("{least} to {most} executions of each"),
        _ => "no execution".to_owned(),
    }
}

fn one_line(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
