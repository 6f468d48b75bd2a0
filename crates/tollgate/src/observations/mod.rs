//! What several rows of a run say together, in a sentence each. Only of what was measured, and only where the
//! intervals leave no doubt.

mod files;
mod lines;
mod locks;
mod processes;
mod traps;
mod workloads;

use serde::Serialize;
use tollgate_model::measurement::Params;
use tollgate_model::stats::Interval;
use tollgate_model::{Case, ParamValue, Run};

use crate::prices::{Figures, Prices};

/// A sentence, and the rows that it is made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// It.
    pub sentence: String,
    /// The cases, as they are named in patterns.
    pub from: Vec<String>,
}

/// What there is to say of these prices.
pub fn of(run: &Run, prices: &Prices) -> Vec<Observation> {
    let mut observations = traps::of(prices);
    observations.extend(lines::of(run, prices));
    observations.extend(locks::of(prices));
    observations.extend(processes::of(prices));
    observations.extend(files::of(prices));
    observations.extend(workloads::of(prices));
    observations
}

/// A price with its interval.
#[derive(Clone, Copy)]
struct Known {
    price: f64,
    interval: Interval,
}

impl From<&Figures<'_>> for Known {
    fn from(figures: &Figures) -> Self {
        Self { price: figures.price.median, interval: figures.price.interval }
    }
}

fn apart(a: Interval, b: Interval) -> bool {
    a.high < b.low || b.high < a.low
}

fn case(probe: &str, params: &[(&str, ParamValue)]) -> Case {
    let params: Params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Case { probe: probe.to_owned(), params }
}

/// What was measured of a case, where it is a price to build on.
fn find<'a, 'b>(prices: &'b Prices<'a>, case: &Case) -> Option<&'b Figures<'a>> {
    let measured = prices.measured().find(|(other, _)| *other == case);
    measured.map(|(_, figures)| figures).filter(|figures| figures.is_price())
}
