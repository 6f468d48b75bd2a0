use crate::anytime::{FEWEST_SETTLED, interval_of_coins};
use crate::interval::repeated_rank;
use crate::series::independent_worth;
use crate::total::Total;
use crate::{Ends, FEWEST, Interval, Verdict, percent, quantile, sorted};

/// The quantity by which alternated pairs are compared. It was chosen before any result was seen.
pub const QUANTITY: &str = "the median of the pairs' ratios";

/// The default threshold when turns alternated: relative differences up to this do not count.
const MARGIN: f64 = 0.01;

/// Returns the threshold when turns alternated, a relative difference: `asked`, or 1 % if that is 0.
pub fn margin(asked: f64) -> f64 {
    if asked > 0.0 { asked } else { MARGIN }
}

/// Returns the confidence of each of `rows` intervals: all hold together with 95 %, and each misses once in a thousand at all looks.
pub fn confidence_of_each(rows: usize) -> f64 {
    confidence_of_selected(rows, 1)
}

const TOGETHER: f64 = 0.05;
const EACH: f64 = 1.0 / 1000.0;

fn confidence_of_selected(rows: usize, selected: usize) -> f64 {
    1.0 - (TOGETHER * selected as f64 / rows.max(1) as f64).min(EACH)
}

/// Returns the lowest such confidence at which at most a twentieth of the differing rows is expected to be wrong; `different`
/// counts them. If none differ, it is that of each (Benjamini & Hochberg, "Controlling the False Discovery Rate", 1995). The
/// intervals of the selected rows hold it too (Benjamini & Yekutieli, "False Discovery Rate-Adjusted Multiple Confidence
/// Intervals for Selected Parameters", 2005).
pub fn confidence_of_different(rows: usize, different: impl Fn(f64) -> usize) -> f64 {
    let most = (EACH / TOGETHER * rows as f64).ceil() as usize;
    let levels = (2..=most).rev().map(|selected| (selected, confidence_of_selected(rows, selected)));
    let mut found = levels.filter(|(selected, confidence)| different(*confidence) >= *selected);
    found.next().map_or(confidence_of_each(rows), |(_, confidence)| confidence)
}

/// The limits that a difference must exceed.
#[derive(Debug, Clone, Copy)]
pub struct Margins {
    /// Relative differences up to this do not count.
    pub margin: f64,
    /// How much equal code differed within an environment.
    pub controls: f64,
}

impl Margins {
    /// Returns the verdict by the whole interval, and the reason if it is inconclusive. Slower or faster: it lies beyond the margin
    /// and the controls. Same: it lies within the margin, and so do the totals if given. Somewhat slower or faster: it excludes 1 and
    /// the controls.
    pub fn verdict(
        self,
        interval: Option<Interval>,
        pairs: usize,
        total: Option<&Total>,
    ) -> (Verdict, Option<String>) {
        let undecided = |why| (Verdict::Inconclusive, Some(why));
        let Some(interval) = interval else { return undecided(too_few(pairs)) };
        let verdict = Verdict::by_margin(interval, self.margin, self.controls);
        match (verdict, total.and_then(|total| total.doubt(self.margin))) {
            (Verdict::Same, Some(doubt)) => undecided(doubt),
            (Verdict::Inconclusive, _) => undecided(self.reaches(interval)),
            _ => (verdict, None),
        }
    }

    fn reaches(self, Interval { low, high }: Interval) -> String {
        let span = format!("the ratio is between {low:.4} and {high:.4}");
        if low > 1.0 || high < 1.0 {
            format!("{span}, and equal code differed by {}", percent(self.controls))
        } else {
            format!("{span}: it contains 1, and more than {}", percent(self.margin))
        }
    }
}

fn too_few(pairs: usize) -> String {
    if pairs < FEWEST {
        format!("too few pairs of processes: {pairs}; an interval needs {FEWEST}")
    } else {
        format!("too few independent pairs: of {pairs}, neighbours resemble each other")
    }
}

/// One side may stay at up to twice the level of the other for as long as it is measured: a difference of logarithms.
const LEVELS: f64 = std::f64::consts::LN_2;

/// Returns the interval of a ratio by the logarithms of the pairs in time. `ends` are those of their median. `drawn` is the
/// confidence if a coin drew the order of each pair, and `None` if the order was given.
///
/// It is the intersection of the interval of the `ends`, for which resembling neighbours count as fewer, and that of `by_coins`. With
/// too few pairs for the latter it is the range of all, widened twice because a side may keep its level for all of them.
pub fn interval_of(logs: &[f64], ends: Option<Ends>, drawn: Option<f64>) -> Option<Interval> {
    let by_pairs = ends.and_then(|ends| ends.interval(logs));
    let with_levels = match drawn {
        _ if logs.len() < FEWEST_SETTLED => return by_pairs.map(|all| exp(beside_levels(all))),
        Some(confidence) => by_coins(logs, confidence),
        None => Ends::Beyond(1.0).interval(logs).map(beside_levels),
    };
    let both = by_pairs.zip(with_levels).map(|(one, other)| one.common(other));
    both.or(by_pairs).or(with_levels).map(exp)
}

