use std::time::{Duration, Instant};

use tollgate_model::estimate::{CONFIDENCE, paces};
use tollgate_model::measurement::{
    Case, Counted, Measured, Measurement, Outcome, Params, ProcessRounds, Provenance, Unit,
};
use tollgate_model::stats::{self, Interval};
use tollgate_model::{Counter, EventCounts};

use crate::bench_process::record::InstanceRecord;
use crate::bench_process::shared::{Events, InstanceState, OWN_EVENTS};
use crate::bench_process::worker::{InstanceOrder, iterations_for};
use crate::loops::events::Tally;
use crate::loops::instance::Readiness;
use crate::{
    cases::benchmark::Benchmark, cases::headline::Headline, cases::run::Decided, machine::clock::Clock,
    machine::ending::Ending, refusal::Refusal,
};

/// A case, from its selection to its measurement.
#[derive(Clone)]
pub(crate) struct CaseState {
    pub benchmark: &'static Benchmark,
    pub params: Params,
    pub state: CaseStatus,
    pub ready: Readiness,
    pub iterations: u64,
    pub events: Events,
    /// Net ticks of the kept batches, process by process.
    pub batches: Vec<i64>,
    pub processes: Vec<ProcessRounds>,
    /// The median of each process that kept a batch, in ticks.
    pub medians: Vec<f64>,
    /// When the first and the last process that kept a batch ended.
    pub ends: Option<(Instant, Instant)>,
    pub headline: Option<&'static Headline>,
    pub is_reported: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CaseStatus {
    Waiting,
    Running,
    Refused(Refusal),
}

impl CaseState {
    pub fn new(benchmark: &'static Benchmark, params: Params) -> Self {
        Self {
            benchmark,
            params,
            state: CaseStatus::Waiting,
            ready: Readiness { ops: 1, most: 1, ..Readiness::default() },
            iterations: 1,
            events: Events::default(),
            batches: Vec::new(),
            processes: Vec::new(),
            medians: Vec::new(),
            ends: None,
            headline: None,
            is_reported: false,
        }
    }

    pub fn case(&self) -> Case {
        self.benchmark.case(self.params.clone())
    }

    pub fn takes_part_in(&self, comparison: &str) -> bool {
        self.state == CaseStatus::Running && self.benchmark.comparison() == comparison
    }

    /// Whether rounds continue until its CI is narrow: not for the engine's own benchmarks.
    pub fn decides(&self) -> bool {
        !self.benchmark.is_own()
    }

    /// Iterations that fill a batch.
    pub fn iterations_alone(&self) -> u64 {
        iterations_for(self.ready.cost).min(self.ready.most)
    }

    /// Operations that fill a batch.
    pub fn operations_alone(&self) -> u64 {
        self.iterations_alone() * self.ready.ops
    }

    /// Time of one batch, untimed parts included.
    pub fn batch(&self) -> Duration {
        let iterations = u32::try_from(self.iterations).unwrap_or(u32::MAX);
        self.ready.fixed.saturating_add(self.ready.whole.saturating_mul(iterations))
    }

    /// Processes in which it had a batch, kept or not.
    pub fn processes_run(&self) -> usize {
        self.processes.iter().filter(|process| process.ran.as_ref().is_none_or(|ran| !ran.is_empty())).count()
    }

    pub fn order(&self, stride: usize) -> InstanceOrder {
        InstanceOrder {
            benchmark: self.benchmark.name.to_owned(),
            params: self.params.clone(),
            ops: self.ready.ops,
            iterations: self.iterations,
            stride,
        }
    }

    pub fn record_calibration(&mut self, state: InstanceState) {
        match state {
            None => {}
            Some(Ok(ready)) => {
                (self.ready, self.state) = (Readiness { counted: 0, ..ready }, CaseStatus::Running)
            }
            Some(Err(refusal)) => self.state = CaseStatus::Refused(refusal),
        }
    }

