//! Counts the instructions of the user's commands in an environment: one command, or those of the benches of a build.
//!
//! Their executions end before the agent begins, so that they do not depend on when this side speaks. The instructions of the second
//! round are watched, which shows how many are the program's own. The agent reports the results. Then it executes each command once
//! more, traced, which shows how many system calls there are.

use std::collections::BTreeMap;
use std::time::Duration;

use super::agent_side::AgentSide;
use super::connection::Gone;
use super::execute::RemoteExecutor;
use super::explain::MOST_ADDRESSES;
use super::iterations::{FunctionCount, is_kernel};
use super::stacks::Stacks;
use super::{EnvironmentFindings, InstructionLog, Side, Sums, Watch};
use crate::cases::run::Halt;
use crate::cases::run::{BenchError, Findings};
use crate::sides::agent::Moment;
use crate::sides::versus::counted::{FOUND, NO_MORE};
use crate::sides::versus::{End, Execution, Executor, Given, How, Input, Order};

/// Why a command was not traced, if that was not requested.
pub const UNASKED: &str = "not asked for";
const MOST: usize = 1 << 20;

/// The order for [`count_in`].
#[derive(Debug)]
pub struct Counting<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// The commands and what is executed around each, as the guest has them. Nothing is executed around one of several.
    pub commands: &'a [Given],
    /// Real time of this machine for the start and all executions.
    pub within: Duration,
    /// Why no execution is watched; `None` if one is.
    pub why_not_watched: Option<&'static str>,
    /// Whether they are traced.
    pub is_traced: bool,
    /// Whether the kernel's instructions are divided among its functions.
    pub has_functions: bool,
    /// Whether another execution is watched for the stacks of these functions.
    pub has_stacks: bool,
}

/// The results.
#[derive(Debug)]
pub struct Counted {
    /// The executions of `/init`, in order, including those around a command.
    pub executions: Vec<Execution>,
    /// The findings about each command after that.
    pub inside: Vec<Inside>,
}

/// The composition of a command's instructions.
#[derive(Debug)]
pub struct Inside {
    /// The second execution's instructions, or why they are unknown.
    pub sums: Result<Sums, String>,
    /// A traced execution, or why there is none.
    pub traced: Result<Execution, String>,
    /// The kernel's functions of this execution, the largest first, and its programs as one; if requested.
    pub functions: Vec<FunctionCount>,
    /// The stacks of another execution, each with its instructions, as for flame graphs, or why there are none.
    pub stacks: Result<Vec<(String, u64)>, String>,
}

/// Begins to watch the second round, before the environment starts.
///
/// # Errors
/// Why it is not watched.
pub fn watch(log: &mut dyn InstructionLog, counting: &Counting<'_>) -> Result<(), String> {
    match counting.why_not_watched {
        Some(why) => Err(why.to_owned()),
        None => log.begin(second(counting)),
    }
}

/// Starts the environment, in which the commands are executed, and asks its agent for the results. `watched` is the result of [`watch`].
///
/// # Errors
/// [`BenchError::NoEnvironment`] with a sentence; [`BenchError::Interrupted`].
pub fn count_in(
    side: &mut Side<'_>,
    log: &mut dyn InstructionLog,
    watched: Result<(), String>,
    counting: &Counting<'_>,
    say: &mut dyn FnMut(String),
) -> Result<(EnvironmentFindings, Counted), BenchError> {
    let mut side = AgentSide::new(side, Vec::new());
    let name = side.side.name.clone();
    say(format!("counting {} in {name}", counting.name));
    side.start_within(counting.within).map_err(|gone| match gone {
        // Before its agent answers, the environment only executes the commands.
        Gone::Lost(why) => lost(Gone::Lost(format!("{why} (while it executed {})", counting.name))),
        gone => lost(gone),
    })?;
    side.read_facts(Moment::Before).map_err(lost)?;
    let mut remote = RemoteExecutor::new(&mut side, counting.within);
    let counted = ask(&mut remote, log, watched, counting, say).map_err(|halt| match halt {
        Halt::Run(error) => error,
        Halt::Lost(why) => BenchError::NoEnvironment(why),
    })?;
    side.read_facts(Moment::After).map_err(lost)?;
    side.close();
    let findings = Findings { facts: side.of_measuring, ..Findings::default() };
    Ok((EnvironmentFindings { findings, facts: side.facts, lost: None }, counted))
}

