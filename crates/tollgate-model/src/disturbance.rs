//! Finds the processes of a run that something else slowed, such as a busy sibling thread of the core, by each process's canary.
//!
//! The canary is the plainest system call, run for a few microseconds in each round of each group. Its level shows the state of
//! the processor during that process: with a busy sibling, or after an exit to a hypervisor that flushed its predictors, it takes
//! a tenth to a half more. No figure is chosen by its own samples, so none is made lower by chance.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;

use crate::estimate::ENOUGH_PROCESSES;
use crate::measurement::{Measured, Outcome, ProcessRounds};
use crate::own::CANARY;
use crate::run::Run;
use crate::stats;

/// The share by which the canary of a disturbed process exceeds that of the quiet ones.
pub const DISTURBED: f64 = 0.05;
/// The quiet level is this quantile of the processes' canaries: on a busy machine nearly all processes may be disturbed. The lowest
/// level among the groups is used, since a group of few processes may have no quiet one, and nothing makes a canary faster.
const QUIET: f64 = 0.02;

/// The disturbed processes of a run.
pub struct Disturbance<'a> {
    by_group: HashMap<&'a str, Vec<Option<f64>>>,
}

fn is_disturbed(level: Option<f64>) -> bool {
    level.is_some_and(|level| level > 1.0 + DISTURBED)
}

/// How many processes were disturbed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// Processes whose canary (`bench/canary`) shows that something else slowed them. Figures exclude them; if fewer than six are
    /// quiet, they use the six with the lowest canaries.
    pub disturbed: usize,
    /// All processes that have a canary.
    pub of: usize,
}

impl Share {
    fn with(self, disturbed: bool) -> Self {
        Self { disturbed: self.disturbed + usize::from(disturbed), of: self.of + 1 }
    }
}

impl<'a> Disturbance<'a> {
    /// Finds disturbed processes by the canaries of a run; a group without a canary has no disturbed process.
    pub fn of(run: &'a Run) -> Self {
        let canaries = run.measured().filter(|(case, canary)| case.benchmark == CANARY && !canary.is_count());
        let by_group: Vec<_> = canaries.map(|(_, canary)| (canary.group.as_str(), levels(canary))).collect();
        let quiet = by_group.iter().filter_map(|(_, levels)| quiet(levels)).min_by(f64::total_cmp);
        let relative =
            |levels: Vec<Option<f64>>| levels.iter().map(|level| Some((*level)? / quiet?)).collect();
        Self { by_group: by_group.into_iter().map(|(group, levels)| (group, relative(levels))).collect() }
    }

    /// Counts all groups together.
    pub fn share(&self) -> Share {
        let all = self.by_group.values().flatten();
        all.fold(Share::default(), |share, level| share.with(is_disturbed(*level)))
    }

    /// Counts a group.
    pub fn share_of(&self, group: &str) -> Share {
        let all = self.by_group.get(group).into_iter().flatten();
        all.fold(Share::default(), |share, level| share.with(is_disturbed(*level)))
    }

    pub(crate) fn canaries(&self, group: &str) -> &[Option<f64>] {
        self.by_group.get(group).map_or(&[], Vec::as_slice)
    }

    /// Returns the measurement without disturbed processes. A case that would keep fewer than [`ENOUGH_PROCESSES`] keeps that many
    /// with the lowest canaries: its figure describes the quiet processes if these are more than half of them, and its
    /// interval reaches to the others.
    pub fn without<'m>(&self, measured: &'m Measured) -> Cow<'m, Measured> {
        let Some(levels) = self.by_group.get(measured.group.as_str()) else {
            return Cow::Borrowed(measured);
        };
        let level = |at: usize| levels.get(at).copied().flatten();
        let mut by_level: Vec<usize> =
            (0..measured.processes.len()).filter(|at| measured.processes[*at].kept() > 0).collect();
        by_level.sort_by(|one, other| level(*one).unwrap_or(0.0).total_cmp(&level(*other).unwrap_or(0.0)));
        let quiet = by_level.iter().filter(|at| !is_disturbed(level(**at))).count();
        let kept = quiet.max(ENOUGH_PROCESSES);
        if kept >= by_level.len() {
            return Cow::Borrowed(measured);
        }
        by_level.truncate(kept);
        Cow::Owned(only(measured, |at| by_level.contains(&at)))
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

fn levels(canary: &Measured) -> Vec<Option<f64>> {
    canary.by_process().map(stats::median).collect()
}

fn quiet(levels: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = levels.iter().copied().flatten().collect();
    stats::quantile(&stats::sorted(&known), QUIET).filter(|quiet| *quiet > 0.0)
}

/// Keeps the samples of these processes. The others keep their places without samples, so that processes with the same index stay neighbours.
fn only(measured: &Measured, is_kept: impl Fn(usize) -> bool) -> Measured {
    let place = |(at, process): (usize, &ProcessRounds)| {
        if is_kept(at) {
            process.clone()
        } else {
            ProcessRounds { rounds: process.rounds, ran: Some(Vec::new()), discarded: Vec::new() }
        }
    };
    let processes: Vec<ProcessRounds> = measured.processes.iter().enumerate().map(place).collect();
    let kept = measured.by_process().enumerate().filter(|(at, _)| is_kept(*at));
    let samples = kept.flat_map(|(_, samples)| samples.iter().copied()).collect();
    let discarded = processes.iter().map(|process| process.discarded.len() as u64).sum();
    Measured { samples, discarded, processes, ..measured.clone() }
}
