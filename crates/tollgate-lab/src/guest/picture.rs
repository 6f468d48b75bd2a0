//! The figures of an image as a picture code on its screen: a QR code (ISO/IEC 18004), version 7, level L, mask 0, of 154 bytes.
//!
//! All that does not depend on figures is laid out here, since the code is linear: `picture.s` has only to add. [`read`] reads the text
//! that a phone or a scanner gives. docs/lab.md, "The picture code", has its form.

use super::record::{Fault, Maker, Record, Round, Serial};
use super::{EXPERIMENTS, Experiment, Feature};

/// Modules on each side.
const SIDE: usize = 45;
/// Lines and columns that are laid out, with the light margin.
const HEIGHT: usize = 50;
const WIDTH: usize = 54;
/// Modules of the margin above and on the left.
const ABOVE: usize = 2;
const BESIDE: usize = 4;
/// The text's bytes, and words of a block: of data, and to check them. There are two blocks.
const BYTES: usize = 154;
const DATA: usize = 78;
const CHECKS: usize = 20;
/// Centres of the alignment patterns.
const ALIGNED: [usize; 3] = [6, 22, 38];
/// Level L and mask 0, and version 7, each with its check bits (tables C.1 and D.1).
const FORMAT: u32 = 0x77c4;
const VERSION: u32 = 0x07c94;
/// The polynomial of the field of 256 elements.
const FIELD: u32 = 0x11d;

/// How the text begins.
const MARK: &str = "TGQ1";
/// Digits of 6 bits, the highest first: of the numbers of experiments from 0 to 65, of n, of rounds.
const NUMBERS: usize = 11;
const OPERATIONS: usize = 4;
const ROUNDS: usize = 2;
/// Behind them a digit of the vendor.
const HEAD: usize = MARK.len() + NUMBERS + OPERATIONS + ROUNDS + 1;
/// Digits of a figure: 6 bits of exponent and 12 of mantissa, in tenths of a tick.
const FIGURE: usize = 3;
const ZERO: u8 = b'0';
/// The exponent of what is no figure.
const NO_FIGURE: u32 = 63;

/// Bytes of words by number, of the text with what frames it, and of the table of check words.
const PLACES: usize = 256;
const FRAMED: usize = 160;

