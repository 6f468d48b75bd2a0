//! A finding, and what findings are made from.

use serde::{Serialize, Serializer};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, ParamValue, Params};

use crate::summary::{Figures, Summary};

/// A sentence, and the rows that it is made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The sentence.
    pub sentence: String,
    /// The cases; in JSON as they are named in patterns.
    #[serde(serialize_with = "names")]
    pub from: Vec<Case>,
}

fn names<S: Serializer>(cases: &[Case], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cases.iter().map(Case::to_string))
}

/// A median with its interval.
#[derive(Clone, Copy)]
pub struct Known {
    pub estimate: f64,
    pub interval: Interval,
}

impl From<&Figures<'_>> for Known {
    fn from(figures: &Figures) -> Self {
        Self { estimate: figures.estimate.median, interval: figures.estimate.interval }
    }
}

pub fn apart(a: Interval, b: Interval) -> bool {
    a.high < b.low || b.high < a.low
}

pub fn case(benchmark: &str, params: &[(&str, ParamValue)]) -> Case {
    let params: Params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Case { benchmark: benchmark.to_owned(), params }
}

/// The figures of a case that hardware executed.
pub fn find<'a, 'b>(summary: &'b Summary<'a>, case: &Case) -> Option<&'b Figures<'a>> {
    summary.figures(case).filter(|figures| figures.is_estimate())
}
