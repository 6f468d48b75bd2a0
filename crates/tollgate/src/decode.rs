//! `tollgate decode`: the tables by which a processor enters its kernel, from bytes, from the output of a debugger, or from this
//! machine, and the walk that an entry makes through them.

mod entry;
mod given;
mod input;
mod item;
mod json;
mod live;
mod page;
mod remarks;
mod state;
mod tables;
mod text;
mod walk_state;
mod walks;

use serde::Serialize;
use tollgate_dump::{self as dump, Dump, Format as Reader, Session, What};
use tollgate_x86::Width;

use crate::args::{DecodeArgs, Format, Kind};
use crate::failure::Failure;
use crate::{figures, out, say};
pub use entry::Entry;
pub use given::KINDS;
use item::{Item, Record};
use json::Document;

/// Decodes the input, and prints it.
///
/// # Errors
/// Input that cannot be decoded.
pub fn decode(args: &DecodeArgs) -> Result<(), Failure> {
    if args.live {
        return show_live(args);
    }
    let input = input::read(&args.input)?;
    match args.kind {
        Some(Kind::Item(kind)) => {
            let items = items_of(kind, &input)?;
            match args.format {
                Format::Json => print_items(&items),
                Format::Table => out::print(&tables::render(&items, args.explain, out::width())),
            }
        }
        Some(Kind::Session) => text(&dump::read(&input, None), args),
        Some(Kind::Reader(reader)) => text(&dump::read(&input, Some(reader)), args),
        None => {
            let dump = dump::read(&input, None);
            match loose(&dump) {
                Some(bytes) => readings(&bytes, &dump, args),
                None => text(&dump, args),
            }
        }
    }
}

/// Items of one kind: the input must have no others.
fn items_of(kind: &'static str, input: &[u8]) -> Result<Vec<Item>, Failure> {
    let text = String::from_utf8_lossy(input);
    match kind {
        "msr" => given::registers(&text),
        "lar_lsl" => given::rights(&text).map(|item| vec![item]),
        _ => {
            let dump = dump::read(input, None);
            refuse_what_went_wrong(&dump)?;
            // Digits that are too few to be recognised are bytes all the same where they were said to be.
            let dump = if dump.pieces.is_empty() { dump::read(input, Some(Reader::Hex)) } else { dump };
            refuse_what_went_wrong(&dump)?;
            let bytes: Vec<u8> =
                dump.pieces.iter().flat_map(|piece| bytes_of(&piece.what)).copied().collect();
            given::of_kind(kind, &bytes)
        }
    }
}

fn bytes_of(what: &What) -> &[u8] {
    match what {
        What::Bytes { bytes, .. } => bytes,
        _ => &[],
    }
}

/// Where a kind was named, all of the input is of it.
fn refuse_what_went_wrong(dump: &Dump) -> Result<(), Failure> {
    match dump.complaints.first() {
        Some(complaint) => Err(Failure::input(format!(
            "line {}: {}",
            complaint.line,
            say::clean(&complaint.wrong.to_string())
        ))),
        None => Ok(()),
    }
}

/// The bytes, where the input has only digits: they have no address and no meaning of their own. Words that are no
/// entries, such as the limit in front of a table in a program's source, are separated from those behind them.
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

/// One item for itself, several as a list.
fn print_items(items: &[Item]) -> Result<(), Failure> {
    let records: Vec<Record> = items.iter().map(Item::record).collect();
    match records.as_slice() {
        [only] => out::print_json(only),
        all => out::print_json(&all),
    }
}

/// Bytes that may be a table of either width.
#[derive(Serialize)]
struct Readings {
    kind: &'static str,
    readings: Vec<Reading>,
    complaints: Vec<json::Complaint>,
}

#[derive(Serialize)]
struct Reading {
    mode: u8,
    items: Vec<Record>,
    bytes_left: usize,
}

