//! `tollgate run --in`: measures one environment, or several in alternation. Each is served by an agent, which is this program.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tollgate_engine::session::{EnvironmentFindings, SessionFindings, measure_in};
use tollgate_engine::{Benchmark, Group, Plan, Selection, interrupt};
use tollgate_environments::Cleanup;
use tollgate_model::compare::Spread;
use tollgate_model::{Case, Fact, Measurement, Outcome, Part, Provenance, Run};
use tollgate_output::figures::time_left;
use tollgate_store::destination::new_id;
use tollgate_store::writing::Until;
use tollgate_view::comparison::Comparison;
use tollgate_view::facts;
use tollgate_view::session::{self, Session};
use tollgate_view::summary::Summary;

use super::sides::{Asked, Prepared, reason};
use super::{Shown, failed, not_measured, plan};
use crate::args::{PictureFormat, RunArgs};
use crate::destination::{Destination, expect_seen};
use crate::failure::{Failure, go_on, plainly};
use crate::{compare, document, out, say, show};

/// In addition to the usual time: ten starts of a guest under QEMU's translator, of about ten seconds.
const STARTS_OF_GUEST: Duration = Duration::from_secs(120);
/// More suites than these need more than a minute.
const FEW_SUITES: usize = 2;

/// Shows the runs of a session, with the files that keep them.
pub type Show<'a> = &'a dyn Fn(&[Run], &[PathBuf]) -> Result<(), Failure>;

/// Measures the chosen cases in each environment, keeps the runs, and shows them compared with the first.
///
/// # Errors
/// Wrong input, before anything is started; nothing measured at all; runs that could not be kept, after they were shown; the
/// condition of `--fail-on`.
pub fn session(args: &RunArgs, selection: &Selection, show: Show) -> Result<(), Failure> {
    let asked = Asked::new(args, selection)?;
    interrupt::install();
    // A copy of this process, which must have no other threads.
    let cleanup = Cleanup::holding(asked.lock().as_slice()).map_err(|error| {
        Failure::input(format!("the cleanup process could not be started: {}", plainly(&error)))
    })?;
    let destination = match &args.store {
        Some(directory) => Destination::stored(directory)?,
        None if asked.number() > 1 => Destination::of_session(args.out.as_deref())?,
        None => Destination::choose(args.out.as_deref())?,
    };
    if !args.quiet {
        destination.say_doubt();
    }
    let began = SystemTime::now();
    let (mut prepared, gone) = Prepared::all(asked, &cleanup)?;
    if !args.quiet {
        prepared.remarks().iter().for_each(|remark| say::say(remark));
    }
    if args.verbose {
        prepared.details()?.iter().for_each(|line| say::say(line));
    }
    go_on()?;
    let plan = Plan {
        executes: true,
        turn: prepared.turn(),
        ..plan(args, || usual_time(selection, prepared.number()) + starts_of_guests(selection, &prepared))
    };
    let a_round = plan.turn * u32::try_from(prepared.number()).unwrap_or(u32::MAX);
    if a_round > plan.budget {
        return Err(Failure::input(format!(
            "--switch: a turn takes {} here, ten times what the commands take, and each state has one in turn; give more than {} with --time",
            time_left(plan.turn),
            time_left(a_round)
        )));
    }
    let found = measured(selection, &plan, &mut prepared, !args.quiet);
    let only_starts = selection.groups.iter().all(Group::is_of_environments);
    let parts = prepared.parts(&new_id(began)?, only_starts);
    let made_of = prepared.made_of();
    // Everything that was made and changed is undone before the rest, which may take a while.
    let left_on = prepared.end();
    drop(cleanup);
    left_on.iter().for_each(|why| say::say(why));
    let SessionFindings { found, facts: of_session, interrupted } = found?;
    let is_partial = interrupted.is_some();
    let mut runs = Vec::new();
    let absent = gone.len();
    let mut lost = gone;
    for (((name, part), found), made_of) in parts.into_iter().zip(found).zip(made_of) {
        if let Some(why) = &found.lost {
            say::say(&reason(&name, why));
            lost.push(name.clone());
        }
        // Nothing is known about an environment without an agent.
        if found.facts.is_empty() {
            continue;
        }
        let mut run = made(args, selection, began, found, &of_session, part)?;
        run.facts.extend(made_of);
        runs.push(run);
    }
    if !is_partial {
        go_on()?;
    }
    let is_measured =
        |run: &Run| run.measurements.iter().any(|one| matches!(one.outcome, Outcome::Measured(_)));
    if !runs.iter().any(is_measured) {
        return Err(match interrupted {
            Some(signal) => Failure::Interrupted(signal),
            // Why an environment was lost has just been said.
            None if lost.len() > absent => Failure::input("nothing was measured in any environment"),
            None => Failure::input(format!("nothing was measured in any environment{}", first_reason(&runs))),
        });
    }
    finish(&destination, &runs, is_partial, show)?;
    if !left_on.is_empty() {
        return Err(Failure::input("--switch: a command that switches off failed, see above"));
    }
    judge(args, &runs, &lost)
}

fn measured(
    selection: &Selection,
    plan: &Plan,
    prepared: &mut Prepared,
    visible: bool,
) -> Result<SessionFindings, Failure> {
    let mut shown = Shown::new(visible);
    let mut sides = prepared.sides();
    let found = measure_in(&mut sides, selection, plan, &mut |progress| shown.update(progress));
    shown.end();
    found.map_err(failed)
}

