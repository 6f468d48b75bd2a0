//! `--fail-on more` and `--budget`: the counts that decide the exit status.

use tollgate_model::Run;
use tollgate_view::compare::condition::Answer;
use tollgate_view::session::Session;
use tollgate_view::versus::more::{Asked, Budget, QUANTITIES, more};

use crate::args::compare::FailOn;
use crate::args::versus::VersusArgs;
use crate::failure::Failure;
use crate::say;

/// # Errors
/// A budget of something that is not counted.
pub fn check(args: &VersusArgs, is_in_guest: bool) -> Result<(), Failure> {
    for Budget { of, .. } in &args.result.budget {
        let is_call = QUANTITIES.iter().all(|(name, _)| name != of);
        let why = match of.as_str() {
            "user" | "kernel" if !is_in_guest => "a guest counts instructions: add --in vm:exact",
            _ if is_call && is_in_guest => {
                "a guest counts all calls together: use calls=N, or omit --in vm:exact"
            }
            _ if (is_call || of == "calls") && args.conditions.no_trace => {
                "calls are counted by a trace: omit --no-trace"
            }
            _ => continue,
        };
        return Err(Failure::input(format!("--budget {of}: {why}")));
    }
    Ok(())
}

/// # Errors
/// A command does more than the first or than a budget allows, or too little was counted to say.
pub fn judge(args: &VersusArgs, runs: &[Run]) -> Result<(), Failure> {
    let is_more = !args.bench.bench && args.result.fail_on.contains(&FailOn::More);
    if !is_more && args.result.budget.is_empty() {
        return Ok(());
    }
    let threshold = args.result.threshold.unwrap_or(0.0);
    let Some(session) = Session::above(runs, threshold) else { return Ok(()) };
    let budgets = &args.result.budget;
    let (answer, notes) =
        more(&session, Asked { is_more, budgets, is_traced: !args.conditions.no_trace, threshold });
    if !args.result.quiet {
        notes.iter().for_each(|note| say::say(note));
    }
    match answer {
        Answer::Met(sentence) => Err(Failure::Condition(sentence)),
        Answer::Open(sentence) => Err(Failure::Undecided(sentence)),
        Answer::NotMet => Ok(()),
    }
}
