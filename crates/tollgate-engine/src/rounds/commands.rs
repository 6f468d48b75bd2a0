//! Executes the whole commands of cases on their sides. `tollgate_alternation` decides which case is next, and on which side.
//!
//! A usual run has one side, this process; a session has one for each environment. Only one side works at a time. A case is executed on
//! each side before another case is, so repetitions with the same number are neighbours in time and may be paired. All sides are reset
//! before the first command and checked after the last, so little more than the start of a tracer lies between the commands.

mod local;
mod protocol;
mod record;
mod serve;
mod stage;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use tollgate_alternation::{Alternation, How, Outcome, Places, Rounds, SoFar, Trial, Turn};
use tollgate_model::{Fact, traced::Backend};

use crate::cases::benchmark::{Chosen, Commands};
use crate::cases::run::Halt;
use crate::cases::run::{BenchError, Findings};
use crate::cases::selection::Group;
use crate::{cases::plan::Plan, machine::interrupt};
use tollgate_model::stats::random::Random;

pub(crate) use local::Local;
pub(crate) use protocol::{CommandAnswer, CommandRequest};
use record::ExecutedCase;
pub(crate) use serve::Served;
pub(crate) use stage::{Attempt, NO_TIME, Phase, Stage};

/// The greatest number of repetitions of a case in a run without environments.
const MOST_REPETITIONS: usize = 64;
/// The greatest number of pairs: a document holds about 6 KB for each execution.
const MOST_PAIRS: usize = 128;

/// Returns the most rounds that these backends trace. ptrace(2) stops a command twice per call.
pub(crate) fn most_traced(mut backends: impl Iterator<Item = Backend>) -> u32 {
    if backends.any(|backend| backend == Backend::Ptrace) { 3 } else { 25 }
}

/// The end and the order of the executions of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// When the last of them ends.
    pub deadline: Instant,
    /// They end early if the half width of every interval is within this share of its median, or of the ratio of two sides.
    pub precision: f64,
    /// They end after this many repetitions, even if the intervals are wide.
    pub most: usize,
    /// Seed of the random order.
    pub seed: u64,
    /// The clock: a test may script it.
    pub now: fn() -> Instant,
}

impl Terms {
    pub(crate) fn new(plan: &Plan, deadline: Instant, seed: u64) -> Self {
        let most = plan.processes.unwrap_or(plan.most_processes);
        Self { deadline, precision: plan.precision, most, seed, now: Instant::now }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since((self.now)())
    }
}

/// The results of one side.
#[derive(Debug, Default)]
pub(crate) struct OnSide {
    pub findings: Findings,
    /// Why the side ended early, if it did.
    pub lost: Option<String>,
    /// Whether that reason ends the executions on all sides.
    pub is_over: bool,
}

/// Why the executions end before their time.
enum End {
    Run(BenchError),
    /// The side with this number cannot have a setting that it needs, for this reason.
    Over(usize, String),
}

type Stop = tollgate_alternation::Halt<End>;

/// Measures the cases of a group of whole commands on all sides. Returns one result for each side, with one measurement for each
/// case, in the order of the cases.
///
/// # Errors
/// [`BenchError::NoProcess`]. If the user stops it, the results so far are returned.
pub(crate) fn measure(
    group: &Group,
    sides: &mut [&mut dyn Stage],
    terms: &Terms,
) -> Result<Vec<OnSide>, BenchError> {
    let Some(commands) = group.commands() else { return Ok(Vec::new()) };
    let of_side = || group.cases.iter().map(|_| ExecutedCase::default()).collect();
    let mut run = Run {
        cases: &group.cases,
        of: Vec::new(),
        records: sides.iter().map(|_| of_side()).collect(),
        facts: vec![Vec::new(); sides.len()],
        repetition: None,
        given: Duration::ZERO,
        took: vec![Duration::ZERO; sides.len()],
        now: terms.now,
        began: (terms.now)(),
        deadline: terms.deadline,
        sides,
    };
    let mut places = Places::of_each(run.sides.len());
    let ended = run.whole(commands, terms, &mut places);
    let (interrupted, over) = match ended {
        Ok(()) | Err(Stop::Lost(_)) => (None, None),
        Err(Stop::Run(End::Over(side, why))) => (None, Some((side, why))),
        Err(Stop::Run(End::Run(BenchError::Interrupted(signal)))) => (Some(signal), None),
        Err(Stop::Run(End::Run(error))) => return Err(error),
    };
    Ok(run.conclude(places.lost(), interrupted, over))
}

