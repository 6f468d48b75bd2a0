//! Commands of the user in environments: agents execute them, one at a time, as the caller of [`execute_in`] says.

use std::time::Duration;

use super::agent_side::{AgentSide, unexpected};
use super::connection::{Gone, Stop, plain};
use super::{EnvironmentFindings, Side};
use crate::cases::run::Halt;
use crate::cases::run::{BenchError, Findings};
use crate::machine::interrupt;
use crate::sides::agent::Moment;
use crate::sides::agent::protocol::{Answer, Request};
use crate::sides::versus::{Cooled, End, Execution, Executor, Order, Output};

const MARGIN: Duration = Duration::from_secs(10);
/// The time for a sign of life of an agent. It gives four per second, except while it drops files from the page cache.
const LATE: Duration = Duration::from_secs(20);
const COOLS: Duration = Duration::from_secs(300);
/// Characters of a sentence that an agent may send.
const MOST_TEXT: usize = 400;
/// The last bytes of a command's output, which are kept.
const MOST_SAID: usize = 16 << 10;

/// Executes commands by these executors.
pub type Work<'w> = dyn FnMut(&mut [&mut dyn Executor]) -> Result<(), BenchError> + 'w;

/// Starts an agent in each environment, reads the facts there before and after, and lets `work` execute commands in between, by one
/// executor for each side. `say` receives the progress. A lost environment is reported in [`EnvironmentFindings::lost`], and by its
/// executor as [`Halt::Lost`]. If the user stopped the work, [`Findings::interrupted`] has the signal.
///
/// # Errors
/// Those of `work`; [`BenchError::NoEnvironment`] if none started, or if one counts instructions; [`BenchError::Interrupted`] before `work`.
pub fn execute_in(
    sides: &mut [Side<'_>],
    say: &mut dyn FnMut(String),
    work: &mut Work<'_>,
) -> Result<Vec<EnvironmentFindings>, BenchError> {
    if let Some(side) = sides.iter().find(|side| side.is_counting) {
        return Err(BenchError::NoEnvironment(format!(
            "{}: QEMU's translator executes it, so its times are not those of hardware; vm:exact counts instructions",
            side.name
        )));
    }
    let mut all: Vec<AgentSide<'_, '_>> =
        sides.iter_mut().map(|side| AgentSide::new(side, Vec::new())).collect();
    for side in &mut all {
        let (name, began) = (side.side.name.clone(), begin(side, say));
        taken(side, began)?;
        if let Some(why) = &side.lost {
            say(format!("{name}: {why}"));
        }
    }
    if !all.iter().any(AgentSide::is_here) {
        let why = |side: &AgentSide<'_, '_>| {
            format!("{}: {}", side.side.name, side.lost.clone().unwrap_or_default())
        };
        return Err(BenchError::NoEnvironment(all.iter().map(why).collect::<Vec<_>>().join("; ")));
    }
    let worked = {
        let mut remotes: Vec<RemoteExecutor> =
            all.iter_mut().map(|side| RemoteExecutor::new(side, LATE)).collect();
        let mut executors: Vec<&mut dyn Executor> =
            remotes.iter_mut().map(|remote| -> &mut dyn Executor { remote }).collect();
        work(&mut executors)
    };
    let mut interrupted = match worked {
        Ok(()) => interrupt::requested(),
        Err(BenchError::Interrupted(signal)) => Some(signal),
        Err(error) => return Err(error),
    };
    for side in all.iter_mut().filter(|side| side.is_here()) {
        if interrupted.is_none() {
            say(format!("reading facts in {}", side.side.name));
            let read = side.read_facts(Moment::After);
            if let Err(BenchError::Interrupted(signal)) = taken(side, read) {
                interrupted = Some(signal);
            }
        }
        side.close();
    }
    let found = |side: AgentSide<'_, '_>| EnvironmentFindings {
        findings: Findings { facts: side.of_measuring, interrupted, ..Findings::default() },
        facts: side.facts,
        lost: side.lost,
    };
    Ok(all.into_iter().map(found).collect())
}

fn begin(side: &mut AgentSide<'_, '_>, say: &mut dyn FnMut(String)) -> Result<(), Gone> {
    say(format!("starting {}", side.side.name));
    side.start()?;
    say(format!("reading facts in {}", side.side.name));
    // A fact can be the setting that its commands need.
    side.wake()?;
    side.read_facts(Moment::Before)
}

fn taken(side: &mut AgentSide<'_, '_>, outcome: Result<(), Gone>) -> Result<(), BenchError> {
    match side.settled(outcome) {
        Ok(_) => Ok(()),
        Err(Stop::Interrupted(signal)) => Err(BenchError::Interrupted(signal)),
        Err(Stop::Over) => Err(BenchError::NoEnvironment(side.lost.clone().unwrap_or_default())),
    }
}

/// Executes commands in an environment, by its agent.
pub(super) struct RemoteExecutor<'r, 's, 'a> {
    pub side: &'r mut AgentSide<'s, 'a>,
    /// The last request's. An answer with another number came too late.
    number: u64,
    patience: Duration,
}

