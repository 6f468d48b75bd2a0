//! The cases that a run measures.

use std::time::Duration;

use tollgate_model::Case;

use crate::cases::benchmark::{Benchmark, Chosen, Commands, Kind, Suite};
use crate::cases::headline::Headline;
use crate::cases::plan::Plan;

/// The benchmarks that a user asked for, and their baselines.
#[derive(Clone)]
pub struct Selection {
    /// The chosen cases, suite by suite.
    pub groups: Vec<Group>,
    /// Finds a benchmark by name, in a bench process.
    pub find: fn(&str) -> Option<&'static Benchmark>,
}

/// The chosen cases of one suite that share their rounds. One with [`Company::Own`](crate::Company::Own) has its own group.
#[derive(Clone)]
pub struct Group {
    /// The suite.
    pub suite: &'static Suite,
    /// Its cases, in the registry's order.
    pub cases: Vec<Chosen>,
}

impl Group {
    /// Returns the name that identifies its measurements and the engine's own: the suite, or the benchmark with its own group.
    pub fn name(&self) -> &'static str {
        match self.cases.first() {
            Some((benchmark, _)) => benchmark.group(),
            None => self.suite.name,
        }
    }

    /// Returns the commands of its cases, if they are whole commands.
    pub(crate) fn commands(&self) -> Option<&'static Commands> {
        match self.cases.first()?.0.kind {
            Kind::Instance(_) | Kind::Environment(_) => None,
            Kind::Command(commands) => Some(commands),
        }
    }

    /// Returns the headline of the case at this index. Among several cases with a headline's parameters, the first has it.
    pub(crate) fn headline(&self, at: usize) -> Option<&'static Headline> {
        let (benchmark, params) = self.cases.get(at)?;
        let before = || self.cases[..at].iter().filter(|(other, _)| other.name == benchmark.name);
        let is_its = |headline: &&Headline| {
            headline.names(params) && !before().any(|(_, params)| headline.names(params))
        };
        benchmark.headlines.iter().find(is_its)
    }

    /// Whether its cases measure environments themselves.
    pub fn is_of_environments(&self) -> bool {
        self.cases.first().is_some_and(|(benchmark, _)| benchmark.is_of_environment())
    }

    /// Returns the default time of its cases in each environment; `None` for rounds, which share one default.
    pub fn usual_time(&self) -> Option<Duration> {
        if self.is_of_environments() {
            Some(Plan::STARTS)
        } else {
            self.commands().map(|commands| (commands.usual)(&self.cases))
        }
    }
}

impl Selection {
    /// Returns the chosen cases, in the registry's order.
    pub fn cases(&self) -> impl Iterator<Item = Case> + '_ {
        self.groups
            .iter()
            .flat_map(|group| group.cases.iter().map(|(benchmark, params)| benchmark.case(params.clone())))
    }

    /// Whether a case needs a directory for files.
    pub fn uses_files(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.cases).any(|(benchmark, _)| benchmark.uses_files)
    }

    /// Whether cases are whole commands.
    pub fn has_commands(&self) -> bool {
        self.groups.iter().any(|group| group.commands().is_some())
    }

    /// Returns the default time of a run of them.
    pub fn usual_time(&self) -> Duration {
        let rounds = self.groups.iter().any(|group| group.usual_time().is_none());
        let commands: Duration = self.groups.iter().filter_map(Group::usual_time).sum();
        commands + if rounds { Plan::STANDARD } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::benchmark::{PLAIN, params};
    use crate::cases::headline::Section;

    const ROW: Headline = Headline::of(Section::Memory, "a row", &[("by", "store")]);
    static BENCHMARK: Benchmark = Benchmark { name: "a/b", headlines: &[ROW], ..PLAIN };
    static SUITE: Suite = Suite { name: "a", about: "", benchmarks: &[&BENCHMARK] };

    #[test]
    fn of_several_cases_with_its_parameters_the_first_has_the_headline() {
        let case = |by: &str, to: u64| (&BENCHMARK, params(&[("by", by.into()), ("to", to.into())]));
        let cases = vec![case("cas", 1), case("store", 1), case("store", 2)];
        let group = Group { suite: &SUITE, cases };
        assert_eq!([0, 1, 2, 3].map(|at| group.headline(at)), [None, Some(&ROW), None, None]);
    }
}
