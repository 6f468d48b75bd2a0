//! A finding, and what findings are made from.

use serde::{Serialize, Serializer};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, ParamValue, Params};
use tollgate_output::figures;

use crate::summary::{Figures, Summary};

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

#[derive(Clone, Copy)]
pub struct Known {
    pub estimate: f64,
    pub interval: Interval,
}

impl Known {
    /// `None` if the samples support no interval: then no sentence about a difference can be made.
    pub fn of(figures: &Figures) -> Option<Self> {
        Some(Self { estimate: figures.estimate.median, interval: figures.estimate.interval? })
    }
}

pub fn apart(a: Interval, b: Interval) -> bool {
    a.high < b.low || b.high < a.low
}

pub fn case(benchmark: &str, params: &[(&str, ParamValue)]) -> Case {
    let params: Params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Case { benchmark: benchmark.to_owned(), params }
}

/// The figures of a case that hardware executed and that is not a count, since findings are about times.
pub fn find<'a, 'b>(summary: &'b Summary<'a>, case: &Case) -> Option<&'b Figures<'a>> {
    summary.figures(case).filter(|figures| figures.is_estimate() && !figures.is_count())
}

pub fn times(summary: &Summary, case: &Case, other: &Case) -> Option<f64> {
    let known = |case| Known::of(find(summary, case)?);
    let (one, other) = (known(case)?, known(other)?);
    let times = one.estimate / other.estimate;
    (apart(one.interval, other.interval) && times.is_finite()).then_some(times)
}

/// How much slower a case is than another, if by more than `least` times; a lower bound if the other is below its detection
/// limit: `at least 2000 × slower`.
pub fn bounded_times(
    summary: &Summary,
    slow: Case,
    fast: Case,
    least: f64,
    sentence: impl FnOnce(&str) -> String,
) -> Option<Finding> {
    let of_fast = find(summary, &fast)?;
    let times = find(summary, &slow)?.estimate.median / of_fast.bounded();
    let at_least = if of_fast.below.is_some() { "at least " } else { "" };
    (times.is_finite() && times > least).then(|| Finding {
        sentence: sentence(&format!("{at_least}{}", figures::compared(times, ["slower", "faster"]))),
        from: vec![slow, fast],
    })
}

pub fn of_pairs(begin: &str, parts: impl Iterator<Item = (String, [Case; 2])>) -> Option<Finding> {
    let (parts, from): (Vec<String>, Vec<[Case; 2]>) = parts.unzip();
    let sentence = format!("{begin}: {}.", parts.join(", "));
    (!parts.is_empty()).then(|| Finding { sentence, from: from.concat() })
}