/// The repetitions of whole commands. Cases are numbered among those that share a fixture.
struct Run<'r, 's> {
    cases: &'r [Chosen],
    /// The cases that share the present fixture.
    of: Vec<usize>,
    sides: &'r mut [&'s mut dyn Stage],
    /// For each side, one record for each case.
    records: Vec<Vec<ExecutedCase>>,
    facts: Vec<Vec<(String, Fact)>>,
    /// The present repetition (its case, purpose and number), and how long it may take on each side.
    repetition: Option<(usize, How, u32)>,
    given: Duration,
    /// The time that it took on each side.
    took: Vec<Duration>,
    now: fn() -> Instant,
    began: Instant,
    /// When the executions on the present fixture end.
    deadline: Instant,
}

impl Trial for Run<'_, '_> {
    type Stop = End;

    fn now(&self) -> Duration {
        (self.now)() - self.began
    }

    /// Brings a case to the state in which its command begins.
    fn prepare(&mut self, turn: &Turn, _: &SoFar) -> Result<Outcome, Stop> {
        let repetition = Some((turn.case, turn.how, turn.number));
        if self.repetition != repetition {
            (self.repetition, self.given) = (repetition, self.patience(turn.case, self.left()));
        }
        self.took[turn.side] = Duration::ZERO;
        self.pass(turn, Phase::Reset)
    }

    fn execute(&mut self, turn: &Turn, _: &SoFar) -> Result<Outcome, Stop> {
        self.pass(turn, Phase::Run { is_traced: turn.how == How::Traced })
    }

    /// Checks the result of a command.
    fn conclude(&mut self, turn: &Turn, _: Outcome, _: &SoFar) -> Result<Outcome, Stop> {
        self.pass(turn, Phase::Check)
    }

    /// A case is timed first: there may be no time for more.
    fn most_traced(&self) -> u32 {
        let present = || self.of.iter().flat_map(|case| self.records.iter().map(|of_side| &of_side[*case]));
        if present().all(|record| record.repetitions() == 0) || present().all(ExecutedCase::is_untraced) {
            return 0;
        }
        most_traced(present().filter_map(ExecutedCase::backend))
    }
}

impl Run<'_, '_> {
    fn whole(&mut self, commands: &Commands, terms: &Terms, places: &mut Places) -> Result<(), Stop> {
        let fixtures = (commands.fixtures)(self.cases);
        let times: Vec<Duration> = fixtures.iter().map(|of| (commands.usual)(&self.chosen(of))).collect();
        let mut random = Random::new(terms.seed);
        for (at, of) in fixtures.into_iter().enumerate() {
            // Each fixture gets a share of the remaining time, in proportion to its default time.
            let all = times[at..].iter().sum::<Duration>().as_secs_f64();
            let share = if all > 0.0 { times[at].as_secs_f64() / all } else { 1.0 };
            self.began = (self.now)();
            self.deadline = self.began + terms.left().mul_f64(share);
            (self.of, self.repetition) = (of, None);
            let ended = self.on_fixture(terms, &mut random, places);
            for side in 0..self.sides.len() {
                // The fixture is removed after an interruption, too.
                places.step(side, || self.finish(side))?;
            }
            ended?;
        }
        Ok(())
    }

    fn chosen(&self, of: &[usize]) -> Vec<Chosen> {
        of.iter().map(|&case| self.cases[case].clone()).collect()
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since((self.now)())
    }

    /// Executes cases that share a fixture until their time is over or their intervals are narrow.
    fn on_fixture(&mut self, terms: &Terms, random: &mut Random, places: &mut Places) -> Result<(), Stop> {
        let most = if self.sides.len() == 1 { MOST_REPETITIONS } else { MOST_PAIRS };
        let rounds = Rounds { least: 0, most: most.min(terms.most) as u32 };
        let time = self.deadline.saturating_duration_since(self.began);
        let plan = tollgate_alternation::Plan {
            must_fit: true,
            is_whole: true,
            begins_in_order: true,
            ..tollgate_alternation::Plan::new(rounds, time, 2.0 * terms.precision)
        };
        let chosen = self.chosen(&self.of);
        let order = tollgate_alternation::drawn((0..self.sides.len()).collect(), random);
        let all: Vec<Vec<usize>> = chosen.iter().map(|_| (0..self.sides.len()).collect()).collect();
        let mut rounds = Alternation::new(plan, Random::new(random.next_u64()), &all, places.clone());
        for (at, &side) in order.iter().enumerate() {
            let until = (self.now)() + self.left() / (order.len() - at) as u32;
            let prepared =
                rounds.places.step(side, || self.step(side, |stage| stage.prepare(&chosen, until)));
            *places = rounds.places.clone();
            for (at, refusal) in prepared?.into_iter().flatten().enumerate() {
                if refusal.is_some() {
                    rounds.leave_side(at, side);
                }
                self.records[side][self.of[at]].prepared(refusal);
            }
        }
        let ended = rounds.run(self);
        *places = rounds.places;
        ended
    }

