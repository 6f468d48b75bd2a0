//! The evidence as JSON.

use serde::Serialize;
use tollgate_model::Unknown;

use super::evidence::{Found, Piece, Value, hexadecimal, pieces};
use super::named::{Before, Symbol};
use crate::kernel_base::{Conclusion, Evidence, Named};

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
    evidence: Vec<Record<'a>>,
    symbols: Vec<Symbol<'a>>,
}

/// One piece of evidence, with the fields of its kind.
#[derive(Serialize)]
struct Record<'a> {
    name: &'static str,
    #[serde(flatten)]
    text: Status<'a>,
}

#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Status<'a> {
    Known { value: Value<'a>, source: &'a str },
    Unknown { why: &'a Unknown },
}

impl<'a> Document<'a> {
    /// The document of the evidence, its conclusion, and the symbols that were asked for, also those of another boot where there are some.
    pub fn of(
        evidence: &'a Evidence,
        conclusion: &'a Conclusion,
        named: &'a [Named],
        before: Option<&Before>,
    ) -> Self {
        let record = |Piece { field, found, .. }| Record {
            name: field,
            text: match found {
                Ok(Found { value, source, .. }) => Status::Known { value, source },
                Err(why) => Status::Unknown { why },
            },
        };
        Self {
            verdict: conclusion.verdict.name(),
            because: &conclusion.because,
            offset: conclusion.offset.map(hexadecimal),
            link_address: hexadecimal(conclusion.link_address),
            link_address_is_read: conclusion.link_address_is_read,
            slots: conclusion.slots,
            remarks: &conclusion.remarks,
            sandbox: evidence.sandbox.as_deref(),
            evidence: pieces(evidence, conclusion.link_address).into_iter().map(record).collect(),
            symbols: named
                .iter()
                .enumerate()
                .map(|(at, symbol)| Symbol::of(symbol, before.and_then(|before| before.symbols.get(at))))
                .collect(),
        }
    }
}
