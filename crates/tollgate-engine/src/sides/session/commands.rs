//! Whole commands in a session: agents execute them in alternation.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use tollgate_model::{Fact, Measurement, Outcome};

use super::agent_side::{AgentSide, unexpected};
use super::connection::{Gone, Stop, plain};
use super::teller::Teller;
use crate::cases::benchmark::{Chosen, TIME_OF_MEMORY};
use crate::cases::plan::Ordinal;
use crate::cases::run::Halt;
use crate::cases::selection::Group;
use crate::machine::interrupt;
use crate::refusal::Refusal;
use crate::rounds::commands::{self, Attempt, CommandAnswer, CommandRequest, NO_TIME, Phase, Stage, Terms};
use crate::sides::agent::protocol::{Answer, Request};

/// An agent's answer may be this late, so that checks and other work around the command are not cut short.
const LATE: Duration = Duration::from_secs(20);
const MARGIN: Duration = Duration::from_secs(10);
/// Characters of a sentence, and of the name of a step, that an agent may send.
const MOST_TEXT: usize = 400;
const MOST_NAME: usize = 200;
const MOST_NOTES: usize = 16;

pub struct Commands<'c> {
    groups: Vec<(&'c Group, Ordinal)>,
    /// For each measured group, the measurements of each timed side.
    measured: Vec<Vec<Vec<Measurement>>>,
}

impl<'c> Commands<'c> {
    pub fn new(groups: Vec<(&'c Group, Ordinal)>) -> Self {
        Self { groups, measured: Vec::new() }
    }

    /// Measures them on all sides, whose agents wait for a request. An agent that ends meanwhile is lost. Fails with the user's
    /// signal, or if a side cannot have a setting that it needs; earlier measurements are kept.
    pub fn measure(
        &mut self,
        sides: &mut [AgentSide<'_, '_>],
        terms: &Terms,
        teller: &mut Teller<'_>,
    ) -> Result<(), Stop> {
        let is_timed = |side: &AgentSide<'_, '_>| !side.side.is_counting;
        let names = sides.iter().filter(|side| is_timed(side)).count() > 1;
        for (at, (group, suite)) in self.groups.iter().enumerate() {
            let left = terms.deadline.saturating_duration_since(Instant::now());
            let deadline = Instant::now() + left / (self.groups.len() - at) as u32;
            let mut tell = |what: String| teller.say(what, *suite);
            let told = RefCell::new(&mut tell as &mut dyn FnMut(String));
            let timed = sides.iter_mut().filter(|side| is_timed(side));
            let mut stages: Vec<RemoteStage> =
                timed.map(|side| RemoteStage { side, told: &told, names }).collect();
            let mut every: Vec<&mut dyn Stage> =
                stages.iter_mut().map(|stage| -> &mut dyn Stage { stage }).collect();
            let found = commands::measure(group, &mut every, &Terms { deadline, ..*terms });
            drop(stages);
            // The other errors are about processes that this side starts, and it starts none.
            let found = found.unwrap_or_default();
            let mut ended = Ok(());
            let mut measured = Vec::new();
            for (side, found) in sides.iter_mut().filter(|side| is_timed(side)).zip(found) {
                for (name, fact) in found.findings.facts {
                    side.note(&name, fact);
                }
                if let Some(signal) = found.findings.interrupted {
                    ended = Err(Stop::Interrupted(signal));
                }
                if let Some(why) = found.lost {
                    let gone = if found.is_over { Gone::Over(why) } else { Gone::Lost(why) };
                    ended = ended.and(side.lose(gone));
                }
                measured.push(found.findings.measurements);
            }
            self.measured.push(measured);
            ended?;
        }
        Ok(())
    }

    /// The measurements of a timed side, by its index among those; `None` for a counting one. `cut` is why the session ended early
    /// there.
    pub fn measurements(&self, side: Option<usize>, cut: Option<&str>) -> Vec<Measurement> {
        let not_measured = |(benchmark, params): &Chosen| {
            let why = match side {
                Some(_) => cut.unwrap_or(NO_TIME),
                None => benchmark.uncounted.unwrap_or(TIME_OF_MEMORY),
            };
            let outcome = Outcome::NotMeasured { why: why.to_owned() };
            Measurement { case: benchmark.case(params.clone()), outcome }
        };
        let of_group = |(at, (group, _)): (usize, &(&Group, Ordinal))| match (side, self.measured.get(at)) {
            (Some(side), Some(of_sides)) => of_sides.get(side).cloned().unwrap_or_default(),
            _ => group.cases.iter().map(not_measured).collect(),
        };
        self.groups.iter().enumerate().flat_map(of_group).collect()
    }
}

/// The fixtures of an environment, which its agent has.
struct RemoteStage<'r, 's, 'a> {
    side: &'r mut AgentSide<'s, 'a>,
    told: &'r RefCell<&'r mut dyn FnMut(String)>,
    /// Whether messages name the environment because there are several.
    names: bool,
}

