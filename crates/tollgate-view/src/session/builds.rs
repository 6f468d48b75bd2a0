//! Builds whose benches alternated: the text about them instead of environments.

use std::collections::HashSet;

use tollgate_model::text::listed;
use tollgate_model::{Case, Run};
use tollgate_output::figures::count;

use super::{Member, Session};
use crate::comparison::{self, ComparedRow, Comparison};
use crate::facts;
use crate::together::together;

const MOST_NAMED: usize = 4;

pub(super) fn harness<'a>(session: &Session<'a>) -> Option<&'a str> {
    harness_of(session.members.first()?.summary.run)
}

pub(crate) fn harness_of(run: &Run) -> Option<&str> {
    comparison::command(run)?.harness.as_deref()
}

/// The head of a screen: `5 benches of divan`, `2 builds`.
pub(super) fn head(session: &Session, harness: &str) -> [String; 2] {
    let names = |member: &Member| {
        member.summary.measured().map(|(case, _)| case.benchmark.as_str()).collect::<HashSet<_>>().len()
    };
    let benches = session.members.iter().map(names).max().unwrap_or(0);
    let builds = count(session.members.len(), "build", "builds");
    [format!("{} of {harness}", count(benches, "bench", "benches")), builds]
}

/// The notes below all comparisons: what a figure is, what may cause a change, and what is left out, one paragraph each. Nothing
/// about environments.
pub(super) fn notes(session: &Session) -> Vec<String> {
    let Some(base) = session.members.first().filter(|_| harness(session).is_some()) else {
        return Vec::new();
    };
    let statistic = facts::text(&base.summary.run.facts, facts::STATISTIC);
    let statistic = statistic.map(|what| format!("Figure of an execution: {what}."));
    let is_changed = |comparison: &Comparison| !comparison.changed().is_empty() && !comparison.is_counted();
    let layout = match control(session) {
        Some(control) => within(session, control),
        None => session.comparisons.iter().any(is_changed).then(|| LAYOUT.to_owned()),
    };
    statistic.into_iter().chain(layout).chain(left_out(session)).collect()
}

/// The base's code at other addresses, compared with the base, if there is such a build.
fn control<'s, 'a>(session: &'s Session<'a>) -> Option<&'s Comparison<'a>> {
    let place = facts::number(&session.members.first()?.summary.run.facts, facts::CONTROL)?;
    let is_it = |member: &Member| f64::from(member.part.place) == place;
    session.others().find(|(member, _)| is_it(member)).map(|(_, comparison)| comparison)
}

fn within(session: &Session, control: &Comparison) -> Option<String> {
    let reach = |row: &ComparedRow| {
        let interval = control.row(row.case())?.result.interval?;
        Some(interval.low.ln().abs().max(interval.high.ln().abs()))
    };
    let others = session.comparisons.iter().filter(|comparison| !std::ptr::eq(*comparison, control));
    let changed = others.flat_map(Comparison::changed);
    let changed = changed.filter(|row| reach(row).is_some_and(|reach| row.size() <= reach));
    let mut cases: Vec<String> = changed.map(|row| row.case().to_string()).collect();
    cases.dedup();
    (!cases.is_empty()).then(|| {
        let cases = few(cases);
        format!(
            "Not larger than the possible difference of the control, whose code has other addresses: {cases}."
        )
    })
}

fn few(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    names.truncate(MOST_NAMED);
    names.extend((more > 0).then(|| format!("{more} more")));
    listed(&names)
}

const LAYOUT: &str = "Code that the linker moved may change speed by some percent without any change of its own. --control BUILD, the base built at other addresses, shows by how much; --in vm:exact counts instructions, which do not depend on addresses (docs/benches.md).";

fn left_out(session: &Session) -> Vec<String> {
    let measurements = session.members.iter().flat_map(|member| &member.summary.run.measurements);
    let mut without: Vec<(&str, &Case)> =
        measurements.filter_map(|it| Some((it.outcome.why()?, &it.case))).collect();
    // One reason per bench is enough.
    let mut known = HashSet::new();
    without.retain(|(_, case)| known.insert(*case));
    let reasons = together(without.into_iter().map(|(why, case)| (why, case.to_string())));
    reasons.into_iter().map(|(why, cases)| format!("Left out: {}: {why}.", few(cases))).collect()
}

pub(super) fn more(session: &Session) -> String {
    let label = session.members.first().and_then(|member| member.summary.run.label.as_ref());
    match label {
        Some(label) => format!("More: tollgate show {label} --all | tollgate report {label}"),
        None => "More: --all; --format json; --label NAME keeps it for show, compare, report".to_owned(),
    }
}
