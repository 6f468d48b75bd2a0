//! `tollgate inspect`: every fact of an environment, grouped by subject, with its source and the boundaries that it affects.

mod capturing;
mod chosen;

use std::fs;
use std::path::{Path, PathBuf};

use tollgate_inspect::{Machine, SUBJECTS};
use tollgate_model::Facts;
use tollgate_view::inspect::facts::{Document, Group, NOW, WHEN, page, sentence};

use super::machine::machine;
use crate::args::{Format, InspectArgs};
use crate::failure::{Failure, plainly};
use crate::{document, out, say};

/// Shows the chosen facts, or captures their sources.
///
/// # Errors
/// A tree, directory or name that does not exist; a capture that cannot be written.
pub fn facts(args: &InspectArgs) -> Result<(), Failure> {
    if let Some(target) = &args.capture {
        return capturing::capture(&measured(args)?, target, args.format);
    }
    let machine = machine(args.from.as_deref())?;
    let directory = match &args.from {
        // The directory is one of the other machine.
        Some(_) => args.dir.as_deref().or(machine.captured_directory()).map(Path::to_owned),
        None => Some(measured(args)?),
    };
    let all = groups(&machine, directory.as_deref());
    let facts: Facts = all.iter().flat_map(|group| group.facts.iter().cloned()).collect();
    let chosen = chosen::chosen(all, &args.only)?;
    match args.format {
        Format::Json => {
            out::print_json(&Document::of(&chosen, &facts, args.from.as_deref(), document::tool()))
        }
        Format::Table => {
            let mut text = String::new();
            if args.only.is_empty() {
                text.push_str(&sentence(&facts, out::width()));
                text.push('\n');
            }
            text.push_str(&page(&chosen, &facts, out::width()));
            out::print(&text)
        }
    }
}

/// All facts of a machine; those of a file system too where there is a directory on it.
fn groups(machine: &Machine, directory: Option<&Path>) -> Vec<Group> {
    let mut groups: Vec<Group> = SUBJECTS
        .iter()
        .map(|subject| Group {
            subject: subject.name.to_owned(),
            facts: subject.facts.iter().flat_map(|spec| spec.read(machine)).collect(),
        })
        .collect();
    for group in &mut groups {
        // A family repeats facts with an entry of their own.
        let mut seen = std::collections::BTreeSet::new();
        group.facts.retain(|(name, _)| seen.insert(name.clone()));
    }
    if let Some(directory) = directory {
        let subject = format!("files under {}", say::clean(&directory.to_string_lossy()));
        groups.push(Group { subject, facts: tollgate_inspect::storage(machine, directory) });
    }
    let moments = tollgate_inspect::strain(machine, WHEN);
    groups.push(Group { subject: NOW.to_owned(), facts: moments });
    groups
}

/// The directory on this machine that was named, or the current one, by its whole name.
fn measured(args: &InspectArgs) -> Result<PathBuf, Failure> {
    let Some(named) = &args.dir else {
        return Ok(fs::canonicalize(".").unwrap_or_else(|_| PathBuf::from("/")));
    };
    let cannot = |why: String| Failure::input(format!("--dir: {} {why}", named.display()));
    let whole = fs::canonicalize(named).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => cannot("does not exist".to_owned()),
        _ => cannot(format!("cannot be used: {}", plainly(&error))),
    })?;
    if whole.is_dir() { Ok(whole) } else { Err(cannot("is not a directory".to_owned())) }
}
