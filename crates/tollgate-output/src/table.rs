//! Layout: columns that are never broken, with remarks beside them if there is room, else beneath.

use std::borrow::Cow;
use std::ops::Range;

use anstyle::{AnsiColor, Style};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement};

use tollgate_model::text::beginning;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use tollgate_model::text::clean;

use crate::column::{Column, Columns};
use crate::value::{NONE, Tone, Value};

/// The first column is cut here, because a foreign name may have any length.
const LONGEST_NAME: usize = 76;
/// A remark is cut here, because a document's notes may have any length.
const LONGEST_REMARK: usize = 2000;
/// With fewer columns for names, all names get lines of their own.
const ENOUGH_FOR_NAMES: usize = 24;
/// Narrower remarks are put beneath their row.
const ENOUGH_FOR_REMARKS: usize = 34;
const INDENT: &str = "    ";

const HEADER: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const FLAG: Style = AnsiColor::Yellow.on_default();

/// The style of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Unstyled.
    Plain,
    /// Noisy or failed: a `~` before its name.
    Flagged,
    /// In colour; its words give the reason.
    Coloured,
    /// For rows without figures.
    Faint,
    /// A line above rows that belong together.
    Heading,
}

/// A table whose first column is a name and whose other columns are figures by default. Rows may have remarks.
pub struct Table {
    header: Vec<Cow<'static, str>>,
    words: Vec<Cow<'static, str>>,
    dispensable: usize,
    rows: Vec<Row>,
}

struct Row {
    look: Look,
    cells: Vec<String>,
    /// Replaces a name for which there is no room.
    short: Option<String>,
    remarks: String,
}

impl From<Tone> for Look {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Changed => Self::Coloured,
            Tone::Open => Self::Faint,
            Tone::Flagged => Self::Flagged,
        }
    }
}

impl Table {
    /// Makes a table with these columns.
    pub fn new(header: &[&'static str]) -> Self {
        Self::of_columns(header.iter().map(|name| Cow::Borrowed(*name)).collect())
    }

    /// Makes a table whose columns are named by a document.
    pub fn of_columns(header: Vec<Cow<'static, str>>) -> Self {
        Self { header, words: Vec::new(), dispensable: 0, rows: Vec::new() }
    }

    /// Makes a table of rows, each with its remark. The first value with a tone gives the row its look.
    pub fn from_rows<R>(columns: &Columns<R>, rows: impl IntoIterator<Item = (R, Option<String>)>) -> Self {
        let words = columns.iter().filter(|column| column.is_words);
        let mut table = Self::of_columns(heads(columns.iter())).with_words_in(heads(words));
        for (row, remark) in rows {
            let values = columns.values(&row);
            let tone = values.iter().map(Value::tone).find(|tone| *tone != Tone::Plain).unwrap_or_default();
            let cells: Vec<String> = values.iter().map(|value| value.words().to_owned()).collect();
            table.row(tone.into(), &cells, remark.as_slice());
            let short = values.first().and_then(Value::short).map(|short| clean(short).into_owned());
            table.rows.iter_mut().next_back().into_iter().for_each(|row| row.short = short.clone());
        }
        table
    }

    /// Makes a table of cells, each row with its name before them. An unknown value is a dash.
    pub fn of_cells<H: Into<Cow<'static, str>>, C: IntoIterator<Item = Option<String>>>(
        heads: impl IntoIterator<Item = H>,
        rows: impl IntoIterator<Item = (String, C)>,
    ) -> Self {
        let mut table = Self::of_columns(heads.into_iter().map(Into::into).collect());
        for (name, cells) in rows {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
            table.row(Look::Plain, &std::iter::once(name).chain(cells).collect::<Vec<_>>(), &[]);
        }
        table
    }