/// Prints bytes of unknown meaning, in the width that was asked for or in both.
fn readings(all: &[Vec<u8>], dump: &Dump, args: &DecodeArgs) -> Result<(), Failure> {
    let is_told = args.mode.is_none() && all.iter().any(|bytes| given::has_64_bit_code(bytes));
    let widths = match args.mode {
        Some(width) => vec![width],
        None if is_told => vec![Width::Long],
        None => vec![Width::Legacy, Width::Long],
    };
    let read: Vec<Vec<_>> = all
        .iter()
        .map(|bytes| widths.iter().map(|&width| (width, given::of_table(bytes, width))).collect())
        .collect();
    if read.iter().flatten().all(|(_, (items, _))| items.is_empty()) {
        refuse_what_went_wrong(dump)?;
        let there = figures::count(all.iter().map(Vec::len).sum(), "byte is", "bytes are");
        return Err(Failure::input(format!(
            "{there} no whole descriptor or gate: one takes 8 bytes, in long mode up to 16"
        )));
    }
    if args.format == Format::Json {
        let readings = read.iter().flatten().map(|(width, (items, left))| Reading {
            mode: json::mode(*width),
            items: items.iter().map(Item::record).collect(),
            bytes_left: *left,
        });
        let complaints = json::complaints(dump);
        return out::print_json(&Readings { kind: "bytes", readings: readings.collect(), complaints });
    }
    let columns = out::width();
    let mut parts: Vec<String> =
        read.iter().flat_map(|readings| page::readings(readings, args.explain, columns)).collect();
    if is_told {
        parts.push(page::of_long_mode(columns));
    }
    parts.push(page::complaints(dump, columns));
    parts.retain(|part| !part.is_empty());
    out::print(&parts.join("\n"))
}

/// Prints the state in a text of this program's own: all of it, and no walk.
///
/// # Errors
/// As of [`decode`].
pub fn print_text(input: &[u8], format: Format) -> Result<(), Failure> {
    let args = DecodeArgs {
        input: Vec::new(),
        kind: None,
        mode: None,
        walk: vec![Entry::None],
        cpl: 3,
        vendor: None,
        live: false,
        explain: false,
        format,
    };
    text(&dump::read(input, None), &args)
}

/// Prints the states of one or more machines in a text.
fn text(dump: &Dump, args: &DecodeArgs) -> Result<(), Failure> {
    let session = dump::join(dump, args.mode);
    if dump.pieces.iter().all(|piece| matches!(piece.what, What::Form(_))) {
        refuse_what_went_wrong(dump)?;
        if dump.lines.total == dump.lines.empty {
            return Err(Failure::input("nothing to decode: the input is empty"));
        }
        return Err(Failure::input(format!(
            "nothing to decode in {}: no bytes, tables, registers or MSRs in a form that is known (`--as` with \
             `--help` has the forms)",
            figures::count(dump.lines.total, "line", "lines")
        )));
    }
    show(dump, &session, args)
}

fn show(dump: &Dump, session: &Session, args: &DecodeArgs) -> Result<(), Failure> {
    match args.format {
        Format::Json => out::print_json(&Document::of(dump, session, args)),
        Format::Table => out::print(&page::render(dump, session, args, out::width())),
    }
}

fn show_live(args: &DecodeArgs) -> Result<(), Failure> {
    let args = &DecodeArgs { vendor: args.vendor.or_else(live::maker), ..args.clone() };
    let live = live::look();
    let own = live.as_dump();
    let session = dump::join(&own, Some(Width::Long));
    if args.format == Format::Json {
        let mut record = live.record();
        if let serde_json::Value::Object(map) = &mut record
            && let Ok(shown) = serde_json::to_value(Document::of(&own, &session, args))
        {
            map.insert("kernel".to_owned(), shown);
        }
        return out::print_json(&record);
    }
    let width = out::width();
    let mut text = live.render(args.explain, width);
    if !session.states.is_empty() {
        text.push('\n');
        text.push_str(&page::render(&own, &session, args, width));
    }
    out::print(&text)
}

/// The values of `--as`: the kinds of items, a whole text, or its form.
pub fn parse_kind(text: &str) -> Result<Kind, String> {
    if text == "session" {
        return Ok(Kind::Session);
    }
    if let Some((name, _)) = KINDS.iter().find(|(name, _)| *name == text) {
        return Ok(Kind::Item(name));
    }
    if let Some(reader) = Reader::of(text) {
        return Ok(Kind::Reader(reader));
    }
    let items = KINDS.iter().map(|(name, _)| *name);
    let readers = dump::FORMATS.iter().map(|spec| spec.name);
    let all: Vec<&str> = items.chain(["session"]).chain(readers).collect();
    Err(format!("it is none of {}", all.join(", ")))
}

/// The kinds and forms, a line each, for the help.
pub fn kinds_for_help() -> String {
    let mut text = String::from("Values of --as:\n");
    let items = KINDS.iter().map(|(name, about)| (*name, (*about).to_owned()));
    let whole = [("session", "a pasted text with any of these in it".to_owned())];
    let readers = dump::FORMATS.iter().map(|spec| (spec.name, spec.about.trim_end_matches('.').to_owned()));
    for (name, about) in items.chain(whole).chain(readers) {
        text.push_str(&format!("  {name:13} {about}\n"));
    }
    text.trim_end().to_owned()
}
