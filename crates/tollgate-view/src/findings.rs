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
use tollgate_model::{Case, ParamValue};

use crate::summary::{Figures, Summary};

/// A sentence, and the rows that it is made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The sentence.
    pub sentence: String,
    /// The cases, as they are named in patterns.
    pub from: Vec<String>,
}

/// The findings of a run.
pub fn of(summary: &Summary) -> Vec<Finding> {
    let mut findings = traps::of(summary);
    findings.extend(memory::of(summary));
    findings.extend(locks::of(summary));
    findings.extend(processes::of(summary));
    findings.extend(files::of(summary));
    findings.extend(workloads::of(summary));
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
fn find<'a, 'b>(summary: &'b Summary<'a>, case: &Case) -> Option<&'b Figures<'a>> {
    summary.figures(case).filter(|figures| figures.is_estimate())
}