    /// Declares columns that hold words, which are left-aligned; figures are right-aligned.
    pub fn with_words(mut self, columns: &[&'static str]) -> Self {
        self.words.extend(columns.iter().map(|name| Cow::Borrowed(*name)));
        self
    }

    /// Like [`Self::with_words`], for columns that a document names.
    pub fn with_words_in(mut self, columns: Vec<Cow<'static, str>>) -> Self {
        self.words.extend(columns);
        self
    }

    /// Allows narrow terminals to drop this many of the last columns, one after the other.
    pub fn with_dispensable(mut self, columns: usize) -> Self {
        self.dispensable = columns.min(self.header.len());
        self
    }

    /// Adds a line above rows that belong together, with what their names have in common.
    pub fn heading(&mut self, name: &str) {
        let cells = vec![clean(name).into_owned()];
        self.rows.push(Row { look: Look::Plain, cells, short: None, remarks: String::new() });
    }

    /// Adds a row without the cells beyond the last column. Texts are untrusted.
    pub fn row(&mut self, look: Look, cells: &[String], remarks: &[String]) {
        let cells = cells.iter().take(self.header.len()).map(|cell| clean(cell).into_owned()).collect();
        let remarks: Vec<_> = remarks.iter().map(|remark| beginning(remark, LONGEST_REMARK)).collect();
        self.rows.push(Row { look, cells, short: None, remarks: remarks.join("; ") });
    }

    /// Lays the table out for a terminal of this width, each line ended.
    pub fn render(&self, width: usize) -> String {
        let all = self.header.len();
        let few = all - self.dispensable;
        let layouts = (few..=all).rev().flat_map(|number| [(0..number, 2), (0..number, 1)]);
        let mut whole = layouts.map(|(columns, gap)| self.columns(columns, gap, usize::MAX));
        let mut names: Vec<String> = vec![String::new(); self.rows.len() + 1];
        let lines = whole.find(|lines| widest(lines) <= width).unwrap_or_else(|| {
            // Names that are still too long get lines of their own; on very narrow terminals every name does.
            let figures = widest(&self.columns(1..few, 1, usize::MAX));
            let room = width.saturating_sub(figures + 1);
            let fits = |number: &usize| widest(&self.columns(1..*number, 1, usize::MAX)) + 2 <= width;
            let most = (few..=all).rev().find(fits).unwrap_or(few);
            let (columns, longest) = if room >= ENOUGH_FOR_NAMES { (0..few, room) } else { (1..most, 0) };
            let all = self.names(longest);
            names = all.iter().map(|name| cut_apart(name, all.iter().map(String::as_str), width)).collect();
            let indent = if columns.start == 0 { "" } else { "  " };
            self.columns(columns, 1, longest).into_iter().map(|line| format!("{indent}{line}")).collect()
        });
        let columns = widest(&lines);
        let beside = width.checked_sub(columns + 2).filter(|&room| room >= ENOUGH_FOR_REMARKS);
        let mut text = String::new();
        let looks = std::iter::once(None).chain(self.rows.iter().map(Some));
        for ((line, name), row) in lines.iter().zip(&names).zip(looks) {
            let style = style(row.map(|row| row.look));
            let mut put = |line: &str| push_line(&mut text, style, line);
            if !name.is_empty() {
                put(name);
                if row.is_some_and(|row| row.cells.len() == 1) {
                    continue;
                }
            }
            let remarks = row.map_or("", |row| row.remarks.as_str());
            match beside {
                Some(room) => {
                    let pad = columns + 2;
                    let mut pieces = wrap(remarks, room).into_iter();
                    put(&format!("{line:columns$}  {}", pieces.next().unwrap_or_default()));
                    pieces.for_each(|piece| put(&format!("{:pad$}{piece}", "")));
                }
                None => {
                    put(line);
                    let room = width.saturating_sub(INDENT.len()).max(20);
                    wrap(remarks, room).iter().for_each(|piece| put(&format!("{INDENT}{piece}")));
                }
            }
        }
        text
    }

    /// Lays out exactly one line per row. Without a width nothing is cut, and remarks end the line. With one, long names and
    /// remarks are cut to it; if `whole`, remarks may make the line longer.
    pub fn lines(&self, width: Option<usize>, whole: bool) -> String {
        let room = width.unwrap_or(usize::MAX);
        let all = self.header.len();
        let few = all - self.dispensable;
        let layouts = (few..=all).rev().flat_map(|number| [(0..number, 2), (0..number, 1)]);
        let named = layouts.map(|(columns, gap)| self.columns(columns, gap, usize::MAX));
        let short =
            [2, 1].into_iter().map(|gap| self.with_short_names(room, gap).columns(0..few, gap, usize::MAX));
        let lines = named.chain(short).find(|lines| widest(lines) <= room).unwrap_or_else(|| {
            let figures = widest(&self.columns(1..few, 1, usize::MAX));
            let longest = room.saturating_sub(figures + 3).max(ENOUGH_FOR_NAMES);
            self.with_names_of(longest).columns(0..few, 1, usize::MAX)
        });
        let columns = widest(&lines);
        let beside = room.saturating_sub(columns + 2);
        let looks = std::iter::once(None).chain(self.rows.iter().map(Some));
        let mut text = String::new();
        for (line, row) in lines.iter().zip(looks) {
            let remarks = match row.map_or("", |row| row.remarks.as_str()) {
                _ if !whole && beside < ENOUGH_FOR_REMARKS => String::new(),
                remarks if whole => remarks.to_owned(),
                remarks => cut(remarks, beside),
            };
            let line = if remarks.is_empty() {
                cut(line, room)
            } else {
                format!("{line}{}  {remarks}", " ".repeat(columns - line.width()))
            };
            push_line(&mut text, style(row.map(|row| row.look)), &line);
        }
        text
    }

    /// Returns the terminal columns left for names next to the first `columns` of the table, if not all names fit.
    pub fn room_for_names(&self, width: usize, columns: usize) -> Option<usize> {
        let widest = |columns| widest(&self.columns(columns, 1, usize::MAX));
        let columns = columns.min(self.header.len());
        (widest(0..columns) > width).then(|| width.saturating_sub(widest(1..columns) + 1))
    }

    /// Replaces names that have no room by their short form. `gap` separates the figures.
    fn with_short_names(&self, room: usize, gap: u16) -> Self {
        let few = self.header.len() - self.dispensable;
        let longest = room.saturating_sub(widest(&self.columns(1..few, gap, usize::MAX)) + usize::from(gap));
        self.with_names(|row, name| match &row.short {
            Some(short) if self.marked(row.look, name).width() > longest => short.clone(),
            _ => name.to_owned(),
        })
    }

    /// Cuts names to at most `longest` terminal columns.
    fn with_names_of(&self, longest: usize) -> Self {
        self.with_names(|row, name| match &row.short {
            Some(short) if name.width() > longest => cut(short, longest),
            _ => cut_apart(name, self.first_cells(), longest),
        })
    }

    fn with_names(&self, named: impl Fn(&Row, &str) -> String) -> Self {
        let row = |row: &Row| {
            let mut cells = row.cells.clone();
            cells.first_mut().into_iter().for_each(|name| *name = named(row, name));
            Row { look: row.look, cells, short: None, remarks: String::new() }
        };
        let rows = self.rows.iter().map(row).collect();
        Self { header: self.header.clone(), words: self.words.clone(), dispensable: self.dispensable, rows }
    }

    /// Some columns, `gap` apart, one line a row, the header first, without names longer than `longest`.
    fn columns(&self, columns: Range<usize>, gap: u16, longest: usize) -> Vec<String> {
        let (first, number) = (columns.start, columns.len());
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let header = self.header.iter().enumerate().map(|(at, name)| match at {
            0 => self.marked(Look::Plain, name),
            _ => name.to_string(),
        });
        table.set_header(header.skip(first).take(number));
        for row in &self.rows {
            let cells = row.cells.iter().enumerate().map(|(at, cell)| match at {
                0 => Some(self.marked(row.look, cell))
                    .filter(|name| name.width() <= longest)
                    .unwrap_or_default(),
                _ => cell.clone(),
            });
            table.add_row(cells.skip(first).take(number).collect::<Vec<String>>());
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, gap));
            let at = at + first;
            let is_words = at == 0 || self.header.get(at).is_some_and(|name| self.words.contains(name));
            column.set_cell_alignment(if is_words { CellAlignment::Left } else { CellAlignment::Right });
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// The names longer than `longest`, the header's first; an empty text for the others.
    fn names(&self, longest: usize) -> Vec<String> {
        let header = self.header.first().map(|name| self.marked(Look::Plain, name));
        let name = |row: &Row| self.marked(row.look, row.cells.first().map_or("", |name| name));
        let names = header.into_iter().chain(self.rows.iter().map(name));
        names.map(|name| if name.width() > longest { name } else { String::new() }).collect()
    }

    /// A name with room for the mark of some row, cut if it is too long.
    fn marked(&self, look: Look, name: &str) -> String {
        let mark = match look {
            Look::Flagged => "~ ",
            _ if self.rows.iter().any(|row| row.look == Look::Flagged) => "  ",
            _ => "",
        };
        format!("{mark}{}", cut_apart(name, self.first_cells(), LONGEST_NAME))
    }

    fn first_cells(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(|row| row.cells.first()).map(String::as_str)
    }
}

fn heads<'c, R: 'c>(columns: impl Iterator<Item = &'c Column<R>>) -> Vec<Cow<'static, str>> {
    columns.map(|column| column.head.clone()).collect()
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.width()).max().unwrap_or(0)
}

/// Cuts a text that is wider than this many columns.
pub fn cut(text: &str, longest: usize) -> String {
    if text.width() <= longest {
        return text.to_owned();
    }
    let end = end_within(text, longest.saturating_sub(1));
    format!("{}…", &text[..end])
}

/// Cuts one of several names, in the middle if another one has the same beginning.
fn cut_apart<'n>(name: &str, mut all: impl Iterator<Item = &'n str>, longest: usize) -> String {
    let short = cut(name, longest);
    if short == name || !all.any(|other| other != name && cut(other, longest) == short) {
        return short;
    }
    let room = longest.saturating_sub(1);
    let begin = end_within(name, room.div_ceil(2));
    let rest = room - name[..begin].width();
    let end = name.char_indices().map(|(at, _)| at).find(|&at| at >= begin && name[at..].width() <= rest);
    format!("{}…{}", &name[..begin], &name[end.unwrap_or(name.len())..])
}