fn made(
    args: &RunArgs,
    selection: &Selection,
    began: SystemTime,
    found: EnvironmentFindings,
    of_session: &[(String, Fact)],
    part: Option<Part>,
) -> Result<Run, Failure> {
    let mut facts = found.facts;
    let measurements = if facts::emulated(&facts) {
        without_times(found.findings.measurements, selection)
    } else {
        found.findings.measurements
    };
    facts.extend(found.findings.facts);
    facts.extend(of_session.iter().cloned());
    facts.extend(found.lost.map(|why| (facts::LOST.to_owned(), Fact::known(why, "the session"))));
    facts.extend([facts::patterns(&args.pattern)]);
    facts.extend(args.machine.as_deref().map(facts::machine));
    let run = document::ended_run(began, args.label.clone(), facts, measurements)?;
    Ok(Run { session: part, ..run })
}

/// Why the first unmeasured case was not measured, as the end of a sentence.
fn first_reason(runs: &[Run]) -> String {
    let mut all = runs.iter().flat_map(|run| &run.measurements);
    let why = all.find_map(|one| Some(format!(": {}: {}", one.case, one.outcome.why()?)));
    why.unwrap_or_default()
}

fn is_of_environment(case: &Case) -> bool {
    tollgate_suites::find(&case.benchmark).is_some_and(Benchmark::is_of_environment)
}

/// For an emulated processor: counts of instructions, or why there are none. If something was timed, no case is measured.
fn without_times(measurements: Vec<Measurement>, selection: &Selection) -> Vec<Measurement> {
    let is_timed = |measurement: &Measurement| {
        let measured = measurement.outcome.measured();
        // An environment itself is timed from outside.
        let is_inside = !is_of_environment(&measurement.case);
        measured.is_some_and(|measured| measured.provenance != Provenance::QemuIcount && is_inside)
    };
    if measurements.iter().any(is_timed) { not_measured(selection).measurements } else { measurements }
}

/// A run that cannot be kept is reported after all were shown.
fn finish(destination: &Destination, runs: &[Run], is_partial: bool, show: Show) -> Result<(), Failure> {
    let mut kept: Vec<PathBuf> = Vec::new();
    let mut unkept = None;
    for run in runs {
        match destination.keep(run, Until::Durable) {
            Ok(path) => kept.extend(path),
            Err(failure) => unkept = Some(failure),
        }
    }
    let paths = if unkept.is_some() { &[][..] } else { &kept[..] };
    let shown = match destination {
        Destination::Output => Ok(()),
        Destination::Store(_) => show(runs, paths),
    };
    if is_partial {
        let what = if runs.len() > 1 { "session" } else { "run" };
        say::say(&format!("interrupted; the {what} until then was kept"));
    }
    match unkept {
        Some(failure) => Err(failure),
        None if matches!(destination, Destination::Output) => Ok(()),
        None => expect_seen(shown, paths.first().map(PathBuf::as_path)),
    }
}

pub fn print(args: &RunArgs, runs: &[Run], kept: &[PathBuf]) -> Result<(), Failure> {
    match (Session::of(runs), runs, args.format) {
        (Some(session), [_, _, ..], PictureFormat::Table) => {
            out::print(&session::text(&session, false, out::width()))?;
            if args.counters { show::print_session_counters(&session) } else { Ok(()) }
        }
        (Some(session), [_, _, ..], PictureFormat::Json) => {
            out::print_json(&session::json::SessionDocument::new(&session, kept))
        }
        (_, [first, ..], PictureFormat::Table) => {
            let summary = Summary::of(first);
            show::print_screen(&summary)?;
            if args.counters { show::print_counters(&summary) } else { Ok(()) }
        }
        (_, [first, ..], PictureFormat::Json) => {
            show::print_json(&Summary::of(first), kept.first().map(PathBuf::as_path))
        }
        (_, [_, ..], PictureFormat::Svg) => {
            show::print_picture(runs, &Spread::default(), args.session.threshold.unwrap_or(0.0))
        }
        (_, [], _) => Ok(()),
    }
}

/// The condition of `--fail-on`. A lost environment may hide a result that meets it.
fn judge(args: &RunArgs, runs: &[Run], lost: &[String]) -> Result<(), Failure> {
    let fail_on = &args.session.fail_on;
    let Some((base, others)) = runs.split_first().filter(|_| !fail_on.is_empty()) else { return Ok(()) };
    let asked = args.session.threshold.unwrap_or(0.0);
    let comparisons: Vec<Comparison> =
        others.iter().map(|other| Comparison::above(base, other, asked)).collect();
    compare::check(fail_on, asked, comparisons, args.session.by)?;
    match lost {
        [] => Ok(()),
        lost => Err(Failure::Undecided(format!(
            "--fail-on: too little was measured in {}",
            tollgate_model::text::listed(lost)
        ))),
    }
}

/// Starts of guests take longer than those of others.
fn starts_of_guests(selection: &Selection, prepared: &Prepared) -> Duration {
    if selection.groups.iter().any(Group::is_of_environments) {
        STARTS_OF_GUEST * u32::try_from(prepared.translated()).unwrap_or(u32::MAX)
    } else {
        Duration::ZERO
    }
}

/// A minute for up to two suites, in any number of environments; for more suites a minute per environment. Whole commands take
/// their time in each.
fn usual_time(selection: &Selection, environments: usize) -> Duration {
    let number = u32::try_from(environments).unwrap_or(u32::MAX).max(1);
    let commands: Duration = selection.groups.iter().filter_map(|group| group.usual_time()).sum();
    let rounds = selection.groups.iter().filter(|group| group.usual_time().is_none());
    let suites = rounds.map(|group| group.suite.name).collect::<BTreeSet<_>>().len();
    let rounds = match suites {
        0 => Duration::ZERO,
        1..=FEW_SUITES => Plan::STANDARD,
        _ => Plan::STANDARD.saturating_mul(number),
    };
    commands.saturating_mul(number).saturating_add(rounds)
}
