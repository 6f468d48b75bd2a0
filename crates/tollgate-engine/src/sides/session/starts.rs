//! The costs of the environments of a session themselves. Each is started and ended in every round, in a random order, alone on the
//! machine.
//!
//! `visit`: one start of one environment. `members`: its processes. `marks`: the phases of a guest's start. `record`: its samples.

mod marks;
mod members;
mod record;
mod visit;

use std::time::{Duration, Instant};

use record::StartsOfCase;
use tollgate_alternation::{Alternation, Halt, Outcome, Places, Rounds, SoFar, Trial, Turn};
use tollgate_model::{Fact, Measurement};
use tollgate_os::children::{Inherited, Subreaper};
use visit::{StartSamples, Visit};

use super::agent_side::AgentSide;
use super::connection::{Gone, Stop};
use super::life::Life;
use super::teller::Teller;
use crate::cases::aspect::Aspect;
use crate::cases::benchmark::Chosen;
use crate::cases::plan::{Ordinal, Plan};
use crate::cases::selection::Group;
use crate::refusal::Refusal;
use crate::{machine::group, machine::interrupt};
use tollgate_model::stats::random::Random;

/// The most rounds. More rounds add little: after this many starts, the median is known to a tenth of their spread.
const MOST: usize = 100;
/// An environment that fails to start this often in a row is given up.
const FAILURES: usize = 3;

/// The time from fork(2) of an environment's first process to the first answer from the environment, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The time to the answer of this program, as an agent.
    pub agent_ns: f64,
    /// The time to the answer of `/bin/sh -c echo`, or why there is none.
    pub shell_ns: Result<f64, String>,
}

/// Starts an environment once with an agent in it and once with a shell.
///
/// # Errors
/// A sentence: it did not start, or a signal came.
pub fn first_answers(life: &mut dyn Life) -> Result<Answered, String> {
    let (_subreaper, before) = (Subreaper::begin(), Inherited::now());
    let mut visit = Visit { life, before: &before, wanted: &[] };
    let agent_ns = time_of(Aspect::Start, visit.with_agent())?;
    visit.life.end();
    let shell_ns = time_of(Aspect::StartToShell, visit.with_shell());
    visit.life.end();
    Ok(Answered { agent_ns, shell_ns })
}

fn time_of(aspect: Aspect, found: Result<StartSamples, Gone>) -> Result<f64, String> {
    let found = found.map_err(|gone| match gone {
        Gone::Lost(why) | Gone::Over(why) => why,
        Gone::Interrupted(_) => "a signal asked to stop".to_owned(),
    })?;
    let time = found.into_iter().find_map(|(of, time)| (of == aspect).then_some(time));
    let time = time.unwrap_or_else(|| Err(Refusal::NotMeasured("it was not timed".to_owned())));
    time.map_err(|refusal| refusal.why().to_owned())
}

/// The starts of environments in rounds. A side is an environment.
struct Visits<'x, 'c, 's, 'a, 't> {
    starts: &'x mut Starts<'c>,
    sides: &'x mut [AgentSide<'s, 'a>],
    /// The children that do not belong to an environment.
    before: Inherited,
    /// For each side, how often it failed to start in a row.
    failures: Vec<usize>,
    teller: &'x mut Teller<'t>,
    began: Instant,
}

impl Trial for Visits<'_, '_, '_, '_, '_> {
    type Stop = Stop;

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn execute(&mut self, turn: &Turn, so_far: &SoFar) -> Result<Outcome, Halt<Stop>> {
        let (at, side) = (turn.side, &mut self.sides[turn.side]);
        self.teller.done = so_far.rounds as usize;
        self.teller.say(format!("start {} of {}", so_far.rounds + 1, side.side.name), self.starts.place);
        let gone = match self.starts.visit(at, side, &self.before) {
            Ok(()) => {
                self.failures[at] = 0;
                return Ok(Outcome::Done);
            }
            Err(Gone::Lost(_)) if self.failures[at] + 1 < FAILURES => {
                self.failures[at] += 1;
                return Ok(Outcome::Done);
            }
            Err(gone) => gone,
        };
        side.lose(gone).map_err(Halt::Run)?;
        Err(Halt::Lost(side.lost.clone().unwrap_or_default()))
    }
}

/// The starts of a session.
pub struct Starts<'c> {
    cases: Vec<(&'c Chosen, Aspect)>,
    /// Cases with parameters of another version.
    unknown: Vec<&'c Chosen>,
    place: Ordinal,
    /// The records of each side, in the order of the cases; empty before the first round.
    records: Vec<Vec<StartsOfCase>>,
    rounds: usize,
}

