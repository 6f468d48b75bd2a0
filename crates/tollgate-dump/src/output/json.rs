//! The states in a text as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_x86::Width;

use super::apart::reason;
use super::item::{ItemRecord, hex, mode, order};
use super::remarks::remarks;
use super::walks::{Options, Walked, walks};
use super::{star, state};
use crate::{Dump, Joined, Lines, Segmentation, Session, Table};

/// The output of `--format json` for a text.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecodedText {
    /// `session`.
    kind: &'static str,
    /// One object per machine in the text.
    systems: Vec<System>,
    /// Lines that look like damaged data.
    complaints: Vec<Complaint>,
    /// The number of further such lines.
    more_complaints: usize,
    /// The line at which the text is cut, or null.
    cut_at_line: Option<usize>,
    /// The numbers of lines of the text.
    lines: Lines,
}

/// A line that looks like damaged data.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Complaint {
    /// Its number, from 1.
    line: usize,
    /// The format that it looks like.
    format: &'static str,
    /// The reason why it is wrong.
    wrong: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct System {
    /// The line that names the system or begins its section, or null.
    heading: Option<String>,
    /// Why it is kept apart from the system before it, in a sentence or two; or null.
    apart: Option<String>,
    /// The first of its lines in the text.
    first_line: usize,
    /// The last of its lines in the text.
    last_line: usize,
    /// The formats of its lines.
    formats: Vec<&'static str>,
    /// 32, 64, or null if unknown.
    mode: Option<u8>,
    /// `real`, `virtual-8086` or `protected`: what segment registers hold.
    segmentation: &'static str,
    /// Whether the mode is known for certain.
    certain: bool,
    /// The reasons for that mode.
    reasons: Vec<Reason>,
    /// The contents of GDTR.
    gdtr: Bounds,
    /// The contents of IDTR.
    idtr: Bounds,
    /// The segment registers, by name.
    segments: BTreeMap<&'static str, Segment>,
    /// The other registers, by name.
    registers: BTreeMap<&'static str, Value>,
    /// The symbols that the tool prints for addresses in registers, by register.
    symbols: BTreeMap<&'static str, String>,
    /// The base and limit of `tr` and `ldtr`, from a tool that does not print the selector.
    bases: BTreeMap<&'static str, Bounds>,
    /// Further MSRs, by number in hexadecimal.
    other_msrs: BTreeMap<String, Value>,
    /// One reading, or one per mode if the mode is unknown.
    readings: Vec<Reading>,
    /// Lines that contradict each other.
    contradictions: Vec<Finding>,
    /// Known errors of the tool that printed the lines.
    defects: Vec<Finding>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReasonOfMode"))]
struct Reason {
    /// The line that says so, or null.
    line: Option<usize>,
    /// 32 or 64.
    mode: u8,
    /// The reason, as a clause.
    why: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TableBounds"))]
struct Bounds {
    /// The table's base, or null.
    base: Option<Value>,
    /// The table's limit, or null.
    limit: Option<Value>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReadValue"))]
struct Value {
    /// The value.
    value: String,
    /// The lines that it was read from.
    lines: Vec<usize>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Segment {
    /// Its selector.
    selector: Value,
    /// Its base, or null.
    base: Option<Value>,
    /// Its limit, or null.
    limit: Option<Value>,
    /// Its access rights, or null.
    rights: Option<Value>,
}

/// The state, decoded in one mode.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Reading {
    /// 32 or 64.
    mode: u8,
    /// The entries of its tables, and its registers.
    items: Vec<ItemRecord>,
    /// Interrupt vectors as a tool printed them, with details that `items` lack.
    handlers: Vec<Handler>,
    /// Bytes outside of known tables. They are read as entries of a table, or left over if they cannot be entries.
    loose: Vec<Loose>,
    /// The steps of the processor at each crossing.
    walks: Vec<Walked>,
    /// STAR compared with the GDT, or null.
    star: Option<Compared>,
    /// Remarks, one sentence each.
    remarks: Vec<String>,
}

/// An interrupt vector as a tool printed it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Handler {
    /// Its vector.
    vector: String,
    /// The handler's offset, or null.
    offset: Option<String>,
    /// Its selector, or null.
    selector: Option<String>,
    /// Its symbol, or null.
    symbol: Option<String>,
    /// The stack that its entry in the interrupt stack table names, or null.
    stack: Option<String>,
    /// The tool's name for it; empty if it prints none.
    what: String,
}

/// STAR compared with the GDT.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StarAndGdt"))]
struct Compared {
    /// Whether STAR fits the GDT.
    fits: bool,
    /// The reasons, one sentence each.
    sentences: Vec<String>,
}

/// Bytes of unknown meaning, read as the entries of a table.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Loose {
    /// The address of the bytes, or null.
    address: Option<String>,
    /// The order of the bytes: `memory` or `number`.
    order: &'static str,
    /// The entries.
    items: Vec<ItemRecord>,
    /// The number of bytes left after the entries.
    bytes_left: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FindingOfLines"))]
struct Finding {
    /// The numbers of the lines.
    lines: Vec<usize>,
    /// The error in these lines.
    what: String,
}

impl DecodedText {
    /// Returns the states in a text for JSON.
    pub fn new(dump: &Dump, session: &Session, options: &Options) -> Self {
        Self {
            kind: "session",
            systems: session.states.iter().map(|state| System::new(state, options)).collect(),
            complaints: complaints(dump),
            more_complaints: dump.more_complaints,
            cut_at_line: dump.cut,
            lines: dump.lines,
        }
    }
}

pub(crate) fn complaints(dump: &Dump) -> Vec<Complaint> {
    let complaint = |it: &crate::Complaint| Complaint {
        line: it.line,
        format: it.format.name(),
        wrong: it.wrong.to_string(),
    };
    dump.complaints.iter().map(complaint).collect()
}

impl System {
    fn new(state: &Joined, options: &Options) -> Self {
        let shown = |value: u64, lines: &[usize]| Value { value: hex(value), lines: lines.to_vec() };
        let bounds = |table: &Table| Bounds {
            base: table.base.as_ref().map(|it| shown(it.value, &it.lines)),
            limit: table.limit.as_ref().map(|it| shown(it.value.into(), &it.lines)),
        };
        let segments = state.segments.iter().map(|(register, it)| {
            let segment = Segment {
                selector: shown(it.selector.value.0.into(), &it.selector.lines),
                base: it.base.as_ref().map(|(base, _)| shown(base.value, &base.lines)),
                limit: it.limit.as_ref().map(|it| shown(it.value.into(), &it.lines)),
                rights: it.rights.as_ref().map(|it| shown(it.value.0.into(), &it.lines)),
            };
            (register.name(), segment)
        });
        let others = state.msrs.iter().filter(|(number, _)| tollgate_x86::Msr::by_number(**number).is_none());
        Self {
            heading: state.heading.as_ref().map(|heading| heading.text.clone()),
            apart: state.apart.map(reason),
            first_line: state.lines.0,
            last_line: state.lines.1,
            formats: state.formats.iter().map(|format| format.name()).collect(),
            mode: state.width.width.map(mode),
            segmentation: match state.segmentation() {
                Segmentation::Real => "real",
                Segmentation::Virtual8086 => "virtual-8086",
                Segmentation::Protected => "protected",
            },
            certain: state.width.is_certain,
            reasons: state
                .width
                .reasons
                .iter()
                .map(|reason| Reason { line: reason.line, mode: mode(reason.width), why: reason.why.clone() })
                .collect(),
            gdtr: bounds(&state.gdtr),
            idtr: bounds(&state.idtr),
            segments: segments.collect(),
            registers: state
                .registers
                .iter()
                .map(|(register, it)| (register.name(), shown(it.value, &it.lines)))
                .collect(),
            symbols: state.symbols.iter().map(|(register, it)| (register.name(), it.value.clone())).collect(),
            bases: state.bases.iter().map(|(register, it)| (register.name(), bounds(it))).collect(),
            other_msrs: others
                .map(|(number, it)| (format!("{number:x}"), shown(it.value, &it.lines)))
                .collect(),
            readings: state::widths(state)
                .into_iter()
                .map(|width| Reading::new(state, width, options))
                .collect(),
            contradictions: state
                .contradictions
                .iter()
                .map(|it| Finding { lines: it.lines.clone(), what: it.what.clone() })
                .collect(),
            defects: state
                .defects
                .iter()
                .map(|it| Finding { lines: it.lines.clone(), what: it.of.to_string() })
                .collect(),
        }
    }
}

impl Reading {
    fn new(state: &Joined, width: Width, options: &Options) -> Self {
        let items = state::items(state, width);
        Self {
            mode: mode(width),
            handlers: state::handlers(state, width)
                .into_iter()
                .map(|gate| Handler {
                    vector: hex(gate.vector),
                    offset: gate.offset.map(hex),
                    selector: gate.selector.map(|selector| hex(selector.0)),
                    symbol: gate.symbol.clone(),
                    stack: gate.stack.map(hex),
                    what: gate.kind.clone(),
                })
                .collect(),
            loose: state::loose(state, width)
                .into_iter()
                .map(|loose| Loose {
                    address: loose.address.map(hex),
                    order: order(loose.as_numbers),
                    items: loose.items.iter().map(super::item::Item::record).collect(),
                    bytes_left: loose.left,
                })
                .collect(),
            walks: walks(state, &items, width, options),
            star: star::compared(state, width).map(|(sentences, fits)| Compared { fits, sentences }),
            remarks: remarks(state, &items),
            items: items.iter().map(super::item::Item::record).collect(),
        }
    }
}
