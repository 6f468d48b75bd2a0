//! The screen of an image that is started by itself: 25 lines of 80 characters, laid out here and filled in by `screen.s`.
//!
//! docs/lab.md, "The screen", has the form. Attributes are those of a VGA's text mode: the colour of the character, and 16 times that of
//! its ground.

mod glyphs;
#[cfg(test)]
mod tests;

use tollgate_x86::walk::Exception;

use super::experiments::{EXPERIMENTS, Experiment, Group};
use super::parameters::Parameters;
use super::picture;

const WIDTH: usize = 80;
const LINES: usize = 25;
/// The first line of the table, below the title, the processor and the heads of columns; the last line is below it.
const FIRST: usize = 3;
/// Lines of the table.
const ROWS: usize = LINES - FIRST - 1;

/// The numbers that experiments may have.
const NUMBERS: usize = 128;
const COUNTED: u16 = 1;
const HAS_VALUE: u16 = 2;
const HAS_MINIMUM: u16 = 4;
/// Exceptions, and bytes of the name of one.
const EXCEPTIONS: u8 = 32;
const NAME: usize = 4;
/// Where the picture code is described: behind the glyphs.
const PICTURE: usize = 5160 + 96 * 5;
/// Cells of a figure.
const FIGURE: usize = 10;

/// White on blue: the first and the last line.
const BAR: u8 = 0x1f;
const PLAIN: u8 = 0x07;
const HEAD: u8 = 0x03;
const GROUP: u8 = 0x0e;
const RULE: u8 = 0x08;
/// The line between columns: a box's, in the characters of a VGA.
const LINE: u8 = 0xb3;

const LEGEND: [&str; 3] = ["#UD      refused", "lacking  not offered", "wrong    not done"];

/// What stands behind the kernel in the file: the cells, where each figure goes, names and glyphs.
pub(super) fn laid_out(parameters: &Parameters) -> Vec<u8> {
    let chosen: Vec<&Experiment> =
        EXPERIMENTS.iter().filter(|it| parameters.chosen.contains(it.number)).collect();
    let mut screen = Screen::new();
    screen.frame(parameters);
    screen.table(&chosen);
    screen.picture = picture::laid_out([parameters.operations, parameters.rounds], &chosen);
    screen.bytes()
}

struct Screen {
    /// Character and attribute.
    cells: [[u8; 2]; WIDTH * LINES],
    rows: [Row; NUMBERS],
    /// What the picture code is made of; empty where it has no room for the figures.
    picture: Vec<u8>,
}

/// What the guest is told of an experiment.
#[derive(Clone, Copy, Default)]
struct Row {
    /// The cell behind its median; 0 where it is not shown.
    end: u16,
    flags: u16,
    value: u32,
}

/// How the table is divided.
#[derive(Clone, Copy)]
struct Columns {
    count: usize,
    has_minimum: bool,
    /// Empty lines between groups.
    gap: usize,
}

impl Columns {
    /// Two with a minimum, three without, three without empty lines as well.
    const ALL: [Self; 3] = [
        Self { count: 2, has_minimum: true, gap: 1 },
        Self { count: 3, has_minimum: false, gap: 1 },
        Self { count: 3, has_minimum: false, gap: 0 },
    ];

    /// The first of them that is enough; the last one where none is: those at the end are not shown then.
    fn new(chosen: &[&Experiment]) -> Self {
        let is_enough = |columns: &Self| places(chosen, columns).iter().all(|(at, ..)| *at < columns.count);
        Self::ALL.into_iter().find(is_enough).unwrap_or(Self::ALL[2])
    }

    /// Where one begins, and how many cells it has.
    fn span(&self, column: usize) -> (usize, usize) {
        let width = (WIDTH + 1) / self.count;
        // Without the line behind it, and a space before that.
        (column * width, width - 2)
    }
}

/// A line of the table.
enum Line<'a> {
    Group(Group),
    Experiment(&'a Experiment),
}

impl Screen {
    fn new() -> Self {
        Self { cells: [[b' ', PLAIN]; WIDTH * LINES], rows: [Row::default(); NUMBERS], picture: Vec::new() }
    }

    fn write(&mut self, line: usize, column: usize, text: &str, attribute: u8) {
        let cells = self.cells.iter_mut().take((line + 1) * WIDTH).skip(line * WIDTH + column);
        for (cell, byte) in cells.zip(text.bytes()) {
            *cell = [byte, attribute];
        }
    }

    /// What is there before the first figure, but the table.
    fn frame(&mut self, parameters: &Parameters) {
        let Parameters { operations, rounds, .. } = parameters;
        let title =
            format!(" tollgate lab: ticks of the time-stamp counter, {rounds} rounds of {operations}");
        self.write(0, 0, &format!("{title:<WIDTH$}"), BAR);
        self.write(0, WIDTH - 8, "running ", BAR);
        let last = " The serial port (3F8h) has every round. To read it: tollgate lab --from FILE";
        self.write(LINES - 1, 0, &format!("{last:<WIDTH$}"), BAR);
    }

