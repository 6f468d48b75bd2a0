//! The evidence as JSON.

use serde::Serialize;
use tollgate_model::Unknown;

use super::evidence::{FoundValue, Piece, Value, hexadecimal, pieces};
use super::named::{Before, Symbol};
use crate::kernel_base::{Conclusion, Evidence, Named};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KernelAddress"))]
pub struct KernelDocument<'a> {
    /// `moved`, `not_moved` or `unknown`.
    verdict: &'static str,
    /// The evidence that decides the verdict.
    because: &'a str,
    /// The offset in hexadecimal, or null.
    offset: Option<String>,
    /// The address that the kernel was linked to.
    link_address: String,
    /// Whether the link address was read; if not, it is the usual one.
    link_address_is_read: bool,
    /// The number of positions that the kernel could choose from.
    slots: u64,
    /// Remarks, one sentence each.
    remarks: &'a [String],
    /// The user-space kernel that runs in place of Linux, or null.
    sandbox: Option<&'a str>,
    /// One object per piece of evidence, the best first.
    evidence: Vec<PieceOfEvidence<'a>>,
    /// One object per symbol that the user named.
    symbols: Vec<Symbol<'a>>,
}

/// One piece of evidence, with the fields of its kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PieceOfEvidence<'a> {
    /// Its name: `symbol`, `symbols`, `core_offset`, `direct_map`, `boot`, `physical`, `command_line`, `linked`, `options` or `release`.
    name: &'static str,
    #[serde(flatten)]
    text: Status<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "lowercase")]
enum Status<'a> {
    /// It was read.
    Known {
        /// Its value; null if the kernel shows zeros.
        value: Value<'a>,
        /// The source that it was read from.
        source: &'a str,
    },
    /// It is not known.
    Unknown {
        /// Why it is not known.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        why: &'a Unknown,
    },
}

impl<'a> KernelDocument<'a> {
    /// Makes the document of the evidence, its conclusion, and the symbols that were asked for, with those of another boot if
    /// given.
    pub fn new(
        evidence: &'a Evidence,
        conclusion: &'a Conclusion,
        named: &'a [Named],
        before: Option<&Before>,
    ) -> Self {
        let record = |Piece { field, found, .. }| PieceOfEvidence {
            name: field,
            text: match found {
                Ok(FoundValue { value, source, .. }) => Status::Known { value, source },
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
                .map(|(at, symbol)| Symbol::new(symbol, before.and_then(|before| before.symbols.get(at))))
                .collect(),
        }
    }
}
