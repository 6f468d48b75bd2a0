//! The condition of `--fail-on`, and whether the runs suffice to answer it.

use tollgate_model::Outcome;
use tollgate_model::compare::{MOST_SAME, Verdict};
use tollgate_model::stats::Interval;
use tollgate_output::figures;

use super::alternating;
use super::need::{self, Need};
use crate::comparison::{ComparedRow, Comparison};
use crate::counts;

/// A row whose estimate differs by this factor never passes as unchanged, however wide its interval.
const GROSS: f64 = 2.0;

/// The verdict that makes a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// A row is slower.
    Slower,
    /// A row is faster.
    Faster,
    /// A row is slower or faster.
    Different,
    /// A row is inconclusive, or its benchmark has no figure in one of the runs.
    Undecided,
}

/// The answer to a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A row meets it: the sentence names the row.
    Met(String),
    /// No row meets it, but too little was decided to say that none does: the sentence gives the reason.
    Open(String),
    /// No row meets it.
    NotMet,
}

impl Condition {
    fn is_met(self, verdict: Verdict) -> bool {
        match self {
            Self::Slower => verdict == Verdict::Slower,
            Self::Faster => verdict == Verdict::Faster,
            Self::Different => verdict.is_beyond_margin(),
            Self::Undecided => verdict == Verdict::Inconclusive,
        }
    }

    fn word(self, is_count: bool) -> &'static str {
        match self {
            Self::Slower if is_count => "more",
            Self::Faster if is_count => "fewer",
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Different => "different",
            Self::Undecided => "inconclusive",
        }
    }

    fn is_beyond(self, ratio: f64, factor: f64) -> bool {
        let (slower, faster) = (ratio > factor, ratio < 1.0 / factor);
        match self {
            Self::Slower => slower,
            Self::Faster => faster,
            Self::Different | Self::Undecided => slower || faster,
        }
    }

    /// Whether a row that is inconclusive, or of undecided amount, may meet the condition: its interval, or that of its totals,
    /// is missing, or reaches beyond what counts as the same.
    fn is_open(self, row: &ComparedRow, asked: f64) -> bool {
        let factor = 1.0 + asked.max(MOST_SAME);
        let is_open = |interval: Option<Interval>| {
            interval.is_none_or(|interval| {
                self.is_beyond(interval.high, factor) || self.is_beyond(interval.low, factor)
            })
        };
        let of_total = row.result.total.as_ref().is_some_and(|total| is_open(total.interval));
        let verdict = row.result.verdict;
        let is_undecided = verdict != Verdict::Same && !verdict.is_beyond_margin();
        is_undecided && (is_open(row.result.interval) || of_total)
    }

    fn is_gross(self, row: &ComparedRow, asked: f64) -> bool {
        row.ratio().is_some_and(|ratio| self.is_beyond(ratio, GROSS.max(1.0 + asked)))
    }
}

/// The answer of several comparisons to several conditions, ignoring differences up to `asked`.
///
/// Open if no row meets any condition, and in one of the comparisons no case has a figure in both runs; or a row that is
/// inconclusive looks changed by a factor of 2 or more; or more than half of the rows are inconclusive and their intervals
/// include the condition. A benchmark that has a figure in the base but failed in the other counts as such a row.
pub fn answer(conditions: &[Condition], asked: f64, comparisons: &[Comparison]) -> Answer {
    let all = || comparisons.iter().flat_map(|comparison| &comparison.rows);
    for condition in conditions {
        let met: Vec<String> = all()
            .filter(|row| condition.is_met(row.result.verdict))
            .map(|row| row.case().to_string())
            .chain(comparisons.iter().filter(|_| *condition == Condition::Undecided).flat_map(lost))
            .collect();
        let is_of_counts =
            all().filter(|row| condition.is_met(row.result.verdict)).all(ComparedRow::is_count);
        let word = condition.word(is_of_counts);
        match met.as_slice() {
            [] => {}
            [first] => return Answer::Met(format!("{first} is {word}")),
            [first, rest @ ..] => return Answer::Met(format!("{first} and {} more are {word}", rest.len())),
        }
    }
    let open = conditions.iter().flat_map(|condition| {
        comparisons.iter().filter_map(|comparison| doubt(*condition, asked, comparison))
    });
    open.map(Answer::Open).next().unwrap_or(Answer::NotMet)
}

fn doubt(condition: Condition, asked: f64, comparison: &Comparison) -> Option<String> {
    let word = condition.word(comparison.is_counted());
    if comparison.rows.is_empty() {
        let why = counts::not_compared(comparison);
        let why = why.unwrap_or_else(|| "no case has a figure in both runs".to_owned());
        return Some(format!("undecided: {}", why.trim_end_matches('.')));
    }
    let open: Vec<&ComparedRow> =
        comparison.rows.iter().filter(|row| condition.is_open(row, asked)).collect();
    if let Some(row) = open.iter().find(|row| condition.is_gross(row, asked)) {
        let how = figures::compared(row.result.ratio, ["slower", "faster"]);
        let why = Need::of(comparison, row).map(|need| need.found).unwrap_or_default();
        return Some(format!("undecided: {} is {how}, inconclusive ({why})", row.case()));
    }
    let lost = lost(comparison).count();
    let (open_rows, rows) = (open.len() + lost, comparison.rows.len() + lost);
    if 2 * open_rows <= rows {
        return None;
    }
    let needs: Vec<Need> = open.iter().filter_map(|row| Need::of(comparison, row)).collect();
    let command = need::command(comparison, needs.iter());
    let remedy = match command {
        Some(command) => format!("; more time: {command}"),
        None if comparison.is_of_one_session() => String::new(),
        None => format!("; in turns: {}", alternating::command(comparison.base, comparison.other)),
    };
    Some(format!("undecided: {open_rows} of {rows} rows may be {word}{remedy}"))
}

/// The cases that the base measured, but that failed or were not decided in the other.
fn lost(comparison: &Comparison) -> impl Iterator<Item = String> {
    let tried = |case: &&tollgate_model::Case| {
        let measurement = comparison.other.measurement(case);
        measurement
            .is_some_and(|it| matches!(it.outcome, Outcome::Failed { .. } | Outcome::NotMeasured { .. }))
    };
    comparison.only_base.iter().map(|(case, _)| case).filter(tried).map(ToString::to_string)
}
