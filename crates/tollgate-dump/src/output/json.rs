//! The states in a text as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_x86::Width;

use super::apart::reason;
use super::item::{Record, hex, mode, order};
use super::remarks::remarks;
use super::walks::{Options, Walked, walks};
use super::{star, state};
use crate::{Dump, Joined, Session, Table};

/// The output of `--format json` for a text.
#[derive(Serialize)]
pub struct Document {
    kind: &'static str,
    systems: Vec<System>,
    complaints: Vec<Complaint>,
    more_complaints: usize,
    cut_at_line: Option<usize>,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    total: usize,
    understood: usize,
    empty: usize,
    foreign: usize,
}

/// A line that looks like damaged data.
#[derive(Serialize)]
pub(crate) struct Complaint {
    line: usize,
    format: &'static str,
    wrong: String,
}

#[derive(Serialize)]
struct System {
    heading: Option<String>,
    apart: Option<String>,
    first_line: usize,
    last_line: usize,
    formats: Vec<&'static str>,
    mode: Option<u8>,
    certain: bool,
    reasons: Vec<Reason>,
    gdtr: Bounds,
    idtr: Bounds,
    segments: BTreeMap<&'static str, Segment>,
    registers: BTreeMap<&'static str, Value>,
    other_msrs: BTreeMap<String, Value>,
    readings: Vec<Reading>,
    contradictions: Vec<Finding>,
    defects: Vec<Finding>,
}

#[derive(Serialize)]
struct Reason {
    line: Option<usize>,
    mode: u8,
    why: String,
}

#[derive(Serialize)]
struct Bounds {
    base: Option<Value>,
    limit: Option<Value>,
}

#[derive(Serialize)]
struct Value {
    value: String,
    lines: Vec<usize>,
}

#[derive(Serialize)]
struct Segment {
    selector: Value,
    base: Option<Value>,
    limit: Option<Value>,
    rights: Option<Value>,
}

/// The state read in one width.
#[derive(Serialize)]
struct Reading {
    mode: u8,
    items: Vec<Record>,
    handlers: Vec<Handler>,
    loose: Vec<Loose>,
    walks: Vec<Walked>,
    star: Option<Compared>,
    remarks: Vec<String>,
}

/// A vector of which a tool printed the handler, and not the gate.
#[derive(Serialize)]
struct Handler {
    vector: String,
    offset: Option<String>,
    selector: Option<String>,
    symbol: Option<String>,
}

/// STAR against the GDT.
#[derive(Serialize)]
struct Compared {
    fits: bool,
    sentences: Vec<String>,
}

/// Bytes of unknown meaning, as the entries of a table.
#[derive(Serialize)]
struct Loose {
    address: Option<String>,
    order: &'static str,
    items: Vec<Record>,
    bytes_left: usize,
}

#[derive(Serialize)]
struct Finding {
    lines: Vec<usize>,
    what: String,
}

impl Document {
    /// All of it.
    pub fn of(dump: &Dump, session: &Session, options: &Options) -> Self {
        Self {
            kind: "session",
            systems: session.states.iter().map(|state| System::of(state, options)).collect(),
            complaints: complaints(dump),
            more_complaints: dump.more_complaints,
            cut_at_line: dump.cut,
            lines: Lines {
                total: dump.lines.total,
                understood: dump.lines.understood,
                empty: dump.lines.empty,
                foreign: dump.lines.foreign,
            },
        }
    }
}

/// The lines that look like damaged data.
pub(crate) fn complaints(dump: &Dump) -> Vec<Complaint> {
    let complaint = |it: &crate::Complaint| Complaint {
        line: it.line,
        format: it.format.name(),
        wrong: it.wrong.to_string(),
    };
    dump.complaints.iter().map(complaint).collect()
}

impl System {
    fn of(state: &Joined, options: &Options) -> Self {
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
        let others = state.msrs.iter().filter(|(number, _)| tollgate_x86::Msr::of(**number).is_none());
        Self {
            heading: state.heading.as_ref().map(|heading| heading.text.clone()),
            apart: state.apart.map(reason),
            first_line: state.lines.0,
            last_line: state.lines.1,
            formats: state.formats.iter().map(|format| format.name()).collect(),
            mode: state.width.width.map(mode),
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
            other_msrs: others
                .map(|(number, it)| (format!("{number:x}"), shown(it.value, &it.lines)))
                .collect(),
            readings: state::widths(state)
                .into_iter()
                .map(|width| Reading::of(state, width, options))
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
    fn of(state: &Joined, width: Width, options: &Options) -> Self {
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
