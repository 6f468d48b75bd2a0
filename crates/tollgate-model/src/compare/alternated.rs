use super::halves::Halves;
use super::index::Index;
use super::rounds::join;
use super::rows::{Alternation, ComparedCase, Comparison};
use super::sides::{Side, below_limit, incomparable, joined, missing};
use super::turns::Turns;
use super::{counted, facts, processor, threshold, withheld};
use crate::measurement::{Case, Measured};
use crate::run::Run;
use crate::stats::{
    self, Ends, FEWEST_LAYOUTS, Interval, Layouts, MOST_WITHOUT, Margins, Total, Verdict, confidence_of_each,
    interval_of, margin,
};
use crate::versus::{Command, IN_TURN, LAYOUTS, MOST_LAYOUTS};

/// Returns whether two runs are environments of one session, so that process i and round r of both were neighbours in time.
pub(super) fn share_turns(base: &Run, other: &Run) -> bool {
    match (&base.session, &other.session) {
        (Some(base), Some(other)) => {
            base.id == other.id && base.place != other.place && base.paired && other.paired
        }
        _ => false,
    }
}

/// Compares case by case, turn with turn ("duet benchmarking": Bulej et al., arXiv 2001.05811; "randomized multiple interleaved
/// trials": Abedi & Brecht, ICPE 2017).
///
/// Each pair of processes gives the median of ln(other / base) over the turns that both kept. The row is the median of these,
/// with its interval at all looks together, see [`interval_of`], corrected for the number of rows. A process keeps its pages and
/// its level for life, so the interval is as wide as the pairs differ, however many turns they had. Each pair draws its own order
/// of turns, unless the executions were in turn.
///
/// The verdict is that of [`Margins::verdict`]. There is none if the base differs from itself, see [`Halves`].
pub(super) fn alternated(base: &Index<'_>, other: &Index<'_>, asked: f64) -> Comparison {
    let joined = joined(base, other);
    let confidence = confidence_of_each(joined.timed());
    let controls = threshold::of_controls_shown(base).max(threshold::of_controls_shown(other));
    let is_in_turn = [base, other].iter().any(|side| side.run.facts.contains_key(IN_TURN));
    let drawn = (!is_in_turn).then_some(confidence);
    let margins = Margins { margin: margin(asked), controls };
    let judge = Judge { base, other, confidence, drawn, margins, layouts: layouts([base, other]) };
    let row = |(case, base, other): &(&Case, &Measured, &Measured)| {
        counted::row(case, base, other, asked).unwrap_or_else(|| judge.row(case, base, other))
    };
    let mut rows: Vec<ComparedCase> = joined.cases.iter().map(row).collect();
    let halves = Halves::new(joined.cases.iter().map(|(case, base, _)| (*case, *base)), base.run, asked);
    withheld::withhold(rows.iter_mut(), &halves);
    judge.by_processor(&mut rows, &joined.cases, asked);
    Comparison {
        rows,
        not_compared: joined.not_compared,
        pace: None,
        only_base: missing(base, other),
        only_other: missing(other, base),
        facts: facts::differences(&base.run.facts, &other.run.facts),
        is_alternated: true,
        confidence,
        spread: None,
        halves: Some(halves),
    }
}

struct Judge<'a> {
    base: &'a Index<'a>,
    other: &'a Index<'a>,
    confidence: f64,
    drawn: Option<f64>,
    margins: Margins,
    /// The programs of each side, if it has several.
    layouts: Option<usize>,
}

struct PairedMedian {
    ratio: f64,
    ends: Option<Ends>,
    interval: Option<Interval>,
    layouts: Option<Layouts>,
}

/// The number of layouts of both sides, if either has several. It is 1 if their numbers differ: then there is no interval.
fn layouts(sides: [&Index<'_>; 2]) -> Option<usize> {
    let number = |index: &Index<'_>| {
        let number = index.run.facts.get(LAYOUTS).and_then(|fact| fact.value()?.as_f64());
        number.map_or(1, |number| number as usize).clamp(1, MOST_LAYOUTS)
    };
    let [base, other] = sides.map(number);
    (base.max(other) > 1).then_some(if base == other { base } else { 1 })
}

