//! Sentences made from several rows of a run. Only measured rows are used, and only where their intervals are disjoint.

mod files;
mod locks;
mod memory;
mod processes;
mod traps;
mod workloads;

use serde::Serialize;
use tollgate_model::measurement::Params;
use tollgate_model::stats::Interval;
use tollgate_model::{Case, ParamValue, Run};

use crate::estimates::{Estimates, Figures};

/// A sentence, and the rows that it is made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The sentence.
    pub sentence: String,
    /// The cases, as they are named in patterns.
    pub from: Vec<String>,
}

/// The findings of a run.
pub fn of(run: &Run, estimates: &Estimates) -> Vec<Finding> {
    let mut findings = traps::of(estimates);
    findings.extend(memory::of(run, estimates));
    findings.extend(locks::of(estimates));
    findings.extend(processes::of(estimates));
    findings.extend(files::of(estimates));
    findings.extend(workloads::of(estimates));
    findings
}

/// A median with its interval.
#[derive(Clone, Copy)]
struct Known {
    estimate: f64,
    interval: Interval,
}

impl From<&Figures<'_>> for Known {
    fn from(figures: &Figures) -> Self {
        Self { estimate: figures.estimate.median, interval: figures.estimate.interval }
    }
}

fn apart(a: Interval, b: Interval) -> bool {
    a.high < b.low || b.high < a.low
}

fn case(benchmark: &str, params: &[(&str, ParamValue)]) -> Case {
    let params: Params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Case { benchmark: benchmark.to_owned(), params }
}

/// The figures of a case that hardware executed.
fn find<'a, 'b>(estimates: &'b Estimates<'a>, case: &Case) -> Option<&'b Figures<'a>> {
    let measured = estimates.measured().find(|(other, _)| *other == case);
    measured.map(|(_, figures)| figures).filter(|figures| figures.is_estimate())
}
