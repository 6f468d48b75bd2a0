//! The text about a command compared with another: the verdict with its interval, and what would decide an open one.

use tollgate_model::compare::{CONFIDENCE_OF_TOTAL, Total, Verdict, interval_name, margin};
use tollgate_model::stats::{self, Interval, pairs_that_decide};
use tollgate_model::versus::REAL;
use tollgate_model::{Case, Unit};
use tollgate_output::figures;

use crate::compare::{layouts, need, sentences};
use crate::comparison::{ComparedRow, Comparison};

pub(crate) fn real<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<&'c ComparedRow<'a>> {
    comparison.row(&Case::plain(REAL))
}

/// `B is 3.2 % slower [2.6 %, 3.6 %] than A (99.9 % CI), adds 1.64 ms [1.40, 1.90].`
pub(crate) fn sentence([base, other]: [&str; 2], comparison: &Comparison) -> String {
    let Some(row) = real(comparison) else {
        return format!("{other} is not compared with {base}: {}.", why_missing(comparison));
    };
    let (Some(ratio), result) = (row.ratio(), &row.result) else {
        let why = row.result.why.as_deref().unwrap_or("it has no ratio");
        return format!("{other} compared with {base}: inconclusive, {why}{}.", adds(row));
    };
    let level = &comparison.interval_name;
    let shown = sentences::ratio(ratio, result.interval);
    let shown = if result.interval.is_some() { format!("{shown} ({level})") } else { shown };
    let total = result.total.as_ref().map(in_all).unwrap_or_default();
    if let Some(is) = sentences::verdict([base, other], result, comparison.asked) {
        let how = match result.verdict {
            Verdict::Same => format!(": {shown}"),
            verdict if verdict.is_beyond_margin() => format!(" ({level}){}", adds(row)),
            _ => format!(": {shown}{}", adds(row)),
        };
        return format!("{is}{how}.{total}");
    }
    let Some(interval) = result.interval else {
        let why = result.why.as_deref().unwrap_or("it has no interval");
        let decided = decided_by(other, comparison, row);
        return format!("{other} compared with {base}: inconclusive, {why}: {shown}.{decided}");
    };
    let half = figures::percent(need::half_of(interval));
    let decided = match own_reason(comparison, row, interval) {
        Some(why) => format!(" {}.", capitalized(why)),
        None => format!("{total}{}", decided_by(other, comparison, row)),
    };
    format!("{other} compared with {base}: inconclusive, ±{half}: {shown}.{decided}")
}

/// Why a row is inconclusive although its interval decides: something else prevents it.
fn own_reason<'r>(comparison: &Comparison, row: &'r ComparedRow, interval: Interval) -> Option<&'r str> {
    let margin = 1.0 + margin(comparison.asked);
    let is_within = interval.low >= 1.0 / margin && interval.high <= margin;
    row.result.why.as_deref().filter(|_| is_within || !interval.contains(1.0))
}

/// ` Ratio of the totals 1.004 [0.995, 1.013] (95 % CI).`
fn in_all(total: &Total) -> String {
    let shown = sentences::ratio(total.ratio, total.interval).replacen("ratio", "Ratio of the totals", 1);
    let level = interval_name(CONFIDENCE_OF_TOTAL);
    let modes = total.modes.as_ref().map(|modes| format!("; {modes}")).unwrap_or_default();
    format!(" {shown} ({level}){modes}.")
}

fn capitalized(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// `, adds 1.64 ms [1.40, 1.90]`, `, saves 1.64 ms [1.40, 1.90]`.
fn adds(row: &ComparedRow) -> String {
    let found = row.result.alternation.as_ref();
    let unit = Unit::Nanoseconds;
    let Some(adds) = found.map(|found| found.adds).or_else(|| row.adds()) else { return String::new() };
    let ends = found
        .and_then(|found| found.adds_interval)
        .map(|ends| if adds < 0.0 { [-ends.high, -ends.low] } else { [ends.low, ends.high] });
    let ends = ends
        .map(|[low, high]| format!(" [{}]", figures::range(low, high, adds.abs(), unit).replace('–', ", ")));
    let word = if adds < 0.0 { "saves" } else { "adds" };
    format!(", {word} {}{}", figures::estimate(adds.abs(), unit), ends.unwrap_or_default())
}

/// ` B took longer in 5 of 5 pairs; about 14 pairs like these decide: --time 20s. Other work moves them: …`: what would decide
/// it, by the observed pairs.
fn decided_by(name: &str, comparison: &Comparison, row: &ComparedRow) -> String {
    if let Some(sentence) = layouts::deciding(row) {
        return format!(" {sentence}");
    }
    /// Pairs whose middle half lies further apart met other work.
    const APART: f64 = 0.1;
    const HOUR: f64 = 3600.0;
    let pairs = row.base.samples.iter().zip(&row.other.samples);
    let logs: Vec<f64> =
        pairs.map(|(base, other)| (other / base).ln()).filter(|log| log.is_finite()).collect();
    let all = logs.len();
    let longer = logs.iter().filter(|log| **log > 0.0).count();
    let took = if 2 * longer < all {
        format!("{name} took less in {} of {all} pairs", all - longer)
    } else {
        format!("{name} took longer in {longer} of {all} pairs")
    };
    let needed = pairs_that_decide(&logs, comparison.asked);
    let seconds = comparison.base.seconds().zip(needed);
    let decide = match seconds.map(|(seconds, needed)| (needed, seconds * needed as f64 / all as f64)) {
        Some((needed, seconds)) if seconds <= HOUR => {
            let needed = figures::thousands(&needed.to_string());
            format!("about {needed} pairs like these decide it: --time {}", need::rounded(seconds))
        }
        Some(_) => "pairs like these need more than an hour to decide it".to_owned(),
        None => "more pairs like these will not decide it".to_owned(),
    };
    let sorted = stats::sorted(&logs);
    let middle = [0.75, 0.25].map(|share| stats::quantile(&sorted, share).unwrap_or_default());
    let calmer = if middle[0] - middle[1] > APART {
        " Fewer suffice on a quieter machine, or with --in host:nice=-20 as root."
    } else {
        ""
    };
    format!(" {took}; {decide}.{calmer}")
}

fn why_missing(comparison: &Comparison) -> String {
    let missing = comparison.only_base.iter().chain(&comparison.only_other);
    let why = missing.filter(|(case, _)| case.benchmark == REAL).map(|(_, why)| why.clone()).next();
    why.unwrap_or_else(|| "neither was timed".to_owned())
}
