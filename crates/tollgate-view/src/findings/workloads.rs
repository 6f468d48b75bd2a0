use tollgate_model::{Case, ParamValue};
use tollgate_output::figures;

use super::finding::{Finding, of_pairs, times};
use crate::summary::Summary;

pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    ["small", "large"]
        .into_iter()
        .flat_map(|size| [cold(summary, size), jobs(summary, size)])
        .flatten()
        .collect()
}

fn pairs(
    summary: &Summary,
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
    let cases = summary.measured().map(|(case, _)| case).filter(of_tree);
    let pair = |case: &Case| {
        let mut partner = case.clone();
        partner.params.insert(parameter.to_owned(), other.clone());
        (case.clone(), partner)
    };
    cases.map(pair).collect()
}

fn cold(summary: &Summary, size: &str) -> Option<Finding> {
    const LEAST_RATIO: f64 = 1.05;
    let part = |(case, warm): (Case, Case)| {
        let times = times(summary, &case, &warm).filter(|times| *times >= LEAST_RATIO)?;
        let name = case.benchmark.rsplit('/').next().unwrap_or_default();
        let jobs = case.params.get("jobs").map(|jobs| format!(" with jobs={jobs}")).unwrap_or_default();
        Some((format!("{name}{jobs} {}", figures::compared(times, ["slower", "faster"])), [case, warm]))
    };
    let parts = pairs(summary, size, "cache", "cold".into(), "warm".into()).into_iter().filter_map(part);
    of_pairs(&format!("With a cold page cache, on the {size} tree"), parts)
}

fn jobs(summary: &Summary, size: &str) -> Option<Finding> {
    let pairs = pairs(summary, size, "jobs", "all".into(), 1.into());
    let (case, serial) =
        pairs.into_iter().find(|(case, _)| case.params.get("cache") == Some(&"warm".into()))?;
    let times = times(summary, &case, &serial)?;
    Some(Finding {
        sentence: format!(
            "Building the {size} tree with a job for each processor is {} than with one job.",
            figures::compared(times, ["slower", "faster"])
        ),
        from: vec![case, serial],
    })
}
