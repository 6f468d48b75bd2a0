//! Finds which of several kept runs a name means: a run, or the runs of a session.

use std::cmp::Ordering;
use std::mem;

use tollgate_model::{Label, RunId};

use crate::document::Head;
use crate::kept::{Entry, FindError, LAST};
use crate::kind::RunKind;

pub(crate) enum Meaning {
    Run(Entry),
    /// The runs of a session: the first, which is the base unless that is deleted, and the others in their order.
    Session(Entry, Vec<Entry>),
}

impl Meaning {
    pub(crate) fn first(&self) -> &Entry {
        match self {
            Self::Run(entry) | Self::Session(entry, _) => entry,
        }
    }

    pub(crate) fn into_all(self) -> Vec<Entry> {
        match self {
            Self::Run(entry) => vec![entry],
            Self::Session(first, others) => std::iter::once(first).chain(others).collect(),
        }
    }
}

/// Finds the runs that `last`, the id of a run or of a session, a label, or the beginning of an id means. `entries` are sorted by
/// age. A label or `last` means the whole session of its run, the id of a run only that. Opening an unreadable document shows why.
///
/// # Errors
/// If a beginning fits several.
pub(crate) fn among(
    mut entries: Vec<Entry>,
    meant: &str,
    kinds: &[RunKind],
) -> Result<Option<Meaning>, FindError> {
    if meant == LAST {
        let is_meant = |entry: &Entry| {
            kinds == RunKind::ALL || entry.outline().map_or(true, |outline| kinds.contains(&outline.kind()))
        };
        return Ok(newest(entries, is_meant));
    }
    if let Some(exact) = entries.iter().position(|entry| entry.id.as_ref() == meant) {
        return Ok(Some(Meaning::Run(entries.swap_remove(exact))));
    }
    if meant.is_empty() {
        return Ok(None);
    }
    // Labels and sessions' ids are in the heads.
    let heads: Vec<Head> = entries.iter().map(Entry::head).collect();
    let is_label = meant.parse::<Label>().is_ok();
    let labelled = heads.iter().rposition(|head| is_label && head.label.as_deref() == Some(meant));
    match labelled {
        Some(labelled) => Ok(Some(whole(entries, heads, labelled))),
        None => beginning_with(entries, heads, meant),
    }
}

/// Returns the newest run for which `is_meant` holds, with its session.
pub(crate) fn newest(entries: Vec<Entry>, is_meant: impl Fn(&Entry) -> bool) -> Option<Meaning> {
    let newest = entries.iter().rposition(is_meant)?;
    let heads = entries.iter().map(Entry::head).collect();
    Some(whole(entries, heads, newest))
}

fn whole(mut entries: Vec<Entry>, mut heads: Vec<Head>, at: usize) -> Meaning {
    let entry = entries.remove(at);
    let Some(own) = heads.remove(at).session else { return Meaning::Run(entry) };
    let mut first = (own.place, entry);
    let mut others: Vec<(u32, Entry)> = Vec::new();
    for (entry, head) in entries.into_iter().zip(heads) {
        let Some(part) = head.session.filter(|part| part.id == own.id) else { continue };
        let mut other = (part.place, entry);
        if in_order(&other, &first) == Ordering::Less {
            mem::swap(&mut other, &mut first);
        }
        others.push(other);
    }
    others.sort_by(in_order);
    Meaning::Session(first.1, others.into_iter().map(|(_, entry)| entry).collect())
}

/// By their places. A document that claims another one's place comes after it.
fn in_order(a: &(u32, Entry), b: &(u32, Entry)) -> Ordering {
    (a.0, &a.1.id).cmp(&(b.0, &b.1.id))
}

/// Resolves the beginning of an id to a run, or to a session, whose runs began in the same second as it.
fn beginning_with(
    mut entries: Vec<Entry>,
    heads: Vec<Head>,
    meant: &str,
) -> Result<Option<Meaning>, FindError> {
    let begins = |id: &RunId| id.as_ref().starts_with(meant);
    let session = |at: usize| heads[at].session.as_ref().map(|part| &part.id);
    let runs: Vec<usize> = (0..entries.len()).filter(|&at| begins(&entries[at].id)).collect();
    let parts = (0..entries.len()).filter(|&at| session(at).is_some_and(begins));
    let mut fitting: Vec<usize> = parts.chain(runs.iter().copied()).collect();
    fitting.sort_unstable();
    fitting.dedup();
    let (Some(&first), Some(&last)) = (fitting.first(), fitting.last()) else { return Ok(None) };
    let is_one =
        fitting.iter().all(|&at| at == first || (session(at).is_some() && session(at) == session(first)));
    match runs.as_slice() {
        // Only this run is meant: the id of its session begins differently, or it has no session.
        [run] if is_one && !session(*run).is_some_and(begins) => {
            Ok(Some(Meaning::Run(entries.swap_remove(*run))))
        }
        _ if is_one => Ok(Some(whole(entries, heads, first))),
        _ => Err(FindError::Several {
            meant: meant.to_owned(),
            number: fitting.len(),
            first: entries[first].id.clone(),
            last: entries[last].id.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn kept(directory: &Path) -> Vec<Entry> {
        let part = |place: u32| {
            format!(
                r#"{{"id":"20260101-000001-5e55","environment":"host","place":{place},"of":2,"paired":true}}"#
            )
        };
        let head = |id: &str, label: &str, rest: &str| {
            let path = directory.join(format!("{id}.json"));
            fs::write(&path, format!(r#"{{"id":"{id}","label":"{label}",{rest}"started":"x"}}"#))
                .expect("written");
            Entry::read(&path).expect("a run")
        };
        vec![
            head("20260101-000000-aaaa", "alone", ""),
            head("20260101-000001-bbbb", "both", &format!(r#""session":{},"#, part(1))),
            head("20260101-000001-cccc", "both", &format!(r#""session":{},"#, part(0))),
        ]
    }

    /// The last four letters of the ids that a name means.
    fn ids(meant: &str) -> Result<String, FindError> {
        let directory = tempfile::tempdir().expect("a directory");
        let found = among(kept(directory.path()), meant, RunKind::ALL)?;
        let entries = found.map_or_else(Vec::new, Meaning::into_all);
        Ok(entries.iter().map(|entry| &entry.id.as_ref()[16..]).collect::<Vec<&str>>().join(" "))
    }

    #[test]
    fn a_session_is_meant_by_its_id_its_label_and_last() {
        for meant in ["20260101-000001-5e55", "20260101-000001-5", "20260101-000001", "both", "last"] {
            assert_eq!(ids(meant).expect("found"), "cccc bbbb", "{meant}");
        }
    }

    #[test]
    fn a_run_is_meant_by_its_id_also_where_it_is_of_a_session() {
        for (meant, expected) in [
            ("20260101-000001-bbbb", "bbbb"),
            ("20260101-000001-b", "bbbb"),
            ("20260101-000000", "aaaa"),
            ("alone", "aaaa"),
            ("", ""),
            ("nothing", ""),
        ] {
            assert_eq!(ids(meant).expect("at most one"), expected, "{meant}");
        }
        assert!(matches!(ids("20260101"), Err(FindError::Several { number: 3, .. })));
    }
}
