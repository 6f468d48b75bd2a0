//! The places in which commands are executed: this process, or the agents of environments.

use std::time::SystemTime;

use tollgate_engine::session::{FunctionCount, execute_in};
use tollgate_engine::versus::{Compared, Doing, Executor, NotCompared, Plan, measure};
use tollgate_engine::{BenchError, interrupt};
use tollgate_environments::Cleanup;
use tollgate_inspect::Machine;
use tollgate_model::{Facts, Part, Provenance};
use tollgate_store::destination::new_id;
use tollgate_suites::command::Here;
use tollgate_view::facts;

use super::counted;
use crate::args::versus::VersusArgs;
use crate::failure::{Failure, go_on, plainly};
use crate::run::sides::{Asked, Prepared, reason};
use crate::say;

/// What was found in all places.
pub struct Executed {
    /// Command by command, each in all places.
    pub compared: Compared,
    /// For each place its part in the session, as of its first command, and its facts; None where it gave nothing.
    pub places: Vec<Option<(Part, Facts)>>,
    /// Command by command, each in all places, the functions of a counted execution; none where they were not asked for.
    pub functions: Vec<Vec<FunctionCount>>,
    /// The stacks of counted executions with their instructions, the name of the command and place as the outermost frame; none where they
    /// were not asked for.
    pub stacks: Vec<(String, u64)>,
}

/// Executes the commands where it is asked for.
///
/// # Errors
/// A command that failed, after what it said; no environment; the user stopped it before anything was timed.
pub fn execute(
    args: &VersusArgs,
    plan: &Plan,
    began: SystemTime,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Executed, Failure> {
    match args.environments.as_slice() {
        names if counted::is_asked(names)? => counted::execute(args, plan, began, watch),
        [] => here(began, |executor| measure(&mut [executor], plan, watch)),
        names => in_environments(names, args.result.quiet, plan, began, watch),
    }
}

/// Executes something in this process.
///
/// # Errors
/// Those of what executes it.
pub fn here(
    began: SystemTime,
    execute: impl FnOnce(&mut dyn Executor) -> Result<Compared, NotCompared>,
) -> Result<Executed, Failure> {
    let machine = Machine::here();
    let strain = tollgate_inspect::strain(&machine, "before");
    let mut executor = Here::new();
    let compared = execute(&mut executor).map_err(failed)?;
    drop(executor);
    let mut facts = tollgate_inspect::read_facts(&machine);
    facts.extend(strain);
    facts.extend(tollgate_inspect::strain(&machine, "after"));
    let part = Part::alone(new_id(began)?, "host".to_owned());
    Ok(Executed { compared, places: vec![Some((part, facts))], functions: Vec::new(), stacks: Vec::new() })
}

fn in_environments(
    names: &[String],
    is_quiet: bool,
    plan: &Plan,
    began: SystemTime,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Executed, Failure> {
    let asked = Asked::named(names)?;
    // A copy of this process, which must have no other threads.
    let cleanup = Cleanup::begin().map_err(|error| {
        Failure::input(format!("no process can be made that clears up: {}", plainly(&error)))
    })?;
    let (mut prepared, _) = Prepared::all(asked, &cleanup)?;
    if !is_quiet {
        prepared.remarks().iter().for_each(|remark| say::say(remark));
    }
    go_on()?;
    let mut outcome: Result<Compared, NotCompared> = Ok(Compared::default());
    let found = {
        let mut sides = prepared.sides();
        execute_in(&mut sides, &mut |_| {}, &mut |executors| {
            outcome = measure(executors, plan, watch);
            match &outcome {
                Ok(Compared { interrupted: Some(signal), .. }) => Err(BenchError::Interrupted(*signal)),
                _ => Ok(()),
            }
        })
    };
    let parts = prepared.parts(&new_id(began)?, false);
    // Everything that was made and changed is undone before the rest.
    drop(prepared);
    drop(cleanup);
    let found = found.map_err(|error| failed(error.into()))?;
    let compared = outcome.map_err(failed)?;
    let alone = new_id(began)?;
    let places = parts.into_iter().zip(found).map(|((name, part), found)| {
        if let Some(why) = &found.lost {
            say::say(&reason(&name, why));
            return None;
        }
        let part = part.unwrap_or_else(|| Part::alone(alone.clone(), name));
        let mut facts = found.facts;
        facts.extend(found.findings.facts);
        Some((part, facts))
    });
    let places = places.collect();
    Ok(Executed { compared, places, functions: Vec::new(), stacks: Vec::new() })
}

/// What executes the code of a place.
pub fn provenance(facts: &Facts) -> Provenance {
    if facts::emulated(facts) { Provenance::QemuTcg } else { Provenance::Hardware }
}

/// What the user is told of a command that failed, after what it said.
pub fn failed(error: NotCompared) -> Failure {
    match error {
        NotCompared::Failed { sentence, said } => {
            if !said.is_empty() {
                let end = if said.ends_with('\n') { "" } else { "\n" };
                say::warn(&format!("{}{end}", printable(&said)));
            }
            Failure::input(sentence)
        }
        NotCompared::Run(BenchError::Interrupted(signal)) => Failure::Interrupted(signal),
        NotCompared::Run(error) => {
            interrupt::requested().map_or_else(|| Failure::input(error.to_string()), Failure::Interrupted)
        }
    }
}

/// What a command wrote, without what would control a terminal.
fn printable(said: &str) -> String {
    said.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}