impl<'c> Starts<'c> {
    /// Makes the starts from the cases of these groups, each with its place among the suites.
    pub fn new(groups: &[(&'c Group, Ordinal)]) -> Self {
        let chosen = || groups.iter().flat_map(|(group, _)| &group.cases);
        let aspect = |(benchmark, params): &Chosen| benchmark.aspect_of(params);
        Self {
            cases: chosen().filter_map(|case| Some((case, aspect(case)?))).collect(),
            unknown: chosen().filter(|case| aspect(case).is_none()).collect(),
            place: groups.first().map_or(Ordinal::default(), |(_, place)| *place),
            records: Vec::new(),
            rounds: 0,
        }
    }

    /// Returns whether no such case was chosen.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Starts and ends every environment in rounds until the deadline, or as often as the plan says, but at least once. Their agents are
    /// ended first.
    ///
    /// # Errors
    /// The user's signal.
    pub fn measure(
        &mut self,
        sides: &mut [AgentSide<'_, '_>],
        (plan, deadline): (&Plan, Instant),
        random: &mut Random,
        teller: &mut Teller<'_>,
    ) -> Result<(), Stop> {
        if self.cases.is_empty() {
            return Ok(());
        }
        for side in &mut *sides {
            // If no case of a side has counts, nothing is known about the side yet.
            if side.started == 0 && side.lost.is_none() {
                teller.say(format!("reading facts in {}", side.side.name), self.place);
                if let Err(gone) = side.look_inside() {
                    side.lose(gone)?;
                }
            }
            side.close();
            side.side.life.iter_mut().for_each(|life| life.end());
            self.records.push(self.cases.iter().map(|_| StartsOfCase::default()).collect());
        }
        interrupt::check(Stop::Interrupted)?;
        let _subreaper = Subreaper::begin();
        let before = Inherited::now();
        let began = Instant::now();
        let most = plan.processes.map_or(MOST, |number| number.min(MOST)) as u32;
        let lengths = tollgate_alternation::Plan {
            must_fit: true,
            ..tollgate_alternation::Plan::new(
                Rounds { least: 1, most },
                deadline.saturating_duration_since(began),
                0.0,
            )
        };
        let here = (0..sides.len()).filter(|&at| sides[at].lost.is_none()).collect();
        let places = Places::of_each(sides.len());
        let mut rounds = Alternation::new(lengths, random.clone(), &[here], places);
        let failures = vec![0; sides.len()];
        let mut visits = Visits { starts: self, sides, before, failures, teller, began };
        let ended = rounds.run(&mut visits);
        (self.rounds, *random) = (rounds.so_far().rounds as usize, rounds.random);
        match ended {
            Ok(()) | Err(Halt::Lost(_)) => Ok(()),
            Err(Halt::Run(stop)) => Err(stop),
        }
    }

    /// Starts an environment with an agent, and with a shell if that is requested.
    fn visit(&mut self, at: usize, side: &mut AgentSide<'_, '_>, before: &Inherited) -> Result<(), Gone> {
        side.wake()?;
        let Some(life) = &mut side.side.life else {
            let none = Refusal::Skip("it is not restarted to be measured".to_owned());
            self.records[at].iter_mut().for_each(|record| record.add(Err(none.clone())));
            return Ok(());
        };
        let wanted: Vec<Aspect> = self.cases.iter().map(|(_, aspect)| *aspect).collect();
        let needs_agent = wanted.iter().any(|aspect| *aspect != Aspect::StartToShell);
        let needs_shell = self.is_open(at, Aspect::StartToShell);
        for with_shell in [false, true] {
            if !(if with_shell { needs_shell } else { needs_agent }) {
                continue;
            }
            let mut visit = Visit { life: life.as_mut(), before, wanted: &wanted };
            let found = if with_shell { visit.with_shell() } else { visit.with_agent() };
            life.end();
            group::end_strays(before);
            interrupt::check(Gone::Interrupted)?;
            self.add(at, with_shell, &found);
            found?;
        }
        Ok(())
    }

    /// Returns whether a case of this kind may have further samples on a side.
    fn is_open(&self, side: usize, aspect: Aspect) -> bool {
        let of = self.cases.iter().zip(&self.records[side]);
        of.filter(|((_, own), _)| *own == aspect).any(|(_, record)| record.is_open())
    }

    /// Records the results of a start. Each case of the start gets a sample, or a failure in its place.
    fn add(&mut self, side: usize, with_shell: bool, found: &Result<StartSamples, Gone>) {
        for ((_, aspect), record) in self.cases.iter().zip(&mut self.records[side]) {
            if (*aspect == Aspect::StartToShell) != with_shell {
                continue;
            }
            let sample = found.as_ref().ok().and_then(|found| found.iter().find(|(of, _)| of == aspect));
            match sample {
                Some((_, sample)) => record.add(sample.clone()),
                None => record.add_failure(),
            }
        }
    }

    /// Returns the measurements of a side, one for each case; `cut` is why the session ended early there, if it did.
    pub fn measurements(&self, at: usize, side: &AgentSide<'_, '_>, cut: Option<&str>) -> Vec<Measurement> {
        let remark = side.side.life.as_ref().and_then(|life| life.about().remark);
        let none = StartsOfCase::default();
        let of = |(number, (case, aspect)): (usize, &(&Chosen, Aspect))| {
            let record = self.records.get(at).and_then(|records| records.get(number)).unwrap_or(&none);
            let is_memory = matches!(aspect, Aspect::Memory(_));
            record.conclude(case, cut, remark.as_deref().filter(|_| !is_memory))
        };
        let unknown = |case: &&Chosen| {
            let mut record = StartsOfCase::default();
            record.add(Err(Refusal::Skip("this version does not measure it".to_owned())));
            record.conclude(case, None, None)
        };
        self.cases.iter().enumerate().map(of).chain(self.unknown.iter().map(unknown)).collect()
    }

    /// Returns the fact of how often each environment was started.
    pub fn facts(&self) -> Option<(String, Fact)> {
        let rounds = i64::try_from(self.rounds).unwrap_or(i64::MAX);
        let source = "starts of each environment, in a random order in each round";
        (self.rounds > 0).then(|| ("run.rounds_of_starts".to_owned(), Fact::known(rounds, source)))
    }
}

#[cfg(test)]
mod tests;