    /// Executes a phase of a repetition.
    fn pass(&mut self, turn: &Turn, phase: Phase) -> Result<Outcome, Stop> {
        let (side, began) = (turn.side, (self.now)());
        let is_traced = turn.how == How::Traced;
        if is_traced && self.records[side][self.of[turn.case]].is_untraced() {
            return Ok(Outcome::Done);
        }
        let given = self.given;
        let until = began + given.saturating_sub(self.took[side]);
        let attempt = self.step(side, |stage| stage.pass(turn.case, phase, until))?;
        self.took[side] += (self.now)() - began;
        let record = &mut self.records[side][self.of[turn.case]];
        if is_traced {
            record.add_traced(attempt);
            return Ok(Outcome::Done);
        }
        let outcome = match &attempt {
            Attempt::Passed => return Ok(Outcome::Done),
            Attempt::Executed(repetition) => match &repetition.traced {
                Some(timed) => Outcome::Figure(timed.wall_ns as f64),
                None => Outcome::Discarded,
            },
            Attempt::Refused(_) | Attempt::OutOfTime => Outcome::LeaveSide,
        };
        record.add(attempt, given);
        Ok(outcome)
    }

    /// Returns how long a repetition may take on each side, so that one that hangs leaves time for the other sides and, in the first
    /// repetition, for the other cases.
    fn patience(&self, case: usize, left: Duration) -> Duration {
        let is_new = |case: usize| self.records.iter().all(|records| records[case].repetitions() == 0);
        let is_open = |case: usize| self.records.iter().filter(|records| records[case].is_open()).count();
        let (case, others) = (self.of[case], self.of.iter().filter(|other| **other != self.of[case]));
        let others_wait = others.into_iter().any(|&other| is_new(other) && is_open(other) > 0);
        left / if is_new(case) && others_wait { 2 } else { 1 } / is_open(case).max(1) as u32
    }

    /// Takes a step on a side.
    fn step<T>(
        &mut self,
        side: usize,
        step: impl FnOnce(&mut dyn Stage) -> Result<T, Halt>,
    ) -> Result<T, Stop> {
        interrupt::check(|signal| Stop::Run(End::Run(BenchError::Interrupted(signal))))?;
        step(self.sides[side]).map_err(|halt| ended(halt, side))
    }

    /// Removes a side's fixture, even after an interruption.
    fn finish(&mut self, side: usize) -> Result<(), Stop> {
        let known = |name: &str, facts: &[(String, Fact)]| facts.iter().any(|(known, _)| known == name);
        for (name, fact) in self.sides[side].finish().map_err(|halt| ended(halt, side))? {
            if !known(&name, &self.facts[side]) {
                self.facts[side].push((name, fact));
            }
        }
        Ok(())
    }

    fn conclude(
        self,
        lost: &[Option<String>],
        interrupted: Option<i32>,
        over: Option<(usize, String)>,
    ) -> Vec<OnSide> {
        let Self { cases, records, facts, .. } = self;
        let mut found = Vec::new();
        for (side, ((records, facts), lost)) in records.into_iter().zip(facts).zip(lost).enumerate() {
            let here = over.as_ref().filter(|(over, _)| *over == side).map(|(_, why)| why.clone());
            let (is_over, lost) = (here.is_some(), here.or_else(|| lost.clone()));
            let over_why = over.as_ref().map(|(_, why)| why);
            let ended = match (&lost, &over_why, interrupted) {
                (Some(why), ..) => Some(why.clone()),
                (None, Some(why), _) => Some(format!("the session ended: {why}")),
                (None, None, Some(_)) => Some("interrupted".to_owned()),
                (None, None, None) => None,
            };
            let lacks_time = records.iter().zip(cases).find(|(record, _)| record.lacks_time());
            let out_of_time = lacks_time.map(|(_, (benchmark, params))| benchmark.case(params.clone()));
            let measurements = records.into_iter().zip(cases);
            let measurements =
                measurements.map(|(record, case)| record.conclude(case, ended.as_deref())).collect();
            let findings = Findings { measurements, facts, interrupted, out_of_time };
            found.push(OnSide { findings, lost, is_over });
        }
        found
    }
}

fn ended(halt: Halt, side: usize) -> Stop {
    halt.map(|error| match error {
        BenchError::NoEnvironment(why) => End::Over(side, why),
        error => End::Run(error),
    })
}
