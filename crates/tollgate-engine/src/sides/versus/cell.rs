//! A command in one place: its executions, and the measurements made from them.

use std::time::Duration;

use tollgate_model::estimate::CONFIDENCE;
use tollgate_model::measurement::{Case, Measured, Measurement, Outcome, ProcessRounds, Unit};
use tollgate_model::stats::Interval;
use tollgate_model::traced::{Backend, Ended, MOST_ENTRIES};
use tollgate_model::versus::{self, Cold, Failed};
use tollgate_model::{Traced, own, stats};

use super::order::{Cooled, End, Execution};

/// The group of all measurements.
const GROUP: &str = "versus";
/// The most files that are named because they stayed in the page cache.
const MOST_NAMED: usize = 16;

/// Resources that an execution used.
#[derive(Debug, Clone, Copy)]
struct Used {
    user_ns: u64,
    sys_ns: u64,
    faults: u64,
}

/// A timed execution.
#[derive(Debug, Clone, Copy)]
struct Timed {
    wall_ns: f64,
    /// Its resources by wait4(2); `None` if the process that waits for it was killed with it.
    used: Option<Used>,
    memory: Option<u64>,
    ended: Ended,
}

/// A command in one place.
#[derive(Debug, Default)]
pub(super) struct Cell {
    timed: Vec<Timed>,
    traced: Vec<Traced>,
    /// Real times of warm-ups, in nanoseconds.
    warm: Vec<f64>,
    slowest: Option<Duration>,
    cold: Option<Cold>,
    /// The files that it reads.
    pub files: Vec<String>,
    /// The number of processes that its executions left behind.
    left: u64,
    /// Why it could not be traced, if so.
    untraced: Option<String>,
}

/// The results of a command in one place.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The measurements, in the order of documents.
    pub measurements: Vec<Measurement>,
    /// Whether the time of its start was subtracted from its times.
    pub is_corrected: bool,
    /// Its executions that did not exit with status 0.
    pub failed: Vec<Failed>,
    /// The pages that stayed in the page cache.
    pub cold: Option<Cold>,
}

impl Cell {
    /// Returns the time of its longest execution.
    pub fn slowest(&self) -> Option<Duration> {
        self.slowest
    }

    pub fn number(&self) -> usize {
        self.timed.len()
    }

    /// Returns the real times, in nanoseconds.
    pub fn times(&self) -> Vec<f64> {
        self.timed.iter().map(|timed| timed.wall_ns).collect()
    }

    /// Returns the time of the shortest execution so far, in nanoseconds.
    pub fn shortest(&self) -> Option<f64> {
        self.warm.iter().copied().chain(self.timed.iter().map(|timed| timed.wall_ns)).min_by(f64::total_cmp)
    }

    pub fn warmed(&mut self, execution: &Execution) {
        self.took(execution);
        self.warm.push(execution.wall_ns as f64);
    }

    pub fn time(&mut self, execution: &Execution, ended: Ended) {
        self.took(execution);
        self.timed.push(Timed {
            wall_ns: execution.wall_ns as f64,
            used: used(execution),
            memory: execution.memory,
            ended,
        });
    }

    /// Drops all executions.
    pub fn begin_anew(&mut self) {
        self.timed.clear();
        self.traced.clear();
    }

    pub fn trace(&mut self, execution: Execution) {
        self.took(&execution);
        match execution.traced {
            Some(traced) if traced.backend == Backend::Rusage => {
                let why =
                    traced.notes.first().cloned().unwrap_or_else(|| "nothing can trace it here".to_owned());
                self.leave_untraced(why);
            }
            Some(traced) => self.traced.push(traced),
            // Its tracer ended with it.
            None => self.leave_untraced("it killed its process group, which its tracer is in".to_owned()),
        }
    }

    /// Notes why it is no longer traced. Earlier traces are kept.
    pub fn leave_untraced(&mut self, why: String) {
        self.untraced.get_or_insert(why);
    }

    /// Returns whether it could not be traced.
    pub fn is_untraced(&self) -> bool {
        self.untraced.is_some()
    }

    fn took(&mut self, execution: &Execution) {
        self.slowest = self.slowest.max(Some(Duration::from_nanos(execution.wall_ns)));
        self.left += u64::from(execution.left);
    }

    /// Adds which pages of its files stayed in the page cache.
    pub fn cooled(&mut self, cooled: Cooled) {
        let cold = self.cold.get_or_insert(Cold {
            files: 0,
            stayed: Vec::new(),
            stayed_files: 0,
            certified_by: None,
        });
        cold.files = cold.files.max(cooled.files);
        cold.stayed_files = cold.stayed_files.max(u32::try_from(cooled.stayed.len()).unwrap_or(u32::MAX));
        for file in cooled.stayed {
            if cold.stayed.len() < MOST_NAMED && !cold.stayed.contains(&file) {
                cold.stayed.push(file);
            }
        }
        if cold.certified_by.is_none() {
            cold.certified_by = cooled.certified_by;
        }
    }

    /// Drops executions beyond this number, for which another place has no execution in the same round.
    pub fn truncate(&mut self, number: usize) {
        self.timed.truncate(number);
    }

