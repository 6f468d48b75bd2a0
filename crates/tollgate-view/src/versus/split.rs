//! The parts of the difference of two commands: the parts of the real time and the system calls of their traced executions.
//!
//! In each pair of traced executions of one number the parts and the calls sum to the difference of the pair's real times to the
//! nanosecond ([`blame`]). Each line has the median over the pairs. Medians do not sum, and the traced executions are not the
//! timed ones, so the rest of the timed difference is a separate line, and each column sums to the timed difference.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tollgate_model::stats;
use tollgate_model::traced::blame::{self, Account, Blame, Part, less};
use tollgate_model::traced::{Backend, Parts};
use tollgate_model::{Case, Run, Traced, own};

use super::said::real;
use crate::comparison::Comparison;

/// A difference and what it consists of. Times are in nanoseconds.
pub(crate) struct Split {
    /// Pairs of traced executions.
    pub(crate) pairs: usize,
    pub(crate) backends: [Backend; 2],
    /// The parts of the real time, in the order of tables.
    pub(crate) parts: Vec<(Part, Line)>,
    pub(crate) calls: Vec<Call>,
    /// The time outside of calls: user mode, faults and the rest.
    pub(crate) outside: Line,
    /// Waiting for a processor, in calls and outside of them, which no call causes.
    pub(crate) runqueue: Line,
    /// The time that belongs to neither, before the first event and after the last.
    pub(crate) unaccounted: Line,
    pub(crate) traced: Line,
    pub(crate) timed: Line,
    /// Whether every share is measured, none estimated.
    pub(crate) is_exact: bool,
    /// How exact the calls' shares are, in few words.
    pub(crate) shares: &'static str,
    /// How exact they are, in a sentence.
    pub(crate) method: &'static str,
}

fn shares<'t>(mut traced: impl Iterator<Item = &'t Traced> + Clone) -> &'static str {
    match () {
        () if traced.clone().all(blame::is_exact) => "One thread: the calls' shares are exact.",
        () if traced.clone().any(|traced| traced.idle.is_none()) => {
            "ptrace(2) does not report waiting: the calls' shares are estimates."
        }
        () if traced.clone().any(|traced| traced.processes > 1) => {
            "Several processes, including the shell if one starts the command: the calls' shares are estimates."
        }
        () if traced.any(|traced| traced.threads > 1) => "Several threads: the calls' shares are estimates.",
        () => {
            "More than 2 % of the time is before the first call or after the last: the calls' shares are estimates."
        }
    }
}

pub(crate) fn method<'t>(mut traced: impl Iterator<Item = &'t Traced> + Clone) -> &'static str {
    const EXACT: &str =
        "Each had one thread, so every part and every call's share of the real time is measured.";
    const ESTIMATE: &str = "Parts sum to the real time. If threads run in parallel, the real time is divided among them by their times on processors and in each kind of waiting, so a call's share is an estimate.";
    const UNKNOWN: &str = "If the backend does not know the kind of waiting or the idle real time, waiting is at least what user and sys leave of the real time, and a call's share is an estimate.";
    match () {
        () if traced.clone().any(|traced| traced.idle.is_none()) => UNKNOWN,
        () if traced.all(blame::is_exact) => EXACT,
        () => ESTIMATE,
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Base and other.
    pub(crate) sides: [i64; 2],
    pub(crate) difference: i64,
}

impl Line {
    pub(crate) fn of([base, other]: [i64; 2]) -> Self {
        Self { sides: [base, other], difference: other.saturating_sub(base) }
    }

    fn less(self, part: Self) -> Self {
        let [base, other] = [0, 1].map(|at| self.sides[at].saturating_sub(part.sides[at]));
        Self { sides: [base, other], difference: self.difference.saturating_sub(part.difference) }
    }
}

pub(crate) struct Call {
    pub(crate) name: String,
    /// Calls that returned: medians of the base and of the other.
    pub(crate) counts: [u64; 2],
    pub(crate) line: Line,
}

