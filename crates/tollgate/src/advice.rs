//! Warnings: what makes a run's figures noisy, and the remedy.

use serde::Serialize;
use tollgate_model::Run;

use crate::estimates::{Doubt, Estimates};
use crate::health::{self, State};

/// A warning and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The cause, as a clause.
    pub warning: String,
    /// The remedy, as a sentence.
    pub remedy: String,
}

/// The warnings of a run, from its facts and its figures.
pub fn of(run: &Run, estimates: &Estimates) -> Vec<Advice> {
    let poor = health::of_moment(run).into_iter().filter(|check| check.state == State::Poor);
    let mut advice: Vec<Advice> = poor
        .map(|check| Advice {
            warning: format!("{}: {}", check.name, check.found),
            remedy: check.remedy.unwrap_or_default(),
        })
        .collect();
    advice.extend(many_discarded(estimates));
    advice.extend(wide(estimates));
    advice.extend(few_processes(estimates));
    advice
}

fn many_discarded(estimates: &Estimates) -> Option<Advice> {
    let rows = doubted(estimates, |doubt| matches!(doubt, Doubt::ManyDiscarded(_)));
    (rows > 0).then(|| Advice {
        warning: format!("{} lost more than 5 % of samples (preempted)", counted(rows)),
        remedy: "Stop what else runs, or choose a quieter processor with --cpu.".to_owned(),
    })
}

fn wide(estimates: &Estimates) -> Option<Advice> {
    let rows = doubted(estimates, |doubt| matches!(doubt, Doubt::Wide(_)));
    (rows > 0).then(|| Advice {
        warning: format!("the CI of {} is wider than ±10 %", counted(rows)),
        remedy: "Give the run more --time, or the machine less to do.".to_owned(),
    })
}

fn few_processes(estimates: &Estimates) -> Option<Advice> {
    let rows = doubted(estimates, |doubt| matches!(doubt, Doubt::FewProcesses(_)));
    (rows > 0).then(|| Advice {
        warning: format!("{} measured by too few processes to show the range across processes", were(rows)),
        remedy: "Give the run more --time, or the machine less to do.".to_owned(),
    })
}

fn were(rows: usize) -> String {
    let verb = if rows == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(rows))
}

fn doubted(estimates: &Estimates, kind: impl Fn(&Doubt) -> bool) -> usize {
    estimates.measured().filter(|(_, figures)| figures.doubts().iter().any(&kind)).count()
}

fn counted(rows: usize) -> String {
    match rows {
        1 => "one row".to_owned(),
        rows => format!("{rows} rows"),
    }
}