fn push_line(text: &mut String, style: Style, line: &str) {
    use std::fmt::Write;
    let line = line.trim_end();
    // Writing to a string cannot fail.
    let _ = if style == Style::new() {
        writeln!(text, "{line}")
    } else {
        writeln!(text, "{style}{line}{style:#}")
    };
}

/// Wraps a paragraph, each line ended. Later lines are indented by the width of `hang`.
pub fn paragraph(text: &str, width: usize, hang: &str) -> String {
    let indent = " ".repeat(hang.width());
    let room = width.saturating_sub(indent.len()).max(20);
    let mut lines = String::new();
    for (at, piece) in wrap(&clean(text), room).iter().enumerate() {
        lines.push_str(if at == 0 { hang } else { &indent });
        lines.push_str(piece);
        lines.push('\n');
    }
    lines
}

/// Returns a line in the style of a row, ended. Control sequences in it are written out.
pub fn styled(look: Look, line: &str) -> String {
    let mut text = String::new();
    push_line(&mut text, style(Some(look)), &clean(line));
    text
}

fn style(look: Option<Look>) -> Style {
    match look {
        None | Some(Look::Heading) => HEADER,
        Some(Look::Flagged | Look::Coloured) => FLAG,
        Some(Look::Faint) => FAINT,
        Some(Look::Plain) => Style::new(),
    }
}

