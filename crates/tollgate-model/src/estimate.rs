//! Median, interval, min, modes and spread of one measurement.

use serde::{Deserialize, Serialize};

use crate::measurement::{Case, Measured, Unit};
use crate::own::EMPTY_LOOP;
use crate::run::Run;
use crate::stats::{self, Interval, Mode};

/// The confidence of an estimate's interval.
pub const CONFIDENCE: f64 = 0.95;

/// From this many processes on, the estimate and its interval come from the processes' medians: the fewest for which an interval
/// of the median at [`CONFIDENCE`] exists.
pub const ENOUGH_PROCESSES: usize = 6;

/// The fact with the nanoseconds by which the run's clock advances.
pub const CLOCK_TICK: &str = "clock.tick";

/// With fewer samples the 99th percentile is their maximum.
pub const ENOUGH_FOR_P99: usize = 100;

/// The estimate of a measurement. Everything is finite, and in the unit of the samples unless it is a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// With [`ENOUGH_PROCESSES`] the median of the processes' medians, otherwise the median of all samples.
    pub median: f64,
    /// Interval at [`CONFIDENCE`] with the median in it. `None` with fewer than [`ENOUGH_PROCESSES`], and for counts, which
    /// have no noise. If the medians of processes are equal, it extends to both sides by the smallest difference of two
    /// samples, which the clock resolves; if all samples are equal that step is unknown, and there is no interval.
    ///
    /// It is the interval of the processes' medians in the order of time, see [`stats::series_interval`], since neighbouring
    /// processes share the machine's pace; for executions, which end when it is narrow, that of all looks together, see
    /// [`stats::anytime_interval`]. Samples of a process are not independent, since it keeps its page placement, its core and
    /// often its level for life: an interval of thousands of samples would be far too narrow for a new process.
    pub interval: Option<Interval>,
    /// The smallest sample.
    pub min: f64,
    /// 90 % of the samples are at or below this.
    pub p90: f64,
    /// 99 % of the samples are at or below this; `None` with fewer than [`ENOUGH_FOR_P99`].
    pub p99: Option<f64>,
    /// The largest sample.
    pub max: f64,
    /// The number of samples.
    pub samples: usize,
    /// Median of each process that kept a sample, in the order of their start.
    pub process_medians: Vec<f64>,
    /// Range across processes: (largest - smallest) / |median| of their medians. 0 if they are equal, and the largest finite
    /// number if the median is 0.
    pub spread: f64,
    /// One mode, the median of all samples, or two if they are clearly bimodal; see [`stats::modes`].
    pub modes: Vec<Mode>,
    /// Discarded rounds among all timed ones, 0 to 1.
    pub discarded_share: f64,
}

impl Estimate {
    /// `None` without samples, or if no process has taken them.
    pub fn of(measured: &Measured) -> Option<Self> {
        let Level { median, interval, process_medians, .. } = Level::from_measured(measured)?;
        let sorted = stats::sorted(&measured.samples);
        let middle = stats::median(&process_medians)?;
        let width = Interval::range(&process_medians)?;
        let timed = measured.discarded as f64 + sorted.len() as f64;
        Some(Self {
            median,
            interval,
            min: *sorted.first()?,
            p90: stats::quantile(&sorted, 0.9)?,
            p99: stats::quantile(&sorted, 0.99).filter(|_| sorted.len() >= ENOUGH_FOR_P99),
            max: *sorted.last()?,
            samples: sorted.len(),
            spread: half_width_over(width, middle).clamp(0.0, f64::MAX / 2.0) * 2.0,
            process_medians,
            modes: stats::modes_of_sorted(&sorted),
            discarded_share: measured.discarded as f64 / timed,
        })
    }

    /// Half the interval's width over |median|; the largest finite number if the median is 0, `None` without an interval.
    pub fn relative_half_width(&self) -> Option<f64> {
        Some(half_width_over(self.interval?, self.median))
    }
}

fn half_width_over(interval: Interval, centre: f64) -> f64 {
    let half_width = interval.high / 2.0 - interval.low / 2.0;
    if interval.low < interval.high {
        // Half of the least number is 0, and so is a small number over a large one.
        (half_width.max(f64::MIN_POSITIVE) / centre.abs()).clamp(f64::MIN_POSITIVE, f64::MAX)
    } else {
        0.0
    }
}

/// The part of an [`Estimate`] that comparisons need, without sorting all samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) median: f64,
    pub(crate) interval: Option<Interval>,
    /// The interval, or without one the range of the samples and the processes' medians.
    span: Interval,
    pub(crate) process_medians: Vec<f64>,
}

impl Level {
    pub(crate) fn from_measured(measured: &Measured) -> Option<Self> {
        let process_medians: Vec<f64> = measured.by_process().filter_map(stats::median).collect();
        if process_medians.len() >= ENOUGH_PROCESSES {
            let by_time = || stats::series_interval(&process_medians, paces(measured.span_ns), CONFIDENCE);
            let of_all_looks = || stats::ranked_interval(&process_medians, CONFIDENCE);
            let span = if measured.is_of_executions() { of_all_looks().or_else(by_time) } else { by_time() }?;
            let median = stats::median(&process_medians)?;
            let interval = if measured.is_count() { None } else { as_resolved(span, &measured.samples) };
            return Some(Self { median, interval, span, process_medians });
        }
        let samples = &measured.samples;
        let pooled = stats::median_interval(samples, CONFIDENCE).or_else(|| Interval::range(samples))?;
        let span = pooled.hull(Interval::range(&process_medians)?);
        Some(Self { median: stats::median(samples)?, interval: None, span, process_medians })
    }

