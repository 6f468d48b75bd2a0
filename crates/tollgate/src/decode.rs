//! `tollgate decode`: the tables by which a processor enters its kernel, from bytes, from the output of a debugger, or from this
//! machine, and the walk of an entry through them.

mod input;

use tollgate_dump::output::{
    DecodedText, Entry, InputKind, Item, ItemRecord, Live, LiveTables, Options, Readings, expect_sound,
    items, items_of, render, turned,
};
use tollgate_dump::{self as dump, Dump, What};
use tollgate_inspect::Machine;
use tollgate_output::figures;
use tollgate_x86::{Vendor, Width};

use crate::args::{DecodeArgs, Format};
use crate::failure::Failure;
use crate::out;

impl DecodeArgs {
    /// # Errors
    /// Input that cannot be decoded.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.live {
            return show_live(self);
        }
        let input = input::read(&self.input)?;
        let read = |reader| {
            let dump = dump::read(&input, reader);
            if self.one_machine { dump.of_one_machine() } else { dump }
        };
        match self.kind {
            Some(InputKind::Item(kind)) => {
                let found = items_of(kind, &input)?;
                match self.format {
                    Format::Json => print_items(&found),
                    Format::Table => {
                        let (explain, width) = (self.explain, out::width());
                        let turned = turned(&found, explain, width).map(|text| format!("\n{text}"));
                        out::print(&format!(
                            "{}{}",
                            items(&found, explain, width),
                            turned.unwrap_or_default()
                        ))
                    }
                }
            }
            Some(InputKind::Session) => text(&read(None), self),
            Some(InputKind::Reader(reader)) => text(&read(Some(reader)), self),
            None => {
                let dump = read(None);
                match Readings::new(&dump, self.mode) {
                    Some(found) => readings(&found, &dump, self),
                    None => text(&dump, self),
                }
            }
        }
    }
}

fn print_items(items: &[Item]) -> Result<(), Failure> {
    let records: Vec<ItemRecord> = items.iter().map(Item::record).collect();
    match records.as_slice() {
        [only] => out::print_json(only),
        all => out::print_json(&all),
    }
}

fn readings(found: &Readings, dump: &Dump, args: &DecodeArgs) -> Result<(), Failure> {
    if found.is_empty() {
        expect_sound(dump)?;
        let there = figures::count(found.bytes, "byte is", "bytes are");
        return Err(Failure::input(format!(
            "{there} not a whole descriptor or gate: one takes 8 bytes, in long mode up to 16"
        )));
    }
    match args.format {
        Format::Json => out::print_json(&found.record(dump)),
        Format::Table => out::print(&found.text(dump, args.explain, out::width())),
    }
}

/// Prints the state in a text of this program's own, without a walk.
pub fn print_text(input: &[u8], format: Format) -> Result<(), Failure> {
    let args = DecodeArgs {
        input: Vec::new(),
        kind: None,
        mode: None,
        walk: vec![Entry::None],
        cpl: 3,
        vendor: None,
        one_machine: true,
        live: false,
        explain: false,
        format,
    };
    text(&dump::read(input, None), &args)
}

fn text(dump: &Dump, args: &DecodeArgs) -> Result<(), Failure> {
    if dump.pieces.iter().all(|piece| matches!(piece.what, What::Form(_))) {
        expect_sound(dump)?;
        if dump.lines.total == dump.lines.empty {
            return Err(Failure::input("nothing to decode: the input is empty"));
        }
        return Err(Failure::input(format!(
            "nothing to decode in {}: no bytes, tables, registers or MSRs in a known form (`--help` lists the forms under --as)",
            figures::count(dump.lines.total, "line", "lines")
        )));
    }
    let session = dump::join(dump, args.mode);
    let options = options(args, None);
    match args.format {
        Format::Json => out::print_json(&DecodedText::new(dump, &session, &options)),
        Format::Table => out::print(&render(dump, &session, &options, out::width())),
    }
}

fn options(args: &DecodeArgs, vendor: Option<Vendor>) -> Options {
    Options {
        walk: args.walk.clone(),
        cpl: args.cpl,
        vendor: args.vendor.map(Vendor::from).or(vendor),
        explain: args.explain,
    }
}

/// The MSRs and the kernel's tables are those of processor 0.
fn show_live(args: &DecodeArgs) -> Result<(), Failure> {
    let ring3 = tollgate_inspect::ring3();
    let mechanisms = tollgate_inspect::mechanisms(&Machine::here(), ring3.as_ref().ok());
    let live =
        Live { ring3, mechanisms, msrs: tollgate_inspect::msrs(0), tables: tollgate_inspect::tables(0) };
    let own = live.as_dump();
    let session = dump::join(&own, Some(Width::Long));
    let options = options(args, vendor());
    if args.format == Format::Json {
        return out::print_json(&LiveTables::new(&live, DecodedText::new(&own, &session, &options)));
    }
    let width = out::width();
    let mut text = live.render(args.explain, width);
    if !session.states.is_empty() {
        text.push('\n');
        text.push_str(&render(&own, &session, &options, width));
    }
    out::print(&text)
}

fn vendor() -> Option<Vendor> {
    let (_, vendor) = tollgate_inspect::spec("cpu.vendor")?.read(&Machine::here()).into_iter().next()?;
    match vendor.value()?.as_text()? {
        "GenuineIntel" => Some(Vendor::Intel),
        "AuthenticAMD" | "HygonGenuine" => Some(Vendor::Amd),
        _ => None,
    }
}
