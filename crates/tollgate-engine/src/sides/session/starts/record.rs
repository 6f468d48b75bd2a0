//! The samples of a case of one environment, one for each of its starts.

use tollgate_model::measurement::{Measured, Measurement, Outcome, ProcessRounds, Provenance};

use super::visit::PAGES;
use crate::cases::aspect::Aspect;
use crate::cases::benchmark::Chosen;
use crate::refusal::Refusal;

/// The samples of a case in one environment.
#[derive(Debug, Default)]
pub struct StartsOfCase {
    /// The sample of each round, in the case's unit; `None` if that start failed.
    samples: Vec<Option<f64>>,
    refused: Option<Refusal>,
}

impl StartsOfCase {
    /// Adds the sample of a round, or the reason why there is none and will be none.
    pub fn add(&mut self, found: Result<f64, Refusal>) {
        match found {
            Ok(sample) => self.samples.push(Some(sample)),
            Err(refusal) => self.refused = Some(refusal),
        }
    }

    /// Adds a failed start, so that rounds with the same number stay neighbours.
    pub fn add_failure(&mut self) {
        self.samples.push(None);
    }

    /// Returns whether it may have further samples.
    pub fn is_open(&self) -> bool {
        self.refused.is_none()
    }

    /// Returns its measurement. `cut` is why the session ended early there, if it did; `remark` becomes a note.
    pub fn conclude(&self, case: &Chosen, cut: Option<&str>, remark: Option<&str>) -> Measurement {
        let kept: Vec<f64> = self.samples.iter().flatten().copied().collect();
        let outcome = match (&self.refused, kept.is_empty()) {
            (Some(refusal), _) => refusal.clone().outcome(),
            (None, true) => {
                let why = cut.unwrap_or("the run's time ended before its first start");
                Outcome::NotMeasured { why: why.to_owned() }
            }
            (None, false) => Outcome::Measured(Box::new(self.measured(case, kept, remark))),
        };
        Measurement { case: case.0.case(case.1.clone()), outcome }
    }

    /// Each start counts as a process of its own with one round, so that starts with the same number in two environments are neighbours.
    fn measured(&self, (benchmark, params): &Chosen, samples: Vec<f64>, remark: Option<&str>) -> Measured {
        let process = |sample: &Option<f64>| ProcessRounds {
            rounds: 1,
            ran: None,
            discarded: if sample.is_some() { Vec::new() } else { vec![0] },
        };
        let is_touch = benchmark.aspect_of(params) == Some(Aspect::FirstTouch);
        Measured {
            unit: benchmark.unit,
            provenance: Provenance::Hardware,
            ops_per_sample: if is_touch { PAGES } else { 1 },
            // CLOCK_MONOTONIC counts nanoseconds.
            clock_hz: 1_000_000_000,
            discarded: (self.samples.len() - samples.len()) as u64,
            samples,
            processes: self.samples.iter().map(process).collect(),
            counted: None,
            counters: Vec::new(),
            events: Vec::new(),
            bytes_per_op: None,
            group: benchmark.suite().to_owned(),
            baseline: benchmark.baseline_of(params),
            notes: remark.map(str::to_owned).into_iter().collect(),
            span_ns: None,
            traced: Vec::new(),
            traced_apart: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_model::Params;

    use super::*;
    use crate::cases::benchmark::{Benchmark, Kind, PLAIN};

    static START: Benchmark =
        Benchmark { name: "some/start", kind: Kind::Environment(|_| Some(Aspect::Start)), ..PLAIN };

    #[test]
    fn a_start_that_failed_keeps_its_place_and_a_refusal_is_the_outcome() {
        let mut record = StartsOfCase::default();
        record.add(Ok(2.0));
        record.add_failure();
        record.add(Ok(3.0));
        let case = (&START, Params::new());
        let measurement = record.conclude(&case, None, Some("a remark"));
        let measured = measurement.outcome.measured().expect("samples");
        assert_eq!((measured.samples.as_slice(), measured.discarded), (&[2.0, 3.0][..], 1));
        let kept: Vec<usize> = measured.processes.iter().map(ProcessRounds::kept).collect();
        assert_eq!((kept, measured.notes.as_slice()), (vec![1, 0, 1], &["a remark".to_owned()][..]));
        record.add(Err(Refusal::Skip("no shell".to_owned())));
        assert!(!record.is_open());
        assert_eq!(record.conclude(&case, None, None).outcome.why(), Some("no shell"));
        let why = StartsOfCase::default().conclude(&case, Some("interrupted"), None);
        assert_eq!(why.outcome.why(), Some("interrupted"));
    }
}