impl Split {
    /// `None` if either was not traced, or not timed.
    pub(crate) fn of(comparison: &Comparison) -> Option<Self> {
        let row = real(comparison)?;
        let adds = row.adds()?;
        let rounded = |ns: Option<f64>| ns.map_or(0, |ns| ns.round() as i64);
        let sides = [row.result.base, row.result.other].map(rounded);
        let pairs: Vec<[&Traced; 2]> = pairs(comparison.base, comparison.other).collect();
        let [base, other] = *pairs.first()?;
        let blames: Vec<[Blame; 2]> = pairs.iter().map(|pair| pair.map(Blame::of)).collect();
        let all = || pairs.iter().flatten().copied();
        let part = |at: usize| {
            let of = |blame: &Blame| signed(blame.account.parts()[at].1);
            Some((blames.first()?[0].account.parts()[at].0, line(&blames, of)))
        };
        Some(Self {
            pairs: pairs.len(),
            backends: [base.backend, other.backend],
            parts: (0..blames[0][0].account.parts().len()).filter_map(part).collect(),
            calls: calls(&blames),
            outside: line(&blames, |blame| Beside::from_blame(blame).outside),
            runqueue: line(&blames, |blame| Beside::from_blame(blame).runqueue),
            unaccounted: line(&blames, |blame| Beside::from_blame(blame).unaccounted),
            traced: line(&blames, |blame| signed(blame.account.real)),
            timed: Line { sides, difference: rounded(Some(adds)) },
            is_exact: all().all(blame::is_exact),
            shares: shares(all()),
            method: method(all()),
        })
    }

    /// The rest of the timed executions after the parts, and of their difference.
    pub(crate) fn rest_of_parts(&self) -> Line {
        self.parts.iter().fold(self.timed, |rest, (_, line)| rest.less(*line))
    }

    /// The rest of it after the calls and the time outside of them.
    pub(crate) fn rest_of_calls(&self) -> Line {
        let calls = self.calls.iter().map(|call| call.line);
        calls.chain([self.outside, self.runqueue, self.unaccounted]).fold(self.timed, Line::less)
    }

    pub(crate) fn has_ptrace(&self) -> bool {
        self.backends.contains(&Backend::Ptrace)
    }
}

pub(super) struct Middle {
    pub(super) real: f64,
    parts: Vec<(Part, f64)>,
    pub(super) calls: f64,
    has_idle: bool,
}

impl Middle {
    pub(super) fn of(traced: &[Traced]) -> Option<Self> {
        let accounts: Vec<Account> = traced.iter().map(Account::from_traced).collect();
        let middle = |of: &dyn Fn(&Account) -> u64| middle(accounts.iter().map(of));
        let part =
            |(at, (part, _)): (usize, &(Part, u64))| Some((*part, middle(&|account| account.parts()[at].1)?));
        Some(Self {
            real: middle(&|account| account.real)?,
            parts: accounts.first()?.parts().iter().enumerate().filter_map(part).collect(),
            calls: self::middle(traced.iter().map(Traced::count))?,
            has_idle: traced.iter().all(|traced| traced.idle.is_some()),
        })
    }

    pub(super) fn part(&self, wanted: Part) -> Option<f64> {
        let is_known = self.has_idle || matches!(wanted, Part::User | Part::Sys | Part::Unaccounted);
        let part = self.parts.iter().find(|(part, _)| *part == wanted);
        part.map(|(_, ns)| *ns).filter(|_| is_known)
    }
}

fn middle(values: impl Iterator<Item = u64>) -> Option<f64> {
    stats::median(&values.map(|value| value as f64).collect::<Vec<f64>>())
}

pub(super) fn traced(run: &Run) -> &[Traced] {
    let measurement = run.measurement(&Case::plain(own::TRACED));
    let measured = measurement.and_then(|measurement| measurement.outcome.measured());
    measured.map_or(&[], |measured| &measured.traced)
}

fn pairs<'a>(base: &'a Run, other: &'a Run) -> impl Iterator<Item = [&'a Traced; 2]> {
    traced(base).iter().zip(traced(other)).map(|(base, other)| [base, other])
}

