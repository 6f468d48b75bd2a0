//! `tollgate store`: a directory of stored runs, as [`tollgate_store::fleet`] has it.

use std::collections::BTreeSet;

use tollgate_model::Run;
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};
use tollgate_store::fleet::{self, Listed};
use tollgate_store::{FindError, RunKind};

use crate::args::{Format, StoreAddArgs, StoreArgs, StoreListArgs, StoreVerb};
use crate::failure::Failure;
use crate::{out, say};

impl StoreArgs {
    /// # Errors
    /// A directory that is not a store, or a run that is not found.
    pub fn execute(&self) -> Result<(), Failure> {
        match &self.verb {
            StoreVerb::List(args) => list(args),
            StoreVerb::Add(args) => add(args),
        }
    }
}

/// Returns all runs of a session.
pub fn find_all(meant: &[String]) -> Result<Vec<Run>, Failure> {
    find_each(meant.iter().map(String::as_str), RunKind::MEASURED)
}

/// The base and the runs to compare with it; for a session the first, and the others. `last` is the newest run of the kind of the
/// first run that is named otherwise.
/// Fails as [`find_all`] does, and if there is nothing to compare with.
pub fn find_compared(base: &str, others: &[String]) -> Result<(Run, Vec<Run>), Failure> {
    const LAST: &str = "last";
    let all = || std::iter::once(base).chain(others.iter().map(String::as_str));
    let kinds = match all().find(|meant| *meant != LAST) {
        Some(named) if all().any(|meant| meant == LAST) => vec![RunKind::of(&tollgate_store::find(named)?)],
        _ => RunKind::MEASURED.to_vec(),
    };
    let mut runs = find_each(all(), &kinds)?.into_iter();
    match runs.next() {
        Some(first) if runs.len() > 0 => Ok((first, runs.collect())),
        _ => Err(Failure::input(format!(
            "{base} is a single run; name another run to compare with it, or a session of several environments"
        ))),
    }
}

fn find_each<'a>(meant: impl Iterator<Item = &'a str>, kinds: &[RunKind]) -> Result<Vec<Run>, Failure> {
    let found: Result<Vec<Vec<Run>>, FindError> =
        meant.map(|meant| tollgate_store::find_runs(meant, kinds)).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// Stores runs that were made before; all are read before the first is stored.
fn add(args: &StoreAddArgs) -> Result<(), Failure> {
    let runs = find_all(&args.run)?;
    fleet::prepare(&args.dir)?;
    for run in &runs {
        // The originals stay: nothing is lost.
        fleet::write(&args.dir, run).map_err(|error| Failure::input(error.to_string()))?;
    }
    let number = figures::count(runs.len(), "run is", "runs are");
    out::print(&format!("{number} stored in {}.\n", args.dir.display()))
}

fn list(args: &StoreListArgs) -> Result<(), Failure> {
    let listed = fleet::list(&args.dir)?;
    match args.format {
        Format::Json => out::print_json(&listed),
        Format::Table if listed.runs.is_empty() => {
            say::say(&format!("no run is stored in {} yet; `tollgate run --store` makes one", listed.dir));
            Ok(())
        }
        Format::Table => out::print(&listing(&listed)),
    }
}

fn listing(listed: &Listed) -> String {
    let mut table = Table::new(&["run", "machine", "kernel", "environment", "label", "cpu"])
        .with_words(&["machine", "kernel", "environment", "label", "cpu"])
        .with_dispensable(3);
    let mut day = "";
    for run in &listed.runs {
        if run.date != day {
            day = &run.date;
            table.heading(day);
        }
        let environment = run.environment.map(|environment| environment.to_string());
        let cells = [
            Some(run.id.clone()),
            run.machine.clone(),
            run.kernel.clone(),
            environment,
            run.label.clone(),
            run.cpu.clone(),
        ];
        let (look, remarks) = match &run.fault {
            Some(fault) => (Look::Flagged, vec![format!("its file {fault}")]),
            None => (Look::Plain, Vec::new()),
        };
        table.row(look, &cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned())), &remarks);
    }
    let width = out::width();
    format!("{}\n{}", table.render(width), paragraph(&summary(listed), width, ""))
}

fn summary(listed: &Listed) -> String {
    fn different<'a>(values: impl Iterator<Item = Option<&'a String>>) -> usize {
        values.flatten().collect::<BTreeSet<_>>().len()
    }
    let runs = &listed.runs;
    let number = figures::count;
    let mut parts = vec![number(runs.len(), "run", "runs")];
    match different(runs.iter().map(|run| run.machine.as_ref())) {
        0 => {}
        machines => parts.push(number(machines, "named machine", "named machines")),
    }
    parts.push(number(different(runs.iter().map(|run| run.kernel.as_ref())), "kernel", "kernels"));
    parts.push(number(listed.fact_sets, "set of facts", "sets of facts"));
    parts.push(number(listed.documents, "run document", "run documents"));
    parts.push(figures::bytes(listed.bytes as f64));
    format!("{}.", parts.join(", "))
}