impl RemoteStage<'_, '_, '_> {
    fn ask(&mut self, request: CommandRequest, until: Instant) -> Result<CommandAnswer, Halt> {
        self.side.must_be_here().map_err(Halt::Lost)?;
        self.side.send(&Request::Command(request), MARGIN).map_err(Halt::from)?;
        let last = until.max(Instant::now()) + LATE;
        loop {
            let left = last.saturating_duration_since(Instant::now());
            match self.side.receive(left).map_err(Halt::from)? {
                Answer::Doing(what) => self.tell(&plain(&what, MOST_NAME)),
                Answer::Running(_) => {}
                Answer::Command(answer) => return Ok(answer),
                other => return Err(unexpected(other).into()),
            }
            if left.is_zero() {
                return Err(Halt::Lost("its agent was busy for longer than its time".to_owned()));
            }
        }
    }

    fn tell(&mut self, what: &str) {
        let told = &mut self.told.borrow_mut();
        if self.names { told(format!("{what} in {}", self.side.side.name)) } else { told(what.to_owned()) }
    }
}

impl Stage for RemoteStage<'_, '_, '_> {
    fn prepare(&mut self, cases: &[Chosen], until: Instant) -> Result<Vec<Option<Refusal>>, Halt> {
        self.side.wake().map_err(Halt::from)?;
        let of = cases.iter().map(|(benchmark, params)| benchmark.case(params.clone())).collect();
        match self.ask(CommandRequest::Prepare { cases: of, within: from_now(until) }, until)? {
            CommandAnswer::Prepared(refusals) if refusals.len() == cases.len() => {
                Ok(refusals.into_iter().map(|refusal| refusal.map(short)).collect())
            }
            _ => Err(other_answer()),
        }
    }

    fn pass(&mut self, case: usize, phase: Phase, until: Instant) -> Result<Attempt, Halt> {
        self.side.wake().map_err(Halt::from)?;
        match self.ask(CommandRequest::Pass { case, phase, within: from_now(until) }, until)? {
            CommandAnswer::Did(Attempt::Executed(mut execution)) => {
                execution.notes.truncate(MOST_NOTES);
                execution.notes.iter_mut().for_each(|note| *note = plain(note, MOST_TEXT));
                Ok(Attempt::Executed(execution))
            }
            CommandAnswer::Did(Attempt::Refused(refusal)) => Ok(Attempt::Refused(short(refusal))),
            CommandAnswer::Did(attempt) => Ok(attempt),
            _ => Err(other_answer()),
        }
    }

    fn finish(&mut self) -> Result<Vec<(String, Fact)>, Halt> {
        // The end of the line ends an agent's current work, and with it the fixture.
        if interrupt::requested().is_some() {
            self.side.close();
            return Ok(Vec::new());
        }
        match self.ask(CommandRequest::Finish, Instant::now())? {
            CommandAnswer::Finished(facts) => Ok(facts),
            _ => Err(other_answer()),
        }
    }
}

fn other_answer() -> Halt {
    Halt::Lost("its agent sent an unexpected answer".to_owned())
}

fn short(mut refusal: Refusal) -> Refusal {
    let why = refusal.why_mut();
    *why = plain(why, MOST_TEXT);
    refusal
}

fn from_now(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests;