    pub fn record_count(&mut self, record: &InstanceRecord, rounds: usize) {
        self.record_calibration(record.state.clone());
        if let Some(Ok(ready)) = &record.state {
            self.iterations = ready.counted.max(1);
            self.ready.counted = self.iterations;
            self.collect(Some(record), rounds);
        }
    }

    pub fn fail_with(&mut self, ending: Ending, stall: Duration) {
        let absence = match ending {
            Ending::Killed(signal) => self.benchmark.absence_by(signal),
            _ => None,
        };
        self.state = CaseStatus::Refused(match (absence, ending) {
            (Some(why), _) => Refusal::Skip(why.to_owned()),
            (None, Ending::OutOfTime) => Refusal::OutOfTime(ending.describe(stall)),
            (None, _) => Refusal::Fail(ending.describe(stall)),
        });
    }

    /// Collects what one process of `rounds` rounds left of this case, if it ran there.
    pub fn collect(&mut self, record: Option<&InstanceRecord>, rounds: usize) {
        if let Some(Err(refusal)) = record.and_then(|record| record.state.clone()) {
            self.state = CaseStatus::Refused(match refusal {
                // It passed the calibration alone, but not next to the other instances.
                Refusal::Skip(why) if !self.batches.is_empty() => Refusal::Fail(why),
                refusal => refusal,
            });
        }
        if rounds == 0 {
            return;
        }
        let none = InstanceRecord { ran: Some(Vec::new()), ..InstanceRecord::default() };
        let record = record.unwrap_or(&none);
        self.batches.extend(&record.ticks);
        let ticks: Vec<f64> = record.ticks.iter().map(|&ticks| ticks as f64).collect();
        if let Some(median) = stats::median(&ticks) {
            self.medians.push(median);
            let now = Instant::now();
            self.ends = Some((self.ends.map_or(now, |(first, _)| first), now));
        }
        for (sum, number) in self.events.iter_mut().zip(record.events) {
            *sum = sum.saturating_add(number);
        }
        self.processes.push(record.rounds(rounds));
    }

    /// Its first figure, once, if it is on the first screen and had this many processes.
    pub fn newly_decided(&mut self, clock: Clock, processes: usize) -> Option<Decided> {
        let is_time = matches!(self.benchmark.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine);
        if self.is_reported || self.medians.len() < processes || !is_time {
            return None;
        }
        self.is_reported = true;
        let headline = self.headline?;
        let operations = self.iterations * self.ready.ops;
        let median_ns = clock.nanoseconds(stats::median(&self.medians)?) / operations as f64;
        Some(Decided { case: self.case(), headline, median_ns })
    }

    fn span_ns(&self) -> Option<u64> {
        self.ends.map(|(first, last)| (last - first).as_nanos() as u64)
    }

    /// Whether its CI is narrow: its half width is within this share of the median.
    pub fn is_narrow(&self, precision: f64) -> bool {
        let median = stats::median(&self.medians);
        let interval = stats::series_interval(&self.medians, paces(self.span_ns()), CONFIDENCE);
        let width =
            |(median, interval): (f64, Interval)| (interval.high - interval.low) / (2.0 * median.abs());
        median.zip(interval).map(width).is_some_and(|width| width <= precision)
    }

