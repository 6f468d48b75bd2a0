//! The counts of which a command has more than the first one, or than a budget allows: system calls, page faults, instructions.
//!
//! Executions of equal code can differ in a count, such as that of futex(2). So a count is more if its least is above the base's
//! greatest, in enough executions: if the spreads overlap, it is not. A count that is equal in all executions of a side is exact.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_model::Case;
use tollgate_model::compare::Verdict;
use tollgate_model::text::{excerpt, listed};
use tollgate_model::versus::{CALLS, FAULTS, INSTRUCTIONS, KERNEL_INSTRUCTIONS, USER_INSTRUCTIONS};
use tollgate_output::figures::thousands;

use super::cells::{self, Cell, comparison_of};
use super::counted;
use crate::compare::condition::Answer;
use crate::session::Session;

/// The counts that a budget can limit besides calls by their names, with their cases.
pub const QUANTITIES: [(&str, &str); 4] =
    [("calls", CALLS), ("faults", FAULTS), ("user", USER_INSTRUCTIONS), ("kernel", KERNEL_INSTRUCTIONS)];

/// Executions of each side that make equal counts exact.
const FEWEST: usize = 3;
/// The counts of two equal sides can follow each other by size in a number of orders; in one, all counts of the base come first. If
/// there are this many orders, chance gives that one in 0.1 % of comparisons.
const ORDERS: f64 = 1000.0;
const MOST_NAMED: usize = 6;

/// The greatest number of something that an execution may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// One of [`QUANTITIES`], or the name of a call.
    pub of: String,
    /// The greatest number.
    pub most: u64,
}

/// The counts that decide the exit status.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'b> {
    /// Whether the others may do no more than the first.
    pub is_more: bool,
    /// Limits of each command but the first, or of the only one.
    pub budgets: &'b [Budget],
    /// Whether calls are to be counted.
    pub is_traced: bool,
    /// Relative differences up to this one do not count.
    pub threshold: f64,
}

/// Returns whether a command does more than it may, with all such counts in a sentence, and notes on counts that vary.
pub fn more(session: &Session, asked: Asked) -> (Answer, Vec<String>) {
    let cells = cells::all(session);
    let Some((base, others)) = cells.split_first() else { return (Answer::NotMet, Vec::new()) };
    let judged = if others.is_empty() { &cells[..1] } else { others };
    let mut found = Found::default();
    if asked.is_more {
        for other in others {
            if counted::is_counted(&cells) {
                found.compare_counted(session, base, other, asked.is_traced);
            } else {
                found.compare(base, other, asked);
            }
        }
    }
    judged.iter().for_each(|cell| found.spend(cell, asked.budgets));
    let Found { met, open, notes } = found;
    match (met.as_slice(), open.as_slice()) {
        ([], []) => (Answer::NotMet, notes),
        ([], open) => (Answer::Open(format!("undecided: {}", open.join("; "))), notes),
        (met, _) => (Answer::Met(met.join("; ")), notes),
    }
}

/// Sentences without their full stops.
#[derive(Default)]
struct Found {
    met: Vec<String>,
    open: Vec<String>,
    notes: Vec<String>,
}

impl Found {
    fn compare(&mut self, base: &Cell, other: &Cell, asked: Asked) {
        let [of_base, of_other] = [base, other].map(Counted::of);
        for (cell, counted) in [(base, &of_base), (other, &of_other)] {
            if let (Err(why), true) = (&counted.calls, asked.is_traced) {
                self.open.push(format!("the calls of {} are not counted: {why}", cell.label));
            }
        }
        let (mut more, mut few) = (Vec::new(), Vec::new());
        let names: BTreeSet<&str> = of_base.names().chain(of_other.names()).collect();
        for name in names {
            let (Ok(before), Ok(now)) = (of_base.get(name), of_other.get(name)) else { continue };
            let line = || format!("{} {} ({} {})", excerpt(name), now.shown(), base.label, before.shown());
            match before.step(&now, asked.threshold) {
                Step::None => {}
                Step::Close => self.notes.push(format!(
                    "{} vary: {} in {}, {} in {}; that is too little apart to be more",
                    excerpt(name),
                    before.shown(),
                    base.label,
                    now.shown(),
                    other.label
                )),
                Step::Few => few.push((name, now.least - before.least, line())),
                Step::More => more.push((name, now.least - before.least, line())),
            }
        }
        self.tell(base, other, more);
        if !few.is_empty() {
            let few = named(few);
            self.open.push(format!(
                "{} may do more than {}, in too few executions to say: {few}; --time or --runs gives more",
                other.label, base.label
            ));
        }
    }

