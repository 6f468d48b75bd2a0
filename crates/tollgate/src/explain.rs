//! `tollgate explain`: one benchmark, its figure here, and what affects it.

mod functions;

use tollgate_engine::{Selection, Topology};
use tollgate_inspect::Machine;
use tollgate_model::Case;
use tollgate_model::versus::is_bench;
use tollgate_store::RunKind;
use tollgate_suites::{Benchmark, Extent, Size, UnknownPattern};
use tollgate_view::explain;
use tollgate_view::session::Session;
use tollgate_view::summary::Summary;

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::run::sides::machine;
use crate::{out, versus};

impl ExplainArgs {
    /// Without a kept run it explains with the facts of this machine alone. For a bench of builds: what it asks of the kernel.
    ///
    /// # Errors
    /// When no benchmark or several are meant, or a run that was named cannot be read.
    pub fn execute(&self) -> Result<(), Failure> {
        if is_bench(&self.benchmark) && self.environment.is_none() {
            return versus::explain_bench(&self.benchmark, self.run.as_deref());
        }
        let machine = machine(self.environment.as_slice())?;
        let pattern = with_suite(&machine, &self.benchmark);
        if let Some(environment) = self.environment.as_deref().filter(|_| is_command(&machine, &pattern)) {
            return versus::explain(&pattern, environment, self.stacks.as_deref());
        }
        if self.stacks.is_some() {
            return Err(Failure::input(
                "--stacks needs a command in a guest that counts instructions: explain 'ls -l' --in vm:exact --stacks FILE",
            ));
        }
        let (benchmark, selection) = chosen(&machine, &pattern)?;
        if let Some(environment) = &self.environment {
            return functions::explain(&pattern, &selection, environment);
        }
        let is_meant =
            |case: &Case| case.benchmark == benchmark.name && tollgate_suites::matches(&pattern, case);
        let runs = match &self.run {
            Some(run) => tollgate_store::find_runs(run, RunKind::MEASURED)?,
            // A run without a figure still has the facts of its environment.
            None => match tollgate_store::find_newest_of(benchmark.name, is_meant) {
                Ok(Some(runs)) => runs,
                _ => tollgate_store::find_runs(tollgate_store::kept::LAST, RunKind::OF_BENCHMARKS)
                    .unwrap_or_default(),
            },
        };
        let run = runs.first();
        // The id of a run means only that run; the costs of its environment need the others. A run without a session uses another
        // one.
        let part = run.and_then(|run| run.session.as_ref());
        let others = match (part, &self.run) {
            (Some(part), _) => tollgate_store::find_session(part.id.as_ref()).ok().flatten(),
            (None, None) => tollgate_store::find_newest_session_of(benchmark.name).ok().flatten(),
            (None, Some(_)) => None,
        };
        let session = others.as_deref().and_then(Session::of);
        let mut summary = run.map(Summary::of);
        if let Some(summary) = &mut summary {
            let is_beside = |case: &Case| benchmark.beside.iter().any(|(name, _)| *name == case.benchmark);
            summary.retain(|case| is_meant(case) || is_beside(case));
        }
        let here;
        let facts = match run {
            Some(run) => &run.facts,
            None => {
                here = tollgate_inspect::read_facts(&Machine::here());
                &here
            }
        };
        let width = out::width();
        out::page(&explain::text(benchmark, &machine, summary.as_ref(), session.as_ref(), facts, width))
    }
}

/// As [`ExplainArgs::execute`], for `tollgate run --explain BENCHMARK --in ENV`. Fails if no benchmark or several are meant, or it
/// has no count there.
pub fn explain_in(pattern: &str, environment: &str) -> Result<(), Failure> {
    let machine = machine(&[environment.to_owned()])?;
    let pattern = with_suite(&machine, pattern);
    let (_, selection) = chosen(&machine, &pattern)?;
    functions::explain(&pattern, &selection, environment)
}

/// A line for a shell has several words, or names a program; a pattern does not.
fn is_command(machine: &Topology, pattern: &str) -> bool {
    let selected = tollgate_suites::select(machine, &[pattern.to_owned()], Extent::Thorough, Size::Small);
    let is_program = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(pattern).is_file())
    };
    selected.is_err() && (pattern.contains(char::is_whitespace) || is_program())
}

/// `syscall` is `entry/syscall`: a benchmark's name without its suite, if only one has it. Other patterns are unchanged.
fn with_suite(machine: &Topology, pattern: &str) -> String {
    let selected = tollgate_suites::select(machine, &[pattern.to_owned()], Extent::Thorough, Size::Small);
    match selected.map_err(|unknown| unknown.near) {
        Err(near) if near.len() == 1 && near[0].ends_with(&format!("/{pattern}")) => near[0].clone(),
        _ => pattern.to_owned(),
    }
}

fn chosen(machine: &Topology, pattern: &str) -> Result<(&'static Benchmark, Selection), Failure> {
    let select = tollgate_suites::select(machine, &[pattern.to_owned()], Extent::Thorough, Size::Small);
    let selection = select.map_err(|unknown: UnknownPattern| Failure::input(unknown.to_string()))?;
    // The selection includes the baselines of the chosen ones.
    let cases = selection.cases().filter(|case| tollgate_suites::matches(pattern, case));
    let mut names: Vec<String> = cases.map(|case| case.benchmark).collect();
    names.dedup();
    let found = match names.as_slice() {
        [name] => tollgate_suites::find(name),
        _ => None,
    };
    found.map(|benchmark| (benchmark, selection)).ok_or_else(|| {
        let said = format!("explain takes one benchmark, and {pattern} means {}", names.len());
        Failure::input(format!(
            "{said}; such as {}",
            names.iter().take(3).cloned().collect::<Vec<_>>().join(", ")
        ))
    })
}
