//! Whole commands: which case is executed next, and on which side.
//!
//! A usual run has one side, this process; a session has one for each environment. Only one side works at a time. A case
//! is executed on each side before another case is, in an order that is random for one repetition and the reverse in
//! the next (ABBA or BAAB): so the repetitions of one number are neighbours in time, and may be paired. All sides are
//! reset before the first command, and checked after the last: little more than the start of a tracer lies between the commands.

mod executor;
mod local;
mod protocol;
mod record;
mod serve;
mod table;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use tollgate_model::{Fact, traced::Backend};

use super::benchmark::{Chosen, Commands};
use super::run::{BenchError, Findings};
use super::selection::Group;
use super::{interrupt, plan::Plan};
use tollgate_model::stats::random::Random;

pub(crate) use executor::{Attempt, Executor, Halt, NO_TIME, Phase};
pub(crate) use local::Local;
pub(crate) use protocol::{CommandAnswer, CommandRequest};
pub(crate) use serve::{Line, serve};
use table::Table;

/// The end and the order of the executions of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// When the last of them ends.
    pub deadline: Instant,
    /// They end early with so many repetitions,
    pub least: usize,
    /// where every interval's half width is within this share of its median, or of 1 for a ratio of two sides.
    pub precision: f64,
    /// With so many repetitions they end whatever the intervals are.
    pub most: usize,
    /// Of the random order.
    pub seed: u64,
}

impl Terms {
    pub(crate) fn new(plan: &Plan, deadline: Instant, seed: u64) -> Self {
        let most = plan.processes.unwrap_or(plan.most_processes);
        Self { deadline, least: plan.least_processes, precision: plan.precision, most, seed }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// What was found on one side.
#[derive(Debug, Default)]
pub(crate) struct OnSide {
    pub findings: Findings,
    /// Why the side gave nothing more, where it ended early.
    pub lost: Option<String>,
    /// Whether nothing more is to be executed anywhere, for that reason.
    pub is_over: bool,
}

/// Why the executions end before their time.
enum End {
    Run(BenchError),
    /// The side of this number cannot have a setting that it needs.
    Over(usize),
}

/// Measures the cases of a group of whole commands, on all sides. One result for each side, with one measurement for each
/// case, in the cases' order.
///
/// # Errors
/// [`BenchError::NoProcess`]. Where the user stops it, the findings are those until then.
pub(crate) fn measure(
    group: &Group,
    sides: &mut [&mut dyn Executor],
    terms: &Terms,
) -> Result<Vec<OnSide>, BenchError> {
    let Some(commands) = group.commands() else { return Ok(Vec::new()) };
    let mut run = Run {
        cases: &group.cases,
        table: Table::new(&group.cases, sides.len()),
        lost: vec![None; sides.len()],
        facts: vec![Vec::new(); sides.len()],
        random: Random::new(terms.seed),
        sides,
    };
    let (interrupted, over) = match run.whole(commands, terms) {
        Ok(()) => (None, None),
        Err(End::Over(side)) => (None, Some(side)),
        Err(End::Run(BenchError::Interrupted(signal))) => (Some(signal), None),
        Err(End::Run(error)) => return Err(error),
    };
    Ok(run.conclude(interrupted, over))
}

struct Run<'r, 's> {
    cases: &'r [Chosen],
    sides: &'r mut [&'s mut dyn Executor],
    table: Table,
    /// For each side why it ended.
    lost: Vec<Option<String>>,
    facts: Vec<Vec<(String, Fact)>>,
    random: Random,
}

impl Run<'_, '_> {
    fn whole(&mut self, commands: &Commands, terms: &Terms) -> Result<(), End> {
        let fixtures = (commands.fixtures)(self.cases);
        let usual = |of: &[usize]| {
            let chosen: Vec<Chosen> = of.iter().map(|&case| self.cases[case].clone()).collect();
            (commands.usual)(&chosen)
        };
        let times: Vec<Duration> = fixtures.iter().map(|of| usual(of)).collect();
        for (at, of) in fixtures.iter().enumerate() {
            // Each fixture gets a part of the remaining time, in proportion to its default time.
            let all = times[at..].iter().sum::<Duration>().as_secs_f64();
            let share = if all > 0.0 { times[at].as_secs_f64() / all } else { 1.0 };
            let deadline = Instant::now() + terms.left().mul_f64(share);
            let ended = self.on_fixture(of, &Terms { deadline, ..*terms });
            for side in 0..self.sides.len() {
                self.finish(side)?;
            }
            of.iter().for_each(|&case| self.table.close(case));
            ended?;
        }
        Ok(())
    }