impl<'r, 's, 'a> RemoteExecutor<'r, 's, 'a> {
    pub fn new(side: &'r mut AgentSide<'s, 'a>, patience: Duration) -> Self {
        Self { side, number: 0, patience }
    }
}

impl RemoteExecutor<'_, '_, '_> {
    /// Sends a request and waits for its answer, which has its number.
    fn ask(&mut self, request: &Request, patience: Duration, tick: &mut dyn FnMut()) -> Result<Answer, Halt> {
        self.side.must_be_here().map_err(Halt::Lost)?;
        let (asked, side) = (self.number, &mut *self.side);
        let mut talk = || {
            side.wake()?;
            side.send(request, MARGIN)?;
            loop {
                let answer = side.receive(patience)?;
                match &answer {
                    Answer::Running(_) => tick(),
                    // The answer to an earlier request is ignored.
                    Answer::Executed { number, .. } | Answer::Cooled { number, .. } if *number != asked => {}
                    Answer::Executed { .. } | Answer::Cooled { .. } => return Ok(answer),
                    _ => return Err(unexpected(answer)),
                }
            }
        };
        talk().map_err(|gone| self.halt(gone))
    }

    pub(super) fn halt(&mut self, gone: Gone) -> Halt {
        if let Gone::Lost(_) = &gone {
            // The loss of one side is neither an interruption nor the end of all.
            let _ = self.side.lose(gone.clone());
        }
        gone.into()
    }
}

impl Executor for RemoteExecutor<'_, '_, '_> {
    fn execute(&mut self, order: &Order, tick: &mut dyn FnMut()) -> Result<Execution, Halt> {
        let mut order = Box::new(order.clone());
        if order.output == Output::Inherit {
            // An agent needs its own output.
            order.output = Output::Pipe;
        }
        self.number += 1;
        let request = Request::Execute { number: self.number, order };
        match self.ask(&request, self.patience, tick)? {
            Answer::Executed { execution, .. } => Ok(bounded(*execution)),
            other => Err(self.halt(unexpected(other))),
        }
    }

    fn cool(&mut self, files: &[String]) -> Result<Cooled, Halt> {
        self.number += 1;
        let request = Request::Cool { number: self.number, files: files.to_vec() };
        let mut cooled = match self.ask(&request, COOLS, &mut || {})? {
            Answer::Cooled { cooled, .. } => cooled,
            other => return Err(self.halt(unexpected(other))),
        };
        cooled.stayed.truncate(files.len());
        cooled.certified_by = cooled.certified_by.map(|call| plain(&call, MOST_TEXT));
        Ok(cooled)
    }
}

fn bounded(mut execution: Execution) -> Execution {
    if execution.said.len() > MOST_SAID {
        let bytes = execution.said.as_bytes();
        execution.said = String::from_utf8_lossy(&bytes[bytes.len() - MOST_SAID..]).into_owned();
    }
    if let End::NotStarted(why) = &mut execution.end {
        *why = plain(why, MOST_TEXT);
    }
    execution
}

#[cfg(test)]
pub(super) mod tests;
