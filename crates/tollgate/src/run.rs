//! `tollgate run`: measure here, show, keep.

use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tollgate_engine::Selection;
use tollgate_engine::{
    self, Allowed, BenchError, Decided, Findings, INTERRUPTED, Limits, Place, Plan, Progress, interrupt,
};
use tollgate_inspect::Machine;
use tollgate_model::{Label, Measurement, Outcome, Run};
use tollgate_store::writing::Until;
use tollgate_suites::Extent;

use crate::args::{Format, RunArgs, Size};
use crate::destination::{Destination, expect_seen};
use crate::failure::{Failure, go_on};
use crate::storage::Workplace;
use crate::{document, out, say, show};
use tollgate_view::summary::Summary;
use tollgate_view::{facts, figures};

/// Measures the chosen cases, keeps the run, and shows it.
///
/// # Errors
/// Wrong input, before anything is measured; a run that could not be kept, after it was shown.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let extent = match (args.thorough, args.quick) {
        (true, _) => Extent::Thorough,
        (_, true) => Extent::Headlines,
        _ => Extent::Usual,
    };
    let size = match args.size {
        Size::Small => tollgate_suites::Size::Small,
        Size::Large => tollgate_suites::Size::Large,
    };
    let selection = tollgate_suites::select(&args.pattern, extent, size)
        .map_err(|unknown| Failure::input(unknown.to_string()))?;
    expect_use(args, &selection)?;
    interrupt::install();
    let destination = match &args.store {
        Some(directory) => Destination::stored(directory)?,
        None => Destination::choose(args.out.as_deref())?,
    };
    // Before any warning: a refusal is one line.
    let workplace = Workplace::choose(&selection, args)?;
    go_on()?;
    if !args.quiet {
        destination.say_doubt();
    }
    let plan = Plan { storage: workplace.storage(), ..plan(args, &selection) };
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
        Format::Table => show::print_screen(&summary),
        Format::Json => show::print_json(&summary, path),
    };
    if is_partial {
        say::say("interrupted; the run until then was kept");
    }
    // The failure to keep the run is reported last.
    let path = kept?;
    expect_seen(shown, path.as_deref())
}

/// Refuses options that no chosen case uses.
fn expect_use(args: &RunArgs, selection: &Selection) -> Result<(), Failure> {
    let are_workloads =
        |any: bool| selection.cases().any(|case| case.benchmark.starts_with("workloads/") == any);
    let refuse = |why: &str| Err(Failure::input(why.to_owned()));
    if args.size != Size::default() && !are_workloads(true) {
        return refuse(
            "--size says how large the tree of workloads is, and no case of the suite workloads is chosen",
        );
    }
    if args.cpu.is_some() && !are_workloads(false) {
        return refuse(
            "--cpu says where calls are timed, and only workloads are chosen, which use all processors",
        );
    }
    Ok(())
}

/// The facts of the environment and the measurements made there.
///
/// # Errors
/// When nothing could be measured at all, or the user stopped it.
pub fn make(selection: &Selection, plan: &Plan, label: Option<Label>, visible: bool) -> Result<Run, Failure> {
    let began = SystemTime::now();
    let machine = Machine::here();
    let mut facts = tollgate_inspect::read_facts(&machine);
    facts.extend(tollgate_inspect::strain(&machine, "before"));
    let findings = match facts::emulated(&facts) {
        true => not_measured(selection),
        false => {
            measure(selection, &Plan { limits: limits(&machine), executes: true, ..plan.clone() }, visible)?
        }
    };
    facts.extend(tollgate_inspect::strain(&machine, "after"));
    facts.extend(findings.facts);
    document::of(began, label, facts, findings.measurements)
}

/// The limits of this environment, for the engine.
fn limits(machine: &Machine) -> Limits {
    let allowed = |limit: tollgate_inspect::Limit| Allowed { amount: limit.amount, by: limit.source };
    let allowance = tollgate_inspect::allowance(machine);
    Limits { processes: allowance.processes.map(allowed), memory: allowance.memory.map(allowed) }
}

fn plan(args: &RunArgs, selection: &Selection) -> Plan {
    let budget = match (args.time, args.quick, args.thorough) {
        (Some(time), ..) => time,
        (None, true, _) => Plan::QUICK,
        (None, _, true) => Plan::THOROUGH,
        (None, ..) => selection.usual_time(),
    };
    Plan { cpu: args.cpu, ..Plan::within(budget) }
}

