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
    /// One for each machine in the text.
    systems: Vec<System>,
    /// Lines that look like damaged data.
    complaints: Vec<Complaint>,
    /// How many more there are.
    more_complaints: usize,
    /// The line at which the text is cut, or None.
    cut_at_line: Option<usize>,
    /// How many lines the text has.
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
    /// What is wrong with it.
    wrong: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct System {
    /// The line that names it or begins its section, or None.
    heading: Option<String>,
    /// Why it is kept apart from the system before it, in a sentence or two, or None.
    apart: Option<String>,
    /// The first of its lines in the text.
    first_line: usize,
    /// The last.
    last_line: usize,
    /// Their formats.
    formats: Vec<&'static str>,
    /// 32, 64 or None.
    mode: Option<u8>,
    /// `real`, `virtual-8086` or `protected`: what segment registers hold.
    segmentation: &'static str,
    /// Whether the mode is known for certain.
    certain: bool,
    /// Why it is that mode.
    reasons: Vec<Reason>,
    /// GDTR.
    gdtr: Bounds,
    /// IDTR.
    idtr: Bounds,
    /// By register.
    segments: BTreeMap<&'static str, Segment>,
    /// By name.
    registers: BTreeMap<&'static str, Value>,
    /// By register: the symbol that the tool prints of its address.
    symbols: BTreeMap<&'static str, String>,
    /// Of `tr` and `ldtr`: base and limit from a tool that does not say the selector.
    bases: BTreeMap<&'static str, Bounds>,
    /// By number.
    other_msrs: BTreeMap<String, Value>,
    /// One, or one for each mode where it is unknown.
    readings: Vec<Reading>,
    /// Lines that contradict each other.
    contradictions: Vec<Finding>,
    /// Known errors of the tool that printed the lines.
    defects: Vec<Finding>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReasonOfMode"))]
struct Reason {
    /// The line that says so, or None.
    line: Option<usize>,
    /// 32 or 64.
    mode: u8,
    /// A clause.
    why: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TableBounds"))]
struct Bounds {
    /// Its base, or None.
    base: Option<Value>,
    /// Its limit, or None.
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
    /// Its base, or None.
    base: Option<Value>,
    /// Its limit, or None.
    limit: Option<Value>,
    /// Its access rights, or None.
    rights: Option<Value>,
}

/// The state read in one width.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Reading {
    /// 32 or 64.
    mode: u8,
    /// The entries of its tables, and its registers.
    items: Vec<ItemRecord>,
    /// What a tool printed of vectors beside their gates.
    handlers: Vec<Handler>,
    /// Bytes outside of known tables, read as entries of one, or left where they can be none.
    loose: Vec<Loose>,
    /// What the processor does at each crossing.
    walks: Vec<Walked>,
    /// STAR against the GDT, or None.
    star: Option<Compared>,
    /// Sentences.
    remarks: Vec<String>,
}

/// What a tool printed of a vector beside its gate.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Handler {
    /// Its vector.
    vector: String,
    /// The handler's offset, or None.
    offset: Option<String>,
    /// Its selector, or None.
    selector: Option<String>,
    /// Its symbol, or None.
    symbol: Option<String>,
    /// The stack that its entry of the interrupt stack table names, or None.
    stack: Option<String>,
    /// The tool's name of it; empty where it prints none.
    what: String,
}

/// STAR against the GDT.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StarAndGdt"))]
struct Compared {
    /// Whether they fit.
    fits: bool,
    /// Why.
    sentences: Vec<String>,
}

/// Bytes of unknown meaning, as the entries of a table.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Loose {
    /// Where they are, or None.
    address: Option<String>,
    /// `memory` or `number`.
    order: &'static str,
    /// The entries.
    items: Vec<ItemRecord>,
    /// Bytes that are left.
    bytes_left: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FindingOfLines"))]
struct Finding {
    /// The lines.
    lines: Vec<usize>,
    /// What is wrong.
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