impl Judge<'_> {
    fn by_processor(&self, rows: &mut [ComparedCase], cases: &[(&Case, &Measured, &Measured)], asked: f64) {
        let times = cases
            .iter()
            .map(|(case, base, other)| processor::times([self.base, self.other], case, [base, other]));
        let times: Vec<_> = times.collect();
        for (row, times) in rows.iter_mut().zip(&times) {
            row.processor = times.as_ref().map(|times| {
                Box::new(match times {
                    Ok([base, other]) => self.row(&row.case, base, other),
                    Err(why) => row.without(why.clone()),
                })
            });
        }
        let known = cases.iter().zip(&times);
        let bases = known.filter_map(|((case, ..), times)| Some((*case, &times.as_ref()?.as_ref().ok()?[0])));
        let halves = Halves::new(bases, self.base.run, asked);
        withheld::withhold(rows.iter_mut().filter_map(|row| row.processor.as_deref_mut()), &halves);
    }

    fn row(&self, case: &Case, base: &Measured, other: &Measured) -> ComparedCase {
        let turns = Turns::new(base, other);
        let base = Side::new(self.base, base);
        let other = Side::new(self.other, other);
        let comparable = incomparable(base.measured, other.measured);
        let is_comparable = comparable.is_none();
        let found = match comparable.or_else(|| below_limit(&base, &other)) {
            Some(why) => Err(why),
            None => self.found(&turns, [base.measured, other.measured]),
        };
        let total = found.as_ref().ok().and_then(|_| self.total(base.measured, other.measured));
        let none = PairedMedian { ratio: 1.0, ends: None, interval: None, layouts: None };
        let (PairedMedian { ratio, ends, interval, layouts }, verdict, why) = match found {
            Ok(found) => {
                let (verdict, why) = self.margins.verdict(found.interval, turns.logs.len(), total.as_ref());
                match unequal_batches(base.measured, other.measured, found.ratio) {
                    Some(doubt) if verdict.is_difference() => (found, Verdict::Inconclusive, Some(doubt)),
                    _ => (found, verdict, why),
                }
            }
            Err(why) => (none, Verdict::Inconclusive, Some(why)),
        };
        // The pairs' interval of a difference says nothing about layouts.
        let ends = ends
            .or_else(|| Ends::new(&turns.differences, self.confidence))
            .filter(|_| self.layouts.is_none());
        ComparedCase {
            case: case.clone(),
            base: base.median,
            other: other.median,
            ratio,
            interval,
            verdict,
            threshold: self.margins.margin.max(self.margins.controls),
            why,
            alternation: if is_comparable { alternation(&turns, ends, interval) } else { None },
            layouts,
            total,
            processor: None,
        }
    }

    /// For commands the total matters as much as the usual time. A batch of an operation excludes interruptions on purpose.
    fn total(&self, base: &Measured, other: &Measured) -> Option<Total> {
        let is_of_command = |index: &Index<'_>| {
            let part = index.run.session.as_ref();
            part.and_then(|part| part.command.as_deref()).is_some_and(Command::is_whole)
        };
        if !(is_of_command(self.base) && is_of_command(self.other)) {
            return None;
        }
        let (base, other): (Vec<f64>, Vec<f64>) = join(base, other).flatten().unzip();
        Total::new(&base, &other)
    }

    fn found(&self, turns: &Turns, measured: [&Measured; 2]) -> Result<PairedMedian, String> {
        if turns.number == 0 {
            return Err("no turn in common".to_owned());
        }
        if turns.without_ratio as f64 > MOST_WITHOUT * turns.number as f64 {
            return Err(format!("not above zero in {} of {} turns", turns.without_ratio, turns.number));
        }
        if let Some(number) = self.layouts {
            return self.across_layouts(number, measured);
        }
        let too_large = || "the ratio is too large or too small for a number".to_owned();
        let ratio = stats::median(&turns.logs).ok_or_else(too_large)?.exp();
        let ends = Ends::new(&turns.logs, self.confidence);
        let interval = interval_of(&turns.logs, ends, self.drawn);
        let of_interval = interval.map_or([ratio; 2], |interval| [interval.low, interval.high]);
        if [ratio, of_interval[0], of_interval[1]].iter().all(|end| end.is_normal()) {
            Ok(PairedMedian { ratio, ends, interval, layouts: None })
        } else {
            Err(too_large())
        }
    }

    /// The layouts' medians include the noise of the machine, since their executions take turns as those of the sides do.
    fn across_layouts(&self, number: usize, measured: [&Measured; 2]) -> Result<PairedMedian, String> {
        let processes = join(measured[0], measured[1]).enumerate();
        let pairs = processes
            .flat_map(|(execution, pairs)| pairs.map(move |(base, other)| (execution, [base, other])));
        let found = Layouts::of_pairs(pairs, number, self.confidence, self.margins.margin);
        let found = found.ok_or_else(|| {
            format!("an interval needs {FEWEST_LAYOUTS} layouts of each side, and an execution of each; give it more --time")
        })?;
        Ok(PairedMedian {
            ratio: found.ratio,
            ends: None,
            interval: Some(found.interval),
            layouts: Some(found),
        })
    }
}

/// `None` without a turn in common. The interval of the difference has the ends of the ratio's, so that they exclude 0 and 1
/// together. It is missing if the ratio's interval was widened by a level that one side may keep.
fn alternation(turns: &Turns, ends: Option<Ends>, of_ratio: Option<Interval>) -> Option<Alternation> {
    let is_of_ratio =
        |adds: &Interval| of_ratio.is_none_or(|ratio| ratio.contains(1.0) == adds.contains(0.0));
    Some(Alternation {
        adds: stats::median(&turns.differences)?,
        adds_interval: ends.and_then(|ends| ends.interval(&turns.differences)).filter(is_of_ratio),
        pairs: turns.differences.len(),
        turns: turns.number,
        correlation: turns.correlation,
    })
}

/// Explains why a small difference may come from the batches: the time that a batch takes in addition to its operations is
/// shared among them. If the sides' latencies differ much, they need different counts anyway.
fn unequal_batches(base: &Measured, other: &Measured, ratio: f64) -> Option<String> {
    const FAR: f64 = 2.0;
    let [base, other] = [base.ops_per_sample, other.ops_per_sample];
    let is_near = (1.0 / FAR..FAR).contains(&ratio);
    (base != other && is_near)
        .then(|| format!("a batch has {base} operations in the base and {other} in the other"))
}
