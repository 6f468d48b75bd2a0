//! Which processes of a run something else slowed, such as a busy sibling thread of the core: the canary of each process says so.
//!
//! The canary is the plainest system call, a few microseconds of it in each round of each group. Its level belongs to the processor as it was
//! for that process: with a busy sibling, or behind an exit to the hypervisor that flushed its predictors, it takes a tenth to a half more. No
//! figure is chosen by its own samples, so none is made lower by chance.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;

use crate::estimate::ENOUGH_PROCESSES;
use crate::measurement::{Measured, Outcome, ProcessRounds};
use crate::own::CANARY;
use crate::run::Run;
use crate::stats;

/// A process whose canary takes so much more than in the quiet processes of its group is disturbed.
pub const DISTURBED: f64 = 0.05;
/// The quantile of the processes' canaries that is the quiet ones' level: on a busy machine nearly all processes may be disturbed. Nothing
/// makes a canary faster than the processor is.
const QUIET: f64 = 0.02;

/// The disturbed processes of a run.
pub struct Disturbance<'a> {
    /// For each process of a group whether it was disturbed.
    by_group: HashMap<&'a str, Vec<bool>>,
}

/// How many processes were disturbed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Those that were.
    pub disturbed: usize,
    /// All that have a canary.
    pub of: usize,
}

impl Share {
    fn with(self, disturbed: bool) -> Self {
        Self { disturbed: self.disturbed + usize::from(disturbed), of: self.of + 1 }
    }
}

impl<'a> Disturbance<'a> {
    /// By the canaries of a run; a group without one has no disturbed process.
    pub fn of(run: &'a Run) -> Self {
        let canaries = run.measured().filter(|(case, canary)| case.benchmark == CANARY && !canary.is_count());
        let by_group = canaries.map(|(_, canary)| (canary.group.as_str(), disturbed(canary))).collect();
        Self { by_group }
    }

    /// Of all groups together.
    pub fn share(&self) -> Share {
        let all = self.by_group.values().flatten();
        all.fold(Share::default(), |share, disturbed| share.with(*disturbed))
    }

    /// Of a group.
    pub fn share_of(&self, group: &str) -> Share {
        let all = self.by_group.get(group).into_iter().flatten();
        all.fold(Share::default(), |share, disturbed| share.with(*disturbed))
    }

    /// What was measured in the other processes. A case that would be left with fewer than [`ENOUGH_PROCESSES`] keeps all of them: a figure
    /// of a busy machine says more than none.
    pub fn without<'m>(&self, measured: &'m Measured) -> Cow<'m, Measured> {
        let Some(disturbed) = self.by_group.get(measured.group.as_str()) else {
            return Cow::Borrowed(measured);
        };
        let is_quiet = |at: usize| !disturbed.get(at).copied().unwrap_or(false);
        let with_samples = |at: &usize| measured.processes[*at].kept() > 0;
        let (quiet, others): (Vec<usize>, Vec<usize>) =
            (0..measured.processes.len()).filter(with_samples).partition(|at| is_quiet(*at));
        if others.is_empty() || quiet.len() < ENOUGH_PROCESSES {
            return Cow::Borrowed(measured);
        }
        Cow::Owned(only(measured, is_quiet))
    }

    /// The run without the samples of disturbed processes.
    pub fn left_out(&self, run: &'a Run) -> Cow<'a, Run> {
        if self.share().disturbed == 0 {
            return Cow::Borrowed(run);
        }
        let mut quiet = run.clone();
        for measurement in &mut quiet.measurements {
            if let Outcome::Measured(measured) = &mut measurement.outcome
                && let Cow::Owned(kept) = self.without(measured)
            {
                **measured = kept;
            }
        }
        Cow::Owned(quiet)
    }
}

/// For each process whether its canary lies far above those of the quiet ones; not of one in which the canary had no sample.
fn disturbed(canary: &Measured) -> Vec<bool> {
    let levels: Vec<Option<f64>> = canary.by_process().map(stats::median).collect();
    let known: Vec<f64> = levels.iter().copied().flatten().collect();
    let Some(quiet) = stats::quantile(&stats::sorted(&known), QUIET).filter(|quiet| *quiet > 0.0) else {
        return vec![false; levels.len()];
    };
    levels.iter().map(|level| level.is_some_and(|level| level > quiet * (1.0 + DISTURBED))).collect()
}

/// What was measured in these processes. The others keep their places, so that processes of one number stay neighbours in time.
fn only(measured: &Measured, is_kept: impl Fn(usize) -> bool) -> Measured {
    let place = |(at, process): (usize, &ProcessRounds)| match is_kept(at) {
        true => process.clone(),
        false => ProcessRounds { rounds: process.rounds, ran: Some(Vec::new()), discarded: Vec::new() },
    };
    let processes: Vec<ProcessRounds> = measured.processes.iter().enumerate().map(place).collect();
    let kept = measured.by_process().enumerate().filter(|(at, _)| is_kept(*at));
    let samples = kept.flat_map(|(_, samples)| samples.iter().copied()).collect();
    let discarded = processes.iter().map(|process| process.discarded.len() as u64).sum();
    Measured { samples, discarded, processes, ..measured.clone() }
}
