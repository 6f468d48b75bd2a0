//! Everything that the samples of one case say.

use std::borrow::Cow;
use std::fmt;

use tollgate_model::compare::Paired;
use tollgate_model::disturbance::Disturbance;
use tollgate_model::estimate::{ENOUGH_PROCESSES, Estimate, Reading, reading};
use tollgate_model::traced::blame::Account;
use tollgate_model::{Measured, Provenance, Run, Traced, Unit};
use tollgate_output::figures::{count, estimate, percent, range};

/// A row with a larger share of its samples discarded is noisy.
const MANY_DISCARDED: f64 = 0.05;
/// A row whose interval reaches further than this share of its median is noisy.
const WIDE: f64 = 0.10;

/// All figures from the samples of one case.
pub struct Figures<'a> {
    /// The samples.
    pub measured: Cow<'a, Measured>,
    /// Its median, interval and the rest.
    pub estimate: Estimate,
    /// The upper bound of a value below the detection limit, in the unit of the samples.
    pub below: Option<f64>,
    /// Its median as a multiple of [`super::BASELINE`]'s.
    pub multiple: Option<f64>,
    /// The comparison with its baseline, round by round.
    pub paired: Option<Paired>,
    /// For a traced command, the parts of its time.
    pub parts: Vec<Part>,
}

/// Why a row is noisy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// This share of its samples was discarded.
    Discarded(f64),
    /// Its interval reaches this share of the median to either side.
    Wide(f64),
    /// Only this many processes measured it: its interval does not cover the range across processes.
    FewProcesses(usize),
}

impl<'a> Figures<'a> {
    /// Excludes the processes that were disturbed.
    pub(super) fn new(measured: &'a Measured, run: &Run, disturbance: &Disturbance) -> Option<Self> {
        let measured = disturbance.without(measured);
        let (estimate, below) = match reading(&measured, run)? {
            Reading::Estimate(estimate) => (estimate, None),
            Reading::BelowLimit(limit) => (Estimate::of(&measured)?, Some(limit)),
        };
        let parts = parts_of(&measured);
        Some(Self { measured, estimate, below, multiple: None, paired: None, parts })
    }

    /// Its median over that of [`super::BASELINE`], a time or a count.
    pub(super) fn multiple_of(&self, (baseline, unit): (f64, Unit)) -> Option<f64> {
        // A whole command is not a multiple of a call.
        let is_command = !self.measured.divided().is_empty();
        let comparable =
            self.measured.unit == unit && self.below.is_none() && self.is_estimate() && !is_command;
        comparable.then_some(self.estimate.median / baseline).filter(|multiple| multiple.is_finite())
    }

    /// The smallest sample, if it is meaningful: for a time, above zero; for an amount, not below it. A sample is a difference of
    /// two measured times, and the smallest of many such differences may be the errors of both.
    pub fn min(&self) -> Option<f64> {
        let min = self.estimate.min;
        let is_one = if self.measured.unit.is_amount() { min >= 0.0 } else { min > 0.0 };
        is_one.then_some(min)
    }