    /// Executes cases that share a fixture until their time is over, or their intervals are narrow.
    fn on_fixture(&mut self, of: &[usize], terms: &Terms) -> Result<(), End> {
        let chosen: Vec<Chosen> = of.iter().map(|&case| self.cases[case].clone()).collect();
        let mut order: Vec<usize> = (0..self.sides.len()).collect();
        self.random.shuffle(&mut order);
        for (at, &side) in order.iter().enumerate() {
            let until = Instant::now() + terms.left() / (order.len() - at) as u32;
            if let Some(refusals) = self.step(side, |executor| executor.prepare(&chosen, until))? {
                for (&case, refusal) in of.iter().zip(refusals) {
                    self.table.records[side][case].prepared(refusal);
                }
            }
        }
        let is_traced = self.is_traced(&order, terms)?;
        while let Some((case, order)) = self.table.next(of, terms.left(), &mut self.random) {
            let at = of.iter().position(|&of| of == case).unwrap_or_default();
            self.repeat(case, at, order, is_traced, (of, terms))?;
            if self.table.is_settled(self.cases, of, terms) {
                break;
            }
        }
        Ok(())
    }

    /// Repeats a case on these sides, phase by phase.
    fn repeat(
        &mut self,
        case: usize,
        at: usize,
        mut sides: Vec<usize>,
        is_traced: bool,
        (of, terms): (&[usize], &Terms),
    ) -> Result<(), End> {
        let mut took = vec![Duration::ZERO; self.sides.len()];
        let given = self.table.patience(case, of, sides.len(), terms.left());
        for phase in [Phase::Reset, Phase::Run { is_traced }, Phase::Check] {
            for side in std::mem::take(&mut sides) {
                let began = Instant::now();
                let until = began + given.saturating_sub(took[side]);
                let attempt = self.step(side, |executor| executor.pass(at, phase, until))?;
                took[side] += began.elapsed();
                match attempt {
                    Some(Attempt::Passed) => sides.push(side),
                    Some(last) => self.table.records[side][case].add(last, took[side], given),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Whether commands are traced: on several sides only where BPF traces them on each. The two stops per call of ptrace(2) take
    /// longer than most calls, and would be a difference of the tracers where one side has BPF.
    fn is_traced(&mut self, sides: &[usize], terms: &Terms) -> Result<bool, End> {
        if sides.len() < 2 {
            return Ok(true);
        }
        for &side in sides {
            let until = Instant::now() + terms.left();
            let backend = self.step(side, |executor| executor.tracer(until))?.flatten();
            if backend.is_some_and(|backend| backend != Backend::Bpf) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes a step on a side. None if the side ended.
    fn step<T>(
        &mut self,
        side: usize,
        step: impl FnOnce(&mut dyn Executor) -> Result<T, Halt>,
    ) -> Result<Option<T>, End> {
        interrupt::check(|signal| End::Run(BenchError::Interrupted(signal)))?;
        self.attempt(side, step)
    }

    fn attempt<T>(
        &mut self,
        side: usize,
        step: impl FnOnce(&mut dyn Executor) -> Result<T, Halt>,
    ) -> Result<Option<T>, End> {
        if self.lost[side].is_some() {
            return Ok(None);
        }
        match step(self.sides[side]) {
            Ok(result) => Ok(Some(result)),
            Err(Halt::Run(error)) => Err(End::Run(error)),
            Err(Halt::Lost(why)) => {
                self.lose(side, why);
                Ok(None)
            }
            Err(Halt::Over(why)) => {
                self.lose(side, why);
                Err(End::Over(side))
            }
        }
    }

    fn lose(&mut self, side: usize, why: String) {
        self.table.leave(side);
        self.lost[side] = Some(why);
    }

    /// Removes a side's fixture, also after an interruption.
    fn finish(&mut self, side: usize) -> Result<(), End> {
        if let Some(facts) = self.attempt(side, |executor| executor.finish())? {
            let known = |name: &str, facts: &[(String, Fact)]| facts.iter().any(|(known, _)| known == name);
            for (name, fact) in facts {
                if !known(&name, &self.facts[side]) {
                    self.facts[side].push((name, fact));
                }
            }
        }
        Ok(())
    }

    fn conclude(self, interrupted: Option<i32>, over: Option<usize>) -> Vec<OnSide> {
        let Self { cases, table, lost, facts, .. } = self;
        let over_why = over.and_then(|side| lost[side].clone());
        let mut found = Vec::new();
        for (side, ((records, facts), lost)) in table.records.into_iter().zip(facts).zip(lost).enumerate() {
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
            found.push(OnSide { findings, lost, is_over: over == Some(side) });
        }
        found
    }
}
