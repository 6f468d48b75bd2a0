//! Measurements: cases with their samples as they were taken.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::bounded;
use crate::events::{Counter, EventCounts};

/// A benchmark with parameters: one row of a table, and the key on which runs are joined.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Case {
    /// Such as `entry/seccomp`.
    pub benchmark: String,
    /// The parameters by name, such as `{"instructions": 32}`; empty if the benchmark has one case.
    #[serde(deserialize_with = "params")]
    pub params: Params,
}

impl Case {
    /// The case of `benchmark` without parameters.
    pub fn plain(benchmark: impl Into<String>) -> Self {
        Self { benchmark: benchmark.into(), params: Params::new() }
    }

    /// The suite of its benchmark: the part before the slash.
    pub fn suite(&self) -> &str {
        self.benchmark.split('/').next().unwrap_or_default()
    }

    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.params.get(name)? {
            ParamValue::Number(number) => Some(*number),
            ParamValue::Flag(_) | ParamValue::Word(_) => None,
        }
    }

    /// A parameter that is a word.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.params.get(name)? {
            ParamValue::Word(word) => Some(word),
            ParamValue::Flag(_) | ParamValue::Number(_) => None,
        }
    }
}

impl fmt::Display for Case {
    /// `entry/seccomp{instructions=32}`; without parameters the benchmark alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.benchmark)?;
        if self.params.is_empty() {
            return Ok(());
        }
        write!(f, "{{{}}}", pairs(&self.params))
    }
}

/// Parameters of a case, by name.
pub type Params = BTreeMap<String, ParamValue>;

/// A parameter's current name: documents and patterns of earlier versions say `users` for `tasks`.
pub fn parameter(name: &str) -> &str {
    if name == "users" { "tasks" } else { name }
}

fn params<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Params, D::Error> {
    let params: Params = bounded::params(deserializer)?;
    Ok(params.into_iter().map(|(name, value)| (parameter(&name).to_owned(), value)).collect())
}

/// `name=value, name=value`.
pub fn pairs(params: &Params) -> String {
    let pairs: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(", ")
}

/// One parameter's value: a size or count, or a word such as `thp`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ParamValue {
    /// Yes or no.
    Flag(bool),
    /// A size or count; the parameter's name has the unit.
    Number(u64),
    /// A word.
    Word(String),
}

impl<'de> Deserialize<'de> for ParamValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = ParamValue;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("true, false, a whole number or a word")
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<ParamValue, E> {
                Ok(ParamValue::Flag(flag))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<ParamValue, E> {
                Ok(ParamValue::Number(number))
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<ParamValue, E> {
                Ok(ParamValue::Word(word.to_owned()))
            }
            fn visit_string<E: Error>(self, word: String) -> Result<ParamValue, E> {
                Ok(ParamValue::Word(word))
            }
        }
        deserializer.deserialize_any(Value)
    }
}

impl From<u64> for ParamValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for ParamValue {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(n) => write!(f, "{n}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// A case and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!try_from))]
#[serde(try_from = "Fields")]
pub struct Measurement {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// serde would buffer a type with flattened fields before it reads them, each sample in 32 bytes.
#[derive(Deserialize)]
struct Fields {
    benchmark: String,
    #[serde(deserialize_with = "params")]
    params: Params,
    status: Status,
    why: Option<String>,
    error: Option<String>,
    unit: Option<Unit>,
    provenance: Option<Provenance>,
    ops_per_sample: Option<u64>,
    clock_hz: Option<u64>,
    #[serde(default, deserialize_with = "bounded::samples")]
    samples: Option<Vec<f64>>,
    discarded: Option<u64>,
    #[serde(default, deserialize_with = "bounded::processes")]
    processes: Option<Vec<ProcessRounds>>,
    span_ns: Option<u64>,
    counted: Option<Counted>,
    #[serde(default, deserialize_with = "bounded::entries")]
    counters: Vec<Counter>,
    #[serde(default, deserialize_with = "bounded::entries")]
    events: Vec<EventCounts>,
    bytes_per_op: Option<u64>,
    group: Option<String>,
    baseline: Option<Case>,
    #[serde(default, deserialize_with = "bounded::texts")]
    notes: Vec<String>,
    #[serde(default, deserialize_with = "bounded::entries")]
    traced: Vec<crate::Traced>,
    #[serde(default, deserialize_with = "bounded::entries")]
    traced_apart: Vec<crate::Traced>,
}

/// The status of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// [`Outcome::Measured`].
    Measured,
    /// [`Outcome::Skipped`].
    Skipped,
    /// [`Outcome::Refused`].
    Refused,
    /// [`Outcome::NotMeasured`].
    #[serde(rename = "not measured")]
    NotMeasured,
    /// [`Outcome::Failed`].
    Failed,
}

impl Status {
    /// The name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Skipped => "skipped",
            Self::Refused => "refused",
            Self::NotMeasured => "not measured",
            Self::Failed => "failed",
        }
    }
}

