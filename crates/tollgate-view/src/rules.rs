//! The sentences about a run: what is expensive on this machine and how to avoid it, and findings that several rows make together.
//! Most are a row of `table`; those of three rows and more are functions in `several`.
//!
//! A figure is used only with its uncertainty: a ratio of two rows only if their intervals are disjoint, with as many digits as
//! both intervals support, and as a bound if the fast side is below its detection limit.

mod row;
mod several;
mod sharing;
mod table;

use serde::{Serialize, Serializer};
use tollgate_model::Case;

use crate::burdens::{self, Burden};
use crate::summary::Summary;

pub(crate) use sharing::{SharingCurves, THRASH, sharing_curves, sharing_rows};

/// One thing that is expensive here. A system call is listed even if it is not slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expense {
    /// The operation and its figure: `Wake-up on another CPU 23 µs, 10 × the same CPU`.
    pub what: String,
    /// Why it takes so long, with the state of this machine's facts.
    pub cause: String,
    /// An alternative that takes less time.
    pub action: String,
    /// The benchmark to explain.
    pub benchmark: &'static str,
    /// The cases that the figures come from.
    #[serde(serialize_with = "names")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub from: Vec<Case>,
    /// The facts that are part of the cause.
    pub facts: Vec<String>,
    /// How many times as long it takes as the alternative, over the usual ratio; the first in rank is the system call.
    #[serde(skip)]
    rank: f64,
}

/// A sentence, and the rows that it is made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The sentence.
    pub sentence: String,
    /// The cases that it is made from, as they are named in patterns.
    #[serde(serialize_with = "names")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub from: Vec<Case>,
}

fn names<S: Serializer>(cases: &[Case], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cases.iter().map(Case::to_string))
}

/// The expensive things, the most expensive first, after the system call that all are compared with.
pub fn expenses(summary: &Summary) -> Vec<Expense> {
    let of_pairs =
        table::COSTS.iter().filter_map(|group| group.iter().find_map(|cost| cost.expense(summary)));
    let own = several::EXPENSES.iter().filter_map(|rule| rule(summary));
    let mut all: Vec<Expense> = of_pairs.chain(own).collect();
    all.sort_by(|one, other| other.rank.total_cmp(&one.rank));
    all
}

/// The findings of a run, by suite.
pub fn findings(summary: &Summary) -> Vec<Finding> {
    let of_pairs = table::FINDINGS.iter().filter_map(|pair| pair.finding(summary));
    let own = several::FINDINGS.iter().flat_map(|rule| rule(summary));
    let mut all: Vec<Finding> = of_pairs.chain(own).collect();
    let suite = |finding: &Finding| {
        let case = finding.from.first();
        tollgate_suites::SUITES.iter().position(|suite| case.is_some_and(|case| case.suite() == suite.name))
    };
    all.sort_by_key(suite);
    all
}

impl Expense {
    /// As one sentence.
    pub fn sentence(&self) -> String {
        let cause = if self.cause.is_empty() { String::new() } else { format!(": {}", self.cause) };
        let action = if self.action.is_empty() { String::new() } else { format!("; {}", self.action) };
        format!("{}{cause}{action} ({})", self.what, self.benchmark)
    }

    /// Adds the heaviest fact that reaches the case to the cause; `otherwise` if none does and no cause is known.
    fn caused_by(mut self, summary: &Summary, case: &Case, otherwise: &str) -> Self {
        let burden = burdens::of_case(&summary.run.facts, case).into_iter().next();
        let own = Some(self.cause.as_str()).filter(|cause| !cause.is_empty());
        let state = burden.as_ref().map(|burden| burden.state.as_str());
        self.cause = own.into_iter().chain(state).collect::<Vec<_>>().join(", ");
        if self.cause.is_empty() {
            self.cause = otherwise.to_owned();
        }
        self.facts = burden.into_iter().map(|Burden { fact, .. }| fact).collect();
        self
    }
}
