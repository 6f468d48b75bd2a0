use crate::margins::{Margins, by_coins, confidence_of_each, interval_of, margin};
use crate::{Ends, Interval, Layouts, Total, Verdict, median};

/// The share of turns that may lack a ratio. More are not accidents, and the median of the others is biased.
pub const MOST_WITHOUT: f64 = 0.05;

/// The comparison of two commands' executions while they are measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbours {
    /// other / base: [`QUANTITY`](crate::QUANTITY), or that of [`Layouts`].
    pub ratio: f64,
    /// The interval of the ratio, at all looks together; `None` with too few pairs.
    pub interval: Option<Interval>,
    /// The verdict by [`Margins`].
    pub verdict: Verdict,
    /// Whether there are enough pairs for an interval or a verdict at all looks, not just at one.
    is_settled: bool,
}

impl Neighbours {
    /// Whether measuring may end: the interval is at most as wide as `precision`, as a share of the ratio, or as a tenth of the
    /// difference that it shows. With a precision of 0 it never ends.
    pub fn is_precise(&self, precision: f64) -> bool {
        const PART: f64 = 0.1;
        let part = if precision > 0.0 { PART * self.ratio.ln().abs() } else { 0.0 };
        let wanted = precision.max(part);
        let width = self.interval.map(|ends| (ends.high / ends.low).ln());
        self.is_settled && width.is_some_and(|width| width <= wanted)
    }
}

/// Compares executions pair by pair, as one of `rows` comparisons. Those with the same index were neighbours in time, in an order
/// drawn for each pair. Relative differences up to `asked` do not count. If `is_whole`, they are whole commands, and "same" requires
/// the same totals too. `None` without a pair of times above zero, or if too many pairs lack one.
pub fn neighbours(
    base: &[f64],
    other: &[f64],
    rows: usize,
    asked: f64,
    is_whole: bool,
) -> Option<Neighbours> {
    let pairs = base.iter().zip(other).filter(|(base, other)| **base > 0.0 && **other > 0.0);
    let logs: Vec<f64> =
        pairs.map(|(base, other)| (other / base).ln()).filter(|log| log.is_finite()).collect();
    let all = base.len().min(other.len());
    if (all - logs.len()) as f64 > MOST_WITHOUT * all as f64 {
        return None;
    }
    let ratio = median(&logs)?.exp();
    let confidence = confidence_of_each(rows);
    let ends = Ends::new(&logs, confidence);
    let interval = interval_of(&logs, ends, Some(confidence));
    let margins = Margins { margin: margin(asked), controls: 0.0 };
    let total = is_whole.then(|| Total::new(base, other)).flatten();
    let (verdict, _) = margins.verdict(interval, logs.len(), total.as_ref());
    let is_decided = by_coins(&logs, confidence).is_some_and(|interval| !interval.contains(0.0));
    let is_settled = is_decided || ends.is_some_and(Ends::is_settled);
    Some(Neighbours { ratio, interval, verdict, is_settled })
}

/// Compares executions of programs of several layouts, see [`Layouts::of_pairs`], as one of `rows` comparisons. `None` until
/// each layout was executed twice, and below [`FEWEST_LAYOUTS`](crate::FEWEST_LAYOUTS).
pub fn across_layouts(
    base: &[f64],
    other: &[f64],
    number: usize,
    rows: usize,
    asked: f64,
    is_whole: bool,
) -> Option<Neighbours> {
    let pairs = base.len().min(other.len());
    if pairs < 2 * number {
        return None;
    }
    let margin = margin(asked);
    let both = base.iter().zip(other).map(|(base, other)| [*base, *other]).enumerate();
    let found = Layouts::of_pairs(both, number, confidence_of_each(rows), margin)?;
    let total = is_whole.then(|| Total::new(base, other)).flatten();
    let (verdict, _) = Margins { margin, controls: 0.0 }.verdict(Some(found.interval), pairs, total.as_ref());
    Some(Neighbours { ratio: found.ratio, interval: Some(found.interval), verdict, is_settled: true })
}