    fn table(&mut self, chosen: &[&Experiment]) {
        let columns = Columns::new(chosen);
        for column in 0..columns.count {
            self.head(&columns, column);
        }
        let placed = places(chosen, &columns);
        for (column, row, line) in &placed {
            if *column < columns.count {
                self.line(&columns, *column, FIRST + row, line);
            }
        }
        let last = placed.last().map_or((0, 0), |(column, row, _)| (*column, *row));
        self.legend(&columns, last);
    }

    /// What the words mean that stand in the place of figures, at the end of the last column, where there is room below the last row.
    fn legend(&mut self, columns: &Columns, (column, row): (usize, usize)) {
        let (begin, _) = columns.span(column.min(columns.count - 1));
        let first = ROWS - LEGEND.len();
        if row + 1 < first {
            for (line, text) in (FIRST + first..).zip(LEGEND) {
                self.write(line, begin + 1, text, RULE);
            }
        }
    }

    /// The heads of one column of the table, and the line before it.
    fn head(&mut self, columns: &Columns, column: usize) {
        let (begin, width) = columns.span(column);
        let figures = if columns.has_minimum { 2 } else { 1 };
        self.write(FIRST - 1, begin, " experiment", HEAD);
        self.write(FIRST - 1, begin + width - figures * FIGURE, &format!("{:>FIGURE$}", "median"), HEAD);
        if columns.has_minimum {
            self.write(FIRST - 1, begin + width - FIGURE, &format!("{:>FIGURE$}", "min"), HEAD);
        }
        if let Some(before) = begin.checked_sub(1) {
            for line in FIRST - 1..LINES - 1 {
                if let Some(cell) = self.cells.get_mut(line * WIDTH + before) {
                    *cell = [LINE, RULE];
                }
            }
        }
    }

    fn line(&mut self, columns: &Columns, column: usize, line: usize, what: &Line) {
        let (begin, width) = columns.span(column);
        match what {
            Line::Group(group) => self.write(line, begin + 1, heading(*group), GROUP),
            Line::Experiment(experiment) => {
                let name = experiment.name.strip_prefix("wrong-").unwrap_or(experiment.name);
                self.write(line, begin + 1, name, PLAIN);
                let minimum = if columns.has_minimum { FIGURE } else { 0 };
                let end = line * WIDTH + begin + width - minimum;
                if let Some(row) = self.rows.get_mut(usize::from(experiment.number)) {
                    *row = Row::new(experiment, end as u16, columns.has_minimum);
                }
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.cells.iter().flatten().copied().collect();
        for Row { end, flags, value } in self.rows {
            bytes.extend(end.to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        for vector in 0..EXCEPTIONS {
            let mut name = [0; NAME];
            let mnemonic = Exception(vector).mnemonic().unwrap_or_default();
            // At least one zero ends it.
            for (to, from) in name.iter_mut().take(NAME - 1).zip(mnemonic.bytes()) {
                *to = from;
            }
            bytes.extend(name);
        }
        // Where the processor's name begins, and behind which cell the state of the run stands; and where the picture code is described.
        let code = if self.picture.is_empty() { 0 } else { PICTURE };
        for cell in [WIDTH + 1, WIDTH - 1, code, 0] {
            bytes.extend((cell as u16).to_le_bytes());
        }
        bytes.extend(glyphs::GLYPHS.as_flattened());
        bytes.extend(&self.picture);
        bytes
    }
}

impl Row {
    fn new(experiment: &Experiment, end: u16, has_minimum: bool) -> Self {
        let value = experiment.value.and_then(|value| u32::try_from(value).ok());
        let flags = [(experiment.counted, COUNTED), (value.is_some(), HAS_VALUE), (has_minimum, HAS_MINIMUM)];
        let flags = flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).sum();
        Self { end, flags, value: value.unwrap_or(0) }
    }
}

/// Column and row of every line. Where there is room for gaps, a group that fits whole into the next column, but not into what is left
/// of this one, begins there.
fn places<'a>(chosen: &[&'a Experiment], columns: &Columns) -> Vec<(usize, usize, Line<'a>)> {
    let mut placed = Vec::new();
    let (mut column, mut row) = (0, 0);
    for group in chosen.chunk_by(|one, other| one.group == other.group) {
        let lines = group.len() + 1;
        row += if row > 0 { columns.gap } else { 0 };
        let fits = row + lines <= ROWS;
        if !fits && (columns.gap > 0 && lines <= ROWS && column + 1 < columns.count || row + 1 >= ROWS) {
            (column, row) = (column + 1, 0);
        }
        let heads = group.iter().take(1).map(|experiment| Line::Group(experiment.group));
        for line in heads.chain(group.iter().map(|experiment| Line::Experiment(experiment))) {
            if row == ROWS {
                (column, row) = (column + 1, 0);
            }
            placed.push((column, row, line));
            row += 1;
        }
    }
    placed
}

const fn heading(group: Group) -> &'static str {
    match group {
        Group::Crossings => "crossings",
        Group::Traps => "traps",
        Group::Pieces => "pieces of an entry",
        Group::Interrupts => "interrupts",
        Group::Wrong => "to be refused",
    }
}
