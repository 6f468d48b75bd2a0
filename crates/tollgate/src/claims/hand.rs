//! The available data of this machine: kept runs, facts, and the kernel's configuration.

use tollgate_claims::{Config, Known};
use tollgate_engine::Topology;
use tollgate_environments::is_guest;
use tollgate_inspect::{Machine, running_config};
use tollgate_model::{Case, Environment, Facts, Run};
use tollgate_store::RunKind;
use tollgate_store::kept::{Entry, kept};
use tollgate_suites::{Extent, Size};
use tollgate_view::facts::text;
use tollgate_view::summary::Summary;

use crate::failure::Failure;

/// The newest kept runs that are read, since reading each takes time.
const MOST: usize = 8;
const MODEL: &str = "cpu.model";
const RELEASE: &str = "kernel.release";

pub struct Hand {
    runs: Vec<Run>,
    facts: Facts,
    config: Config,
    cases: Vec<Case>,
}

impl Hand {
    /// The runs with the facts of the first one, or this machine's facts without runs; and the cases that can be measured here.
    pub fn of(runs: Vec<Run>) -> Self {
        let here = || tollgate_inspect::read_facts(&Machine::here());
        let facts = runs.first().map_or_else(here, |run| run.facts.clone());
        let config = config(&facts);
        Self { runs, facts, config, cases: cases() }
    }

    pub fn add(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// The data for evaluating experiments. A run that adds no figure shows how figures vary over time.
    pub fn known(&self) -> Known<'_> {
        let Self { runs, facts, config, cases } = self;
        Known { runs: runs.iter().map(Summary::of).collect(), facts, config, cases }
    }
}

fn cases() -> Vec<Case> {
    let machine = Topology::here();
    let of = |size| {
        let selected = tollgate_suites::select(&machine, &["*".to_owned()], Extent::Thorough, size);
        selected.map(|selection| selection.cases().collect::<Vec<Case>>()).unwrap_or_default()
    };
    [of(Size::Small), of(Size::Large)].concat()
}

/// The named runs; with none named, the newest kept one that is not a guest's, and others of the same machine: full runs, then
/// others, then those of guests, each the newest first.
///
/// # Errors
/// A named run that does not exist.
pub fn runs(named: &[String]) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for meant in named {
        runs.extend(tollgate_store::find_runs(meant, RunKind::OF_BENCHMARKS)?);
    }
    if !named.is_empty() {
        return Ok(runs);
    }
    let entries = kept().unwrap_or_default();
    let entries = entries.iter().rev().filter(|entry| is_of_benchmarks(entry)).take(MOST);
    runs.extend(entries.filter_map(|entry| entry.open().ok()));
    // A guest's run goes with those of any machine, so it does not determine the machine.
    let newest = runs.iter().position(|run| !is_of_guest(run)).unwrap_or(0);
    if newest < runs.len() {
        let newest = runs.remove(newest);
        runs.retain(|run| is_of_machine(run, &newest));
        runs.insert(0, newest);
    }
    // A run of few cases, such as that of --check, has figures that fuller ones lack; a guest's are not the machine's.
    let most = runs.iter().map(|run| run.measurements.len()).max().unwrap_or(0);
    runs.sort_by_key(|run| (is_of_guest(run), run.measurements.len() < most / 2));
    Ok(runs)
}

/// Whether benchmarks were measured, in the environment that a run alone would have, or in a guest.
fn is_of_benchmarks(entry: &Entry) -> bool {
    entry.outline().is_ok_and(|outline| {
        let is_usual = outline.session.as_ref().is_none_or(|part| {
            part.knob.is_none() && (part.environment == "host" || is_guest(&part.environment))
        });
        outline.kind().has_benchmarks() && is_usual
    })
}

fn is_of_guest(run: &Run) -> bool {
    run.session.as_ref().is_some_and(|part| is_guest(&part.environment))
}

/// A guest's run counts on any kernel.
fn is_of_machine(run: &Run, other: &Run) -> bool {
    let is_same = |name| text(&run.facts, name) == text(&other.facts, name);
    is_of_guest(run) != is_of_guest(other) || is_same(MODEL) && is_same(RELEASE) && kind(run) == kind(other)
}

fn kind(run: &Run) -> Environment {
    run.environment
}

fn config(facts: &Facts) -> Config {
    let here = rustix::system::uname();
    let here = here.release().to_string_lossy();
    match text(facts, RELEASE) {
        Some(release) if release != here => {
            return Err(format!(
                "the run was made on Linux {release}, but the configuration found here is for {here}"
            ));
        }
        _ => {}
    }
    let read = running_config(&Machine::here());
    read.map(|running| running.reading.configuration).map_err(|_| {
        "the running kernel's configuration was not found: `tollgate inspect config` says why".to_owned()
    })
}
