//! `tollgate store prune`: removes old runs, unreferenced facts and half-written files. It removes only files that the layout names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use serde::Serialize;
use tollgate_model::RunId;
use tollgate_view::export::layout::DOCUMENTS;
use tollgate_view::export::time::Date;

use super::contents::{Contents, Found, What};
use super::tree::beneath;
use crate::args::{Format, StorePruneArgs};
use crate::failure::{Failure, plainly};
use crate::table::paragraph;
use crate::{figures, out, say};

/// Younger files may belong to a run that is being stored: seconds.
const BEING_WRITTEN: i64 = 3600;
const DAY: i64 = 86_400;

#[derive(Serialize)]
struct Pruned<'a> {
    dir: String,
    dry_run: bool,
    removed: Vec<Removed<'a>>,
    bytes: u64,
}

#[derive(Serialize)]
struct Removed<'a> {
    path: &'a str,
    why: Why,
    bytes: u64,
}

/// Why something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Why {
    /// Its day is too long ago.
    Old,
    /// No lines refer to these facts.
    Unreferenced,
    /// It was being written.
    HalfWritten,
}

/// Removes what is to go.
///
/// # Errors
/// A directory that is no store; a file that cannot be removed.
pub fn prune(args: &StorePruneArgs) -> Result<(), Failure> {
    let contents = Contents::of(&args.dir)?;
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let removed = choose(&contents, args.keep_days, now);
    if !args.dry_run {
        for Removed { path, .. } in &removed {
            contents.tree.remove(path).map_err(|error| {
                Failure::input(format!("{} cannot be removed: {}", beneath(&args.dir, path), plainly(&error)))
            })?;
        }
        remove_empty_days(&contents);
    }
    let bytes = removed.iter().map(|removed| removed.bytes).sum();
    let pruned = Pruned { dir: args.dir.display().to_string(), dry_run: args.dry_run, removed, bytes };
    match args.format {
        Format::Json => out::print_json(&pruned),
        Format::Table => out::print(&sentences(&pruned, args)),
    }
}

/// The files to remove, oldest first, lines before the facts that they refer to.
fn choose(contents: &Contents, keep_days: Option<u32>, now: i64) -> Vec<Removed<'_>> {
    let is_old = |date: Date| keep_days.is_some_and(|days| date.days() < now / DAY - i64::from(days));
    let is_young = |found: &Found| found.modified > now - BEING_WRITTEN;
    let dates: BTreeMap<&RunId, Date> = contents
        .found
        .iter()
        .filter_map(|found| match &found.what {
            What::Rows(date, id) => Some((id, *date)),
            _ => None,
        })
        .collect();
    let referenced = referenced(contents, is_old);
    let why = |found: &Found| match &found.what {
        What::Rows(date, _) if is_old(*date) => Some(Why::Old),
        What::Document(id) => {
            let date = dates.get(id).copied().or_else(|| date_of(id));
            date.is_some_and(is_old).then_some(Why::Old)
        }
        What::Facts(name) if !is_young(found) => {
            let is_referenced = referenced.as_ref().is_none_or(|names| names.contains(name));
            (!is_referenced).then_some(Why::Unreferenced)
        }
        What::Leftover if !is_young(found) => Some(Why::HalfWritten),
        _ => None,
    };
    let removed = |found| Some(Removed { why: why(found)?, path: found.path.as_str(), bytes: found.size });
    let mut removed: Vec<Removed> = contents.found.iter().filter_map(removed).collect();
    // A document goes before its lines: stopped in between, the lines still say by which day to find the rest.
    tollgate_model::sort::by_key(&mut removed, |removed| (removed.why, !removed.path.starts_with(DOCUMENTS)));
    removed
}

/// The facts that lines refer to which stay. None where some lines cannot be read.
fn referenced(contents: &Contents, is_old: impl Fn(Date) -> bool) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for found in &contents.found {
        match &found.what {
            What::Rows(date, _) if !is_old(*date) => {
                names.extend(contents.first_row(&found.path).ok()?.map(|row| row.env_id.into_owned()));
            }
            What::OtherSchema => return None,
            _ => {}
        }
    }
    Some(names)
}

/// The day that an id begins with, as all of ours do.
fn date_of(id: &RunId) -> Option<Date> {
    let digits = id.as_ref().get(..8)?;
    format!("{}-{}-{}", digits.get(..4)?, digits.get(4..6)?, digits.get(6..)?).parse().ok()
}

/// The directories of days that have nothing in them. One that has cannot be removed so, and stays.
fn remove_empty_days(contents: &Contents) {
    for day in contents.found.iter().filter(|found| found.what == What::Day) {
        let _ = contents.tree.remove_empty(&day.path);
    }
}

fn sentences(pruned: &Pruned, args: &StorePruneArgs) -> String {
    let mut text = String::new();
    if pruned.dry_run {
        for removed in &pruned.removed {
            text.push_str(&format!("{}\n", say::clean(&beneath(&args.dir, removed.path))));
        }
    }
    let would = if pruned.dry_run { "would be removed" } else { "removed" };
    if pruned.removed.is_empty() {
        return format!("{text}Nothing {would}.\n");
    }
    let of = |why: Why| pruned.removed.iter().filter(|removed| removed.why == why).count();
    let parts = [
        (Why::Old, "of old runs"),
        (Why::Unreferenced, "with unreferenced facts"),
        (Why::HalfWritten, "half-written"),
    ];
    let counts: Vec<String> = parts
        .into_iter()
        .filter(|(why, _)| of(*why) > 0)
        .map(|(why, what)| format!("{} {what}", of(why)))
        .collect();
    let files = figures::count(pruned.removed.len(), "file", "files");
    let summary = format!("{files} {would}, {}: {}.", figures::bytes(pruned.bytes as f64), counts.join(", "));
    text.push_str(&paragraph(&summary, out::width(), ""));
    text
}
