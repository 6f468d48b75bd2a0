//! The parts of a difference of traced commands, for documents: in seconds.

use serde::Serialize;
use tollgate_model::traced::Backend;
use tollgate_model::traced::blame::Part;

use super::lines::field;
use super::split::{Line, Split};

/// The parts of the difference of two commands: medians over pairs of traced executions, in seconds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Split"))]
pub(crate) struct SplitRecord {
    /// Other less base, of the timed executions. The differences of `parts` and `rest_of_parts_s` sum to it; so do those of `calls`,
    /// `outside`, `runqueue` and `unaccounted` with `rest_of_calls_s`.
    difference_s: f64,
    /// Pairs of traced executions.
    pairs: usize,
    /// The tracers of the base and of the other.
    backends: [Backend; 2],
    /// No share is an estimate.
    exact: bool,
    /// The real time.
    traced: LineRecord,
    /// The parts of it.
    parts: Vec<SplitPart>,
    /// The rest after the parts.
    rest_of_parts_s: f64,
    /// The system calls, those first that differ most.
    calls: Vec<SplitCall>,
    /// Time outside of calls.
    outside: LineRecord,
    /// Waiting for a processor, in calls and outside.
    runqueue: LineRecord,
    /// Before the first event, and after the last.
    unaccounted: LineRecord,
    /// The rest after the calls and these.
    rest_of_calls_s: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SplitLine"))]
pub(crate) struct LineRecord {
    /// In the base.
    base_s: f64,
    /// In the other.
    other_s: f64,
    /// Other less base.
    difference_s: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SplitPart {
    /// `user`, `sys`, `disk`, `runqueue`, `sleep` or `unaccounted`.
    part: &'static str,
    #[serde(flatten)]
    line: LineRecord,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SplitCall {
    /// The call.
    name: String,
    /// Calls in the base.
    base_count: u64,
    /// Calls in the other.
    other_count: u64,
    #[serde(flatten)]
    line: LineRecord,
}

impl SplitRecord {
    pub(crate) fn from_split(split: &Split) -> Self {
        let calls = split.calls.iter().map(|call| SplitCall::new(&call.name, call.counts, call.line));
        Self {
            difference_s: seconds(split.timed.difference),
            pairs: split.pairs,
            backends: split.backends,
            exact: split.is_exact,
            traced: split.traced.into(),
            parts: split.parts.iter().copied().map(SplitPart::from).collect(),
            rest_of_parts_s: seconds(split.rest_of_parts().difference),
            calls: calls.collect(),
            outside: split.outside.into(),
            runqueue: split.runqueue.into(),
            unaccounted: split.unaccounted.into(),
            rest_of_calls_s: seconds(split.rest_of_calls().difference),
        }
    }
}

impl From<Line> for LineRecord {
    fn from(line: Line) -> Self {
        let [base_s, other_s] = line.sides.map(seconds);
        Self { base_s, other_s, difference_s: seconds(line.difference) }
    }
}

impl From<(Part, Line)> for SplitPart {
    fn from((part, line): (Part, Line)) -> Self {
        Self { part: field(part), line: line.into() }
    }
}

impl SplitCall {
    pub(crate) fn new(name: &str, [base_count, other_count]: [u64; 2], line: Line) -> Self {
        Self { name: name.to_owned(), base_count, other_count, line: line.into() }
    }
}

pub(crate) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
