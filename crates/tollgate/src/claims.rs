//! `tollgate claims`: published experiments beside this machine's figures.

mod asked;
mod hand;
mod published;

use std::collections::BTreeSet;
use std::path::Path;

use hand::Hand;
use tollgate_claims::{ClaimsDocument, Experiment, Known, screen, to_repeat};
use tollgate_engine::{Plan, Selection, Topology, interrupt};
use tollgate_model::Run;
use tollgate_model::estimate::ENOUGH_PROCESSES;
use tollgate_output::figures::count;
use tollgate_store::writing::Until;
use tollgate_suites::{Extent, Size};
use tollgate_view::summary::BASELINE;

use crate::args::Format;
use crate::args::claims::ClaimsArgs;
use crate::destination::Destination;
use crate::failure::{Failure, go_on};
use crate::storage::Workplace;
use crate::{out, run, say};

impl ClaimsArgs {
    /// # Errors
    /// An unknown experiment or run; a run that cannot be made or kept.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.as_published {
            return published::show(self);
        }
        let (experiments, named) = chosen(self)?;
        let mut hand = Hand::of(hand::runs(&named)?);
        if self.check
            && let Some(made) = check(&experiments, &hand, self)?
        {
            // The figures of one run belong together, so the new run comes after the others.
            hand.add(made);
        }
        let known = hand.known();
        match self.format {
            Format::Json => out::print_json(&ClaimsDocument::new(&experiments, &known)),
            Format::Table => out::page(&screen(&experiments, &known, out::width())),
        }
    }
}

/// The first word is a run if no experiment has that name.
fn chosen(args: &ClaimsArgs) -> Result<(Vec<Experiment>, Vec<String>), Failure> {
    let all = || {
        let each = Experiment::names().filter_map(Experiment::named);
        each.collect::<Result<Vec<Experiment>, String>>().map_err(Failure::input)
    };
    let Some(name) = &args.published else { return Ok((all()?, Vec::new())) };
    if let Some(experiment) = Experiment::named(name) {
        return Ok((vec![experiment.map_err(Failure::input)?], args.run.clone()));
    }
    match tollgate_store::find_runs(name, tollgate_store::RunKind::OF_BENCHMARKS) {
        Ok(_) => Ok((all()?, std::iter::once(name).chain(&args.run).cloned().collect())),
        // A file that is not a run says why.
        Err(error) if Path::new(name).is_file() => Err(error.into()),
        Err(_) => Err(Failure::input(unknown(name))),
    }
}

fn unknown(name: &str) -> String {
    let near = tollgate_suites::selection::near(name, Experiment::names());
    let hint = match near.as_slice() {
        [] => format!("the experiments are {}", Experiment::names().collect::<Vec<_>>().join(", ")),
        [one] => format!("did you mean {one}?"),
        several => format!("did you mean one of {}?", several.join(", ")),
    };
    format!("{name:?} is neither an experiment nor a run; {hint}")
}

/// `None` if nothing is missing.
fn check(experiments: &[Experiment], hand: &Hand, args: &ClaimsArgs) -> Result<Option<Run>, Failure> {
    let known = hand.known();
    let asks = asked::open(experiments, &known);
    let selection = match missing(experiments, &known)? {
        Some(selection) => selection,
        None if asks.is_empty() => return Ok(None),
        // Answers are kept with a run, which needs a case.
        None => select(&[BASELINE.to_owned()])?,
    };
    interrupt::install();
    let destination = Destination::choose(None)?;
    let workplace = Workplace::choose(&selection, None, None)?;
    go_on()?;
    if !args.quiet {
        destination.say_doubt();
        say::say(&expected(&selection, args));
        asked::announce(&asks);
    }
    let plan = match args.time {
        Some(time) => Plan::within(time),
        None => Plan::of_processes(processes(args)),
    };
    let plan = Plan { storage: workplace.storage(), ..plan };
    let mut made = run::make(&selection, &plan, None, !args.quiet)?;
    made.facts.extend([tollgate_view::facts::patterns(&patterns(&selection))]);
    made.facts.extend(workplace.facts());
    drop(workplace);
    made.facts.extend(asked::answers(&asks, args.quiet));
    let is_partial = made.facts.contains_key(tollgate_engine::INTERRUPTED);
    if !is_partial {
        go_on()?;
    }
    destination.keep(&made, Until::Durable)?;
    if is_partial {
        say::say("interrupted; the run until then was kept");
    }
    Ok(Some(made))
}

fn processes(args: &ClaimsArgs) -> usize {
    args.processes.unwrap_or(ENOUGH_PROCESSES)
}

fn expected(selection: &Selection, args: &ClaimsArgs) -> String {
    let number = |name: &str| selection.cases().filter_map(|case| case.number(name)).max();
    let cases = count(selection.cases().count(), "case", "cases");
    let mut said = format!("measuring {cases} and their baselines, ");
    said.push_str(&match args.time {
        Some(time) => format!("within {} s", time.as_secs()),
        None => {
            let groups = count(selection.groups.len(), "group of cases", "groups of cases");
            let processes = count(processes(args), "process", "processes");
            format!("in {processes} each: some seconds for each of {groups}")
        }
    });
    // Two buffers of the largest size, or the memory that a parent has written.
    let written = number("dirty_mib").unwrap_or(0).max(number("kib").unwrap_or(0) / 512);
    let files = selection.cases().any(|case| case.word("size") == Some("1g"));
    let many = selection.cases().any(|case| case.benchmark.starts_with("processes/population"));
    let parts = [
        (written > 0).then(|| format!("up to {written} MiB of memory")),
        files.then(|| "files of 1 GiB in this directory, at the speed of its device".to_owned()),
        many.then(|| "a thousand processes or threads at a time".to_owned()),
    ];
    for part in parts.into_iter().flatten() {
        said.push_str(&format!("; {part}"));
    }
    said
}

/// The cases that no run was to measure, except those measured only on request; and those of which another run may decide a
/// claim.
fn missing(experiments: &[Experiment], known: &Known) -> Result<Option<Selection>, Failure> {
    let quantities = experiments.iter().flat_map(Experiment::quantities);
    let unasked = quantities.flat_map(|quantity| quantity.to_measure(known));
    let open = experiments.iter().flat_map(|experiment| to_repeat(experiment, known));
    let patterns: BTreeSet<String> = unasked.chain(open).collect();
    if patterns.is_empty() {
        return Ok(None);
    }
    select(&patterns.into_iter().collect::<Vec<String>>()).map(Some)
}

fn select(patterns: &[String]) -> Result<Selection, Failure> {
    tollgate_suites::select(&Topology::here(), patterns, Extent::Usual, Size::Small)
        .map_err(|unknown| Failure::input(unknown.to_string()))
}

fn patterns(selection: &Selection) -> Vec<String> {
    selection.cases().map(|case| case.to_string()).collect()
}
