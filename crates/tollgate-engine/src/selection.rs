//! The cases that a run measures.

use std::time::Duration;

use tollgate_model::Case;

use crate::benchmark::{Benchmark, Chosen, Means, Suite};
use crate::plan::Plan;

/// The benchmarks that a user asked for, with those that they are compared with.
#[derive(Clone)]
pub struct Selection {
    /// The chosen cases, suite by suite.
    pub groups: Vec<Group>,
    /// By which a measuring process finds the benchmarks that it is given by name.
    pub find: fn(&str) -> Option<&'static Benchmark>,
}

/// The chosen cases of one suite; they share their rounds.
#[derive(Clone)]
pub struct Group {
    /// The suite.
    pub suite: &'static Suite,
    /// Its cases, in the registry's order.
    pub cases: Vec<Chosen>,
}

impl Group {
    /// The time that its cases get without a limit from the user; None where they share that of all rounds.
    pub fn usual_time(&self) -> Option<Duration> {
        match self.suite.means {
            Means::Rounds => None,
            Means::Commands(commands) => Some((commands.usual)(&self.cases)),
        }
    }
}

impl Selection {
    /// The cases that were chosen, in the order of the registry.
    pub fn cases(&self) -> impl Iterator<Item = Case> + '_ {
        self.groups
            .iter()
            .flat_map(|group| group.cases.iter().map(|(benchmark, params)| benchmark.case(params.clone())))
    }

    /// The time that a run of them gets without a limit from the user.
    pub fn usual_time(&self) -> Duration {
        let rounds = self.groups.iter().any(|group| group.usual_time().is_none());
        let commands: Duration = self.groups.iter().filter_map(Group::usual_time).sum();
        commands + if rounds { Plan::STANDARD } else { Duration::ZERO }
    }
}