fn lost(gone: Gone) -> BenchError {
    match gone {
        Gone::Interrupted(signal) => BenchError::Interrupted(signal),
        Gone::Lost(why) | Gone::Over(why) => BenchError::NoEnvironment(why),
    }
}

fn ask(
    remote: &mut RemoteExecutor<'_, '_, '_>,
    log: &mut dyn InstructionLog,
    watched: Result<(), String>,
    counting: &Counting<'_>,
    say: &mut dyn FnMut(String),
) -> Result<Counted, Halt> {
    let executions = recall(remote)?;
    let watched = watched.and_then(|()| log.end());
    let number = counting.commands.len();
    let of = |at: usize| executions.iter().skip(at).step_by(number);
    let inside = counting.commands.iter().enumerate();
    let inside = inside.map(|(at, given)| {
        let window = at + usize::from(given.prepare.is_some());
        let sums = watched.as_ref().map_err(String::clone);
        let sums = sums.and_then(|sums| sums.get(window).cloned().ok_or_else(|| NO_MORE.to_owned()));
        look_inside(remote, &mut *log, counting, given, (sums, of(at)), &mut *say)
    });
    let inside = inside.collect::<Result<_, _>>()?;
    Ok(Counted { executions, inside })
}

/// The windows of the second round, after those of the setup and of the first round.
fn second(counting: &Counting<'_>) -> Watch {
    let commands = counting.commands;
    let around = |given: &Given| [&given.prepare, &given.conclude].into_iter().flatten().count();
    let round = commands.iter().map(|given| 1 + around(given)).sum::<usize>() as u64;
    let setup = commands.iter().filter(|given| given.setup.is_some()).count() as u64;
    Watch { skip: setup + round, take: round, is_last: !counting.has_stacks, ..Watch::default() }
}

fn look_inside<'e>(
    remote: &mut RemoteExecutor<'_, '_, '_>,
    log: &mut dyn InstructionLog,
    counting: &Counting<'_>,
    given: &Given,
    (sums, mut executions): (Result<Sums, String>, impl Iterator<Item = &'e Execution>),
    say: &mut dyn FnMut(String),
) -> Result<Inside, Halt> {
    let is_whole = executions.all(|execution| matches!(execution.end, End::Ended(_)));
    let why_not = "some of its executions did not end by themselves";
    let name = remote.side.side.name.clone();
    let sums = if is_whole { sums } else { Err(why_not.to_owned()) };
    let (mut functions, mut stacks) = (Vec::new(), Err(UNASKED.to_owned()));
    match &sums {
        Ok(sums) if counting.has_functions => {
            say(format!("reading the kernel's symbols in {name}"));
            let names = names(remote, sums)?;
            functions = counts(sums, &names);
            if counting.has_stacks {
                say(format!("watching the calls of {} in {name}", given.name));
                stacks = followed(remote, log, given, Stacks::of(&names))?;
            }
        }
        Ok(_) => {}
        Err(why) => stacks = Err(why.clone()),
    }
    let traced = match (is_whole, counting.is_traced) {
        (false, _) => Err(why_not.to_owned()),
        (_, false) => Err(UNASKED.to_owned()),
        (true, true) => {
            say(format!("tracing {} in {name}", given.name));
            Ok(once(remote, given, How::Traced { files: false })?)
        }
    };
    Ok(Inside { sums, traced, functions, stacks })
}

