//! What the page cache and more processors save somebody who waits for programs.

use tollgate_model::{Case, ParamValue};

use super::{Known, Observation, apart, find};
use crate::estimates::Estimates;
use crate::figures;

/// What there is to say of the suite, of each tree by itself.
pub(super) fn of(estimates: &Estimates) -> Vec<Observation> {
    ["small", "large"]
        .into_iter()
        .flat_map(|size| [cold(estimates, size), jobs(estimates, size)])
        .flatten()
        .collect()
}

/// The measured cases of a tree that have this value of a parameter, each with the same one that has another value.
fn pairs(
    estimates: &Estimates,
    size: &str,
    parameter: &str,
    value: ParamValue,
    other: ParamValue,
) -> Vec<(Case, Case)> {
    let of_tree = |case: &&Case| {
        case.benchmark.starts_with("workloads/")
            && case.params.get("size") == Some(&size.into())
            && case.params.get(parameter) == Some(&value)
    };
    let cases = estimates.measured().map(|(case, _)| case).filter(of_tree);
    let pair = |case: &Case| {
        let mut partner = case.clone();
        partner.params.insert(parameter.to_owned(), other.clone());
        (case.clone(), partner)
    };
    cases.map(pair).collect()
}

/// How many times what the other takes, where that leaves no doubt.
fn times(estimates: &Estimates, case: &Case, other: &Case) -> Option<f64> {
    let known = |case| Some(Known::from(find(estimates, case)?));
    let (one, other) = (known(case)?, known(other)?);
    let times = one.estimate / other.estimate;
    (apart(one.interval, other.interval) && times.is_finite()).then_some(times)
}

/// What it costs that nothing which a command reads is in memory.
fn cold(estimates: &Estimates, size: &str) -> Option<Observation> {
    /// What would read "1.0 times" is not worth a word.
    const WORTH_A_WORD: f64 = 1.05;
    let mut parts = Vec::new();
    let mut from = Vec::new();
    for (case, warm) in pairs(estimates, size, "cache", "cold".into(), "warm".into()) {
        let Some(times) = times(estimates, &case, &warm).filter(|times| *times >= WORTH_A_WORD) else {
            continue;
        };
        let name = case.benchmark.rsplit('/').next().unwrap_or_default();
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
fn jobs(estimates: &Estimates, size: &str) -> Option<Observation> {
    let pairs = pairs(estimates, size, "jobs", "all".into(), 1.into());
    let (case, serial) =
        pairs.into_iter().find(|(case, _)| case.params.get("cache") == Some(&"warm".into()))?;
    let share = times(estimates, &case, &serial)?;
    Some(Observation {
        sentence: format!(
            "Building the {size} tree with a job for each processor takes {} of the time that one job takes.",
            figures::percent(share)
        ),
        from: vec![case.to_string(), serial.to_string()],
    })
}
