//! Warnings: what makes a run's figures noisy, and the remedy.

use serde::Serialize;
use tollgate_output::figures::count;

use crate::counts;
use crate::health;
use crate::summary::{Noise, Summary};

/// A warning and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The cause, as a clause.
    pub warning: String,
    /// The remedy, as a sentence.
    pub remedy: String,
}

pub fn of(summary: &Summary) -> Vec<Advice> {
    // A disturbance of a time does not change a count.
    if counts::is_counted(summary) {
        return Vec::new();
    }
    const MORE_TIME: &str = "Give the run more --time, or reduce the machine's load.";
    let disturbing =
        health::of_moment(summary.run).into_iter().filter(|check| check.judged.disturbance.is_some());
    let mut advice: Vec<Advice> = disturbing
        .map(|check| Advice {
            warning: format!("{}: {}", check.name, check.judged.found),
            remedy: check.judged.remedy.unwrap_or_default(),
        })
        .collect();
    let noise: Vec<Vec<Noise>> = summary.measured().map(|(_, figures)| figures.noise()).collect();
    let mut warn = |kind: fn(&Noise) -> bool, words: fn(&str, bool) -> String, remedy: &str| {
        let rows = noise.iter().filter(|noise| noise.iter().any(kind)).count();
        let named = if rows == 1 { "one row".to_owned() } else { count(rows, "row", "rows") };
        let warning = (rows > 0).then(|| words(&named, rows == 1));
        advice.extend(warning.map(|warning| Advice { warning, remedy: remedy.to_owned() }));
    };
    warn(
        |noise| matches!(noise, Noise::Discarded(_)),
        |rows, _| format!("{rows} lost more than 5 % of samples (preempted)"),
        "Stop other programs, or choose a quieter processor with --cpu.",
    );
    warn(
        |noise| matches!(noise, Noise::Wide(_)),
        |rows, _| format!("the CI of {rows} is wider than ±10 %"),
        MORE_TIME,
    );
    warn(
        |noise| matches!(noise, Noise::FewProcesses(_)),
        |rows, is_one| {
            let were = if is_one { "was" } else { "were" };
            format!("{rows} {were} measured by too few processes to show the range across processes")
        },
        MORE_TIME,
    );
    advice
}