/// The interval of the logarithm of a ratio by pairs whose order was drawn. The coin of a pair decides which side meets which
/// state of the machine, so the signs of equal sides are independent and fair however long a pace lasts. Resembling neighbours do
/// not count as fewer. A level that one side keeps is not random, so the largest such level is added.
pub(crate) fn by_coins(logs: &[f64], confidence: f64) -> Option<Interval> {
    interval_of_coins(logs, confidence).map(beside_levels)
}

fn beside_levels(Interval { low, high }: Interval) -> Interval {
    Interval { low: low - LEVELS, high: high + LEVELS }
}

/// Returns about how many such pairs give a verdict if relative differences up to `asked` do not count. `None` if 100,000 would not.
pub fn pairs_that_decide(logs: &[f64], asked: f64) -> Option<usize> {
    const MOST: usize = 100_000;
    let (sorted, confidence) = (sorted(logs), confidence_of_each(1));
    let is_decided =
        |interval: Interval| Verdict::by_margin(exp(interval), margin(asked), 0.0) != Verdict::Inconclusive;
    // The interval that this many pairs of the distribution would have.
    let between = |number: usize| -> Option<Interval> {
        let share = repeated_rank(number, confidence)? as f64 / number as f64;
        Some(Interval { low: quantile(&sorted, share)?, high: quantile(&sorted, 1.0 - share)? })
    };
    let decide = |number: &usize| {
        let by_pairs = between(independent_worth(*number) as usize);
        by_pairs.is_some_and(is_decided) || between(*number).map(beside_levels).is_some_and(is_decided)
    };
    let first = FEWEST_SETTLED.max(logs.len() + 1);
    let numbers = std::iter::successors(Some(first), |number| Some(number + (number / 10).max(1)));
    numbers.take_while(|number| *number <= MOST).find(decide)
}

/// Converts an interval of logarithms to one of ratios.
pub fn exp(logs: Interval) -> Interval {
    Interval { low: logs.low.exp(), high: logs.high.exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIDENCE: f64 = 0.999;

    /// A ratio of ten, with bursts of other work that affect a side for six pairs.
    fn bursts(number: usize) -> Vec<f64> {
        let burst = |at: usize| if (at / 6).is_multiple_of(2) { 0.0 } else { 0.9 };
        (0..number).map(|at| 2.3 + burst(at) + (at * 7919 % 13) as f64 / 1e3).collect()
    }

    fn of(logs: &[f64], drawn: Option<f64>) -> Option<Interval> {
        interval_of(logs, Ends::new(logs, CONFIDENCE), drawn)
    }

    #[test]
    fn pairs_in_drawn_order_count_however_alike_they_are() {
        let logs = bursts(30);
        assert!(Ends::new(&logs, CONFIDENCE).is_none_or(|ends| !ends.is_settled()));
        let drawn = of(&logs, Some(CONFIDENCE)).unwrap();
        assert!(drawn.low > 4.9 && drawn.low < 5.1, "what one side may keep is in it: {drawn:?}");
        let in_turn = of(&logs, None).unwrap();
        assert!(in_turn.low < 3.0 && in_turn.high > drawn.high, "{in_turn:?}");
    }

    #[test]
    fn fewer_than_fourteen_pairs_show_no_less_than_twice() {
        let close = |number: usize, ratio: f64| -> Vec<f64> {
            (0..number).map(|at| ratio.ln() + (at * 7919 % 13) as f64 / 1e3).collect()
        };
        for number in [6, 10, 13] {
            assert!(of(&close(number, 1.9), Some(CONFIDENCE)).unwrap().contains(1.0), "{number}");
            assert!(of(&close(number, 2.2), Some(CONFIDENCE)).unwrap().low > 1.0, "{number}");
        }
        assert_eq!(of(&close(5, 10.0), Some(CONFIDENCE)), None);
        assert!(of(&close(40, 1.9), Some(CONFIDENCE)).unwrap().low > 1.8);
    }

    #[test]
    fn pairs_that_were_seen_say_how_many_decide() {
        let around = |ratio: f64| [-0.01, 0.02, 0.0, 0.01, -0.02].map(|log| f64::ln(ratio) + log);
        assert_eq!(pairs_that_decide(&around(10.0), 0.0), Some(14));
        let [half, twentieth, equal] =
            [1.5, 1.05, 1.0].map(|ratio| pairs_that_decide(&around(ratio), 0.0).unwrap());
        assert!(14 < half && half <= twentieth && twentieth < equal, "{half} {twentieth} {equal}");
        // More than the pairs seen, which decided nothing.
        assert!(pairs_that_decide(&bursts(40), 0.0).unwrap() > 40);
        assert_eq!((pairs_that_decide(&[2.3], 0.0), pairs_that_decide(&[], 0.0)), (Some(14), None));
        // Half of the pairs are 2 × and half 0.5 ×, so the median may be anywhere between.
        let two = [0.7, -0.7, 0.7, -0.7, 0.7, -0.7];
        assert_eq!(pairs_that_decide(&two, 0.0), None);
        assert_eq!(pairs_that_decide(&[f64::NAN; 9], 0.0), None);
    }
}
