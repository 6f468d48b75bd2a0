//! The chosen experiments.

use tollgate_lab::guest::{EXPERIMENTS, Experiment};
use tollgate_model::text::listed;
use tollgate_suites::selection::{near, wildcard};

use crate::failure::Failure;

/// The experiments with these names, in their own order; by default those that are timed.
///
/// # Errors
/// An unknown name.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    if names.is_empty() {
        return Ok(EXPERIMENTS.iter().filter(|experiment| experiment.is_measured()).collect());
    }
    if let Some(name) = names.iter().find(|name| !EXPERIMENTS.iter().any(|it| wildcard(name, it.name))) {
        return Err(Failure::input(unknown(name)));
    }
    let is_meant = |experiment: &&Experiment| names.iter().any(|name| wildcard(name, experiment.name));
    Ok(EXPERIMENTS.iter().filter(is_meant).collect())
}

fn unknown(name: &str) -> String {
    let names = EXPERIMENTS.iter().map(|it| it.name);
    let tip = match near(name, names.clone()).as_slice() {
        [] => format!("there are {}", listed(&names.collect::<Vec<_>>())),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    format!("there is no experiment {name:?}; {tip}")
}