impl TryFrom<Fields> for Measurement {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let outcome = match fields.status {
            Status::Skipped => Outcome::Skipped { why: fields.why.ok_or("missing field `why`")? },
            Status::Refused => Outcome::Refused { why: fields.why.ok_or("missing field `why`")? },
            Status::NotMeasured => Outcome::NotMeasured { why: fields.why.ok_or("missing field `why`")? },
            Status::Failed => Outcome::Failed { error: fields.error.ok_or("missing field `error`")? },
            Status::Measured => Outcome::Measured(Box::new(Measured {
                unit: fields.unit.ok_or("missing field `unit`")?,
                provenance: fields.provenance.ok_or("missing field `provenance`")?,
                ops_per_sample: fields.ops_per_sample.ok_or("missing field `ops_per_sample`")?,
                clock_hz: fields.clock_hz.ok_or("missing field `clock_hz`")?,
                samples: fields.samples.ok_or("missing field `samples`")?,
                discarded: fields.discarded.ok_or("missing field `discarded`")?,
                processes: fields.processes.ok_or("missing field `processes`")?,
                span_ns: fields.span_ns,
                counted: fields.counted,
                counters: fields.counters,
                events: fields.events,
                bytes_per_op: fields.bytes_per_op,
                group: fields.group.ok_or("missing field `group`")?,
                baseline: fields.baseline,
                notes: fields.notes,
                traced: fields.traced,
                traced_apart: fields.traced_apart,
            })),
        };
        Ok(Self { case: Case { benchmark: fields.benchmark, params: fields.params }, outcome })
    }
}

/// The outcome of a case: every requested case has one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// It has samples.
    Measured(Box<Measured>),
    /// It cannot exist in this environment.
    Skipped {
        /// The thing that this environment lacks.
        why: String,
    },
    /// The kernel refuses the call with these arguments, such as direct I/O with an odd buffer.
    Refused {
        /// The call and its error.
        why: String,
    },
    /// It exists here, but any figure would be wrong: the time ended, or its samples contradict each other.
    #[serde(rename = "not measured")]
    NotMeasured {
        /// The thing that was missing.
        why: String,
    },
    /// It exists here and failed.
    Failed {
        /// The failure: a hang, a signal, a wrong result.
        error: String,
    },
}

/// The samples of a case. No field is derived from them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MeasuredCase"))]
pub struct Measured {
    /// Unit of each sample.
    pub unit: Unit,
    /// The executor of the code.
    pub provenance: Provenance,
    /// Operations in a batch, whose mean is a sample.
    pub ops_per_sample: u64,
    /// Ticks of the clock per second, at least 1: 1 s / this is the finest step of a batch's time. TSC cycles are nanoseconds *
    /// `clock_hz` / 1e9 if the clock fact names the TSC.
    pub clock_hz: u64,
    /// Time per operation of each kept batch, less the loop overhead timed beside it; process by process, each in the order of
    /// its rounds. May be negative near zero; at least one; all finite.
    pub samples: Vec<f64>,
    /// Batches that were timed and discarded because the thread was preempted or migrated.
    pub discarded: u64,
    /// How `samples` divides among fresh processes, and which rounds are missing: cases of one run are paired by round. They add
    /// up to `samples` and `discarded`. A case whose batch is long takes part in few rounds, and with a short budget not in every
    /// process.
    pub processes: Vec<ProcessRounds>,
    /// Time from the end of the first process to that of the last, in ns. Absent if they are not spread over a run: a machine
    /// keeps its pace for a while, however many processes see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// Events that the kernel or a handler counted in the kept batches. If events and operations of a batch differ, the case
    /// fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Other counts of the kept batches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Counter>,
    /// Context switches, page faults and, if they can be counted, cycles, instructions and misses of the kept batches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCounts>,
    /// Bytes that one operation moves. Absent if it moves none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_op: Option<u64>,
    /// The suite's interleaved group: cases of one group in one run shared their rounds, so they can be paired by process and
    /// round.
    pub group: String,
    /// The case that this one is compared with, round by round. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Case>,
    /// Other findings, such as the instruction that the 32-bit vDSO holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The execution of a whole command that gave each sample, in the samples' order, with sums in nanoseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traced: Vec<crate::Traced>,
    /// Executions of a whole command that were traced in rounds of their own. Their times are not among the samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traced_apart: Vec<crate::Traced>,
}

/// Events that were counted beside the time: the evidence that the timed code did the operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counted {
    /// The name of the events, in the plural: `minor faults`. For a share, the property that is counted.
    pub what: String,
    /// Their number in the kept batches.
    pub events: u64,
    /// Operations in the kept batches. For a share, those that were examined.
    pub operations: u64,
    /// Only some of the operations were examined, and not each of them need be an event: `lines looked at came from the other
    /// processor`. Absent if all were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_share: bool,
}

/// One fresh process's part of the samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRounds {
    /// Timed rounds, including discarded ones.
    pub rounds: u32,
    /// The rounds that this case took part in, ascending, each below `rounds`. Absent if it took part in all: a case whose batch
    /// is long takes part in few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Vec<u32>>,
    /// Indices of the discarded rounds, ascending; it took part in each of them.
    pub discarded: Vec<u32>,
}

