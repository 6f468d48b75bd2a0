//! `tollgate store list`: what is there, by day, machine and kernel.

use std::collections::BTreeSet;

use serde::Serialize;

use super::contents::{Contents, What};
use crate::args::{Format, StoreListArgs};
use crate::failure::Failure;
use crate::table::{Look, Table, paragraph};
use crate::{figures, out, say};

#[derive(Serialize)]
struct Listed {
    dir: String,
    runs: Vec<Run>,
    fact_sets: usize,
    documents: usize,
    bytes: u64,
}

#[derive(Serialize)]
struct Run {
    id: String,
    date: String,
    label: Option<String>,
    machine: Option<String>,
    environment: Option<tollgate_model::Environment>,
    kernel: Option<String>,
    cpu: Option<String>,
    env_id: Option<String>,
    bytes: u64,
    /// Whether its samples are there too.
    document: bool,
    path: String,
    fault: Option<String>,
}

/// Lists the runs of a directory.
///
/// # Errors
/// A directory that is no store.
pub fn list(args: &StoreListArgs) -> Result<(), Failure> {
    let contents = Contents::of(&args.dir)?;
    let listed = listed(&contents, args.dir.display().to_string());
    match args.format {
        Format::Json => out::print_json(&listed),
        Format::Table if listed.runs.is_empty() => {
            say::say(&format!("no run is stored in {} yet; `tollgate run --store` makes one", listed.dir));
            Ok(())
        }
        Format::Table => out::print(&table(&listed)),
    }
}

fn listed(contents: &Contents, dir: String) -> Listed {
    let documents: BTreeSet<_> = contents
        .found
        .iter()
        .filter_map(|found| match &found.what {
            What::Document(id) => Some(id),
            _ => None,
        })
        .collect();
    let mut runs: Vec<Run> = contents
        .found
        .iter()
        .filter_map(|found| {
            let What::Rows(date, id) = &found.what else { return None };
            let (row, fault) = match contents.first_row(&found.path) {
                Ok(row) => (row, None),
                Err(fault) => (None, Some(fault)),
            };
            let text = |text: Option<&str>| text.map(str::to_owned);
            let row = row.as_ref();
            Some(Run {
                id: id.to_string(),
                date: date.to_string(),
                label: text(row.and_then(|row| row.label.as_deref())),
                machine: text(row.and_then(|row| row.machine.as_deref())),
                environment: row.map(|row| row.environment),
                kernel: text(row.and_then(|row| row.key_facts.kernel.as_deref())),
                cpu: text(row.and_then(|row| row.key_facts.cpu.as_deref())),
                env_id: text(row.map(|row| row.env_id.as_ref())),
                bytes: found.size,
                document: documents.contains(id),
                path: found.path.clone(),
                fault,
            })
        })
        .collect();
    tollgate_model::sort::by(&mut runs, |a, b| {
        (&a.date, &a.machine, &a.kernel, &a.id).cmp(&(&b.date, &b.machine, &b.kernel, &b.id))
    });
    let fact_sets = contents.found.iter().filter(|found| matches!(found.what, What::Facts(_))).count();
    Listed { dir, runs, fact_sets, documents: documents.len(), bytes: contents.bytes() }
}

fn table(listed: &Listed) -> String {
    let mut table = Table::new(&["run", "machine", "kernel", "environment", "label", "cpu"])
        .with_words(&["machine", "kernel", "environment", "label", "cpu"])
        .with_dispensable(3);
    let mut day = "";
    for run in &listed.runs {
        if run.date != day {
            day = &run.date;
            table.heading(day);
        }
        let or_none = |text: Option<&String>| text.cloned().unwrap_or_else(|| "–".to_owned());
        let cells = [
            run.id.clone(),
            or_none(run.machine.as_ref()),
            or_none(run.kernel.as_ref()),
            run.environment.map_or_else(|| "–".to_owned(), |environment| environment.to_string()),
            or_none(run.label.as_ref()),
            or_none(run.cpu.as_ref()),
        ];
        let (look, remarks) = match &run.fault {
            Some(fault) => (Look::Flagged, vec![format!("its file {fault}")]),
            None => (Look::Plain, Vec::new()),
        };
        table.row(look, &cells, &remarks);
    }
    let width = out::width();
    format!("{}\n{}", table.render(width), paragraph(&summary(listed), width, ""))
}

fn summary(listed: &Listed) -> String {
    fn different<'a>(values: impl Iterator<Item = Option<&'a String>>) -> usize {
        values.flatten().collect::<BTreeSet<_>>().len()
    }
    let runs = &listed.runs;
    let number = |number, one, many| figures::count(number, one, many);
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
