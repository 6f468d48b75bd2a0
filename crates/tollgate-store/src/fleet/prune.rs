//! Removes old runs, unreferenced facts and half-written files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use tollgate_model::RunId;
use tollgate_model::sorting::Ordered as _;
use tollgate_model::text::plainly;
use tollgate_view::export::time::Date;

use super::contents::{Contents, ContentsError, DirectoryEntry, What};
use super::layout::{DOCUMENTS, day_of};

/// Younger files may belong to a run that is being stored: seconds.
const BEING_WRITTEN: i64 = 3600;
const DAY: i64 = 86_400;

/// What was removed, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PrunedStore"))]
pub struct Pruned {
    /// The directory.
    pub dir: String,
    /// Whether nothing was removed.
    pub dry_run: bool,
    /// What was removed, or would be, in that order.
    pub removed: Vec<Removed>,
    /// Of all of them.
    pub bytes: u64,
}

/// A file that goes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Removed {
    /// Beneath the directory.
    pub path: String,
    /// The reason.
    pub why: Why,
    /// Its size.
    pub bytes: u64,
}

/// The reason why a file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReasonToPrune"))]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its day is too long ago.
    Old,
    /// No lines refer to these facts.
    Unreferenced,
    /// It was being written.
    HalfWritten,
}

/// A file that cannot be removed, or a directory that is no store: a sentence.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// The directory.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// The file.
    #[error("{} cannot be removed: {}", .0.display(), plainly(.1))]
    Stays(PathBuf, io::Error),
}

/// Removes the runs that are older than so many days, unreferenced facts and half-written files. Only files that the layout names are
/// removed; a dry run removes none.
///
/// # Errors
/// A directory that is no store; a file that cannot be removed.
pub fn prune(directory: &Path, keep_days: Option<u32>, dry_run: bool) -> Result<Pruned, PruneError> {
    let contents = Contents::read(directory)?;
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let removed = choose(&contents, keep_days, now);
    if !dry_run {
        for Removed { path, .. } in &removed {
            let removed = contents.tree.remove(path);
            removed.map_err(|error| PruneError::Stays(directory.join(path), error))?;
        }
        // A directory that has something in it stays.
        for day in contents.found.iter().filter(|found| found.what == What::Day) {
            let _ = contents.tree.remove_empty(&day.path);
        }
    }
    let bytes = removed.iter().map(|removed| removed.bytes).sum();
    Ok(Pruned { dir: directory.display().to_string(), dry_run, removed, bytes })
}

/// The files to remove, oldest first, lines before the facts that they refer to.
fn choose(contents: &Contents, keep_days: Option<u32>, now: i64) -> Vec<Removed> {
    let is_old = |date: Date| keep_days.is_some_and(|days| date.days() < now / DAY - i64::from(days));
    let is_young = |found: &DirectoryEntry| found.modified > now - BEING_WRITTEN;
    let dates: BTreeMap<&RunId, Date> = contents
        .found
        .iter()
        .filter_map(|found| match &found.what {
            What::Rows(date, id) => Some((id, *date)),
            _ => None,
        })
        .collect();
    let referenced = referenced(contents, is_old);
    let why = |found: &DirectoryEntry| match &found.what {
        What::Rows(date, _) if is_old(*date) => Some(Why::Old),
        What::Document(id) => {
            let date = dates.get(id).copied().or_else(|| day_of(id));
            date.is_some_and(is_old).then_some(Why::Old)
        }
        What::Facts(name) if !is_young(found) => {
            let is_referenced = referenced.as_ref().is_none_or(|names| names.contains(name));
            (!is_referenced).then_some(Why::Unreferenced)
        }
        What::Leftover if !is_young(found) => Some(Why::HalfWritten),
        _ => None,
    };
    let removed = |found| Some(Removed { why: why(found)?, path: found.path.clone(), bytes: found.size });
    let mut removed: Vec<Removed> = contents.found.iter().filter_map(removed).collect();
    // A document goes before its lines: stopped in between, the lines still say by which day to find the rest.
    removed.order_by_key(|removed| (removed.why, !removed.path.starts_with(DOCUMENTS)));
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