    /// Counts of guests already have verdicts, which allow for the difference between two boots.
    fn compare_counted(&mut self, session: &Session, base: &Cell, other: &Cell, is_traced: bool) {
        let comparison = comparison_of(session, other);
        let row = |case: &str| comparison.and_then(|comparison| comparison.row(&Case::plain(case)));
        let all = [("instructions", INSTRUCTIONS)].into_iter().chain(QUANTITIES);
        let mut more = Vec::new();
        for (name, case) in all {
            match row(case) {
                Some(row) if row.result.verdict == Verdict::Slower => {
                    let [before, now] = [row.result.base, row.result.other].map(Option::unwrap_or_default);
                    let line = format!("{name} {} ({} {})", whole(now), base.label, whole(before));
                    more.push((name, now - before, line));
                }
                // The parts of the sum decide if they are known; few executions may leave the sum itself inconclusive.
                Some(sum)
                    if case == INSTRUCTIONS
                        && sum.result.verdict == Verdict::Inconclusive
                        && sum.result.other > sum.result.base
                        && row(USER_INSTRUCTIONS).is_none() =>
                {
                    self.open.push(format!("{name} of {} are inconclusive", other.label));
                }
                None if case == INSTRUCTIONS || (case == CALLS && is_traced) => {
                    self.open.push(format!("{name} of {} are not compared", other.label));
                }
                _ => {}
            }
        }
        self.tell(base, other, more);
    }

    fn tell(&mut self, base: &Cell, other: &Cell, more: Vec<Line>) {
        if !more.is_empty() {
            self.met.push(format!("{} does more than {}: {}", other.label, base.label, named(more)));
        }
    }

    fn spend(&mut self, cell: &Cell, budgets: &[Budget]) {
        let counted = Counted::of(cell);
        let mut over = Vec::new();
        for Budget { of, most } in budgets {
            let allowed = whole(*most as f64);
            match counted.get(of) {
                Err(why) => self.open.push(format!("{of} of {} are not counted: {why}", cell.label)),
                Ok(counts) if counts.least > *most as f64 => {
                    over.push(format!("{of} {} ({allowed} allowed)", counts.shown()));
                }
                Ok(counts) if counts.most > *most as f64 => self.notes.push(format!(
                    "{of} of {} vary, {}: not all above the budget of {allowed}",
                    cell.label,
                    counts.shown()
                )),
                Ok(_) => {}
            }
        }
        if !over.is_empty() {
            self.met.push(format!("{} is over budget: {}", cell.label, listed(&over)));
        }
    }
}

/// The name of a count that is more, by how much, and its text.
type Line<'n> = (&'n str, f64, String);

/// The lines of counts: sums first, then the calls that differ most; further ones are counted.
fn named(mut all: Vec<Line>) -> String {
    let is_call = |name: &str| name != "instructions" && QUANTITIES.iter().all(|(sum, _)| *sum != name);
    all.sort_by(|a, b| is_call(a.0).cmp(&is_call(b.0)).then(b.1.total_cmp(&a.1)));
    let further = all.len().saturating_sub(MOST_NAMED);
    let mut lines: Vec<String> = all.into_iter().map(|(.., line)| line).take(MOST_NAMED).collect();
    if further > 0 {
        lines.push(format!("{further} more"));
    }
    listed(&lines)
}

/// The counts of a command's executions.
struct Counted<'a> {
    cell: &'a Cell<'a, 'a>,
    /// By name, or why there are none.
    calls: Result<BTreeMap<&'a str, Counts>, String>,
    /// Traced executions.
    traced: usize,
}

