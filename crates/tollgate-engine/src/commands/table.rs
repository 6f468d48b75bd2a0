//! Which of the cases is executed next, in which order of the sides, and for how long at most.

use std::time::Duration;

use tollgate_model::stats;

use super::{Terms, record::ExecutedCase};
use crate::benchmark::Chosen;
use tollgate_model::stats::random::Random;

/// The greatest number of repetitions of a case in a run without environments.
const MOST_REPETITIONS: usize = 64;
/// The greatest number of pairs: a document holds some 6 KB of each execution.
const MOST_PAIRS: usize = 128;
/// The confidence of a ratio's interval that ends the executions: each interval of a comparison has at least that.
const CONFIDENCE: f64 = 0.99;

/// The records of a group's cases on each side.
pub(super) struct Table {
    /// Side by side, one for each case.
    pub records: Vec<Vec<ExecutedCase>>,
    most: usize,
}

impl Table {
    pub fn new(cases: &[Chosen], sides: usize) -> Self {
        let of_side = || cases.iter().map(|_| ExecutedCase::default()).collect();
        let most = if sides == 1 { MOST_REPETITIONS } else { MOST_PAIRS };
        Self { records: (0..sides).map(|_| of_side()).collect(), most }
    }

    /// The next case, and the order of the sides that it is executed on: a random one of the cases with the fewest
    /// repetitions that fit into the remaining time. The first repetitions are in the order of `of`: the probably fast
    /// cases come first there, so that few are missing if the time is short.
    pub fn next(&mut self, of: &[usize], left: Duration, random: &mut Random) -> Option<(usize, Vec<usize>)> {
        let fits = |case: usize| self.open(case).next().is_some() && self.took(case, self.open(case)) <= left;
        let mut due: Vec<usize> = of.iter().copied().filter(|&case| fits(case)).collect();
        let least = due.iter().map(|&case| self.repetitions(case)).min()?;
        due.retain(|&case| self.repetitions(case) == least);
        if least >= self.most || left.is_zero() {
            return None;
        }
        if least > 0 {
            random.shuffle(&mut due);
        }
        let case = *due.first()?;
        let mut order: Vec<usize> = self.open(case).collect();
        random.shuffle(&mut order);
        Some((case, order))
    }

    /// How long a repetition may take on each of so many sides: one that hangs leaves time for the other sides, and in its
    /// first repetition for the other cases.
    pub fn patience(&self, case: usize, of: &[usize], sides: usize, left: Duration) -> Duration {
        let others_wait =
            of.iter().any(|&other| other != case && self.repetitions(other) == 0 && self.is_open(other));
        let is_first = self.repetitions(case) == 0;
        left / if is_first && others_wait { 2 } else { 1 } / sides.max(1) as u32
    }

    /// Whether the interval of every case is as narrow as required, or it had its repetitions.
    pub fn is_settled(&self, cases: &[Chosen], of: &[usize], terms: &Terms) -> bool {
        of.iter().all(|&case| !self.is_open(case) || self.is_decided(case, &cases[case], terms))
    }

    fn is_decided(&self, case: usize, chosen: &Chosen, terms: &Terms) -> bool {
        let sides: Vec<usize> = self.open(case).collect();
        match self.repetitions(case) {
            few if few < terms.least => return false,
            enough if enough >= terms.most => return true,
            _ => {}
        }
        match sides.split_first() {
            Some((&only, [])) => {
                let width = self.records[only][case].relative_half_width(chosen);
                width.is_some_and(|width| width <= terms.precision)
            }
            Some((&base, others)) => others.iter().all(|&other| {
                let ratios = self.ratios(case, base, other);
                let interval = stats::settled_interval(&ratios, CONFIDENCE);
                interval.is_some_and(|interval| (interval.high - interval.low) / 2.0 <= terms.precision)
            }),
            None => true,
        }
    }

    /// ln(other / base) of each repetition that both kept.
    fn ratios(&self, case: usize, base: usize, other: usize) -> Vec<f64> {
        let pairs = self.records[base][case].times().zip(self.records[other][case].times());
        pairs.filter_map(|(base, other)| Some(other?.ln() - base?.ln())).filter(|d| d.is_finite()).collect()
    }

    /// Its fixture is gone.
    pub fn close(&mut self, case: usize) {
        self.records.iter_mut().for_each(|records| records[case].close());
    }

    /// The side has ended.
    pub fn leave(&mut self, side: usize) {
        self.records[side].iter_mut().for_each(ExecutedCase::close);
    }

    fn open(&self, case: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.records.len()).filter(move |&side| self.records[side][case].is_open())
    }

    fn is_open(&self, case: usize) -> bool {
        self.open(case).next().is_some()
    }

    /// Repetitions of a case on the sides where it may still be executed: the same number on each.
    fn repetitions(&self, case: usize) -> usize {
        self.open(case).map(|side| self.records[side][case].repetitions()).max().unwrap_or_default()
    }

    /// The time that one repetition on these sides may take.
    fn took(&self, case: usize, sides: impl Iterator<Item = usize>) -> Duration {
        sides.map(|side| self.records[side][case].took()).sum()
    }
}