    /// The upper bound of a value whose interval reaches down to the detection limit: the higher of `limit` and the interval's
    /// upper end. `None` above the limit.
    pub(crate) fn bound(&self, limit: f64) -> Option<f64> {
        (self.span.low <= limit).then_some(self.span.high.max(limit))
    }
}

/// The interval; if it has no width, it extends to both sides by the smallest difference of two samples.
fn as_resolved(span: Interval, samples: &[f64]) -> Option<Interval> {
    if span.low < span.high {
        return Some(span);
    }
    let sorted = stats::sorted(samples);
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    // The times of the loop and of the empty loop are each read to one step of the clock.
    let step = steps.min_by(f64::total_cmp)?;
    // A document's values may be the largest numbers.
    let [low, high] = [(span.low - step).max(f64::MIN), (span.high + step).min(f64::MAX)];
    Some(Interval { low, high }).filter(|span| span.low < span.high)
}

/// Time in ns for which a busy host keeps one pace. Over 24 runs of 8 s of `entry` in a nested virtual machine, intervals
/// that count at most one independent value for each such time held the common median in 90 of 100 rows, and those by the
/// autocorrelation of the processes alone in 79.
const PACE_NS: f64 = 1.6e9;

/// The most paces that processes spread over this many ns can have seen.
pub fn paces(span_ns: Option<u64>) -> f64 {
    span_ns.map_or(f64::INFINITY, |span| span as f64 / PACE_NS)
}

/// The detection limit of `of` in a run, in its unit: the 95 % quantile of |time of a batch| of the empty loop (`null`, of the same
/// group), as the median over its processes, or [`CLOCK_TICK`] if that is longer, divided by the operations of a batch of `of`. 0 if
/// either is not a time. A quantile of all samples would describe the disturbed ones once they are a twentieth.
pub fn detection_limit(run: &Run, null: &Measured, of: &Measured) -> f64 {
    batch_error(run, null).map_or(0.0, |error| error_per_operation(error, of))
}

pub(crate) fn batch_error(run: &Run, null: &Measured) -> Option<f64> {
    let tick = run.facts.get(CLOCK_TICK).and_then(|fact| fact.value()?.as_f64()).unwrap_or(0.0);
    let scale = nanoseconds_per_unit(null)? * null.ops_per_sample as f64;
    let of_process = |samples: &[f64]| {
        let sizes: Vec<f64> = samples.iter().map(|sample| sample.abs()).collect();
        stats::quantile(&stats::sorted(&sizes), 0.95)
    };
    let errors: Vec<f64> = null.by_process().filter_map(of_process).collect();
    stats::median(&errors).map(|size| (size * scale).max(tick).min(f64::MAX))
}

pub(crate) fn error_per_operation(batch_error: f64, of: &Measured) -> f64 {
    let Some(unit) = nanoseconds_per_unit(of) else { return 0.0 };
    (batch_error / of.ops_per_sample as f64 / unit).min(f64::MAX)
}

fn nanoseconds_per_unit(measured: &Measured) -> Option<f64> {
    match measured.unit {
        Unit::Nanoseconds | Unit::NanosecondsPerLine => Some(1.0),
        Unit::Cycles => Some(1e9 / measured.clock_hz as f64),
        Unit::Bytes | Unit::Count | Unit::Instructions => None,
    }
}

/// An estimate, or the bound of a value below the detection limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// It is above the detection limit.
    Estimate(Estimate),
    /// Its interval reaches down to the [`detection_limit`]. It is below this bound, in the unit of the samples: the limit, or
    /// the interval's upper end if that is higher.
    BelowLimit(f64),
}

/// The reading of a measurement, with the detection limit by the [`EMPTY_LOOP`] of its group in `run`. Always an estimate without
/// such a measurement, and for counts. `None` without samples.
pub fn reading(measured: &Measured, run: &Run) -> Option<Reading> {
    if measured.is_count() {
        return Estimate::of(measured).map(Reading::Estimate);
    }
    let is_null = |(case, null): &(&Case, &Measured)| is_empty_loop(case) && null.group == measured.group;
    let bound = match run.measured().find(is_null) {
        Some((_, null)) => Level::from_measured(measured)?.bound(detection_limit(run, null, measured)),
        None => None,
    };
    match bound {
        Some(bound) => Some(Reading::BelowLimit(bound)),
        None => Estimate::of(measured).map(Reading::Estimate),
    }
}

pub(crate) fn is_empty_loop(case: &Case) -> bool {
    case.benchmark == EMPTY_LOOP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_has_a_width_has_a_relative_one() {
        let least = f64::from_bits(1);
        let width = |low, high, centre| half_width_over(Interval { low, high }, centre);
        for (low, high, centre) in [(-least, least, 0.0), (0.0, least, 1e300), (least, 1.0, f64::MAX)] {
            let width = width(low, high, centre);
            assert!(width.is_finite() && width > 0.0, "{width}");
        }
        assert_eq!((width(1.0, 1.0, 1.0), width(0.9, 1.1, 1.0) > 0.099), (0.0, true));
    }
}
