//! `tollgate store check`: reads every file and reports faults.

use std::collections::BTreeSet;

use serde::Serialize;
use tollgate_model::RunId;
use tollgate_view::export::layout::{check_facts, day};
use tollgate_view::export::row::Row;
use tollgate_view::export::time::Date;

use super::contents::{Contents, Found, LONGEST_LINE, What};
use super::tree::beneath;
use crate::args::{FailOnStore, Format, StoreCheckArgs};
use crate::failure::{Failure, plainly};
use crate::table::paragraph;
use crate::{figures, out, store};

/// The largest file of lines that is read: a run has at most 4096 cases, and few of them long histograms.
const MOST_ROWS: u64 = 128 << 20;
/// The largest file of facts that is read. A run has at most 4096 facts, and all that are known of a machine take some 50 KiB.
const MOST_FACTS: u64 = 16 << 20;

#[derive(Serialize)]
struct Checked {
    dir: String,
    runs: usize,
    rows: usize,
    fact_sets: usize,
    documents: usize,
    faults: Vec<Fault>,
    /// Of another schema, and not looked at.
    unchecked: Vec<String>,
}

#[derive(Serialize)]
struct Fault {
    path: String,
    fault: String,
}

/// Reads every file of a directory.
///
/// # Errors
/// A directory that is no store; faults, with --fail-on.
pub fn check(args: &StoreCheckArgs) -> Result<(), Failure> {
    let contents = Contents::of(&args.dir)?;
    let checked = checked(&contents, args.dir.display().to_string());
    match args.format {
        Format::Json => out::print_json(&checked)?,
        Format::Table => out::print(&sentences(&checked, args))?,
    }
    match args.fail_on {
        Some(FailOnStore::Faults) if !checked.faults.is_empty() => Err(Failure::Condition(format!(
            "{} in {}",
            figures::count(checked.faults.len(), "fault", "faults"),
            args.dir.display()
        ))),
        _ => Ok(()),
    }
}

fn sentences(checked: &Checked, args: &StoreCheckArgs) -> String {
    use crate::say::clean;
    let mut text = String::new();
    for Fault { path, fault } in &checked.faults {
        text.push_str(&format!("{} {}\n", clean(&beneath(&args.dir, path)), clean(fault)));
    }
    for path in &checked.unchecked {
        text.push_str(&format!("{} not checked: it has another schema\n", clean(&beneath(&args.dir, path))));
    }
    let Checked { runs, rows, fact_sets, documents, faults, .. } = checked;
    let number = |number: &usize, one, many| figures::count(*number, one, many);
    let summary = format!(
        "{} with {}, {} and {}: {}.",
        number(runs, "run", "runs"),
        number(rows, "line", "lines"),
        number(fact_sets, "set of facts", "sets of facts"),
        number(documents, "run document", "run documents"),
        if faults.is_empty() { "no faults".to_owned() } else { number(&faults.len(), "fault", "faults") },
    );
    text.push_str(&paragraph(&summary, out::width(), ""));
    text
}

fn checked(contents: &Contents, dir: String) -> Checked {
    let fact_sets: BTreeSet<&str> = contents
        .found
        .iter()
        .filter_map(|found| match &found.what {
            What::Facts(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let mut checked = Checked {
        dir,
        runs: 0,
        rows: 0,
        fact_sets: fact_sets.len(),
        documents: 0,
        faults: Vec::new(),
        unchecked: Vec::new(),
    };
    for found in &contents.found {
        let outcome = match &found.what {
            What::Rows(date, id) => {
                checked.runs += 1;
                check_rows(contents, found, *date, id, &fact_sets).map(|rows| checked.rows += rows)
            }
            What::Facts(name) => {
                read(contents, found, MOST_FACTS).and_then(|bytes| check_facts(name, &bytes))
            }
            What::Document(id) => {
                checked.documents += 1;
                check_document(contents, found, id)
            }
            What::Day => Ok(()),
            What::Leftover => {
                Err("was being written when its writer was stopped; `tollgate store prune` removes it"
                    .to_owned())
            }
            What::Stray(why) => Err((*why).to_owned()),
            What::OtherSchema => {
                checked.unchecked.push(found.path.clone());
                Ok(())
            }
        };
        if let Err(fault) = outcome {
            checked.faults.push(Fault { path: found.path.clone(), fault });
        }
    }
    checked
}

fn read(contents: &Contents, found: &Found, most: u64) -> Result<Vec<u8>, String> {
    let bytes = contents
        .tree
        .read(&found.path, most)
        .map_err(|error| format!("cannot be read: {}", plainly(&error)))?;
    match bytes.len() as u64 > most {
        true => Err(format!("is larger than {} MiB", most >> 20)),
        false => Ok(bytes),
    }
}

/// How many lines there are.
fn check_rows(
    contents: &Contents,
    found: &Found,
    date: Date,
    id: &RunId,
    fact_sets: &BTreeSet<&str>,
) -> Result<usize, String> {
    let bytes = read(contents, found, MOST_ROWS)?;
    if bytes.last().is_some_and(|last| *last != b'\n') {
        return Err("is cut off: its last line has no end".to_owned());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let mut seen = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        check_row(line, date, id, fact_sets, &mut seen)
            .map_err(|why| format!("{why}, in line {}", number + 1))?;
    }
    Ok(text.lines().count())
}

fn check_row(
    line: &str,
    date: Date,
    id: &RunId,
    fact_sets: &BTreeSet<&str>,
    seen: &mut BTreeSet<(String, String, String)>,
) -> Result<(), String> {
    if line.len() as u64 > LONGEST_LINE {
        return Err("has a line that is too long".to_owned());
    }
    let row = Row::parse(line)?;
    if row.run != id.as_ref() {
        return Err("has the lines of another run than its name says".to_owned());
    }
    if day(&row.started) != Some(date) {
        return Err("lies under another day than its run began on".to_owned());
    }
    if !fact_sets.contains(row.env_id.as_ref()) {
        return Err(format!("refers to missing facts: env/{}.json", row.env_id));
    }
    match seen.insert((row.benchmark.into_owned(), row.params.into_owned(), row.metric.into_owned())) {
        true => Ok(()),
        false => Err("has the same metric twice".to_owned()),
    }
}

fn check_document(contents: &Contents, found: &Found, id: &RunId) -> Result<(), String> {
    let file =
        contents.tree.file(&found.path).map_err(|error| format!("cannot be read: {}", plainly(&error)))?;
    let run = store::read(file)?;
    match run.id == *id {
        true => Ok(()),
        false => Err("holds another run than its name says".to_owned()),
    }
}