/// Every chosen case, skipped.
fn not_measured(selection: &Selection) -> Findings {
    let why = "QEMU TCG emulates this processor: times are the emulator's";
    let skipped = |case| Measurement { case, outcome: Outcome::Skipped { why: why.to_owned() } };
    Findings { measurements: selection.cases().map(skipped).collect(), ..Findings::default() }
}

/// Runs the engine and shows its progress.
fn measure(selection: &Selection, plan: &Plan, visible: bool) -> Result<Findings, Failure> {
    let mut shown = Shown::new(plan.budget, visible);
    let findings = tollgate_engine::measure(selection, plan, &mut |progress| shown.update(progress));
    shown.bar.finish_and_clear();
    findings.map_err(|error| match error {
        BenchError::Interrupted(signal) => Failure::Interrupted(signal),
        BenchError::NoSuchCpu { .. } | BenchError::CpuNotAllowed { .. } => {
            Failure::input(format!("--cpu: {error}"))
        }
        BenchError::NoProcess(_) => Failure::input(error.to_string()),
    })
}

/// A terminal of fewer columns has no room for a bar beside what is being measured.
const NARROW: usize = 54;
/// A reader that is no terminal gets a line so often.
const OFTEN: Duration = Duration::from_secs(10);

/// The progress on standard error: on a terminal a line that is drawn again, with the figures of the first screen above it as they are
/// decided; elsewhere plain lines.
struct Shown {
    bar: ProgressBar,
    /// Whether lines are printed in place of a bar, and when the last one was.
    lines: bool,
    last: Duration,
}

impl Shown {
    fn new(budget: Duration, visible: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        let is_drawn = std::io::stderr().is_terminal() && !is_dumb;
        let bar = progress_bar(budget, visible && is_drawn);
        Self { bar, lines: visible && !is_drawn, last: Duration::ZERO }
    }

    fn update(&mut self, progress: &Progress) {
        let left = progress.budget.saturating_sub(progress.elapsed);
        let left = format!("{} left", figures::time_left(left));
        let place = match progress.suite {
            Place { of: 0 | 1, .. } => String::new(),
            Place { number, of } => format!("suite {number} of {of}: "),
        };
        for line in progress.decided.iter().filter_map(decided) {
            match self.lines {
                true => say::warn(&format!("{line}\n")),
                false => self.bar.println(line),
            }
        }
        if self.lines && !progress.what.is_empty() && progress.elapsed >= self.last + OFTEN {
            self.last = progress.elapsed;
            say::say(&format!("{place}{}, {left}", progress.what));
        }
        self.bar.set_prefix(left);
        if !progress.what.is_empty() {
            self.bar.set_message(format!("{place}{}", progress.what));
        }
        self.bar.set_position(millis(progress.elapsed).min(millis(progress.budget)));
    }
}

/// A figure of the first screen as it is decided, by its name there.
fn decided(decided: &Decided) -> Option<String> {
    let benchmark = tollgate_suites::find(&decided.case.benchmark)?;
    let headline = benchmark.headline_of(&decided.case.params)?;
    let figure = match decided.median_ns {
        above if above > 0.0 => figures::estimate(above, benchmark.unit),
        _ => "below the detection limit".to_owned(),
    };
    Some(format!("  {:<28} {figure:>10}", headline.name))
}

/// On a terminal. It is drawn only when the engine reports progress: a drawing thread would disturb the measurement.
fn progress_bar(budget: Duration, visible: bool) -> ProgressBar {
    let target = if visible { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
    // A line that is broken cannot be drawn over.
    let template = match out::width_of_errors() {
        narrow if narrow < NARROW => "{prefix:>9}  {wide_msg}",
        _ => "{bar:24} {prefix:>9}  {wide_msg}",
    };
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::with_draw_target(Some(millis(budget)), target);
    match style {
        Ok(style) => bar.with_style(style.progress_chars("━╸─")),
        Err(_) => bar,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decided_figure_has_its_name_on_the_first_screen() {
        let of = |benchmark: &str, median_ns| {
            decided(&Decided { case: tollgate_model::Case::plain(benchmark), median_ns })
        };
        assert_eq!(of("entry/int80", 5_970.0).as_deref(), Some("  int 0x80                        5.97 µs"));
        assert!(of("entry/vdso-clock", -0.1).is_some_and(|line| line.ends_with("below the detection limit")));
        assert_eq!(of("entry/call", 1.0), None);
    }

    #[test]
    fn what_an_emulator_executes_has_no_estimate_and_says_why() {
        let selection = tollgate_suites::select(
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
