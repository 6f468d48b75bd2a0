//! `tollgate run`: measure here, show, keep.

use std::cell::RefCell;
use std::time::{Duration, SystemTime};

use tollgate_engine::{
    self, Allowed, BenchError, Findings, Group, INTERRUPTED, Limits, Plan, Selection, interrupt,
};
use tollgate_inspect::Machine;
use tollgate_model::compare::Spread;
use tollgate_model::{Case, Label, Measurement, Outcome, Run, own};
use tollgate_store::writing::Until;
use tollgate_suites::Extent;

use crate::args::{PictureFormat, RunArgs, Size};
use crate::destination::{Destination, expect_seen};
use crate::failure::{Failure, go_on};
use crate::storage::Workplace;
use crate::{document, explain, say, show};
use tollgate_view::facts;
use tollgate_view::summary::Summary;

const MOST_REASONS: usize = 3;

pub mod progress;
mod session;
pub mod sides;

use progress::Shown;

impl RunArgs {
    /// # Errors
    /// Wrong input, before anything is measured; a run that could not be kept, after it was shown.
    pub fn execute(&self) -> Result<(), Failure> {
        self.session.undecided.applied(measured(self))
    }
}

fn measured(args: &RunArgs) -> Result<(), Failure> {
    if let Some(benchmark) = &args.session.explain {
        return match args.session.environments.as_slice() {
            [environment] => explain::explain_in(benchmark, environment),
            _ => Err(Failure::input(
                "--explain takes one environment whose instructions are counted, such as --in vm:exact",
            )),
        };
    }
    let extent = match (args.thorough, args.quick) {
        (true, _) => Extent::Thorough,
        (_, true) => Extent::Headlines,
        _ => Extent::Usual,
    };
    let tree = match args.size {
        Some(Size::Tree(size)) => size,
        _ => tollgate_suites::Size::default(),
    };
    let machine = sides::machine(&args.session.environments)?;
    let mut selection = tollgate_suites::select(&machine, &patterns(args), extent, tree)
        .map_err(|unknown| Failure::input(unknown.to_string()))?;
    if let Some(Size::File(bytes)) = args.size
        && !tollgate_suites::with_file_size(&mut selection, bytes)
    {
        return Err(Failure::input(
            "--size applies only to files/large-write and files/large-read; select one of them",
        ));
    }
    expect_use(args, &selection)?;
    if sides::is_asked(args) || selection.groups.iter().all(Group::is_of_environments) {
        return session::session(args, &selection, &|runs, kept| session::print(args, runs, kept));
    }
    sides::expect_none(args)?;
    interrupt::install();
    let destination = match &args.store {
        Some(directory) => Destination::stored(directory)?,
        None => Destination::choose(args.out.as_deref())?,
    };
    // Before any warning: a refusal is one line.
    let (dir, on) = args.place(&selection);
    let workplace = Workplace::choose(&selection, dir, on)?;
    go_on()?;
    if !args.quiet {
        destination.say_doubt();
    }
    let plan = Plan { storage: workplace.storage(), ..plan(args, || selection.usual_time()) };
    let mut run = make(&selection, &plan, args.label.clone(), !args.quiet)?;
    run.facts.extend([facts::patterns(&args.pattern)]);
    run.facts.extend(workplace.facts());
    run.facts.extend(args.machine.as_deref().map(facts::machine));
    drop(workplace);
    // The run until the signal is kept. A second signal ends the program at once.
    let is_partial = run.facts.contains_key(INTERRUPTED);
    if !is_partial {
        go_on()?;
    }
    let kept = destination.keep(&run, Until::Durable);
    if matches!(destination, Destination::Output) {
        return kept.map(|_| ());
    }
    let path = kept.as_ref().ok().and_then(Option::as_deref);
    let summary = Summary::of(&run);
    let shown = match args.format {
        PictureFormat::Table if args.counters => {
            show::print_screen(&summary).and_then(|()| show::print_counters(&summary))
        }
        PictureFormat::Table => show::print_screen(&summary),
        PictureFormat::Svg => show::print_picture(std::slice::from_ref(&run), &Spread::default(), 0.0),
        PictureFormat::Json => show::print_json(&summary, path),
    };
    if is_partial {
        say::say("interrupted; the run until then was kept");
    }
    // The failure to keep the run is reported last.
    let path = kept?;
    expect_seen(shown, path.as_deref())?;
    let is_own = |case: &Case| own::is_own(&case.benchmark);
    match run.measured().find(|(case, _)| !is_own(case)) {
        None if !is_partial => Err(nothing(&run)),
        _ => Ok(()),
    }
}

/// Measures a session whose runs are kept, and returns them instead of showing them.
///
/// # Errors
/// Those of `tollgate run`.
pub fn session_of(args: &RunArgs) -> Result<Vec<Run>, Failure> {
    let made = RefCell::new(Vec::new());
    let selection = tollgate_suites::select(
        &sides::machine(&args.session.environments)?,
        &args.pattern,
        Extent::Usual,
        tollgate_suites::Size::default(),
    )
    .map_err(|unknown| Failure::input(unknown.to_string()))?;
    session::session(args, &selection, &|runs, _| {
        made.replace(runs.to_vec());
        Ok(())
    })?;
    Ok(made.take())
}