    /// The throughput in bytes per second.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let is_known = self.measured.unit == Unit::Nanoseconds && self.below.is_none();
        let bytes = self.measured.bytes_per_op.filter(|_| is_known)? as f64;
        Some(bytes * 1e9 / self.estimate.median).filter(|rate| rate.is_finite() && *rate > 0.0)
    }

    /// Whether it is a count of instructions, or a size beside such counts.
    pub fn is_count(&self) -> bool {
        self.measured.is_count()
    }

    /// Whether every batch has the same count.
    pub fn is_exact(&self) -> bool {
        self.is_count() && self.estimate.min == self.estimate.max
    }

    /// [`is_estimate`] of the measurement.
    pub fn is_estimate(&self) -> bool {
        is_estimate(&self.measured)
    }

    /// The median, or the bound of a value below the detection limit.
    pub fn bounded(&self) -> f64 {
        self.below.unwrap_or(self.estimate.median)
    }

    /// The median with its unit, or `< limit`.
    pub fn in_words(&self) -> String {
        let less = if self.below.is_some() { "< " } else { "" };
        format!("{less}{}", estimate(self.bounded(), self.measured.unit))
    }

    /// Its 95 % CI, in the unit of the median, which stands beside it; none for a value below the detection limit.
    pub fn interval_in_words(&self) -> Option<String> {
        let interval = self.estimate.interval.filter(|_| self.below.is_none())?;
        Some(range(interval.low, interval.high, self.estimate.median, self.measured.unit))
    }

    /// The number of timed operations.
    pub fn operations(&self) -> u64 {
        (self.measured.samples.len() as u64).saturating_mul(self.measured.ops_per_sample)
    }

    /// Whether the shown interval is wider than ±10 % of the median.
    pub fn is_wide(&self) -> bool {
        let is_estimate = !self.is_count() && self.below.is_none();
        is_estimate && self.estimate.relative_half_width().is_some_and(|wide| wide > WIDE)
    }

    /// The reasons why it is noisy. A count is not: batches with other events than the operation's are separated.
    pub fn noise(&self) -> Vec<Noise> {
        if self.is_count() {
            return Vec::new();
        }
        let (discarded, wide) = (self.estimate.discarded_share, self.estimate.relative_half_width());
        let processes = self.estimate.process_medians.len();
        let is_known = self.below.is_none();
        [
            (discarded > MANY_DISCARDED).then_some(Noise::Discarded(discarded)),
            wide.filter(|wide| is_known && *wide > WIDE).map(Noise::Wide),
            (is_known && processes < ENOUGH_PROCESSES).then_some(Noise::FewProcesses(processes)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Whether hardware executed the timed code: an emulator's times are not latencies.
pub fn is_estimate(measured: &Measured) -> bool {
    matches!(measured.provenance, Provenance::Hardware | Provenance::Kvm)
        || !matches!(measured.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine)
}

/// The names of the parts.
pub const PARTS: [&str; 5] = ["real", "user", "sys", "waiting", "unaccounted"];

/// A part of a command's time.
pub struct Part {
    /// One of [`PARTS`].
    pub name: &'static str,
    /// In nanoseconds, a sample for each execution.
    pub figures: Figures<'static>,
}

/// The parts, none without traced commands; those after the first sum to it in every execution. If the tracer missed waiting in
/// any of them, waiting and unaccounted are absent.
fn parts_of(measured: &Measured) -> Vec<Part> {
    let time: [fn(&Traced) -> Option<u64>; PARTS.len()] = [
        |traced| Some(traced.wall_ns),
        |traced| Some(Account::from_traced(traced).user),
        |traced| Some(Account::from_traced(traced).sys),
        |traced| traced.idle.map(|_| Account::from_traced(traced).waiting()),
        |traced| Some(Account::from_traced(traced).unaccounted),
    ];
    let part = |(name, time): (&'static str, fn(&Traced) -> Option<u64>)| {
        let times: Option<Vec<u64>> = measured.divided().iter().map(time).collect();
        let times = times?.into_iter().map(|ns| ns as f64).collect();
        let mut part = Measured::of_executions("", Unit::Nanoseconds, times);
        (part.provenance, part.clock_hz) = (measured.provenance, measured.clock_hz);
        // Discarded rounds are kept, so that those of the same number stay neighbours.
        if measured.traced_apart.is_empty() {
            (part.processes, part.discarded) = (measured.processes.clone(), measured.discarded);
        }
        let estimate = Estimate::of(&part)?;
        let (below, multiple, paired, parts) = (None, None, None, Vec::new());
        let figures = Figures { measured: Cow::Owned(part), estimate, below, multiple, paired, parts };
        Some(Part { name, figures })
    };
    PARTS.into_iter().zip(time).filter_map(part).collect()
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discarded(share) => write!(f, "{} of samples discarded (preempted)", percent(*share)),
            Self::Wide(share) => write!(f, "CI ±{}", percent(*share)),
            Self::FewProcesses(number) => {
                write!(f, "{} only", count(*number, "process", "processes"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(unit: Unit, samples: &[f64]) -> Figures<'static> {
        let measured = Measured::of_executions("group", unit, samples.to_vec());
        let estimate = Estimate::of(&measured).expect("samples");
        let (below, multiple, paired, parts) = (None, None, None, Vec::new());
        Figures { measured: Cow::Owned(measured), estimate, below, multiple, paired, parts }
    }

    #[test]
    fn a_difference_of_times_that_is_not_above_zero_is_no_minimum() {
        assert_eq!(figures(Unit::Nanoseconds, &[-28_800.0, 110_000.0, 120_000.0]).min(), None);
        assert_eq!(figures(Unit::Nanoseconds, &[0.0, 3.0]).min(), None);
        assert_eq!(figures(Unit::Nanoseconds, &[2.5, 3.0]).min(), Some(2.5));
        // Zero page faults is a count, and so is zero bytes.
        assert_eq!(figures(Unit::Count, &[0.0, 1.0]).min(), Some(0.0));
        assert_eq!(figures(Unit::Bytes, &[-4.0, 1.0]).min(), None);
    }
}
