//! Verdicts: round by round within a run; turn by turn between two environments that alternated; unpaired between any two runs;
//! and on counts of instructions, which have no noise.
//!
//! Every comparison of times ends in an interval of the ratio and a noise threshold. [`Verdict::from_interval`] combines them if
//! no turns alternated.

mod alternated;
mod counted;
mod facts;
mod halves;
mod index;
mod levels;
mod paired;
mod processor;
mod rounds;
mod rows;
mod runs;
mod sides;
mod spread;
mod threshold;
mod turns;
mod withheld;

use crate::disturbance::Disturbance;
use crate::run::Run;
use crate::stats::Interval;
use index::Index;

pub use facts::{FactDifference, is_volatile};
pub use halves::Halves;
pub use paired::{Paired, paired, paired_rows};
pub use processor::crowd;
pub use rows::{Alternation, ComparedCase, Comparison, NotCompared, interval_name};
pub use spread::{Basis, ENOUGH_RUNS, SUPPOSED_APART, Spread, is_of_machine};
pub use threshold::{LEAST_THRESHOLD, MOST_EXCUSE};
pub use tollgate_statistics::{
    CONFIDENCE_OF_TOTAL, MOST_SAME, Neighbours, QUANTITY, Total, Verdict, margin, neighbours,
};

/// Compares two runs case by case: turn with turn if they are environments of one session that alternated, and unpaired
/// otherwise, see [`Comparison::is_alternated`].
///
/// If a value is below the detection limit in either run there is no ratio: such values may differ by any factor.
pub fn compare(base: &Run, other: &Run) -> Comparison {
    compare_above(base, other, 0.0)
}

/// Like [`compare`], but relative differences up to `asked` do not count: no row's threshold is lower, and a row whose whole
/// interval lies within `asked` is the same. For times that did not alternate it changes nothing up to [`LEAST_THRESHOLD`];
/// counts have no other threshold. See [`margin`] for turns that alternated.
pub fn compare_above(base: &Run, other: &Run, asked: f64) -> Comparison {
    compare_knowing(base, other, asked, &Spread::default())
}

/// Like [`compare_above`], given this machine's run-to-run spread.
pub fn compare_knowing(base: &Run, other: &Run, asked: f64, spread: &Spread) -> Comparison {
    let is_counting = counted::is_counting(base) || counted::is_counting(other);
    // A disturbance of a turn also affects its neighbour.
    if alternated::share_turns(base, other) && !is_counting {
        return alternated::alternated(&Index::new(base), &Index::new(other), asked);
    }
    let apart = spread.apart(base, other);
    let (disturbed_base, disturbed_other) = (Disturbance::of(base), Disturbance::of(other));
    let (base, other) = (disturbed_base.left_out(base), disturbed_other.left_out(other));
    runs::unpaired(&Index::new(&base), &Index::new(&other), asked, spread, &apart)
}

/// The confidence of each of `rows` intervals: all hold together with 95 % (Bonferroni's inequality), and each alone with at
/// least 99 %. So at most one in a hundred rows without a difference is called different, for any number of rows.
fn confidence_of_each(rows: usize) -> f64 {
    const TOGETHER: f64 = 0.05;
    const EACH: f64 = 0.01;
    1.0 - (TOGETHER / rows.max(1) as f64).min(EACH)
}

fn figure(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-3..1e6).contains(&size) => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

fn spans_threshold(interval: Interval, threshold: f64) -> String {
    let Interval { low, high } = interval;
    format!("the ratio is between {low:.3} and {high:.3}, the threshold is {:.1} %", threshold * 100.0)
}
