//! Start, stop and memory of a session's environments: a row for each, its times and its memory as columns.

use tollgate_engine::Aspect;
use tollgate_engine::aspect::{Memory, Phase};
use tollgate_model::{Case, Unit};
use tollgate_output::figures::{count, estimate};
use tollgate_output::table::{Table, heading, paragraph};

use super::{Member, Session};
use crate::compare::columns::Compared;
use crate::comparison::Comparison;
use crate::summary::Figures;
use crate::together::together;

const COLUMNS: [(&str, Aspect); 7] = [
    ("start", Aspect::Start),
    ("to shell", Aspect::StartToShell),
    ("stop", Aspect::Stop),
    ("memory", Aspect::Memory(Memory::Processes)),
    ("cache", Aspect::Memory(Memory::PageCache)),
    ("inside", Aspect::Memory(Memory::Inside)),
    ("touch", Aspect::FirstTouch),
];

fn aspect(case: &Case) -> Option<Aspect> {
    tollgate_suites::find(&case.benchmark)?.aspect_of(&case.params)
}

pub(super) fn is_all(session: &Session) -> bool {
    let mut rows = session.members.iter().flat_map(|member| &member.summary.rows).peekable();
    rows.peek().is_some() && rows.all(|row| aspect(row.case).is_some())
}

pub(super) fn text(session: &Session, width: usize) -> String {
    let columns: Vec<(&'static str, Aspect)> = COLUMNS
        .into_iter()
        .filter(|(_, aspect)| session.members.iter().any(|member| figures(member, *aspect).is_some()))
        .collect();
    let phases: Vec<(&'static str, Aspect)> =
        Phase::ALL.map(|phase| (phase.name(), Aspect::Phase(phase))).into();
    let phased: Vec<&Member> = session
        .members
        .iter()
        .filter(|member| phases.iter().any(|(_, phase)| figures(member, *phase).is_some()))
        .collect();
    let mut text = String::new();
    if !columns.is_empty() {
        text.push_str(&heading(&title(session), width));
        text.push_str(&table(&columns, &session.members, in_words, width));
        text.push_str(&ratios(session, &columns, width));
    }
    if !phased.is_empty() {
        text.push_str(&table(&phases, phased, in_words, width));
    }
    for remark in remarks(session) {
        text.push_str(&paragraph(&remark, width, ""));
    }
    text
}

fn title(session: &Session) -> String {
    let all = session.members.iter().flat_map(|member| member.summary.measured());
    let of_starts = all.filter(|(case, _)| aspect(case).is_some());
    let numbers: Vec<usize> = of_starts.map(|(_, figures)| figures.measured.samples.len()).collect();
    let (least, most) =
        (numbers.iter().min().copied().unwrap_or(0), numbers.iter().max().copied().unwrap_or(0));
    let number =
        if least == most { count(most, "start", "starts") } else { format!("{least} to {most} starts") };
    format!("Start, stop and memory of an environment: medians of {number} each, in random order")
}

fn figures<'f>(member: &'f Member, of: Aspect) -> Option<&'f Figures<'f>> {
    member.summary.measured().find(|(case, _)| aspect(case) == Some(of)).map(|(_, figures)| figures)
}

fn table<'m>(
    columns: &[(&'static str, Aspect)],
    rows: impl IntoIterator<Item = &'m Member<'m>>,
    cell: impl Fn(&Member, Aspect) -> Option<String>,
    width: usize,
) -> String {
    let heads = std::iter::once("environment").chain(columns.iter().map(|(name, _)| *name));
    let cells = |member: &Member| columns.iter().map(|(_, of)| cell(member, *of)).collect::<Vec<_>>();
    let rows = rows.into_iter().map(|member| (short(&member.name), cells(member)));
    Table::of_cells(heads, rows).lines(Some(width), false)
}

fn in_words(member: &Member, of: Aspect) -> Option<String> {
    figures(member, of).map(in_short)
}

/// The median; empty for a page cache that did not grow.
fn in_short(figures: &Figures) -> String {
    let unit = figures.measured.unit;
    match figures.estimate.median {
        none if none <= 0.0 && unit == Unit::Bytes => "0".to_owned(),
        median => estimate(median, unit),
    }
}

fn ratios(session: &Session, columns: &[(&'static str, Aspect)], width: usize) -> String {
    let Some(base) = session.members.first() else { return String::new() };
    if session.comparisons.is_empty() {
        return String::new();
    }
    let cell = |other: &Member, of: Aspect| {
        let mut all = session.others();
        let (_, comparison) = all.find(|(member, _)| member.part.place == other.part.place)?;
        ratio_of(comparison, of)
    };
    let name = short(&base.name);
    let title = format!("As a multiple of {name}, paired by round (~ inconclusive; CIs: show --all)");
    heading(&title, width) + &table(columns, &session.members[1..], cell, width)
}

fn ratio_of(comparison: &Comparison, of: Aspect) -> Option<String> {
    let row = comparison.rows.iter().find(|row| aspect(row.case()) == Some(of))?;
    Compared::new(comparison, row).words("multiple")
}

fn remarks(session: &Session) -> Vec<String> {
    let starts = session.members.iter().filter_map(|member| Some((member, figures(member, Aspect::Start)?)));
    let notes = starts
        .flat_map(|(member, figures)| figures.measured.notes.iter().map(|note| (note, short(&member.name))));
    together(notes).into_iter().map(|(note, names)| format!("{}: {note}.", names.join(", "))).collect()
}

/// A name without the key that its value implies: `container:podman`.
fn short(name: &str) -> String {
    name.replacen(":runtime=", ":", 1).replacen(":vmm=", ":", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_where_its_value_says_enough() {
        let shown = ["host", "container:runtime=podman", "vm:vmm=microvm", "vm:kernel=/k"].map(short);
        assert_eq!(shown, ["host", "container:podman", "vm:microvm", "vm:kernel=/k"]);
    }
}
