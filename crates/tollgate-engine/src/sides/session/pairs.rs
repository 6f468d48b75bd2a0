//! Pairs of processes: their ratios, and how many turns the next one should have.
//!
//! Time goes to starts of processes or to turns in them. The variance of the final ratio is least if a process has
//! √(c_start/c_turn · T²_turns/T²_processes) turns: the costs of a start and of a turn, and the variances of the log-ratio within
//! processes and between them (Kalibera & Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013, section 5).

use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;
use std::time::Duration;

use tollgate_model::estimate::ENOUGH_PROCESSES;
use tollgate_model::stats;

use crate::bench_process::record::InstanceRecord;

/// Turns of a process while nothing is known: about eight processes start per second then.
pub const FIRST_GUESS: usize = 40;
/// The fewest turns, so that their median is one of several.
const LEAST: usize = 8;
/// The half width of a decided ratio: differences of half a percent should be found.
pub const NARROW: f64 = 0.0035;
/// A decided case takes part in every fourth round.
pub const MOST_REST: usize = 4;
/// The most turns: the machine's pace changes within seconds.
const MOST: usize = 200;

#[derive(Debug, Clone, Default)]
pub struct Pairs {
    /// Pairs of processes that had a turn.
    pub number: usize,
    /// The turns that each case could have in them.
    pub turns: usize,
    pub is_nearly_decided: bool,
    starting: Duration,
    turning: Duration,
    /// By the index of the other environment and the case.
    ratios: BTreeMap<(usize, usize), Ratios>,
}

/// The log-ratios of one case, of an environment to the base: the median and the variance of each pair.
#[derive(Debug, Clone, Default)]
struct Ratios {
    medians: Vec<f64>,
    within: Vec<f64>,
}

impl Ratios {
    /// A fast estimate of half a comparison's interval: the standard error of a median (√(π/2) of a mean's) times the confidence
    /// boundary. `None` with too few pairs.
    fn half_width(&self) -> Option<f64> {
        /// With 4.3 standard deviations of a sum of signs, all looks together err once in 1,000, for ten to some thousand pairs.
        const QUANTILE: f64 = 4.3 * 1.2533;
        let number = self.medians.len();
        if number < ENOUGH_PROCESSES {
            return None;
        }
        Some(QUANTILE * (variance(&self.medians)? / number as f64).sqrt())
    }
}

impl Pairs {
    /// Adds a pair that took `whole`, of which `turning` in `turns`.
    pub fn add(&mut self, whole: Duration, turning: Duration, turns: usize) {
        self.number += 1;
        self.turns += turns;
        self.starting += whole.saturating_sub(turning);
        self.turning += turning;
    }

    /// Adds the batches of a case in a pair: of the base, and of the environment at this index.
    pub fn compare(&mut self, place: usize, case: usize, [base, other]: [&InstanceRecord; 2], rounds: usize) {
        let mut of_base = base.batches(rounds).peekable();
        let mut ratios = Vec::new();
        for (round, ticks) in other.batches(rounds) {
            while of_base.next_if(|(earlier, _)| *earlier < round).is_some() {}
            let Some((_, base)) = of_base.next_if(|(same, _)| *same == round) else { continue };
            if base > 0 && ticks > 0 {
                ratios.push((ticks as f64).ln() - (base as f64).ln());
            }
        }
        let Some(median) = stats::median(&ratios) else { return };
        let known = self.ratios.entry((place, case)).or_default();
        known.medians.push(median);
        if ratios.len() >= LEAST / 2 {
            known.within.extend(variance(&ratios));
        }
    }

    /// The number of turns of the next process.
    pub fn next(&self, first: usize, most: usize) -> usize {
        self.best().unwrap_or(first as f64).clamp(LEAST as f64, MOST.min(most.max(LEAST)) as f64).round()
            as usize
    }

    fn best(&self) -> Option<f64> {
        let (_, _, costs) = self.costs()?;
        let turns = self.turns as f64 / self.number as f64;
        let best = |ratios: &Ratios| {
            if ratios.medians.len() < ENOUGH_PROCESSES {
                return None;
            }
            // The median of a normal distribution varies π/2 times as much as its mean.
            let within = stats::median(&ratios.within)? * FRAC_PI_2;
            let between = (variance(&ratios.medians)? - within / turns).max(0.0);
            let best = (costs * within / between).sqrt();
            (!best.is_nan()).then_some(best.min(MOST as f64))
        };
        stats::median(&self.ratios.values().filter_map(best).collect::<Vec<f64>>())
    }

    /// Milliseconds of a start and of a turn, and their ratio.
    fn costs(&self) -> Option<(f64, f64, f64)> {
        if self.number == 0 || self.turns == 0 {
            return None;
        }
        let start = self.starting.as_secs_f64() * 1e3 / self.number as f64;
        let turn = self.turning.as_secs_f64() * 1e3 / self.turns as f64;
        (turn > 0.0).then_some((start, turn, start / turn))
    }

