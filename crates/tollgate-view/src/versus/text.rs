//! The screen of compared commands: at most 40 lines of at most 80 columns that say which is faster, by how much, and where the time
//! went. With all, as many lines as they need.

use std::time::Duration;

use tollgate_model::compare::Verdict;
use tollgate_model::text::clean;
use tollgate_model::traced::Backend;
use tollgate_model::traced::blame::{Account, Part};
use tollgate_model::versus::{FAULTS, MEMORY, REAL, SYS, USER};
use tollgate_model::{Unit, stats};

use super::cells::{self, Cell, letter, static_letter};
use super::split::{Line, Split};
use super::{matrix, notes, said};
use crate::comparison::Comparison;
use crate::figures::{self, count, thousands, time_left};
use crate::session::{Session, environments};
use crate::summary::Figures;
use crate::table::{Look, Table, cut, heading, paragraph};
use crate::trace::blame::in_words_of_part;
use crate::trace::text as words;

/// The lines of the screen, and its columns where the terminal has as many.
const LINES: usize = 40;
const COLUMNS: usize = 80;
/// Rows of a list of commands, and of calls, where there is not room for all.
const MOST_COMMANDS: usize = 7;
const MOST_CALLS: usize = 6;
/// What is not known.
const NONE: &str = "–";

/// The screen, for a terminal of this width. With `all` every command, every call and every note.
pub fn text(session: &Session, all: bool, width: usize) -> String {
    let width = if all { width } else { width.min(COLUMNS) };
    let cells = cells::all(session);
    let screen = Screen { session, cells, all, width };
    let mut text = screen.head() + &screen.commands() + "\n" + &screen.timed();
    let is_pair = screen.cells.len() == 2;
    if let Some(ratios) = matrix::text(session, &screen.cells, width) {
        text.push('\n');
        text.push_str(&ratios);
    } else if screen.cells.len() > 1 {
        text.push('\n');
        text.push_str(&screen.verdicts());
    }
    match screen.split_of_pair() {
        Some(split) if is_pair => text.push_str(&screen.split(&screen.cells[1], &split)),
        _ => text.push_str(&screen.parts()),
    }
    if all && !is_pair {
        for (cell, comparison) in screen.cells.iter().skip(1).zip(&session.comparisons) {
            text.push_str(&Split::of(comparison).map_or(String::new(), |split| screen.split(cell, &split)));
        }
    }
    let more = format!("More: {}\n", screen.more());
    let notes = notes::all(session, &screen.cells);
    let notes: Vec<String> = notes.iter().map(|note| paragraph(note, width, "")).collect();
    let mut room = if all { usize::MAX } else { LINES.saturating_sub(text.lines().count() + 1) };
    let mut left_out = 0;
    for note in &notes {
        match note.lines().count() {
            lines if lines <= room => {
                room -= lines;
                text.push_str(note);
            }
            _ => left_out += 1,
        }
    }
    let left_out = (left_out > 0).then(|| format!("{}; ", count(left_out, "more note", "more notes")));
    text.push_str(&cut(&more.replace("More: ", &format!("More: {}", left_out.unwrap_or_default())), width));
    text
}

struct Screen<'a, 's> {
    session: &'s Session<'a>,
    cells: Vec<Cell<'a, 's>>,
    all: bool,
    width: usize,
}

