use serde::Serialize;
use tollgate_output::table::{heading, paragraph};
use tollgate_x86::Width;

use super::given::{as_numbers, bytes_of, has_64_bit_code, of_table};
use super::item::{Item, ItemRecord, mode, order};
use super::{json, screen, tables};
use crate::{Dump, What};

/// Stretches of bytes, each read in the requested width or in both.
pub struct Readings {
    stretches: Vec<Vec<Reading>>,
    /// The stretches that make entries only if they are eight-byte big-endian numbers, read as such.
    numbers: Vec<Vec<Reading>>,
    /// Total number of bytes.
    pub bytes: usize,
    /// Whether the bytes themselves show that they are from long mode.
    is_told: bool,
}

type Reading = (Width, (Vec<Item>, usize));

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecodedBytes {
    /// `bytes`.
    kind: &'static str,
    /// The ways to read them.
    readings: Vec<ReadingRecord>,
    /// Lines that look like damaged data.
    complaints: Vec<json::Complaint>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReadingOfBytes"))]
struct ReadingRecord {
    /// 32 or 64.
    mode: u8,
    /// `memory`, or `number` if the bytes make entries only as numbers of eight bytes, the highest byte first.
    order: &'static str,
    /// The entries.
    items: Vec<ItemRecord>,
    /// The number of bytes left after the entries.
    bytes_left: usize,
}

impl Readings {
    /// Reads an input that consists only of digits, which have no address and no meaning of their own.
    pub fn new(dump: &Dump, mode: Option<Width>) -> Option<Self> {
        let all = loose(dump)?;
        let numbers: Vec<Vec<u8>> = all.iter().filter_map(|bytes| as_numbers(bytes)).collect();
        let is_told = mode.is_none() && all.iter().chain(&numbers).any(|bytes| has_64_bit_code(bytes));
        let widths = match mode {
            Some(width) => vec![width],
            None if is_told => vec![Width::Long],
            None => vec![Width::Legacy, Width::Long],
        };
        let read = |bytes: &Vec<u8>| widths.iter().map(|&width| (width, of_table(bytes, width))).collect();
        let bytes = all.iter().map(Vec::len).sum();
        let (stretches, numbers) = (all.iter().map(read).collect(), numbers.iter().map(read).collect());
        Some(Self { stretches, numbers, bytes, is_told })
    }

    /// Returns whether there is no whole entry in any reading.
    pub fn is_empty(&self) -> bool {
        self.stretches.iter().flatten().all(|(_, (items, _))| items.is_empty())
    }

    /// Shows the readings as text.
    pub fn text(&self, dump: &Dump, explain: bool, columns: usize) -> String {
        let read = |read: &Vec<Reading>| readings(read, explain, columns);
        let mut parts: Vec<String> = self.stretches.iter().flat_map(read).collect();
        if !self.numbers.is_empty() {
            parts.push(heading(AS_NUMBERS, columns));
            parts.extend(self.numbers.iter().flat_map(read));
            parts.push(paragraph(BY_PREFIX, columns, ""));
        }
        if self.is_told {
            let why =
                "These are long-mode tables: a code descriptor has L set, which is reserved in other modes.";
            parts.push(paragraph(why, columns, ""));
        }
        parts.push(screen::complaints(dump, columns));
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    /// Returns the readings for JSON.
    pub fn record(&self, dump: &Dump) -> DecodedBytes {
        let of = |stretches: &'_ [Vec<Reading>], as_numbers| {
            let record = |(width, (items, left)): &Reading| ReadingRecord {
                mode: mode(*width),
                order: order(as_numbers),
                items: items.iter().map(Item::record).collect(),
                bytes_left: *left,
            };
            stretches.iter().flatten().map(record).collect::<Vec<_>>()
        };
        let readings = of(&self.stretches, false).into_iter().chain(of(&self.numbers, true));
        DecodedBytes { kind: "bytes", readings: readings.collect(), complaints: json::complaints(dump) }
    }
}

const AS_NUMBERS: &str = "As numbers of eight bytes, the highest byte first";
const BY_PREFIX: &str =
    "In memory order no entry would be present. With 0x before it a number is read as one.";

/// Shows entries of 8 bytes, of a named kind, as big-endian numbers if only that makes entries of them.
pub fn turned(items: &[Item], explain: bool, columns: usize) -> Option<String> {
    let is_short = |item: &Item| matches!(item, Item::Segment(..) | Item::Gate32(..));
    let bytes: Vec<u8> =
        items.iter().filter(|item| is_short(item)).filter_map(Item::bytes).flatten().collect();
    let (items, _) = of_table(&as_numbers(&bytes)?, Width::Legacy);
    let table = tables::render(&items, explain, columns);
    Some(format!("{}{table}{}", heading(AS_NUMBERS, columns), paragraph(BY_PREFIX, columns, "")))
}

fn readings(readings: &[Reading], explain: bool, columns: usize) -> Vec<String> {
    let same = readings.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let shown = if same { 1 } else { readings.len() };
    let mut parts = Vec::new();
    for (width, (items, left)) in readings.iter().take(shown) {
        let mut text = if same {
            String::new()
        } else {
            heading(&format!("As a table of {}-bit entries", mode(*width)), columns)
        };
        text.push_str(&tables::render(items, explain, columns));
        text.push_str(&screen::too_few(*left, columns));
        parts.push(text);
    }
    if !same {
        let output = "The bytes do not show which of the two applies; choose with --mode 32 or 64.";
        parts.push(paragraph(output, columns, ""));
    }
    parts
}

/// Returns the bytes in stretches. Words that are not entries, such as the limit before a table in a program's source, are
/// separated from the words after them.
fn loose(dump: &Dump) -> Option<Vec<Vec<u8>>> {
    const ENTRY: usize = 8;
    let is_loose = |what: &What| matches!(what, What::Bytes { address: None, .. });
    if dump.pieces.is_empty() || !dump.pieces.iter().all(|piece| is_loose(&piece.what)) {
        return None;
    }
    let mut all: Vec<Vec<u8>> = Vec::new();
    for bytes in dump.pieces.iter().map(|piece| bytes_of(&piece.what)) {
        let goes_on = |last: &Vec<u8>| last.len().is_multiple_of(ENTRY) || !bytes.len().is_multiple_of(ENTRY);
        match all.last_mut().filter(|last| goes_on(last)) {
            Some(last) => last.extend_from_slice(bytes),
            None => all.push(bytes.to_vec()),
        }
    }
    Some(all)
}
