//! The screen of kernels side by side: one row per case, one column per kernel, as counts if they fit, otherwise as signs.

use std::borrow::Cow;
use std::ops::Range;

use tollgate_output::figures;
use tollgate_output::table::{Table, heading, paragraph};
use tollgate_output::value::NONE;

use super::Session;
use crate::atlas::{Atlas, Cell, KernelsRow};
use crate::counts;

const LEAST_ROWS: usize = 8;
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The text after the head: kernels, and rows. With `all` every row with its counts, otherwise the changed rows that fit in this
/// many lines.
pub(super) fn text(session: &Session, atlas: &Atlas, all: bool, width: usize, lines: usize) -> String {
    let changed = atlas.changed();
    let mut text = paragraph(&method(), width, "");
    text.push_str(&kernels(atlas).lines(Some(width), false));
    let id = session.id;
    let more =
        format!("More: tollgate show {id} --all | tollgate report {id} | tollgate export {id} --format csv");
    let more = paragraph(&more, width, "");
    // A blank line, two heads and a sentence.
    let room = lines.saturating_sub(text.lines().count() + more.lines().count() + 4).max(LEAST_ROWS);
    let rows: Vec<&KernelsRow> =
        if all { atlas.rows.iter().collect() } else { changed.iter().copied().take(room).collect() };
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&heading(if all { "All cases" } else { "Cases that changed" }, width));
        text.push_str(&table(atlas, &rows, all, width));
    }
    let hidden = if all { 0 } else { changed.len() - rows.len() };
    let hidden = if hidden > 0 { format!("{hidden} more changed; ") } else { String::new() };
    let [same, open] = atlas.unchanged();
    let same = figures::count(same, "case", "cases");
    let open = match open {
        0 => String::new(),
        open => format!("; {open} open, since their counts vary (~)"),
    };
    text + &paragraph(&format!("{hidden}{same} the same in all kernels{open}."), width, "") + &more
}

fn method() -> String {
    format!(
        "Counted: instructions per operation. Each kernel is compared with the one before it: = at most {} apart, + more, - fewer.",
        figures::percent(Atlas::least())
    )
}

fn kernels(atlas: &Atlas) -> Table {
    let row = |(at, (kernel, letter)): (usize, (&&str, char))| {
        let [cases, more, fewer] = atlas.tally(at).map(|number| Some(number.to_string()));
        let [more, fewer] = [more, fewer].map(|number| number.filter(|_| at > 0));
        (letter.to_string(), [Some((*kernel).to_owned()), cases, more, fewer])
    };
    let kernels = atlas.kernels.iter().zip(LETTERS.chars()).enumerate();
    Table::of_cells(["", "kernel", "cases", "more", "fewer"], kernels.map(row)).with_words(&["kernel"])
}

/// With `all`, counts in blocks of as many kernels as fit; otherwise counts if all kernels fit, or else signs.
fn table(atlas: &Atlas, rows: &[&KernelsRow], all: bool, width: usize) -> String {
    let number = atlas.kernels.len();
    let fits = |kernels: Range<usize>| {
        let columns = kernels.len() + 1;
        counted(atlas, rows, kernels).room_for_names(width, columns).is_none()
    };
    if !all && !fits(0..number) {
        return signs(rows, number).lines(Some(width), false);
    }
    blocks(number, width, &|kernels| counted(atlas, rows, kernels))
}

/// A table of this number of kernels, in blocks of as many as fit.
pub(crate) fn blocks(number: usize, width: usize, of: &dyn Fn(Range<usize>) -> Table) -> String {
    let fits = |begin: usize, end: usize| of(begin..end).room_for_names(width, end - begin + 1).is_none();
    let mut text = String::new();
    let mut begin = 0;
    while begin < number {
        let end = (begin + 1..=number).rev().find(|end| fits(begin, *end)).unwrap_or(begin + 1);
        let blank = if begin == 0 { "" } else { "\n" };
        text.push_str(blank);
        text.push_str(&of(begin..end).lines(Some(width), false));
        begin = end;
    }
    text
}

/// The counts of a command under several kernels.
pub(crate) fn of_command(atlas: &Atlas, all: bool, width: usize) -> String {
    let rows: Vec<&KernelsRow> = atlas.rows.iter().collect();
    heading("Each kernel compared with the one before it", width) + &table(atlas, &rows, all, width)
}

fn counted(atlas: &Atlas, rows: &[&KernelsRow], kernels: Range<usize>) -> Table {
    let names = atlas.short_names();
    let names = names[kernels.clone()].iter().map(|name| Cow::Owned(format!("{name}  ")));
    let cells = |row: &KernelsRow| {
        row.cells[kernels.clone()].iter().map(|cell| Some(cell.signed())).collect::<Vec<_>>()
    };
    let head = head(rows);
    let rows = rows.iter().map(|row| (row.name(), cells(row)));
    Table::of_cells(std::iter::once(Cow::Borrowed(head)).chain(names), rows)
}

fn head(rows: &[&KernelsRow]) -> &'static str {
    let is_of_command = rows.iter().all(|row| counts::of_command(row.case).is_some());
    if is_of_command { "counted" } else { "benchmark" }
}

/// The first count, a sign for each kernel after the first, the last count, and the largest change.
fn signs(rows: &[&KernelsRow], number: usize) -> Table {
    const UNKNOWN: char = '.';
    let letters = &LETTERS[..number.min(LETTERS.len())];
    let heads = [head(rows), &letters[..1], &letters[1..], &letters[letters.len() - 1..], "largest change"];
    let row = |row: &&KernelsRow| {
        let signs = row.cells[1..].iter().map(|cell| cell.sign().unwrap_or(UNKNOWN)).collect();
        let largest = row.largest().and_then(|(at, step)| {
            let letter = letters.get(at..=at).unwrap_or(NONE);
            Some(format!("{} in {letter}", counts::percent(step.ratio)?))
        });
        let [first, last] = [row.cells.first(), row.cells.last()].map(|cell| cell.and_then(Cell::words));
        (row.name(), [first, Some(signs), last, largest])
    };
    Table::of_cells(heads, rows.iter().map(row))
}