impl Screen<'_, '_> {
    /// The session, its executions, how they were alternated, and where.
    fn head(&self) -> String {
        let Some(first) = self.session.members.first() else { return String::new() };
        let run = first.summary.run;
        let took = run.seconds().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).map(time_left);
        let label = run.label.as_ref().map(ToString::to_string);
        let parts = [Some(format!("versus {}", self.session.id)), took, Some(self.executions()), label];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let mut text = format!("{}\n", cut(&clean(&parts.join("  ")), self.width));
        let mut shown: Vec<&str> = Vec::new();
        for (member, (_, about)) in self.session.members.iter().zip(environments::lines(self.session)) {
            let name = member.part.environment.as_str();
            if !shown.contains(&name) {
                shown.push(name);
                text.push_str(&format!("{}\n", cut(&clean(&format!("in {name}: {about}")), self.width)));
            }
        }
        text + &paragraph(&self.method(), self.width, "")
    }

    /// `42 executions of each`.
    fn executions(&self) -> String {
        let numbers = self.cells.iter().filter_map(|cell| cell.figures(REAL));
        of_each(numbers.map(|figures| figures.measured.samples.len()))
    }

    fn method(&self) -> String {
        let timed = match self.cells.len() {
            1 => "Alone: there is nothing to compare it with.".to_owned(),
            _ => match self.session.comparisons.first().and_then(environments::method) {
                Some(how) if how.ends_with('.') => how,
                Some(how) => format!("{how}."),
                None => "Not alternated.".to_owned(),
            },
        };
        let backend = self.cells.iter().find_map(|cell| cell.traced().first()).map(|traced| traced.backend);
        let traced = match backend {
            Some(backend) => {
                let number = of_each(self.cells.iter().map(|cell| cell.traced().len()));
                let by = if backend == Backend::Rusage { "" } else { "traced with " };
                format!(" Apart from the timed ones {by}{}: {number}.", words::backend(backend))
            }
            None => match self.cells.iter().find_map(Cell::why_untraced) {
                Some(why) => format!(" Not traced: {why}."),
                None => " Not traced.".to_owned(),
            },
        };
        format!("{timed}{traced}")
    }

    /// Each command on one line, after its letter.
    fn commands(&self) -> String {
        let mut seen = Vec::new();
        let mut lines = Vec::new();
        for cell in &self.cells {
            if seen.contains(&cell.command_number) {
                continue;
            }
            seen.push(cell.command_number);
            let name = cell.command.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
            let line = format!("{}  {name}{}", letter(cell.command_number), one_line(&cell.command.line));
            lines.push(format!("{}\n", cut(&clean(&line), self.width)));
        }
        self.shortened(&mut lines);
        lines.concat()
    }

    /// Leaves out what has no room, and says how much that is.
    fn shortened(&self, lines: &mut Vec<String>) {
        let more = lines.len().saturating_sub(MOST_COMMANDS);
        if more > 1 && !self.all {
            lines.truncate(MOST_COMMANDS);
            lines.push(format!("   and {more} more (--all)\n"));
        }
    }

    /// The cells that have room in a table.
    fn shown(&self) -> &[Cell<'_, '_>] {
        let most = if self.all { self.cells.len() } else { MOST_COMMANDS.max(self.few()) };
        &self.cells[..most.min(self.cells.len())]
    }

    /// One more than there is room for takes the line that would say so.
    fn few(&self) -> usize {
        if self.cells.len() == MOST_COMMANDS + 1 { MOST_COMMANDS + 1 } else { MOST_COMMANDS }
    }

    /// The figures of the timed executions.
    fn timed(&self) -> String {
        let header = ["timed", "median", "95 % CI", "min", "user", "sys", "memory", "faults"];
        let mut table = Table::new(&header);
        for cell in self.shown() {
            let figures = |case: &str| cell.figures(case);
            let real = figures(REAL);
            let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
            let cells = [
                cell.label.clone(),
                or_none(real.map(Figures::in_words)),
                or_none(real.and_then(Figures::interval_in_words)),
                or_none(real.map(|real| time(real.estimate.min))),
                or_none(figures(USER).map(|user| time(user.estimate.median))),
                or_none(figures(SYS).map(|sys| time(sys.estimate.median))),
                or_none(figures(MEMORY).map(Figures::in_words)),
                or_none(figures(FAULTS).map(|faults| thousands(&format!("{:.0}", faults.estimate.median)))),
            ];
            table.row(Look::Plain, &cells, &[]);
        }
        table.lines(Some(self.width), false)
    }

    /// A sentence for each other command compared with the first.
    fn verdicts(&self) -> String {
        let base = self.cells.first().map_or("", |cell| cell.label.as_str());
        let others = self.cells.iter().skip(1).zip(&self.session.comparisons);
        let mut lines: Vec<String> = others
            .map(|(cell, comparison)| {
                let sentence = said::sentence([base, &cell.label], comparison);
                let look = match said::real(comparison).map(|row| row.result.verdict) {
                    Some(Verdict::Slower | Verdict::Faster) => Look::Coloured,
                    _ => Look::Plain,
                };
                let lines = paragraph(&sentence, self.width, "");
                lines.lines().map(|line| crate::table::styled(look, line)).collect()
            })
            .collect();
        self.shortened(&mut lines);
        lines.concat()
    }

    fn split_of_pair(&self) -> Option<Split> {
        self.session.comparisons.first().and_then(Split::of)
    }

    /// Where the real time of each traced command went; empty where none was traced.
    fn parts(&self) -> String {
        if self.cells.iter().all(|cell| cell.traced().is_empty()) {
            return String::new();
        }
        let header =
            ["traced", "real", "user", "kernel", "disk", "processor", "asleep", "unaccounted", "calls"];
        let mut table = Table::new(&header).with_dispensable(2);
        for cell in self.shown() {
            let traced = cell.traced();
            let accounts: Vec<Account> = traced.iter().map(Account::of).collect();
            let middle = |of: &dyn Fn(usize) -> u64| {
                let values: Vec<f64> = (0..accounts.len()).map(|at| of(at) as f64).collect();
                stats::median(&values)
            };
            let has_idle = traced.iter().all(|traced| traced.idle.is_some());
            let part = |wanted: Part| {
                let of = |at: usize| accounts[at].parts().into_iter().find(|(part, _)| *part == wanted);
                let is_known = has_idle || matches!(wanted, Part::User | Part::Sys | Part::Unaccounted);
                middle(&|at| of(at).map_or(0, |(_, ns)| ns)).filter(|_| is_known)
            };
            let or_none = |ns: Option<f64>| ns.map_or(NONE.to_owned(), time);
            let calls = middle(&|at| traced[at].count());
            let row = [
                cell.label.clone(),
                or_none(middle(&|at| accounts[at].real)),
                or_none(part(Part::User)),
                or_none(part(Part::Sys)),
                or_none(part(Part::Disk)),
                or_none(part(Part::Runqueue)),
                or_none(part(Part::Sleep)),
                or_none(part(Part::Unaccounted)),
                calls.map_or(NONE.to_owned(), |calls| thousands(&format!("{calls:.0}"))),
            ];
            table.row(Look::Plain, &row, &[]);
        }
        format!("\n{}", table.lines(Some(self.width), false))
    }

    /// What the difference of a command from the first consists of.
    fn split(&self, cell: &Cell, split: &Split) -> String {
        let base = &self.cells[0];
        let comparison =
            self.session.comparisons.iter().find(|known| known.other.id == cell.member.summary.run.id);
        let is_different =
            comparison.and_then(said::real).is_some_and(|row| row.result.verdict.is_difference());
        let insignificant = if is_different { "" } else { ", which is not significant" };
        let column = Column::of(split);
        let title = format!(
            "{} less {}: {}{insignificant}, by {}",
            cell.label,
            base.label,
            column.show(split.timed),
            count(split.pairs, "pair of traced executions", "pairs of traced executions")
        );
        let mut text = format!("\n{}", heading(&title, self.width));
        let names = [base, cell].map(|cell| static_letter(cell.command_number));
        let names = match names {
            [Some(one), Some(another)] if one != another => [one, another],
            _ => ["base", "other"],
        };
        let share = |ns: i64| match is_different && split.timed != 0 {
            true => percent(ns as f64 / split.timed as f64),
            false => String::new(),
        };
        let row = |name: &str, line: Line, calls: String| {
            let [base, other] = line.sides.map(|ns| words::signed(ns as f64));
            [name.to_owned(), base, other, column.show(line.difference), share(line.difference), calls]
        };
        let rest = |ns: i64| {
            ["rest".to_owned(), String::new(), String::new(), column.show(ns), share(ns), String::new()]
        };
        let head = |first: &'static str| [first, names[0], names[1], "difference", "share", "calls"];
        let mut parts = Table::new(&head("real time by")[..5]);
        for (part, line) in split.parts.iter().filter(|(_, line)| *line != Line::default()) {
            let name = in_words_of_part(*part, split.has_ptrace());
            parts.row(Look::Plain, &row(name, *line, String::new()), &[]);
        }
        parts.row(Look::Faint, &rest(split.rest_of_parts()), &[]);
        text.push_str(&parts.lines(Some(self.width), false));
        let mut calls = Table::new(&head("call"));
        let differ = split.calls.iter().take_while(|call| call.line.difference != 0).count();
        let most = if self.all { differ } else { MOST_CALLS.min(differ) };
        let (shown, others) = split.calls.split_at(most);
        for call in shown {
            let name = words::cut(&call.name, 40);
            let number = numbers(call.counts);
            calls.row(Look::Plain, &row(&name, call.line, number), &[]);
        }
        if !others.is_empty() {
            let sum = |of: &dyn Fn(&Line) -> i64| {
                others.iter().map(|call| of(&call.line)).fold(0, i64::saturating_add)
            };
            let line = Line {
                sides: [sum(&|line| line.sides[0]), sum(&|line| line.sides[1])],
                difference: sum(&|line| line.difference),
            };
            calls.row(Look::Plain, &row(&count(others.len(), "other", "others"), line, String::new()), &[]);
        }
        calls.row(Look::Plain, &row("outside of calls", split.outside, String::new()), &[]);
        calls.row(Look::Faint, &rest(split.rest_of_calls()), &[]);
        text.push_str(&calls.lines(Some(self.width), false));
        text
    }

    /// Where the rest is.
    fn more(&self) -> String {
        match self.session.members.first().and_then(|member| member.summary.run.label.as_ref()) {
            Some(label) => format!("tollgate show {label} --all | tollgate report {label}"),
            None => "--format json | --label NAME keeps it for show, compare and report".to_owned(),
        }
    }
}