    /// Returns its measurements. `starts` are the real times of a start in nanoseconds, if they were measured in the same rounds;
    /// `is_subtracted` says whether their median is subtracted. `why` says why there is no execution, if there is none.
    pub fn conclude(self, starts: &[f64], is_subtracted: bool, why: &str) -> Found {
        let start = stats::median(starts);
        let around = start.filter(|_| is_subtracted);
        let ms = |ns: f64| format!("{:.3} ms", ns / 1e6);
        let of_start = |start: f64| match (is_subtracted, stats::anytime_interval(starts, CONFIDENCE)) {
            (true, _) => format!("less {} for its start, {}", ms(start), own::START),
            (false, None) => {
                let number = starts.len();
                format!("its start, {}, is not subtracted: {number} executions of it are too few", ms(start))
            }
            (false, Some(Interval { low, high })) => format!(
                "its start, {}, is not subtracted: its 95 % CI, {} to {}, is wide compared with the shortest command",
                ms(start),
                ms(low.max(0.0)),
                ms(high)
            ),
        };
        let mut notes: Vec<String> = start.map(of_start).into_iter().collect();
        if self.left > 0 {
            notes.push(format!("{} processes that it left were ended", self.left));
        }
        let less = around.unwrap_or(0.0);
        let real = self.timed.iter().map(|timed| timed.wall_ns - less).collect();
        let of = |name: &str, unit: Unit, why_none: &str, value: fn(&Timed) -> Option<u64>| {
            let values: Vec<Option<f64>> =
                self.timed.iter().map(|timed| value(timed).map(|value| value as f64)).collect();
            if values.iter().any(Option::is_some) {
                with_gaps(name, unit, &values)
            } else {
                not_measured(name, if values.is_empty() { why } else { why_none })
            }
        };
        let killed = "it killed its process group, including the process that was to be notified";
        let small = "less than the copy of this program that became the command had";
        let mut measurements = vec![
            noted(measured(versus::REAL, Unit::Nanoseconds, real, why), notes),
            of(versus::USER, Unit::Nanoseconds, killed, |timed| Some(timed.used?.user_ns)),
            of(versus::SYS, Unit::Nanoseconds, killed, |timed| Some(timed.used?.sys_ns)),
            of(versus::MEMORY, Unit::Bytes, small, |timed| timed.memory),
            of(versus::FAULTS, Unit::Count, killed, |timed| Some(timed.used?.faults)),
        ];
        if !starts.is_empty() {
            measurements.push(measured(own::START, Unit::Nanoseconds, starts.to_vec(), why));
        }
        if !self.traced.is_empty() {
            let walls = self.traced.iter().map(|traced| traced.wall_ns as f64).collect();
            let mut of_traced = measured(own::TRACED, Unit::Nanoseconds, walls, why);
            if let Outcome::Measured(measured) = &mut of_traced.outcome {
                measured.traced = self.traced;
            }
            measurements.push(of_traced);
        } else if let Some(why) = &self.untraced {
            measurements.push(not_measured(own::TRACED, why));
        }
        let failed = (0..).zip(&self.timed).filter(|(_, timed)| timed.ended != Ended::Exit(0));
        let failed = failed
            .take(MOST_ENTRIES)
            .map(|(execution, timed)| Failed { execution, ended: timed.ended })
            .collect();
        Found { measurements, is_corrected: around.is_some(), failed, cold: self.cold }
    }
}

fn used(execution: &Execution) -> Option<Used> {
    matches!(execution.end, End::Ended(_)).then_some(Used {
        user_ns: execution.user_ns,
        sys_ns: execution.sys_ns,
        faults: execution.faults,
    })
}

/// Returns the time of an execution on a processor, in nanoseconds; 0 if it is not known.
pub(super) fn processor_time(execution: &Execution) -> f64 {
    used(execution).map_or(0.0, |used| used.user_ns.saturating_add(used.sys_ns) as f64)
}

fn noted(mut measurement: Measurement, notes: Vec<String>) -> Measurement {
    if let Outcome::Measured(measured) = &mut measurement.outcome {
        measured.notes = notes;
    }
    measurement
}

pub(super) fn not_measured(name: &str, why: &str) -> Measurement {
    Measurement { case: Case::plain(name), outcome: Outcome::NotMeasured { why: why.to_owned() } }
}

/// Makes a measurement of executions some of which have no value. Their rounds count as discarded, so that the others stay neighbours.
fn with_gaps(name: &str, unit: Unit, values: &[Option<f64>]) -> Measurement {
    let mut measurement = measured(name, unit, values.iter().copied().flatten().collect(), "");
    if let Outcome::Measured(measured) = &mut measurement.outcome {
        measured.discarded = values.iter().filter(|value| value.is_none()).count() as u64;
        let process = |value: &Option<f64>| ProcessRounds {
            rounds: 1,
            ran: None,
            discarded: if value.is_some() { Vec::new() } else { vec![0] },
        };
        measured.processes = values.iter().map(process).collect();
    }
    measurement
}

pub(super) fn measured(name: &str, unit: Unit, samples: Vec<f64>, why: &str) -> Measurement {
    if samples.is_empty() {
        return not_measured(name, why);
    }
    let measured = Measured::of_executions(GROUP, unit, samples);
    Measurement { case: Case::plain(name), outcome: Outcome::Measured(Box::new(measured)) }
}