/// What `picture.s` is told, of n and rounds; nothing where the figures have no room. Set-ups to be refused have none.
pub(super) fn laid_out(numbers: [u32; 2], chosen: &[&Experiment]) -> Vec<u8> {
    let timed: Vec<&Experiment> = chosen.iter().copied().filter(|it| it.is_measured()).collect();
    if timed.is_empty() || HEAD + FIGURE * timed.len() > BYTES {
        return Vec::new();
    }
    let mut places = [u16::MAX; PLACES / 2];
    for (at, experiment) in timed.iter().enumerate() {
        places[usize::from(experiment.number)] = (HEAD + FIGURE * at) as u16;
    }
    let mut bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    // The mode of bytes, and their number; zeroes end them.
    bytes.extend([4, BYTES as u8]);
    bytes.extend(text(numbers, &timed));
    bytes.resize(PLACES + FRAMED, 0);
    bytes.extend((0..=255).flat_map(checks));
    bytes.extend(modules().iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// The text without figures.
fn text([operations, rounds]: [u32; 2], timed: &[&Experiment]) -> Vec<u8> {
    let mut text = MARK.as_bytes().to_vec();
    let numbers = timed.iter().fold(0_u128, |bits, it| bits | 1 << it.number);
    push(&mut text, numbers, NUMBERS);
    push(&mut text, operations.into(), OPERATIONS);
    push(&mut text, rounds.min((1 << (6 * ROUNDS)) - 1).into(), ROUNDS);
    // The vendor is the guest's to say.
    text.push(ZERO);
    for _ in timed {
        push(&mut text, u128::from(NO_FIGURE) << 12, FIGURE);
    }
    text.resize(BYTES, b'.');
    text
}

fn push(text: &mut Vec<u8>, number: u128, digits: usize) {
    text.extend((0..digits).rev().map(|at| ZERO + (number >> (6 * at) & 63) as u8));
}

/// The check words that a byte adds: the remainder of the division by (x - 1)(x - 2)(x - 4)… is linear.
fn checks(byte: u8) -> [u8; CHECKS] {
    // Without the highest coefficient, which is 1; the highest first.
    let mut generator = [0; CHECKS];
    generator[CHECKS - 1] = 1;
    let mut root = 1;
    for _ in 0..CHECKS {
        for at in 0..CHECKS {
            let next = generator.get(at + 1).copied().unwrap_or(0);
            generator[at] = times(generator[at], root) ^ next;
        }
        root = times(root, 2);
    }
    generator.map(|coefficient| times(coefficient, byte))
}

/// A product in the field.
fn times(one: u8, other: u8) -> u8 {
    let product = (0..8).rev().fold(0_u32, |product, bit| {
        let doubled = product << 1;
        let reduced = doubled ^ if doubled > 0xff { FIELD } else { 0 };
        reduced ^ if other >> bit & 1 == 1 { u32::from(one) } else { 0 }
    });
    product as u8
}

/// A module: dark or light, and not to be changed; or a bit of the words, from 1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Module {
    Free,
    Fixed(bool),
    Bit(usize),
}

/// Each module with the margin around them: in bit 15 whether it is dark, and below it the bit that is added, from 1.
fn modules() -> Vec<u16> {
    let mut grid = [[Module::Free; SIDE]; SIDE];
    patterns(&mut grid);
    informed(&mut grid);
    placed(&mut grid);
    let mut words = vec![0; HEIGHT * WIDTH];
    for (row, line) in grid.iter().enumerate() {
        for (column, module) in line.iter().enumerate() {
            let masked = (row + column) % 2 == 0;
            let (is_dark, bit) = match *module {
                Module::Fixed(is_dark) => (is_dark, 0),
                Module::Bit(bit) => (masked, bit + 1),
                Module::Free => (masked, 0),
            };
            words[(row + ABOVE) * WIDTH + column + BESIDE] = u16::from(is_dark) << 15 | bit as u16;
        }
    }
    words
}

type Grid = [[Module; SIDE]; SIDE];

/// Finders with their light border, timing, and alignment.
fn patterns(grid: &mut Grid) {
    for (row, line) in grid.iter_mut().enumerate() {
        for (column, module) in line.iter_mut().enumerate() {
            if row == 6 || column == 6 {
                *module = Module::Fixed((row + column) % 2 == 0);
            }
        }
    }
    for (row, column) in [(3, 3), (3, SIDE - 4), (SIDE - 4, 3)] {
        squares(grid, (row, column), 4, |ring| ring != 2 && ring != 4);
    }
    for row in ALIGNED {
        for column in ALIGNED {
            let is_finder = [(6, 6), (6, 38), (38, 6)].contains(&(row, column));
            if !is_finder {
                squares(grid, (row, column), 2, |ring| ring != 1);
            }
        }
    }
}

/// Squares around a centre, as far as they are in the grid.
fn squares(grid: &mut Grid, (row, column): (usize, usize), radius: usize, is_dark: impl Fn(usize) -> bool) {
    for (at_row, line) in grid.iter_mut().enumerate() {
        for (at_column, module) in line.iter_mut().enumerate() {
            let ring = at_row.abs_diff(row).max(at_column.abs_diff(column));
            if ring <= radius {
                *module = Module::Fixed(is_dark(ring));
            }
        }
    }
}

/// Format and version, twice each, and the module that is always dark.
fn informed(grid: &mut Grid) {
    let bit = |of: u32, at: usize| Module::Fixed(of >> at & 1 == 1);
    for at in 0..15 {
        let row = match at {
            0..6 => at,
            6..8 => at + 1,
            _ => SIDE - 15 + at,
        };
        grid[row][8] = bit(FORMAT, at);
        let column = match at {
            0..8 => SIDE - 1 - at,
            8 => 7,
            _ => 14 - at,
        };
        grid[8][column] = bit(FORMAT, at);
    }
    grid[SIDE - 8][8] = Module::Fixed(true);
    for at in 0..18 {
        let (row, column) = (at / 3, SIDE - 11 + at % 3);
        grid[row][column] = bit(VERSION, at);
        grid[column][row] = bit(VERSION, at);
    }
}

/// The bits of the words in their places: pairs of columns from the right, upwards and downwards in turns.
fn placed(grid: &mut Grid) {
    let mut bits = words().into_iter().flat_map(|word| (0..8).rev().map(move |bit| 8 * word + bit));
    let pairs = (0..SIDE).rev().filter(|column| *column != 6).step_by(2);
    for (pair, right) in pairs.enumerate() {
        for step in 0..SIDE {
            let row = if pair % 2 == 0 { SIDE - 1 - step } else { step };
            for column in [right, right - 1] {
                if grid[row][column] == Module::Free
                    && let Some(bit) = bits.next()
                {
                    grid[row][column] = Module::Bit(bit);
                }
            }
        }
    }
}

/// The words in the order in which they are placed: of both blocks in turns.
fn words() -> Vec<usize> {
    let data = (0..DATA).flat_map(|at| [at, DATA + at]);
    data.chain((0..CHECKS).flat_map(|at| [2 * DATA + at, 2 * DATA + CHECKS + at])).collect()
}

/// What a picture code says.
pub(crate) struct Picture {
    /// The records of a guest with these figures: one round, whose ticks are the median.
    pub serial: Serial,
    /// Experiments without a figure, by number, and why.
    pub without: Vec<(u8, &'static str)>,
}

/// Reads the text of a picture code; none where there is none in it, or a wrong one.
pub(crate) fn read(text: &[u8]) -> Option<Picture> {
    let at = text.windows(MARK.len()).position(|window| window == MARK.as_bytes())?;
    let mut digits = text.get(at..at + BYTES)?.iter().skip(MARK.len()).map(|byte| byte.wrapping_sub(ZERO));
    let mut number = |count: usize| {
        let mut digit = || digits.next().filter(|digit| *digit < 64);
        (0..count).try_fold(0_u128, |sum, _| Some(sum << 6 | u128::from(digit()?)))
    };
    let numbers = number(NUMBERS)?;
    let (operations, rounds) = (number(OPERATIONS)? as u32, number(ROUNDS)? as u32);
    let maker = maker(number(1)? as u8);
    let mut records =
        vec![Record::Begin { maker, signature: 0, features: 0, operations, rounds: rounds.min(1) }];
    let mut without = Vec::new();
    for experiment in EXPERIMENTS.iter().filter(|it| it.is_measured() && numbers >> it.number & 1 == 1) {
        records.push(Record::Try { experiment: experiment.number });
        match of_figure(experiment, number(FIGURE)? as u32, operations.max(1)) {
            Ok(record) => records.push(record),
            Err(why) => without.push((experiment.number, why)),
        }
    }
    let lines = records.len() as u32;
    records.push(Record::End { lines });
    Some(Picture { serial: Serial { records, complaints: Vec::new() }, without })
}

/// The vendor whose name begins so.
fn maker(letter: u8) -> Maker {
    let known = [*b"GenuineIntel", *b"AuthenticAMD", *b"HygonGenuine"];
    let name = known.into_iter().find(|name| name[0] & 63 == letter).unwrap_or([b'?'; 12]);
    let [a, b, c, d, e, f, g, h, rest @ ..] = name;
    Maker { ebx_edx: u64::from_le_bytes([a, b, c, d, e, f, g, h]), ecx: u32::from_le_bytes(rest) }
}

/// The record of one experiment, or why it has no figure.
fn of_figure(experiment: &Experiment, figure: u32, operations: u32) -> Result<Record, &'static str> {
    let number = experiment.number;
    let (exponent, mantissa) = (figure >> 12, u64::from(figure & 0xfff));
    let (kind, vector) = (figure >> 8 & 15, figure as u8);
    if exponent == NO_FIGURE {
        return match kind {
            2 => Err("its operations were not done as they should"),
            3 => Err("no round could be used"),
            4 => Ok(Record::Lacks { experiment: number, features: experiment.needs.map_or(0, Feature::bit) }),
            5 | 6 => {
                let cs = if kind == 6 { 3 } else { 0 };
                let fault = Fault { vector, error: 0, cs, rip: 0 };
                Ok(Record::Fault { experiment: number, number: 0, fault, count: 0 })
            }
            _ => Err("the run ended before it"),
        };
    }
    let tenths = mantissa.checked_shl(exponent).unwrap_or(u64::MAX);
    let count = if experiment.counted { u64::from(operations) } else { 0 };
    let round = Round {
        iterations: operations,
        ticks_one: 0,
        ticks_two: tenths.saturating_mul(operations.into()) / 10,
        count_one: count,
        count_two: 2 * count,
        value: experiment.value.unwrap_or(0),
    };
    Ok(Record::Done { experiment: number, number: 0, round })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all() -> Vec<&'static Experiment> {
        EXPERIMENTS.iter().collect()
    }

    #[test]
    fn a_text_is_read_back() {
        let timed: Vec<&Experiment> = all().into_iter().filter(|it| it.is_measured()).collect();
        let mut text = text([1000, 11], &timed);
        text[HEAD - 1] = ZERO + (b'A' & 63);
        // The first two: 1234 tenths shifted by 3, and #UD in ring 3.
        let figures = [3 << 12 | 1234, NO_FIGURE << 12 | 6 << 8 | 6];
        for (at, figure) in figures.into_iter().enumerate() {
            let mut digits = Vec::new();
            push(&mut digits, figure.into(), FIGURE);
            text[HEAD + FIGURE * at..][..FIGURE].copy_from_slice(&digits);
        }
        let scanned = [b"QR-Code:", text.as_slice(), b"\n"].concat();
        let Picture { serial, without } = read(&scanned).unwrap();
        let Record::Begin { maker, operations, .. } = serial.records[0] else { unreachable!() };
        assert_eq!((maker.name().as_str(), operations), ("AuthenticAMD", 1000));
        let Record::Done { experiment, round, .. } = serial.records[2] else { unreachable!() };
        assert_eq!((experiment, round.ticks()), (timed[0].number, Some(1234 * 8 * 100)));
        assert!(matches!(serial.records[4], Record::Fault { fault: Fault { vector: 6, cs: 3, .. }, .. }));
        assert_eq!(without.len(), timed.len() - 2);
        assert!(read(&scanned[..scanned.len() - 2]).is_none(), "it is cut");
    }

    #[test]
    fn every_bit_has_a_place_and_a_block_that_was_checked_has_no_remainder() {
        let modules = modules();
        let mut bits: Vec<u16> = modules.iter().map(|word| word & 0xfff).filter(|bit| *bit > 0).collect();
        bits.sort_unstable();
        let all = 8 * 2 * (DATA + CHECKS) as u16;
        assert_eq!(bits, (1..=all).collect::<Vec<_>>());
        // The generator of 20 check words begins with 17 (table A.1: its logarithm is 17), which is the sum of the roots.
        let sum = (0..CHECKS).fold((0, 1), |(sum, root), _| (sum ^ root, times(root, 2))).0;
        assert_eq!(checks(1)[0], sum);
        assert_eq!((times(0x80, 2), times(0, 7), checks(0)), (0x1d, 0, [0; CHECKS]));
    }

    #[test]
    fn what_is_too_much_or_not_timed_has_no_code() {
        let wrong: Vec<&Experiment> = all().into_iter().filter(|it| !it.is_measured()).collect();
        assert!(laid_out([1000, 1], &wrong).is_empty());
        assert_eq!(laid_out([1000, 1], &all()).len(), 5536 + 2 * HEIGHT * WIDTH);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text: Vec<u8>) {
            let _ = read(&[MARK.as_bytes(), &text, &[ZERO + 63; BYTES]].concat());
            let _ = read(&text);
        }
    }
}
