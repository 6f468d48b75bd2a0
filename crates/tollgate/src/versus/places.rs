//! The places in which commands are executed: this process, or the agents of environments.

use std::time::SystemTime;

use tollgate_engine::BenchError;
use tollgate_engine::session::execute_in;
use tollgate_engine::versus::{Compared, Doing, Executor, NotCompared, Plan, measure};
use tollgate_environments::Cleanup;
use tollgate_inspect::Machine;
use tollgate_model::{Facts, Part, Provenance};
use tollgate_store::destination::new_id;
use tollgate_suites::command::Here;
use tollgate_view::facts;

use super::counted;
use super::executed::{Executed, failed};
use crate::args::versus::VersusArgs;
use crate::failure::{Failure, go_on, plainly};
use crate::run::sides::{Asked, Prepared, reason};
use crate::say;

/// # Errors
/// A command that failed, after its own message; no environment; the user stopped it before anything was timed.
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

pub fn here(
    began: SystemTime,
    execute: impl FnOnce(&mut dyn Executor) -> Result<Compared, NotCompared>,
) -> Result<Executed, Failure> {
    let machine = Machine::here();
    let strain = tollgate_inspect::strain(&machine, "before");
    let mut executor = Here::new();
    let compared = execute(&mut executor).map_err(failed)?;
    drop(executor);
    let after = tollgate_inspect::strain(&machine, "after");
    let mut facts = tollgate_inspect::read_facts(&machine);
    facts.extend(strain.into_iter().chain(after));
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
        Failure::input(format!("the cleanup process could not be started: {}", plainly(&error)))
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

pub fn provenance(facts: &Facts) -> Provenance {
    if facts::emulated(facts) { Provenance::QemuTcg } else { Provenance::Hardware }
}