/// The system calls of all pairs, without their waiting for a processor; a call that a pair has not made has no time there.
fn calls(blames: &[[Blame; 2]]) -> Vec<Call> {
    // For each call and side: its contribution and its number in each pair.
    let mut all: BTreeMap<&str, [Vec<(i64, u64)>; 2]> = BTreeMap::new();
    for (pair, sides) in blames.iter().enumerate() {
        for (side, blame) in sides.iter().enumerate() {
            for call in &blame.calls {
                let none = || [(); 2].map(|()| vec![(0, 0); blames.len()]);
                let known = all.entry(&call.name).or_insert_with(none);
                known[side][pair] = (signed(own(call.parts)), call.count);
            }
        }
    }
    let call = |(name, [base, other]): (&str, [Vec<(i64, u64)>; 2])| {
        let count = |of: &[(i64, u64)]| median(of.iter().map(|(_, count)| *count as f64)).max(0) as u64;
        let time = |of: &[(i64, u64)]| median(of.iter().map(|(ns, _)| *ns as f64));
        let differences = base.iter().zip(&other).map(|(base, other)| other.0.saturating_sub(base.0) as f64);
        Call {
            name: name.to_owned(),
            counts: [count(&base), count(&other)],
            line: Line { sides: [time(&base), time(&other)], difference: median(differences) },
        }
    };
    let mut calls: Vec<Call> = all.into_iter().map(call).collect();
    calls.sort_by_key(|call| Reverse((call.line.difference.unsigned_abs(), call.line.sides[0])));
    calls
}

/// The time that a call accounts for apart from waiting for a processor.
fn own(parts: Parts) -> u64 {
    Parts { runqueue_ns: 0, ..parts }.total_ns()
}

/// The real time that no call accounts for. With the calls' own time it sums to the real time.
struct Beside {
    outside: i64,
    runqueue: i64,
    unaccounted: i64,
}

impl Beside {
    fn from_blame(blame: &Blame) -> Self {
        let in_calls = blame.calls.iter().map(|call| call.parts.runqueue_ns).fold(0, u64::saturating_add);
        // A backend that does not know the idle time counts its waiting as unaccounted, and shares that out to calls.
        let runqueue = blame.account.runqueue.max(in_calls);
        let outside = blame.outside_ns.saturating_sub(less(runqueue, in_calls));
        let unaccounted = signed(blame.account.unaccounted).min(outside).max(0);
        Self { outside: outside.saturating_sub(unaccounted), runqueue: signed(runqueue), unaccounted }
    }
}

/// The medians of a time over the pairs.
fn line(blames: &[[Blame; 2]], of: impl Fn(&Blame) -> i64) -> Line {
    let side = |at: usize| median(blames.iter().map(|pair| of(&pair[at]) as f64));
    let differences = blames.iter().map(|[base, other]| of(other).saturating_sub(of(base)) as f64);
    Line { sides: [side(0), side(1)], difference: median(differences) }
}

fn median(values: impl Iterator<Item = f64>) -> i64 {
    stats::median(&values.collect::<Vec<f64>>()).map_or(0, |median| median.round() as i64)
}

fn signed(ns: u64) -> i64 {
    less(ns, 0)
}

#[cfg(test)]
mod tests {
    use tollgate_model::traced::{Backend, Idle};

    use super::*;

    #[test]
    fn a_command_and_its_shell_are_two_processes_and_not_threads() {
        let of = |processes, threads| {
            shares(
                [Traced { processes, threads, idle: Some(Idle::default()), ..Traced::new(Backend::Bpf, 0) }]
                    .iter(),
            )
        };
        assert!(of(2, 2).starts_with("Several processes"));
        assert!(of(1, 2).starts_with("Several threads"));
    }

    #[test]
    fn what_is_left_is_of_each_side() {
        let line = |base, other, difference| Line { sides: [base, other], difference };
        assert_eq!(line(10, 20, 9).less(line(12, 5, 1)), line(-2, 15, 8));
    }
}
