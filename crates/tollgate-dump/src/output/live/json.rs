//! The readings of this machine for JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_inspect::{Attempt, Mechanism, Ring3, TableRegister};
use tollgate_model::Fact;
use tollgate_x86::{Msr, Selector};

use super::{Live, SEGMENTS, is_closed};
use crate::output::item::{Item, ItemRecord, hex};
use crate::output::{json, text};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveTables<'a> {
    /// `live`.
    kind: &'static str,
    /// The ways into the kernel.
    mechanisms: Vec<MechanismRecord<'a>>,
    /// The results of instructions that a program may try in ring 3.
    ring3: Ring3Record,
    /// The registers of processor 0.
    msrs: Vec<MsrRecord>,
    /// The tables of processor 0, from the kernel's memory, in the form of those of a text.
    kernel: json::DecodedText,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WayIntoTheKernel"))]
struct MechanismRecord<'a> {
    /// Its name.
    name: &'a str,
    /// Whether the processor and the kernel offer it: a [fact](#facts).
    offered: &'a Fact,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "UserMode"))]
#[serde(untagged)]
enum Ring3Record {
    /// The results.
    Seen(Box<Seen>),
    /// It could not be tried.
    Not {
        /// Why it could not be tried; the other fields are absent then.
        unknown: String,
    },
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeenInUserMode"))]
struct Seen {
    /// The selectors of ring 3 that LAR loads.
    selectors: Vec<ItemRecord>,
    /// The selectors in the segment registers, by the registers' names.
    loaded: BTreeMap<&'static str, String>,
    /// The value that SGDT stored.
    sgdt: Attempted<StoredTable>,
    /// The value that SIDT stored.
    sidt: Attempted<StoredTable>,
    /// The value that SLDT stored.
    sldt: Attempted<StoredSelector>,
    /// The value that STR stored.
    #[serde(rename = "str")]
    tr: Attempted<StoredSelector>,
    /// The value that SMSW stored.
    smsw: Attempted<StoredWord>,
    /// The results of INT with each of the 256 vectors.
    int: Vec<TriedVector>,
}

/// The outcome of an instruction.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Tried{T}"))]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum Attempted<T> {
    /// It completed.
    Done(T),
    /// It raised a signal.
    Signal {
        /// The signal's number.
        signal: i32,
        /// The exception's vector.
        exception: u64,
        /// The exception's error code.
        code: String,
    },
    /// Its process was killed.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// It was not tried.
    NotTried,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StoredTable {
    /// The base.
    base: String,
    /// The limit.
    limit: String,
    /// Whether this is a dummy value that the kernel gives in place of the real one.
    dummy: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StoredSelector {
    /// The selector.
    selector: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StoredWord {
    /// The value.
    value: String,
    /// The names of the bits of CR0 that are set in it.
    set: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Answered {
    /// Whether EAX held the process ID after getpid(2) as 32-bit programs call it.
    answered: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TriedVector {
    /// Its number.
    vector: String,
    /// Whether its gate is closed to ring 3.
    closed: bool,
    #[serde(flatten)]
    tried: Attempted<Answered>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MsrOrWhyNot"))]
#[serde(untagged)]
enum MsrRecord {
    /// It was read.
    Read(Box<ItemRecord>),
    /// It was not read.
    Not {
        /// `msr`.
        kind: &'static str,
        /// Its number, in hexadecimal.
        msr: String,
        /// Why it is not known.
        unknown: String,
    },
}

impl<'a> LiveTables<'a> {
    /// Combines the readings with the kernel's tables, which are [shown](Live::as_dump) as those of a text.
    pub fn new(live: &'a Live, kernel: json::DecodedText) -> Self {
        Self {
            kind: "live",
            mechanisms: live.mechanisms.iter().map(MechanismRecord::from_mechanism).collect(),
            ring3: match &live.ring3 {
                Ok(seen) => Ring3Record::Seen(Box::new(Seen::from_ring3(seen))),
                Err(why) => Ring3Record::Not { unknown: why.to_string() },
            },
            msrs: live.msrs.iter().map(MsrRecord::from_msr).collect(),
            kernel,
        }
    }
}

impl<'a> MechanismRecord<'a> {
    fn from_mechanism(mechanism: &'a Mechanism) -> Self {
        Self { name: mechanism.name, offered: &mechanism.offered }
    }
}

impl MsrRecord {
    fn from_msr<E: ToString>((msr, value): &(Msr, Result<u64, E>)) -> Self {
        match value {
            Ok(value) => Self::Read(Box::new(Item::Msr(*msr, *value).record())),
            Err(why) => {
                Self::Not { kind: "msr", msr: format!("{:x}", msr.number()), unknown: why.to_string() }
            }
        }
    }
}

impl Seen {
    fn from_ring3(seen: &Ring3) -> Self {
        let selectors = seen.selectors.iter();
        let table = |it: &TableRegister| StoredTable {
            base: hex(it.base),
            limit: hex(it.limit),
            dummy: tollgate_inspect::is_dummy(*it),
        };
        let selector = |it: &Selector| StoredSelector { selector: hex(it.0) };
        let vector = |(number, attempt): (u8, &Attempt<bool>)| TriedVector {
            vector: hex(number),
            closed: is_closed(attempt),
            tried: Attempted::from_attempt(attempt, |answered| Answered { answered: *answered }),
        };
        Self {
            selectors: selectors
                .map(|known| Item::Rights(Some(known.selector), known.rights, known.limit).record())
                .collect(),
            loaded: SEGMENTS.iter().zip(seen.loaded).map(|(name, it)| (*name, hex(it.0))).collect(),
            sgdt: Attempted::from_attempt(&seen.gdtr, table),
            sidt: Attempted::from_attempt(&seen.idtr, table),
            sldt: Attempted::from_attempt(&seen.ldtr, selector),
            tr: Attempted::from_attempt(&seen.tr, selector),
            smsw: Attempted::from_attempt(&seen.msw, |it| StoredWord {
                value: hex(*it),
                set: text::control("cr0", (*it).into()),
            }),
            int: (0..=u8::MAX).zip(&seen.vectors).map(vector).collect(),
        }
    }
}

impl<T> Attempted<T> {
    fn from_attempt<V>(attempt: &Attempt<V>, show: impl Fn(&V) -> T) -> Self {
        match attempt {
            Attempt::Done(value) => Self::Done(show(value)),
            Attempt::Signal { signal, vector, code } => {
                Self::Signal { signal: *signal, exception: *vector, code: hex(*code) }
            }
            Attempt::Killed(signal) => Self::Killed { signal: *signal },
            Attempt::NotTried => Self::NotTried,
        }
    }
}
