//! The notes below the rows of a comparison: how many did not change, what has no row, and what would decide the open ones.

use tollgate_model::Case;
use tollgate_model::compare::{Verdict, margin};
use tollgate_output::figures;

use super::need::{self, Need};
use super::rows::{REAL, has_filter, is_refused};
use super::{columns, layouts, processor};
use crate::comparison::Comparison;
use crate::together::together;
use crate::{counts, facts};

/// The notes, one paragraph each. `hidden` changed rows have no room; if `is_helpful`, the command that gives more time is
/// included.
pub(crate) fn all(comparison: &Comparison, hidden: usize, is_helpful: bool) -> Vec<String> {
    let lines = [
        unshown(comparison, hidden),
        of_filter(comparison),
        counts::not_compared(comparison),
        comparison.halves.as_ref().map(|halves| format!("{halves}.")),
        inconclusive(comparison, is_helpful),
        gross(comparison),
        layouts::of_rows(comparison),
        processor::of_rows(comparison),
    ];
    lines.into_iter().flatten().collect()
}

fn unshown(comparison: &Comparison, hidden: usize) -> Option<String> {
    let more = (hidden > 0).then(|| format!("{hidden} more changed (--all)"));
    let same = comparison.of_verdict(Verdict::Same);
    let widest = same.iter().filter_map(|row| row.result.interval.map(need::half_of)).max_by(f64::total_cmp);
    let widest = widest.filter(|_| comparison.is_alternated);
    let widest = widest.map(|half| format!(", the widest interval ±{}", figures::percent(half)));
    let same = figures::count(same.len(), "row", "rows");
    let same = format!("{same} the same{}{}", within(comparison), widest.unwrap_or_default());
    let only = |side: &str, only: &[(Case, String)]| match only {
        [] => None,
        [(case, _)] => Some(format!("1 in the {side} only ({case})")),
        several => Some(format!("{} in the {side} only", several.len())),
    };
    let parts = [
        more,
        Some(same).filter(|_| !comparison.rows.is_empty()),
        only("base", &comparison.only_base),
        only("other", &comparison.only_other),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

fn within(comparison: &Comparison) -> String {
    let share = if comparison.is_alternated {
        margin(comparison.asked)
    } else if comparison.is_counted() {
        comparison.asked
    } else {
        0.0
    };
    if share > 0.0 { format!(" within {}", whole_percent(share)) } else { String::new() }
}

fn whole_percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

fn inconclusive(comparison: &Comparison, is_helpful: bool) -> Option<String> {
    let needs: Vec<Need> = comparison.rows.iter().filter_map(|row| Need::of(comparison, row)).collect();
    if needs.is_empty() {
        return None;
    }
    let mut halves: Vec<f64> = needs.iter().filter_map(|need| need.half).collect();
    halves.sort_by(f64::total_cmp);
    let ends = halves.first().zip(halves.last());
    let span = ends.map(|(least, most)| {
        let mut ends = [least, most].map(|half| format!("±{}", figures::percent(*half))).to_vec();
        ends.dedup();
        ends.join(" to ")
    });
    let is_all = halves.len() == needs.len();
    let mut reasons: Vec<String> = span
        .map(|span| if is_all { span } else { format!("{} of {span}", halves.len()) })
        .into_iter()
        .collect();
    // The text before the figures is the kind of reason.
    let kind = |need: &Need| need.found.split(':').next().unwrap_or_default().to_owned();
    let others = needs.iter().filter(|need| need.half.is_none());
    let mut others = together(others.map(|need| (kind(need), ())));
    others.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    reasons.extend(others.into_iter().take(2).map(|(kind, all)| {
        let with = if kind.starts_with("too few") { "with " } else { "" };
        format!("{} {with}{kind}", all.len())
    }));
    // The widest interval would need hours for all.
    let middle = halves.get(halves.len() / 2).copied().unwrap_or(f64::INFINITY);
    let half_of_them = || needs.iter().filter(|need| need.half.is_none_or(|half| half <= middle));
    let command = need::command(comparison, half_of_them()).filter(|_| is_helpful);
    let most = if half_of_them().count() < needs.len() { "half of them" } else { "them" };
    let hint = command.map(|command| format!(". More time may decide {most}: {command}")).unwrap_or_default();
    let lost = undetectable(comparison).unwrap_or_default();
    Some(format!("{} inconclusive: {}{lost}{hint}", needs.len(), reasons.join(", ")))
}

/// For runs that did not alternate: how large a change must be to be found in the inconclusive rows.
fn undetectable(comparison: &Comparison) -> Option<String> {
    if comparison.is_alternated {
        return None;
    }
    let open = comparison.of_verdict(Verdict::Inconclusive);
    let mut ratios: Vec<f64> = open.iter().filter_map(|row| row.result.detectable()).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let [middle, most] =
        [ratios.len() / 2, ratios.len().checked_sub(1)?].map(|at| figures::ratio(ratios[at]));
    let which = if middle == most {
        format!("below {middle} ×")
    } else {
        format!("below {middle} × in half of them, and below {most} × in one")
    };
    Some(format!("; the spread between runs here hides changes {which}"))
}

fn gross(comparison: &Comparison) -> Option<String> {
    let mut far = comparison.of_verdict(Verdict::Inconclusive);
    far.retain(|row| row.size() > 2.0_f64.ln());
    let first = *far.iter().max_by(|one, another| one.size().total_cmp(&another.size()))?;
    let more = match far.len() - 1 {
        0 => String::new(),
        more => format!(", and {}", figures::count(more, "more row", "more rows")),
    };
    let ratio = columns::Compared::new(comparison, first).words("ratio").unwrap_or_default();
    Some(format!("Inconclusive despite the ratio: {} {ratio}{more}.", first.case()))
}

/// The time that a filter adds to the calls of programs, if it differs.
fn of_filter(comparison: &Comparison) -> Option<String> {
    let is_shown = comparison.changed().iter().any(|row| is_refused(row.case()));
    let real = comparison
        .row(&Case::plain(REAL))
        .and_then(|row| Some(format!(": getpid pays {}", figures::difference(row.adds()?, row.base.unit))));
    let whose = facts::text(&comparison.other.facts, facts::FILTER);
    let whose = whose.map(|whose| format!(" The filter is {whose}."));
    (has_filter(comparison) && is_shown).then(|| {
        format!(
            "A filter's cache of verdicts never has calls with number -1, such as entry/syscall, so they are its worst case{}.{}",
            real.unwrap_or_default(),
            whose.unwrap_or_default()
        )
    })
}
