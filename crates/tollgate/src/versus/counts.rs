//! `--counts`: the same commands, counted in a guest beside the times of this machine.

use std::time::SystemTime;

use tollgate_engine::session::FunctionCount;
use tollgate_model::Run;

use super::given::Commands;
use super::revisions::Revisions;
use super::{execute, is_timed, nothing, runs};
use crate::args::ShowFormat;
use crate::args::versus::{By, ConditionArgs, LengthArgs, ResultArgs, VersusArgs};
use crate::failure::Failure;
use crate::say;

/// The guest that counts.
const GUEST: &str = "vm:exact";

/// The counted commands: a run of each, and the functions of one execution of each.
#[derive(Default)]
pub struct Counts {
    pub runs: Vec<Run>,
    pub functions: Vec<Vec<FunctionCount>>,
}

/// # Errors
/// Options that do not go with --counts.
pub fn check(args: &VersusArgs) -> Result<(), Failure> {
    let wrong = [
        (
            !args.environments.is_empty(),
            "--counts adds counts to the times of this machine; omit --in, or omit --counts where --in counts already",
        ),
        (
            args.bench.bench,
            "--counts counts commands; for benches add a comparison with --in vm:exact in place of --counts",
        ),
        (
            !matches!(args.result.format, ShowFormat::Table | ShowFormat::Json),
            "--counts prints a table or JSON; omit --format",
        ),
    ];
    match wrong.into_iter().find(|(is_wrong, _)| args.result.counts && *is_wrong) {
        Some((_, sentence)) => Err(Failure::input(sentence)),
        None => Ok(()),
    }
}

/// Counts the commands. Where that fails, it says why.
///
/// # Errors
/// A signal.
pub fn count(args: &VersusArgs, revisions: Option<&Revisions>) -> Result<Counts, Failure> {
    match counted(args, revisions) {
        Err(Failure::Input(why) | Failure::Failed(why)) => {
            say::say(&format!("not counted: {why}"));
            Ok(Counts::default())
        }
        counted => counted,
    }
}

/// The options of a comparison, for the guest that counts.
pub fn of_guest(args: &VersusArgs) -> VersusArgs {
    VersusArgs {
        environments: vec![GUEST.to_owned()],
        length: LengthArgs { timeout: args.length.timeout, ..LengthArgs::default() },
        conditions: ConditionArgs {
            cold: false,
            processor: Vec::new(),
            cgroup: None,
            // Functions of programs are found by a trace.
            no_trace: false,
            ..args.conditions.clone()
        },
        result: ResultArgs { by: Some(By::Function), quiet: args.result.quiet, ..ResultArgs::default() },
        ..args.clone()
    }
}

fn counted(args: &VersusArgs, revisions: Option<&Revisions>) -> Result<Counts, Failure> {
    let began = SystemTime::now();
    let args = of_guest(args);
    let commands = Commands::of(&args, revisions.map(|revisions| revisions.sides.as_slice()))?;
    let (executed, kept) = execute(&args, commands, began)?;
    let runs = runs(&args, began, executed.compared, &executed.places, kept)?;
    if !runs.iter().any(is_timed) {
        return Err(nothing(&runs));
    }
    Ok(Counts { runs, functions: executed.functions })
}