impl<'a> Counted<'a> {
    fn of(cell: &'a Cell<'a, 'a>) -> Self {
        let traced = cell.traced();
        let missed = traced.iter().flat_map(|traced| &traced.missed).next();
        let calls = match missed {
            Some(missed) => Err(format!("its trace lacks {}", missed.what)),
            None if traced.is_empty() => {
                Err(cell.why_untraced().unwrap_or("it was not traced").trim_end_matches('.').to_owned())
            }
            None => {
                let mut calls: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
                for (at, traced) in traced.iter().enumerate() {
                    for call in &traced.calls {
                        calls.entry(&call.name).or_insert_with(|| vec![0.0; cell.traced().len()])[at] +=
                            call.count as f64;
                    }
                }
                Ok(calls
                    .into_iter()
                    .filter_map(|(name, counts)| Some((name, Counts::of(&counts)?)))
                    .collect())
            }
        };
        Self { cell, calls, traced: traced.len() }
    }

    /// The names of the counts.
    fn names(&self) -> impl Iterator<Item = &'a str> {
        let calls = self.calls.iter().flat_map(|calls| calls.keys().copied());
        QUANTITIES.iter().map(|(name, _)| *name).chain(calls)
    }

    /// The counts of a quantity or of a call; a call that was never made has zeros.
    fn get(&self, name: &str) -> Result<Counts, String> {
        let run = self.cell.member.summary.run;
        let known = QUANTITIES.iter().find(|(known, _)| *known == name);
        let outcome = known.and_then(|(_, case)| run.measurement(&Case::plain(*case))).map(|it| &it.outcome);
        match (outcome, known) {
            (Some(outcome), _) => {
                let samples = outcome.measured().and_then(|measured| Counts::of(&measured.samples));
                samples.ok_or_else(|| outcome.why().unwrap_or("no execution was counted").to_owned())
            }
            (None, Some(("calls", _))) => {
                self.calls.as_ref().map_err(Clone::clone)?;
                let all: Vec<f64> = self.cell.traced().iter().map(|traced| traced.count() as f64).collect();
                Counts::of(&all).ok_or_else(|| "it was not traced".to_owned())
            }
            (None, Some(_)) => Err("no execution was counted".to_owned()),
            (None, None) => {
                let none = Counts { least: 0.0, most: 0.0, number: self.traced };
                Ok(self.calls.as_ref().map_err(Clone::clone)?.get(name).copied().unwrap_or(none))
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Counts {
    least: f64,
    most: f64,
    number: usize,
}

enum Step {
    None,
    /// The spreads overlap, or lie next to each other in few executions.
    Close,
    /// The spreads lie apart, in few executions.
    Few,
    More,
}

impl Counts {
    fn of(counts: &[f64]) -> Option<Self> {
        let least = counts.iter().copied().reduce(f64::min)?;
        let most = counts.iter().copied().reduce(f64::max)?;
        Some(Self { least, most, number: counts.len() })
    }

    fn step(&self, other: &Self, threshold: f64) -> Step {
        let factor = 1.0 + threshold;
        if other.least <= self.least * factor {
            return Step::None;
        }
        if other.least <= self.most * factor {
            return Step::Close;
        }
        let is_exact = self.least == self.most && other.least == other.most;
        let suffices = if is_exact {
            self.number.min(other.number) >= FEWEST
        } else {
            orders(self.number, other.number) >= ORDERS
        };
        if suffices {
            Step::More
        } else if other.least - self.most > self.range() + other.range() {
            Step::Few
        } else {
            Step::Close
        }
    }

    fn range(&self) -> f64 {
        self.most - self.least
    }

    /// `34`, `32 to 36`.
    fn shown(&self) -> String {
        if self.least == self.most {
            return whole(self.least);
        }
        format!("{} to {}", whole(self.least), whole(self.most))
    }
}

fn whole(count: f64) -> String {
    thousands(&format!("{count:.0}"))
}

/// The ways in which the counts of two sides can follow each other by size.
fn orders(one: usize, other: usize) -> f64 {
    (1..=one).map(|at| (other + at) as f64 / at as f64).product()
}