impl ProcessRounds {
    /// The rounds that it took part in and that were not discarded.
    pub fn kept_rounds(&self) -> impl Iterator<Item = u32> + '_ {
        let mut discarded = self.discarded.iter().peekable();
        let all = if self.ran.is_some() { 0..0 } else { 0..self.rounds };
        let ran = self.ran.iter().flatten().copied();
        all.chain(ran).filter(move |round| discarded.next_if_eq(&round).is_none())
    }

    /// Samples that this process contributed.
    pub fn kept(&self) -> usize {
        let ran = self.ran.as_ref().map_or(self.rounds as usize, Vec::len);
        ran.saturating_sub(self.discarded.len())
    }
}

impl Outcome {
    /// Returns the status of the case.
    pub fn status(&self) -> Status {
        match self {
            Self::Measured(_) => Status::Measured,
            Self::Skipped { .. } => Status::Skipped,
            Self::Refused { .. } => Status::Refused,
            Self::NotMeasured { .. } => Status::NotMeasured,
            Self::Failed { .. } => Status::Failed,
        }
    }

    /// Why there are no samples.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Measured(_) => None,
            Self::Skipped { why }
            | Self::Refused { why }
            | Self::NotMeasured { why }
            | Self::Failed { error: why } => Some(why),
        }
    }

    /// Its samples.
    pub fn measured(&self) -> Option<&Measured> {
        match self {
            Self::Measured(measured) => Some(measured),
            _ => None,
        }
    }
}

impl Measured {
    /// Whole executions of a command, each a process of its own with one round, so that executions of one number in two runs are
    /// neighbours.
    pub fn of_executions(group: &str, unit: Unit, samples: Vec<f64>) -> Self {
        let process = || ProcessRounds { rounds: 1, ran: None, discarded: Vec::new() };
        Self {
            unit,
            provenance: Provenance::Hardware,
            ops_per_sample: 1,
            // CLOCK_MONOTONIC counts nanoseconds.
            clock_hz: 1_000_000_000,
            discarded: 0,
            processes: samples.iter().map(|_| process()).collect(),
            samples,
            counted: None,
            counters: Vec::new(),
            events: Vec::new(),
            bytes_per_op: None,
            group: group.to_owned(),
            baseline: None,
            notes: Vec::new(),
            span_ns: None,
            traced: Vec::new(),
            traced_apart: Vec::new(),
        }
    }

    /// Executions of a whole command that say where its time went: those that were traced apart, else those that were timed.
    pub fn divided(&self) -> &[crate::Traced] {
        if self.traced_apart.is_empty() { &self.traced } else { &self.traced_apart }
    }

    /// Whether it counts instructions exactly, as an emulator or an interpreter does, or is a size of such a run. A count has no
    /// noise, no detection limit and no interval; if its samples differ, the operation did.
    pub fn is_count(&self) -> bool {
        let is_executed = matches!(self.provenance, Provenance::Hardware | Provenance::Kvm);
        self.unit.is_amount() && !is_executed
    }

    /// The samples process by process.
    pub fn by_process(&self) -> impl Iterator<Item = &[f64]> {
        let mut rest = self.samples.as_slice();
        self.processes.iter().map(move |process| {
            let (head, tail) = rest.split_at(process.kept().min(rest.len()));
            rest = tail;
            head
        })
    }

    pub(crate) fn is_of_executions(&self) -> bool {
        self.processes.iter().all(|process| process.rounds == 1)
    }

    /// The samples process by process, each with the number of its round.
    pub fn by_round(&self) -> impl Iterator<Item = impl Iterator<Item = (u32, f64)>> {
        self.processes
            .iter()
            .zip(self.by_process())
            .map(|(process, samples)| process.kept_rounds().zip(samples.iter().copied()))
    }
}

/// The unit of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Unit {
    /// Nanoseconds per operation.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// TSC cycles per operation.
    #[serde(rename = "cycles")]
    Cycles,
    /// Bytes per object.
    #[serde(rename = "bytes")]
    Bytes,
    /// Events per operation, such as page faults.
    #[serde(rename = "count")]
    Count,
    /// Instructions per operation, counted by the emulator or interpreter.
    #[serde(rename = "instructions")]
    Instructions,
    /// Nanoseconds per cache line.
    #[serde(rename = "ns/line")]
    NanosecondsPerLine,
}

impl Unit {
    /// Whether it is not a time: the machine's frequency and load do not change it.
    pub fn is_amount(self) -> bool {
        matches!(self, Self::Bytes | Self::Count | Self::Instructions)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The executor of the timed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// The processor itself, in a virtual machine or not.
    Hardware,
    /// The processor, in one of tollgate's guests under KVM.
    Kvm,
    /// KVM's instruction emulator.
    KvmEmulated,
    /// QEMU's translator (TCG): instruction counts are valid, times are not.
    QemuTcg,
    /// QEMU's translator with a clock that advances one tick per instruction (`-icount shift=0`): the guest's counter counts its
    /// executed instructions exactly.
    QemuIcount,
    /// tollgate's interpreter.
    Interpreter,
}