/// Reads the executions of `/init`.
fn recall(remote: &mut RemoteExecutor<'_, '_, '_>) -> Result<Vec<Execution>, Halt> {
    let mut all = Vec::new();
    while all.len() < MOST {
        let how = How::Recalled { number: all.len() };
        let order = Order { how, input: Input::File(FOUND.into()), ..Order::default() };
        let execution = remote.execute(&order, &mut || {})?;
        match &execution.end {
            End::NotStarted(why) if why == NO_MORE => break,
            _ => all.push(execution),
        }
    }
    Ok(all)
}

/// The stacks of another execution.
fn followed(
    remote: &mut RemoteExecutor<'_, '_, '_>,
    log: &mut dyn InstructionLog,
    given: &Given,
    stacks: Stacks,
) -> Result<Result<Vec<(String, u64)>, String>, Halt> {
    around(remote, given.prepare.as_ref())?;
    if let Err(why) = log.begin(Watch { take: 1, stacks: Some(stacks), ..Watch::default() }) {
        return Ok(Err(why));
    }
    let executed = remote.execute(&Order { how: How::Counted, ..given.order.clone() }, &mut || {});
    let windows = log.end();
    executed?;
    around(remote, given.conclude.as_ref())?;
    let stacks = |windows: Vec<Sums>| windows.into_iter().filter_map(|window| window.stacks).next();
    Ok(windows.map(|windows| stacks(windows).map(|stacks| stacks.folded()).unwrap_or_default()))
}

/// The function of the kernel at each of its addresses.
fn names(remote: &mut RemoteExecutor<'_, '_, '_>, sums: &Sums) -> Result<BTreeMap<u64, String>, Halt> {
    let all = sums.addresses.keys().map(|(address, _)| *address);
    let addresses: Vec<u64> = all.filter(|address| is_kernel(*address)).collect();
    let mut names = BTreeMap::new();
    for some in addresses.chunks(MOST_ADDRESSES) {
        let named = remote.side.names(some.iter().copied().collect());
        names.extend(named.map_err(|gone| remote.halt(gone))?);
    }
    Ok(names)
}

/// The instructions of the kernel's functions, and of the program as one.
fn counts(sums: &Sums, names: &BTreeMap<u64, String>) -> Vec<FunctionCount> {
    let mut counts: BTreeMap<(u64, Option<&str>), [u64; 2]> = BTreeMap::new();
    counts.insert((0, None), [sums.user, sums.repeated[0]]);
    for ((address, group), times) in sums.addresses.iter().filter(|((address, _), _)| is_kernel(*address)) {
        let name = names.get(address).map_or("(no function)", String::as_str);
        let count = counts.entry((*group, Some(name))).or_default();
        count.iter_mut().zip(times).for_each(|(count, times)| *count += times);
    }
    let of = |((group, name), [instructions, repeated]): ((u64, Option<&str>), [u64; 2])| FunctionCount {
        name: name.map(str::to_owned),
        file: FunctionCount::GROUPS.iter().find(|(of, _)| *of == group).map(|(_, name)| (*name).to_owned()),
        instructions,
        repeated,
    };
    let mut all: Vec<FunctionCount> = counts.into_iter().map(of).collect();
    all.sort_by_key(|function| std::cmp::Reverse(function.instructions));
    all
}

/// One execution with what surrounds it.
fn once(remote: &mut RemoteExecutor<'_, '_, '_>, given: &Given, how: How) -> Result<Execution, Halt> {
    around(remote, given.prepare.as_ref())?;
    let execution = remote.execute(&Order { how, ..given.order.clone() }, &mut || {})?;
    around(remote, given.conclude.as_ref())?;
    Ok(execution)
}

fn around(remote: &mut RemoteExecutor<'_, '_, '_>, order: Option<&Order>) -> Result<(), Halt> {
    order.map_or(Ok(()), |order| remote.execute(order, &mut || {}).map(drop))
}
