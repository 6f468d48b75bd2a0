//! Median, interval, floor, modes and spread of one measurement.

use serde::{Deserialize, Serialize};

use crate::measurement::{Case, Measured, Outcome, Unit};
use crate::own::EMPTY_LOOP;
use crate::run::Run;
use crate::stats::{self, Interval, Mode};

/// The confidence of a price's interval.
pub const CONFIDENCE: f64 = 0.95;

/// From so many processes on, the price and its interval are taken from the processes' medians: the
/// fewest of which an interval of the median at [`CONFIDENCE`] exists.
pub const ENOUGH_PROCESSES: usize = 6;

/// What the samples of a measurement say when they are looked at. All in the unit of the samples unless a share; all finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The price. With [`ENOUGH_PROCESSES`] the median of the processes' medians, else the median of all samples.
    pub median: f64,
    /// Its interval at [`CONFIDENCE`]; the median is always in it.
    ///
    /// With [`ENOUGH_PROCESSES`] it is the sign test's interval of the processes' medians. A process keeps
    /// its page placement, its core and often its level for life, so its samples are not independent of each
    /// other: an interval of thousands of samples would be far too narrow, and is wrong about a new process.
    ///
    /// With fewer it is the sign test's interval of all samples, widened so that it holds every process's
    /// median; with fewer than six samples it reaches from the smallest to the largest of them. Then the
    /// confidence is less than it says: nobody knows what a process that was not started would have shown.
    pub interval: Interval,
    /// The smallest sample: the floor.
    pub min: f64,
    /// 90 % of the samples are at or below this.
    pub p90: f64,
    /// 99 % of the samples are at or below this.
    pub p99: f64,
    /// The largest sample.
    pub max: f64,
    /// How many samples.
    pub samples: usize,
    /// The median of each process that kept a sample, in the order in which they ran.
    pub process_medians: Vec<f64>,
    /// (largest - smallest) / |median| of the process medians; 0 where they are equal, and the largest
    /// number there is where the median is 0.
    pub spread: f64,
    /// The median of all samples, or two levels where they are clearly bimodal; see [`stats::modes`].
    pub modes: Vec<Mode>,
    /// Dropped rounds among all that were timed, 0 to 1.
    pub discarded_share: f64,
}

impl Estimate {
    /// None without samples, or where no process is said to have taken them.
    pub fn of(measured: &Measured) -> Option<Self> {
        let Level { median, interval, process_medians } = Level::of(measured)?;
        let sorted = stats::sorted(&measured.samples);
        let middle = stats::median(&process_medians)?;
        let width = Interval::range(&process_medians)?;
        let timed = measured.discarded as f64 + sorted.len() as f64;
        Some(Self {
            median,
            interval,
            min: *sorted.first()?,
            p90: stats::quantile(&sorted, 0.9)?,
            p99: stats::quantile(&sorted, 0.99)?,
            max: *sorted.last()?,
            samples: sorted.len(),
            spread: half_width_over(width, middle).clamp(0.0, f64::MAX / 2.0) * 2.0,
            process_medians,
            modes: stats::modes_of_sorted(&sorted),
            discarded_share: measured.discarded as f64 / timed,
        })
    }

    /// Half the interval's width over |median|; 0 where it has no width, and the largest number there is where
    /// the median is 0.
    pub fn relative_half_width(&self) -> f64 {
        half_width_over(self.interval, self.median)
    }
}

fn half_width_over(interval: Interval, centre: f64) -> f64 {
    let half_width = interval.high / 2.0 - interval.low / 2.0;
    if half_width > 0.0 { (half_width / centre.abs()).min(f64::MAX) } else { 0.0 }
}

/// The part of a [`Estimate`] that comparisons need, without sorting all samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) median: f64,
    pub(crate) interval: Interval,
    pub(crate) process_medians: Vec<f64>,
}

impl Level {
    pub(crate) fn of(measured: &Measured) -> Option<Self> {
        let process_medians: Vec<f64> = measured.by_process().filter_map(stats::median).collect();
        let (median, interval) = if process_medians.len() >= ENOUGH_PROCESSES {
            (stats::median(&process_medians)?, stats::median_interval(&process_medians, CONFIDENCE)?)
        } else {
            let samples = &measured.samples;
            let pooled = stats::median_interval(samples, CONFIDENCE).or_else(|| Interval::range(samples))?;
            let between = Interval::range(&process_medians)?;
            (stats::median(samples)?, pooled.hull(between))
        };
        Some(Self { median, interval, process_medians })
    }

    /// What the price is below where it cannot be told from nothing.
    ///
    /// It cannot where its interval reaches down to the resolution. Then all that is known is that it is
    /// below both the resolution and the interval's upper end, whichever is higher.
    pub(crate) fn below(&self, resolution: f64) -> Option<f64> {
        (self.interval.low <= resolution).then_some(self.interval.high.max(resolution))
    }
}

/// The smallest price that can be told from nothing, in the unit of `of`: the 95 % quantile of what a block
/// of the empty loop seems to cost beside another block of the empty loop (`null`, of the same group),
/// shared among the operations of a block of `of`. 0 where either is not a time.
pub fn resolution(null: &Measured, of: &Measured) -> f64 {
    block_error(null).map_or(0.0, |error| error_per_operation(error, of))
}

/// The 95 % quantile of |time of a block|, in ns.
pub(crate) fn block_error(null: &Measured) -> Option<f64> {
    let scale = nanoseconds_per_unit(null)? * null.ops_per_sample as f64;
    let mut sizes: Vec<f64> = null.samples.iter().map(|sample| sample.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    stats::quantile(&sizes, 0.95).map(|size| (size * scale).min(f64::MAX))
}

pub(crate) fn error_per_operation(block_error: f64, of: &Measured) -> f64 {
    let Some(unit) = nanoseconds_per_unit(of) else { return 0.0 };
    (block_error / of.ops_per_sample as f64 / unit).min(f64::MAX)
}

/// None where the unit is not a time.
fn nanoseconds_per_unit(measured: &Measured) -> Option<f64> {
    match measured.unit {
        Unit::Nanoseconds | Unit::NanosecondsPerLine => Some(1.0),
        Unit::Cycles => Some(1e9 / measured.clock_hz as f64),
        Unit::Bytes | Unit::Instructions => None,
    }
}

/// A price, or what it is below.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// It can be told from nothing.
    Estimate(Estimate),
    /// It cannot: its interval reaches down to the [`resolution`]. It is below this much, in the unit of the
    /// samples: the resolution, or the interval's upper end where that is higher.
    Below(f64),
}

/// The price of a measurement, or what it is below according to the [`EMPTY_LOOP`] of its group in `run`.
/// Without such a measurement always the price. None without samples.
pub fn reading(measured: &Measured, run: &Run) -> Option<Reading> {
    let null = run.measurements.iter().find_map(|measurement| match &measurement.outcome {
        Outcome::Measured(null) if is_empty_loop(&measurement.case) && null.group == measured.group => {
            Some(null)
        }
        _ => None,
    });
    let below = match null {
        Some(null) => Level::of(measured)?.below(resolution(null, measured)),
        None => None,
    };
    match below {
        Some(bound) => Some(Reading::Below(bound)),
        None => Estimate::of(measured).map(Reading::Estimate),
    }
}

pub(crate) fn is_empty_loop(case: &Case) -> bool {
    case.benchmark == EMPTY_LOOP
}