/// Returns a heading on lines of its own.
pub fn heading(text: &str, width: usize) -> String {
    let line = |line: String| format!("{HEADER}{line}{HEADER:#}\n");
    wrap(&clean(text), width).into_iter().map(line).collect()
}

/// Units that stay on the line of their figure.
const UNITS: [&str; 13] =
    ["%", "ns", "µs", "ms", "s", "min", "GHz", "MHz", "cycles", "bytes", "KiB", "MiB", "ns/line"];

/// Breaks at spaces, but not before a unit. Only a word that is too long for a line is broken.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let is_unit = UNITS.contains(&word.trim_end_matches([';', ',', '.', ')']));
        match words.last_mut() {
            Some(figure) if is_unit && figure.ends_with(|c: char| c.is_ascii_digit()) => {
                figure.push(' ');
                figure.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in words {
        let mut word = word.as_str();
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        while word.width() > width {
            // At least one character, so that the loop ends.
            let least = word.chars().next().map_or(0, char::len_utf8);
            let (piece, rest) = word.split_at(end_within(word, width).max(least));
            lines.push(piece.to_owned());
            word = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Returns the end of the longest beginning that fits this many columns.
fn end_within(text: &str, columns: usize) -> usize {
    let mut used = 0;
    let beyond = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    beyond.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["benchmark", "median", "95 % CI"]);
        let cells = |name: &str, estimate: &str| [name.to_owned(), estimate.to_owned(), "1–2".to_owned()];
        table.row(
            Look::Plain,
            &cells("entry/call", "1.02 ns"),
            &["one remark".into(), "and another one".into()],
        );
        table.row(Look::Flagged, &cells("entry/syscall", "187 ns"), &["wide".into()]);
        table
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn remarks_are_beside_where_there_is_room_and_beneath_where_not() {
        let wide = plain(&table().render(100));
        assert!(
            wide.lines().any(|line| line.contains("1.02 ns") && line.contains("and another one")),
            "{wide}"
        );
        let narrow = plain(&table().render(40));
        assert!(narrow.lines().any(|line| line == "    one remark; and another one"), "{narrow}");
        assert_eq!(narrow.lines().count(), 5);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 26..120 {
            for line in plain(&table().render(width)).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_name_that_is_too_long_has_a_line_of_its_own() {
        let mut table = table();
        table.row(
            Look::Plain,
            &["a/name-that-is-much-longer-than-others".into(), "9 ns".into(), "8–9".into()],
            &[],
        );
        let text = plain(&table.render(45));
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.iter().any(|line| line.starts_with("  entry/call ") && line.contains("1.02 ns")),
            "{text}"
        );
        let at = lines
            .iter()
            .position(|line| *line == "  a/name-that-is-much-longer-than-others")
            .expect("a line");
        assert!(lines[at + 1].trim_start().starts_with("9 ns"), "{text}");
    }

    #[test]
    fn the_last_column_goes_before_the_names_do() {
        let mut table = Table::new(&["benchmark", "median", "× syscall"]).with_dispensable(1);
        table.heading("processes/fork");
        table.row(Look::Plain, &["  a=1".into(), "1.02 ns".into(), "×12345".into()], &[]);
        let lines = |width| plain(&table.render(width)).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            lines(40),
            ["benchmark        median  × syscall", "processes/fork", "  a=1           1.02 ns     ×12345"]
        );
        assert_eq!(lines(26), ["benchmark        median", "processes/fork", "  a=1           1.02 ns"]);
    }

    #[test]
    fn a_name_is_cut_where_even_a_line_of_its_own_is_too_short() {
        let mut table = table();
        table.row(Look::Plain, &["x".repeat(200), "9 ns".into(), "8–9".into()], &[]);
        for width in 26..120 {
            for line in plain(&table.render(width)).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_name_that_has_no_room_is_short_before_it_is_cut() {
        let name = |row: &&'static str| Some(Value::text(*row).or_short("entry/x{3}"));
        let columns = Columns::new([
            Column::new("name", "benchmark", "", name),
            Column::new("figure", "median", "", |_| Some(Value::figure(1.0, |_| "1.02 ns".to_owned()))),
        ]);
        let table = Table::from_rows(&columns, [("entry/call", None), ("entry/x{instructions=3}", None)]);
        let lines = |width| plain(&table.lines(Some(width), false));
        assert!(lines(40).contains("entry/x{instructions=3}  1.02 ns"), "{}", lines(40));
        assert!(lines(24).contains("entry/call  1.02 ns\nentry/x{3}  1.02 ns"), "{}", lines(24));
    }

    #[test]
    fn a_flag_is_a_sign_and_not_only_a_colour() {
        let text = plain(&table().render(80));
        assert!(text.lines().any(|line| line.starts_with("~ entry/syscall")), "{text}");
    }

    #[test]
    fn figures_stand_below_each_other() {
        let text = plain(&table().render(80));
        let ends: Vec<usize> = text.lines().filter_map(|line| line.find("ns")).collect();
        assert_eq!(ends.len(), 2);
        assert_eq!(ends[0], ends[1], "{text}");
    }

    #[test]
    fn what_a_document_says_cannot_command_the_terminal() {
        let mut table = Table::new(&["benchmark"]);
        table.row(Look::Plain, &["a\u{1b}[2J\u{7}".into()], &["x\r\ny".into()]);
        assert!(!plain(&table.render(80)).contains(|c: char| c.is_control() && c != '\n'));
        assert!(!table.render(80).contains("\u{1b}[2J"));
    }

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("漢字", 1), ["漢", "字"]);
        let apart = |name: &str, other: &str| cut_apart(name, [name, other].into_iter(), 7);
        assert_eq!(apart("abcdefgh-one", "abcdefgh-two"), "abc…one");
        assert_eq!(apart("abcdefgh-one", "bcdefgh-two"), "abcdef…");
        assert_eq!(
            (apart("abc", "abc-two").as_str(), apart("漢字漢字漢", "漢字漢字字").as_str()),
            ("abc", "漢…字漢")
        );
        assert_eq!((cut("漢字漢字", 6).as_str(), cut("abc", 3).as_str()), ("漢字…", "abc"));
        assert_eq!(wrap("it adds 12.3 ns; to", 12), ["it adds", "12.3 ns; to"]);
        assert!(wrap("", 10).is_empty());
    }
}
