//! The evidence as JSON.

use serde::Serialize;
use tollgate_inspect::kernel_base::{Conclusion, Evidence, Known, Physical, Symbols};
use tollgate_model::Unknown;

/// The output of `--format json`.
#[derive(Serialize)]
pub struct Document<'a> {
    verdict: &'static str,
    because: &'a str,
    offset: Option<String>,
    link_address: String,
    link_address_is_read: bool,
    slots: u64,
    remarks: &'a [String],
    sandbox: Option<&'a str>,
    evidence: Vec<Piece<'a>>,
}

/// One piece of evidence, with the fields of its kind.
#[derive(Serialize)]
struct Piece<'a> {
    name: &'static str,
    #[serde(flatten)]
    text: Status<'a>,
}

#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Status<'a> {
    Known { value: Value, source: &'a str },
    Unknown { why: &'a Unknown },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    /// An address or a distance, in hexadecimal; nothing where it is hidden.
    Address(Option<String>),
    Range {
        start: String,
        end: String,
    },
    DirectMap {
        base: String,
        is_usual: bool,
    },
    Boot {
        moved: bool,
        has_header: bool,
    },
    /// `kaslr` or `nokaslr`.
    Word(Option<&'static str>),
    Text(String),
    Options(Options),
}

#[derive(Serialize)]
struct Options {
    randomize_base: bool,
    randomize_memory: bool,
    relocatable: bool,
    hibernation: bool,
    physical_start: Option<u64>,
    physical_align: Option<u64>,
}

impl<'a> Document<'a> {
    /// The document of the evidence and its conclusion.
    pub fn of(evidence: &'a Evidence, conclusion: &'a Conclusion) -> Self {
        Self {
            verdict: conclusion.verdict.name(),
            because: &conclusion.because,
            offset: conclusion.offset.map(hexadecimal),
            link_address: hexadecimal(conclusion.link_address),
            link_address_is_read: conclusion.link_address_is_read,
            slots: conclusion.slots,
            remarks: &conclusion.remarks,
            sandbox: evidence.sandbox.as_deref(),
            evidence: pieces(evidence),
        }
    }
}

fn hexadecimal(value: u64) -> String {
    format!("{value:#x}")
}

fn pieces(evidence: &Evidence) -> Vec<Piece<'_>> {
    vec![
        piece("symbols", &evidence.symbols, |symbols| {
            Value::Address(match symbols {
                Symbols::At(address) => Some(hexadecimal(*address)),
                Symbols::Hidden => None,
            })
        }),
        piece("core_offset", &evidence.core_offset, |&offset| Value::Address(Some(hexadecimal(offset)))),
        piece("direct_map", &evidence.direct_map, |map| Value::DirectMap {
            base: hexadecimal(map.base),
            is_usual: map.is_usual,
        }),
        piece("boot", &evidence.boot, |boot| Value::Boot { moved: boot.moved, has_header: boot.has_header }),
        piece("physical", &evidence.physical, |physical| match *physical {
            Physical::At { start, end } => Value::Range { start: hexadecimal(start), end: hexadecimal(end) },
            Physical::Hidden => Value::Address(None),
        }),
        piece("command_line", &evidence.parameter, |text| {
            Value::Word(text.map(|moves| if moves { "kaslr" } else { "nokaslr" }))
        }),
        piece("linked", &evidence.linked, |&address| Value::Address(Some(hexadecimal(address)))),
        piece("options", &evidence.options, |options| {
            Value::Options(Options {
                randomize_base: options.randomize_base,
                randomize_memory: options.randomize_memory,
                relocatable: options.relocatable,
                hibernation: options.hibernation,
                physical_start: options.physical_start,
                physical_align: options.physical_align,
            })
        }),
        piece("release", &evidence.release, |release| Value::Text(release.clone())),
    ]
}

fn piece<'a, T>(name: &'static str, text: &'a Known<T>, value: impl FnOnce(&T) -> Value) -> Piece<'a> {
    let text = match text {
        Ok(text) => Status::Known { value: value(&text.value), source: &text.source },
        Err(why) => Status::Unknown { why },
    };
    Piece { name, text }
}
