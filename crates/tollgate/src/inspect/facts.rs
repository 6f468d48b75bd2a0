//! `tollgate inspect`: what determines latencies here, on one screen; or every fact of an environment, grouped by subject, with
//! its source and the boundaries that it affects.

mod capturing;
mod chosen;

#[cfg(test)]
pub use capturing::CapturedTree;

use std::fs;
use std::path::{Path, PathBuf};

use tollgate_inspect::{Machine, SUBJECTS};
use tollgate_model::{Boundary, Facts};
use tollgate_output::figures;
use tollgate_output::table::paragraph;
use tollgate_view::inspect::facts::{FactsDocument, Group, NOW, WHEN, affecting, listing, screen, sentence};

use super::machine::machine;
use crate::args::{Format, InspectArgs};
use crate::failure::{Failure, plainly};
use crate::{document, out, say};

/// # Errors
/// A tree, directory or name that does not exist; a capture that cannot be written.
pub fn facts(args: &InspectArgs) -> Result<(), Failure> {
    if let Some(target) = &args.capture {
        return capturing::capture(&measured(args)?, target, args.format);
    }
    let machine = machine("--from", args.from.as_deref())?;
    let directory = match &args.from {
        // The directory belongs to the other machine.
        Some(_) => args.dir.as_deref().or(machine.captured_directory()).map(Path::to_owned),
        None => Some(measured(args)?),
    };
    let all = groups(&machine, directory.as_deref());
    let facts: Facts = all.iter().flat_map(|group| group.facts.iter().cloned()).collect();
    let chosen = chosen::chosen(all, &args.only)?;
    let (chosen, general) = match args.affects {
        Some(boundary) => affecting(chosen, boundary),
        None => (chosen, Vec::new()),
    };
    match args.format {
        Format::Json => {
            out::print_json(&FactsDocument::new(&chosen, &facts, args.from.as_deref(), document::tool()))
        }
        Format::Table => {
            let width = out::width();
            out::print(&match (args.affects, args.all, args.only.is_empty()) {
                (Some(boundary), ..) => effects(boundary, &chosen, &general, &facts, width),
                (None, true, _) => {
                    format!("{}\n{}", sentence(&facts, width), listing(&chosen, &facts, width))
                }
                (None, false, true) => screen(&facts, width),
                (None, false, false) => listing(&chosen, &facts, width),
            })
        }
    }
}

fn effects(boundary: Boundary, chosen: &[Group], general: &[String], facts: &Facts, width: usize) -> String {
    let number = chosen.iter().map(|group| group.facts.len()).sum();
    let mut text = match number {
        0 => paragraph(&format!("No fact affects {boundary} in particular."), width, ""),
        _ => format!("{}\n", listing(chosen, facts, width)),
    };
    let counted = figures::count(number, "fact affects", "facts affect");
    if number > 0 {
        text.push_str(&paragraph(&format!("{counted} {boundary}."), width, ""));
    }
    if !general.is_empty() {
        let sentence = format!("Every latency is affected by {}.", general.join(", "));
        text.push_str(&paragraph(&sentence, width, ""));
    }
    text
}

fn groups(machine: &Machine, directory: Option<&Path>) -> Vec<Group> {
    let mut groups: Vec<Group> = SUBJECTS
        .iter()
        .map(|subject| Group {
            subject: subject.name.to_owned(),
            facts: subject.facts.iter().flat_map(|spec| spec.read(machine)).collect(),
        })
        .collect();
    for group in &mut groups {
        // A family repeats facts that have their own entry.
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