/// `61,204`, `2 → 61,204`.
fn numbers([base, other]: [u64; 2]) -> String {
    let [from, to] = [base, other].map(words::grouped);
    if base == other { from } else { format!("{from} → {to}") }
}

/// How the differences of a column are written: in one unit, with the same decimals, so that a reader can add them.
struct Column {
    divisor: f64,
    unit: &'static str,
    decimals: usize,
}

impl Column {
    fn of(split: &Split) -> Self {
        let lines = split.parts.iter().map(|(_, line)| line.difference);
        let lines = lines.chain(split.calls.iter().map(|call| call.line.difference));
        let all = lines.chain([split.timed, split.outside.difference, split.rest_of_calls()]);
        let largest = all.map(i64::unsigned_abs).max().unwrap_or(0).max(1) as f64;
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
        let (divisor, unit) =
            units.into_iter().find(|(divisor, _)| largest >= *divisor).unwrap_or((1.0, "ns"));
        let decimals =
            if divisor > 1.0 { 3 - (largest / divisor).log10().floor().clamp(0.0, 3.0) as usize } else { 0 };
        Self { divisor, unit, decimals }
    }

    fn show(&self, ns: i64) -> String {
        let decimals = self.decimals;
        match ns {
            0 => "0".to_owned(),
            ns => format!("{:+.decimals$} {}", ns as f64 / self.divisor, self.unit),
        }
    }
}

/// A share of the difference: below 0 and above 100 % where other parts go the other way.
fn percent(share: f64) -> String {
    match share * 100.0 {
        none if none == 0.0 => "0".to_owned(),
        small if small.abs() < 0.5 => "<1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// `42 executions of each`; where the numbers differ, their span.
fn of_each(numbers: impl Iterator<Item = usize> + Clone) -> String {
    match (numbers.clone().min(), numbers.max()) {
        (Some(least), Some(most)) if least == most => {
            format!("{} of each", count(least, "execution", "executions"))
        }
        (Some(least), Some(most)) => format!("{least} to {most} executions"),
        _ => "no execution".to_owned(),
    }
}

/// A time that may be nothing.
fn time(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { figures::estimate(ns, Unit::Nanoseconds) }
}

/// A command of several lines on one.
fn one_line(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The comparison of a cell with the first.
pub(super) fn comparison_of<'c, 'a>(session: &'c Session<'a>, cell: &Cell) -> Option<&'c Comparison<'a>> {
    session.comparisons.iter().find(|comparison| comparison.other.id == cell.member.summary.run.id)
}
