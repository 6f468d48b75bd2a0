//! The latency of process creation by the memory of the creator.

use tollgate_model::{ParamValue, Unit};
use tollgate_output::figures;

use super::finding::{Finding, Known, apart, case, find};
use crate::summary::{Figures, Summary};

pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    [fork_grows(summary), fork_or_spawn(summary)].into_iter().flatten().collect()
}

const DIRTY: [u64; 3] = [0, 64, 256];

fn fork_grows(summary: &Summary) -> Option<Finding> {
    let fork = |params: &[(&str, ParamValue)]| case("processes/fork", params);
    let dirty = |mib: u64, page: &str| {
        fork(&[("dirty_mib", mib.into()), ("page", page.into()), ("until", "exited".into())])
    };
    let none = fork(&[("dirty_mib", 0.into()), ("until", "exited".into())]);
    let mapped = fork(&[("mapped_mib", 256.into()), ("until", "exited".into())]);
    let [_, _, most] = DIRTY;
    let small = dirty(most, "4k");
    let base = find(summary, &none)?;
    let grown = find(summary, &small)?;
    let [base_interval, grown_interval] = [base.estimate.interval?, grown.estimate.interval?];
    if grown_interval.low <= base_interval.high {
        return None;
    }
    let per_mib = |figures: &Figures| (figures.estimate.median - base.estimate.median) / most as f64;
    let mut sentence = format!(
        "fork takes {} more for each MiB that its caller has written in small pages",
        figures::estimate(per_mib(grown), Unit::Nanoseconds)
    );
    let mut from = vec![none, small];
    let huge = dirty(most, "thp");
    if let Some(figures) = find(summary, &huge).filter(|figures| per_mib(figures) > 0.0) {
        sentence
            .push_str(&format!(", {} in huge ones", figures::estimate(per_mib(figures), Unit::Nanoseconds)));
        from.push(huge);
    }
    if let Some(figures) = find(summary, &mapped) {
        let more = (figures.estimate.median / base.estimate.median - 1.0).max(0.0);
        let words = if figures.estimate.interval.is_some_and(|interval| apart(base_interval, interval)) {
            format!("{} for {most} MiB", figures::percent(more))
        } else {
            "no significant difference".to_owned()
        };
        sentence.push_str(&format!("; memory that is only mapped adds {words}"));
        from.push(mapped);
    }
    sentence.push('.');
    Some(Finding { sentence, from })
}

fn fork_or_spawn(summary: &Summary) -> Option<Finding> {
    let mut points = Vec::new();
    let mut from = Vec::new();
    for mib in DIRTY {
        let params = |benchmark: &str| {
            let mut params =
                vec![("dirty_mib", mib.into()), ("image", "bare".into()), ("until", "exited".into())];
            if mib > 0 {
                params.push(("page", "4k".into()));
            }
            case(benchmark, &params)
        };
        let (fork, spawn) = (params("processes/fork-exec"), params("processes/posix-spawn"));
        points.push(Point {
            mib: mib as f64,
            fork: Known::of(find(summary, &fork)?)?,
            spawn: Known::of(find(summary, &spawn)?)?,
        });
        from.extend([fork, spawn]);
    }
    let last = points.last()?;
    let most = format!(
        "with {} MiB it is {} × faster",
        last.mib,
        figures::significant(last.fork.estimate / last.spawn.estimate, 3)
    );
    let when = match break_even(&points)? {
        BreakEven::Always => {
            let first = points.first()?;
            let share = figures::percent(1.0 - first.spawn.estimate / first.fork.estimate);
            format!("with any amount of written memory: by {share} with none")
        }
        BreakEven::From(mib) if mib < 1.0 => "from less than 1 MiB of written memory on".to_owned(),
        BreakEven::From(mib) => {
            format!("from about {} MiB of written memory on", figures::significant(mib, 2))
        }
        BreakEven::Never => {
            let most = last.mib;
            let sentence = format!(
                "To start a bare program, fork and exec is not slower than posix_spawn here up to {most} MiB of written memory."
            );
            return Some(Finding { sentence, from });
        }
    };
    let sentence =
        format!("To start a bare program, posix_spawn is faster than fork and exec here {when}; {most}.");
    Some(Finding { sentence, from })
}

struct Point {
    mib: f64,
    fork: Known,
    spawn: Known,
}

#[derive(Debug, PartialEq)]
enum BreakEven {
    Always,
    /// From this many MiB on, by linear interpolation between two points.
    From(f64),
    Never,
}

/// `None` if even the last point is inconclusive.
fn break_even(points: &[Point]) -> Option<BreakEven> {
    let (first, last) = (points.first()?, points.last()?);
    if !apart(last.fork.interval, last.spawn.interval) {
        return None;
    }
    if last.fork.estimate < last.spawn.estimate {
        return Some(BreakEven::Never);
    }
    if first.fork.estimate > first.spawn.estimate {
        let clearly = apart(first.fork.interval, first.spawn.interval);
        return Some(if clearly { BreakEven::Always } else { BreakEven::From(first.mib) });
    }
    let crossing = points.windows(2).find_map(|pair| {
        let gains = |point: &Point| point.fork.estimate - point.spawn.estimate;
        let (before, after) = (gains(&pair[0]), gains(&pair[1]));
        let share = -before / (after - before);
        (before <= 0.0 && after > 0.0).then(|| pair[0].mib + share * (pair[1].mib - pair[0].mib))
    });
    crossing.map(BreakEven::From)
}

#[cfg(test)]
mod tests {
    use tollgate_model::stats::Interval;

    use super::*;

    fn points(fork: [f64; 3], spawn: f64) -> Vec<Point> {
        let known = |estimate: f64| Known {
            estimate,
            interval: Interval { low: estimate * 0.98, high: estimate * 1.02 },
        };
        let estimates = DIRTY.into_iter().zip(fork);
        estimates
            .map(|(mib, fork)| Point { mib: mib as f64, fork: known(fork), spawn: known(spawn) })
            .collect()
    }

    #[test]
    fn the_break_even_is_where_the_lines_cross() {
        let even = |fork, spawn| break_even(&points(fork, spawn));
        assert_eq!(even([120.0, 9000.0, 40000.0], 100.0), Some(BreakEven::Always));
        assert_eq!(even([50.0, 150.0, 550.0], 100.0), Some(BreakEven::From(32.0)));
        assert_eq!(even([50.0, 80.0, 90.0], 100.0), Some(BreakEven::Never));
        // Overlapping intervals at the first point are a break-even there.
        assert_eq!(even([101.0, 9000.0, 40000.0], 100.0), Some(BreakEven::From(0.0)));
        assert_eq!(even([50.0, 80.0, 101.0], 100.0), None);
    }
}