/// Why no case of a run was measured: each reason once, with the first case that has it.
fn nothing(run: &Run) -> Failure {
    let mut whys: Vec<(&str, String)> = Vec::new();
    for one in &run.measurements {
        match one.outcome.why() {
            Some(why) if whys.iter().all(|(known, _)| *known != why) => {
                whys.push((why, one.case.to_string()))
            }
            _ => {}
        }
    }
    let more = whys.len().saturating_sub(MOST_REASONS);
    let said: Vec<String> =
        whys.iter().take(MOST_REASONS).map(|(why, case)| format!("{case}: {why}")).collect();
    let more = if more > 0 {
        format!("; and {more} other reasons: see `tollgate show --all`")
    } else {
        String::new()
    };
    Failure::input(format!("nothing was measured: {}{more}", said.join("; ")))
}

/// The patterns of the arguments. With a file's size, the suite of files includes large files. Without one it does not: an
/// operation of a second between those of microseconds makes these noisy.
fn patterns(args: &RunArgs) -> Vec<String> {
    let mut patterns = args.pattern.clone();
    let is_sized = matches!(args.size, Some(Size::File(_)));
    let is_suite = patterns.iter().any(|pattern| ["files", "files/*"].contains(&pattern.as_str()));
    if is_suite && is_sized {
        patterns.push(tollgate_suites::large_files());
    }
    patterns
}

/// Refuses options that no chosen case uses.
fn expect_use(args: &RunArgs, selection: &Selection) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::input(why.to_owned()));
    if matches!(args.size, Some(Size::Tree(_))) && !selection.has_commands() {
        return refuse("--size small and large apply only to the suite workloads; select one of its cases");
    }
    if args.cpu.is_some() && selection.groups.iter().all(|group| group.usual_time().is_some()) {
        return refuse(
            "--cpu does not apply to workloads and environments, which use all processors; select other cases as well",
        );
    }
    Ok(())
}

/// Fails if nothing could be measured at all, or the user stopped it.
pub fn make(selection: &Selection, plan: &Plan, label: Option<Label>, visible: bool) -> Result<Run, Failure> {
    let began = SystemTime::now();
    let machine = Machine::here();
    let mut facts = tollgate_inspect::read_facts(&machine);
    facts.extend(tollgate_inspect::strain(&machine, "before"));
    let findings = if facts::emulated(&facts) {
        not_measured(selection)
    } else {
        measure(selection, &Plan { limits: limits(&machine), executes: true, ..plan.clone() }, visible)?
    };
    facts.extend(tollgate_inspect::strain(&machine, "after"));
    facts.extend(findings.facts);
    document::ended_run(began, label, facts, findings.measurements)
}

pub fn limits(machine: &Machine) -> Limits {
    let allowed = |limit: tollgate_inspect::Limit| Allowed { amount: limit.amount, by: limit.source };
    let allowance = tollgate_inspect::allowance(machine);
    Limits { processes: allowance.processes.map(allowed), memory: allowance.memory.map(allowed) }
}

fn plan(args: &RunArgs, usual: impl FnOnce() -> Duration) -> Plan {
    let plan = match (args.processes, args.time, args.quick, args.thorough) {
        (Some(number), ..) => Plan::of_processes(number),
        (None, Some(time), ..) => Plan::within(time),
        (None, None, true, _) => Plan::within(Plan::QUICK),
        (None, None, _, true) => Plan::within(Plan::THOROUGH),
        (None, None, ..) => Plan::within(usual()),
    };
    Plan { cpu: args.cpu, ..plan }
}

fn not_measured(selection: &Selection) -> Findings {
    let why = "QEMU TCG emulates this processor: times are the emulator's";
    let skipped = |case| Measurement { case, outcome: Outcome::Skipped { why: why.to_owned() } };
    Findings { measurements: selection.cases().map(skipped).collect(), ..Findings::default() }
}

fn measure(selection: &Selection, plan: &Plan, visible: bool) -> Result<Findings, Failure> {
    let mut shown = Shown::new(visible);
    let findings = tollgate_engine::measure(selection, plan, &mut |progress| shown.update(progress));
    shown.end();
    findings.map_err(failed)
}

fn failed(error: BenchError) -> Failure {
    match error {
        BenchError::Interrupted(signal) => Failure::Interrupted(signal),
        BenchError::NoSuchCpu { .. } | BenchError::CpuNotAllowed { .. } => {
            Failure::input(format!("--cpu: {error}"))
        }
        BenchError::NoTime { .. } => Failure::input(format!(
            "{error}; give it more with --time, or use --processes 1, which takes as long as it needs"
        )),
        BenchError::NoProcess(_) | BenchError::NoEnvironment(_) => Failure::input(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_engine::Topology;

    use super::*;

    #[test]
    fn what_an_emulator_executes_has_no_estimate_and_says_why() {
        let selection = tollgate_suites::select(
            &Topology::default(),
            &["entry/syscall*".to_owned()],
            Extent::Usual,
            tollgate_suites::Size::Small,
        )
        .expect("registered");
        let measurements = not_measured(&selection).measurements;
        assert_eq!(measurements.len(), selection.cases().count());
        for measurement in measurements {
            let Outcome::Skipped { why } = measurement.outcome else { panic!("{:?}", measurement.outcome) };
            assert!(why.contains("QEMU TCG"), "{why}");
        }
    }
}