    pub fn decided(&self, half_width: f64) -> f64 {
        let is_narrow = |ratios: &&Ratios| ratios.half_width().is_some_and(|half| half <= half_width);
        self.ratios.values().filter(is_narrow).count() as f64 / self.ratios.len().max(1) as f64
    }

    /// Returns n for a case due in every n-th round, by its widest ratio. A decided case goes on, since the machine may change.
    pub fn rest(&self, case: usize) -> usize {
        let of_case = self.ratios.iter().filter(|((_, other), _)| *other == case);
        let widest = of_case.map(|(_, ratios)| ratios.half_width().unwrap_or(f64::INFINITY)).reduce(f64::max);
        match widest {
            Some(half) if half <= NARROW => MOST_REST,
            Some(half) if half <= 2.0 * NARROW => MOST_REST / 2,
            _ => 1,
        }
    }

    /// For the source of a fact.
    pub fn describe(&self) -> String {
        let Some((start, turn, _)) = self.costs() else { return "no pair of processes".to_owned() };
        let turns = self.turns as f64 / self.number as f64;
        format!(
            "{} pairs of {turns:.0} turns; a start takes {start:.1} ms and a turn {turn:.1} ms, all environments together",
            self.number
        )
    }
}

/// The variance, from the median absolute deviation, so that one interrupt does not decide it. `None` without values.
fn variance(values: &[f64]) -> Option<f64> {
    /// The standard deviation of a normal distribution over that deviation.
    const NORMAL: f64 = 1.4826;
    let median = stats::median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    Some((stats::median(&deviations)? * NORMAL).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ticks: impl IntoIterator<Item = i64>) -> InstanceRecord {
        InstanceRecord { ticks: ticks.into_iter().collect(), ..InstanceRecord::default() }
    }

    /// Pairs of 40 turns, in which a turn varies by `within` and a process by `between`, per mille.
    fn pairs(within: i64, between: i64, start: u64) -> Pairs {
        let mut pairs = Pairs::default();
        for pair in 0..30 {
            let process = between * [-1, 0, 1][pair % 3] * 100;
            let other = (0..40).map(|turn: usize| 100_000 + process + within * 100 * [-1, 0, 1][turn % 3]);
            pairs.compare(1, 0, [&record([100_000; 40]), &record(other)], 40);
            pairs.add(Duration::from_millis(start + 80), Duration::from_millis(80), 40);
        }
        pairs
    }

    #[test]
    fn turns_grow_with_the_cost_of_a_start_and_with_the_variance_within_a_process() {
        // √(40 ms / 2 ms · π/2 · 1) is 5.6, and 8 the least.
        assert_eq!(pairs(10, 10, 40).next(FIRST_GUESS, 500), 8);
        let more = pairs(40, 10, 40).next(FIRST_GUESS, 500);
        assert!((15..40).contains(&more), "{more}");
        let longer = pairs(40, 10, 400).next(FIRST_GUESS, 500);
        assert!(longer > 2 * more, "{longer}");
        assert_eq!(pairs(40, 0, 40).next(FIRST_GUESS, 500), MOST);
        assert_eq!(pairs(40, 0, 40).next(FIRST_GUESS, 20), 20);
        assert_eq!(Pairs::default().next(FIRST_GUESS, 500), FIRST_GUESS);
        assert_eq!(Pairs::default().next(FIRST_GUESS, 0), LEAST);
    }

    #[test]
    fn only_turns_that_both_kept_are_compared() {
        let base = InstanceRecord { ran: Some(vec![0, 2, 4]), ticks: vec![10, 10, 10], ..Default::default() };
        let other = InstanceRecord {
            ran: Some(vec![1, 2, 3, 4]),
            discarded: vec![4],
            ticks: vec![99, 20, 99],
            ..Default::default()
        };
        let mut pairs = Pairs::default();
        pairs.compare(1, 0, [&base, &other], 5);
        let ratios = &pairs.ratios[&(1, 0)];
        assert_eq!((ratios.medians.len(), ratios.within.len()), (1, 0));
        assert!((ratios.medians[0].exp() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn ratios_are_decided_when_their_intervals_are_narrow() {
        assert_eq!(Pairs::default().decided(1.0), 0.0);
        assert_eq!(pairs(10, 1, 40).decided(0.002), 1.0);
        assert_eq!(pairs(10, 10, 40).decided(0.002), 0.0);
        let rests = [(10, 1), (10, 3), (10, 50)].map(|(within, between)| pairs(within, between, 40).rest(0));
        assert_eq!(rests, [4, 2, 1]);
        assert_eq!((pairs(10, 1, 40).rest(7), Pairs::default().rest(0)), (1, 1));
    }
}
