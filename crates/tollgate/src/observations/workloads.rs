//! What the page cache and more processors save somebody who waits for programs.

use tollgate_model::{Case, ParamValue};

use super::{Known, Observation, apart, find};
use crate::figures;
use crate::prices::Prices;

/// What there is to say of the suite, of each tree by itself.
pub(super) fn of(prices: &Prices) -> Vec<Observation> {
    ["small", "large"]
        .into_iter()
        .flat_map(|size| [cold(prices, size), jobs(prices, size)])
        .flatten()
        .collect()
}

/// The measured cases of a tree that have this value of a parameter, each with the same one that has another value.
fn pairs(
    prices: &Prices,
    size: &str,
    parameter: &str,
    value: ParamValue,
    other: ParamValue,
) -> Vec<(Case, Case)> {
    let of_tree = |case: &&Case| {
        case.probe.starts_with("workloads/")
            && case.params.get("size") == Some(&size.into())
            && case.params.get(parameter) == Some(&value)
    };
    let cases = prices.measured().map(|(case, _)| case).filter(of_tree);
    let pair = |case: &Case| {
        let mut partner = case.clone();
        partner.params.insert(parameter.to_owned(), other.clone());
        (case.clone(), partner)
    };
    cases.map(pair).collect()
}

/// How many times what the other takes, where that leaves no doubt.
fn times(prices: &Prices, case: &Case, other: &Case) -> Option<f64> {
    let known = |case| Some(Known::from(find(prices, case)?));
    let (one, other) = (known(case)?, known(other)?);
    let times = one.price / other.price;
    (apart(one.interval, other.interval) && times.is_finite()).then_some(times)
}

/// What it costs that nothing which a command reads is in memory.
fn cold(prices: &Prices, size: &str) -> Option<Observation> {
    /// What would read "1.0 times" is not worth a word.
    const WORTH_A_WORD: f64 = 1.05;
    let mut parts = Vec::new();
    let mut from = Vec::new();
    for (case, warm) in pairs(prices, size, "cache", "cold".into(), "warm".into()) {
        let Some(times) = times(prices, &case, &warm).filter(|times| *times >= WORTH_A_WORD) else {
            continue;
        };
        let name = case.probe.rsplit('/').next().unwrap_or_default();
        let jobs = case.params.get("jobs").map(|jobs| format!(" with jobs={jobs}")).unwrap_or_default();
        parts.push(format!("{name}{jobs} {} times", figures::significant(times, 2)));
        from.extend([case.to_string(), warm.to_string()]);
    }
    (!parts.is_empty()).then(|| Observation {
        sentence: format!(
            "Of the {size} tree, what is not in the page cache takes longer: {}.",
            parts.join(", ")
        ),
        from,
    })
}

/// What a compiler on each processor saves.
fn jobs(prices: &Prices, size: &str) -> Option<Observation> {
    let pairs = pairs(prices, size, "jobs", "all".into(), 1.into());
    let (case, serial) =
        pairs.into_iter().find(|(case, _)| case.params.get("cache") == Some(&"warm".into()))?;
    let share = times(prices, &case, &serial)?;
    Some(Observation {
        sentence: format!(
            "Building the {size} tree with a job for each processor takes {} of the time that one job takes.",
            figures::percent(share)
        ),
        from: vec![case.to_string(), serial.to_string()],
    })
}