    pub fn measured(&self, suite: &str, clock: Clock) -> Option<Measured> {
        let ops_per_sample = self.iterations * self.ready.ops;
        let is_counted = self.ready.counted > 0;
        let unit = match self.benchmark.unit {
            Unit::Bytes => Unit::Bytes,
            _ if is_counted => Unit::Instructions,
            unit => unit,
        };
        // One tick in that unit; an amount is already in its unit.
        let tick = match unit {
            Unit::Nanoseconds | Unit::NanosecondsPerLine => clock.nanoseconds(1.0),
            Unit::Cycles | Unit::Bytes | Unit::Count | Unit::Instructions => 1.0,
        };
        let digits = digits_of(tick / ops_per_sample as f64);
        let per_op = |work: &i64| (*work as f64 * tick / ops_per_sample as f64 * digits).round() / digits;
        let measured = Measured {
            unit,
            provenance: if is_counted { Provenance::QemuIcount } else { Provenance::Hardware },
            ops_per_sample,
            clock_hz: clock.hz(),
            samples: self.batches.iter().map(per_op).collect(),
            discarded: self.processes.iter().map(|process| process.discarded.len() as u64).sum(),
            processes: self.processes.clone(),
            counted: self.counted(ops_per_sample),
            counters: self.counters(),
            events: if is_counted { Vec::new() } else { self.counted_beside(ops_per_sample) },
            // Without a time there is no throughput.
            bytes_per_op: (self.benchmark.bytes)(&self.params).filter(|_| !is_counted),
            group: suite.to_owned(),
            baseline: self.benchmark.baseline_of(&self.params),
            notes: self.ready.notes.clone(),
            span_ns: self.span_ns().filter(|_| !is_counted),
            traced: Vec::new(),
            traced_apart: Vec::new(),
        };
        (!measured.samples.is_empty()).then_some(measured)
    }

    fn counted(&self, ops_per_sample: u64) -> Option<Counted> {
        let operations = self.batches.len() as u64 * ops_per_sample;
        let events = self.events[0];
        match (self.benchmark.counts, self.benchmark.share) {
            (Some(what), _) => Some(Counted { what: what.to_owned(), events, operations, is_share: false }),
            (None, Some(share)) => {
                let operations = self.batches.len() as u64 * (ops_per_sample / share.one_of.max(1));
                Some(Counted { what: share.what.to_owned(), events, operations, is_share: true })
            }
            (None, None) => None,
        }
    }

    fn counted_beside(&self, ops_per_sample: u64) -> Vec<EventCounts> {
        let words = std::array::from_fn(|at| self.events[OWN_EVENTS + at]);
        Tally::of_words(words).counts(ops_per_sample)
    }

    fn counters(&self) -> Vec<Counter> {
        let numbers = self.benchmark.counters.iter().zip(&self.events[1..OWN_EVENTS]);
        numbers.map(|(what, &number)| Counter { what: (*what).to_owned(), number }).collect()
    }

    /// Whether the time was over before a batch of it was kept.
    pub fn lacks_time(&self) -> bool {
        match &self.state {
            CaseStatus::Waiting => true,
            CaseStatus::Running => self.batches.is_empty(),
            CaseStatus::Refused(refusal) => matches!(refusal, Refusal::OutOfTime(_)),
        }
    }

    pub fn conclude(self, suite: &str, clock: Clock, cut: Option<&str>) -> Measurement {
        let not_measured = |why: String| Outcome::NotMeasured { why };
        let outcome = match (&self.state, self.measured(suite, clock)) {
            (CaseStatus::Refused(refusal), _) => refusal.clone().outcome(),
            (CaseStatus::Running, Some(measured)) => Outcome::Measured(Box::new(measured)),
            (state, _) => not_measured(match (cut, state) {
                (Some(cut), _) => cut.to_owned(),
                (None, CaseStatus::Running) => self.why_no_samples(),
                (None, _) => {
                    "the run's time ended before its calibration; give more time, or select cases by a pattern"
                        .to_owned()
                }
            }),
        };
        Measurement { case: self.case(), outcome }
    }

    fn why_no_samples(&self) -> String {
        let discarded: usize = self.processes.iter().map(|process| process.discarded.len()).sum();
        match discarded {
            0 => "the run's time ended before its first round; give more time, or select cases by a pattern"
                .to_owned(),
            batches => {
                format!("all {batches} batches were discarded: other processes used the processor")
            }
        }
    }
}

/// A power of ten that still separates two ticks. More digits exceed the clock's precision and double a document's length.
fn digits_of(tick: f64) -> f64 {
    10_f64.powi((1.0 - tick.log10()).ceil().clamp(0.0, 15.0) as i32)
}
