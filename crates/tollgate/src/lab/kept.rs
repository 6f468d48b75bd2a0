//! A run of the guest as a run document: `tollgate show` and `tollgate compare` read it like any other.

use std::path::Path;
use std::time::SystemTime;

use tollgate_lab::output::{self as text, SUITE};
use tollgate_lab::{EntryRow, Provenance as Executor, Results, Status, locks};
use tollgate_model::measurement::ProcessRounds;
use tollgate_model::{Case, Fact, Facts, Label, Measured, Measurement, Outcome, Provenance, Run, Unit};

use crate::args::lab::On;
use crate::document;
use crate::failure::Failure;

/// Every experiment has a measurement, or the reason why it has none.
pub fn document(results: &Results, began: SystemTime, label: Option<Label>) -> Result<Run, Failure> {
    let mut facts = tollgate_inspect::read_facts(&tollgate_inspect::Machine::here());
    facts.extend(facts_of(results));
    let unit = results.provenance.as_ref().and_then(unit);
    let measurements = results.rows.iter().map(|row| measurement(row, unit, results.machines)).collect();
    document::ended_run(began, label, facts, measurements)
}

/// The document of a guest that ran elsewhere, with the named engine. No other fact of that machine is known.
pub fn imported(
    results: &Results,
    began: SystemTime,
    label: Option<Label>,
    on: On,
    path: &Path,
) -> Result<Run, Failure> {
    let unit = match on {
        On::Hardware => Some((Unit::Cycles, Provenance::Hardware)),
        On::Kvm | On::QemuKvm => Some((Unit::Cycles, Provenance::Kvm)),
        On::Qemu => Some((Unit::Instructions, Provenance::QemuTcg)),
        On::Interpreter => Some((Unit::Instructions, Provenance::Interpreter)),
        On::Auto => None,
    };
    let mut facts: Facts = facts_of(results).collect();
    facts.insert("lab.read".to_owned(), Fact::known(path.display().to_string(), "--read"));
    let measurements = results.rows.iter().map(|row| measurement(row, unit, results.machines)).collect();
    document::ended_run(began, label, facts, measurements)
}

pub fn locks(results: &locks::Results, began: SystemTime, label: Option<Label>) -> Result<Run, Failure> {
    let mut facts = tollgate_inspect::read_facts(&tollgate_inspect::Machine::here());
    facts.extend(results.maker.iter().map(|maker| vendor(maker)));
    let unit = unit(&results.provenance);
    let measurements = results.rows.iter().map(|row| {
        let outcome = match (&row.ticks, unit) {
            (Ok(samples), Some((unit, provenance))) => {
                // Each sample counts as a machine of its own.
                let rounds: Vec<_> =
                    samples.iter().map(|sample| vec![Some(*sample).filter(|it| *it > 0.0)]).collect();
                measured(&rounds, results.operations, unit, provenance)
            }
            (Ok(_), None) => Outcome::Skipped { why: "its engine does not measure time".to_owned() },
            (Err(why), _) => Outcome::Skipped { why: why.clone() },
        };
        Measurement { case: Case::plain(format!("{SUITE}/{}", row.lock.name)), outcome }
    });
    document::ended_run(began, label, facts, measurements.collect())
}

fn facts_of(results: &Results) -> impl Iterator<Item = (String, Fact)> + '_ {
    let maker = results.maker.iter();
    maker.map(|maker| vendor(maker))
}

fn vendor(maker: &str) -> (String, Fact) {
    ("lab.vendor".to_owned(), Fact::known(maker, "CPUID.0 in the guest"))
}

fn measurement(row: &EntryRow, unit: Option<(Unit, Provenance)>, machines: usize) -> Measurement {
    let case = Case::plain(format!("{SUITE}/{}", row.experiment.name));
    let outcome = match (&row.status, unit) {
        (Status::Done(rounds), Some((unit, provenance))) => {
            let of_each = (rounds.len() / machines.max(1)).max(1);
            let operations = rounds.first().map_or(1, |round| round.iterations.max(1));
            let machines: Vec<Vec<_>> =
                rounds.chunks(of_each).map(|rounds| rounds.iter().map(text::sample).collect()).collect();
            measured(&machines, operations, unit, provenance)
        }
        (Status::Done(_), None) => Outcome::Skipped { why: "its engine does not measure time".to_owned() },
        (Status::Wrong(mistake), _) => Outcome::Failed { error: text::mistake(*mistake) },
        (Status::Refused { fault, is_right: false }, _) => {
            Outcome::Failed { error: format!("{}, which is not what the manual says", text::name(*fault)) }
        }
        (Status::Refused { fault, is_right: true }, _) => {
            Outcome::Skipped { why: format!("the processor rejects it: {}", text::name(*fault)) }
        }
        (Status::Lacks(features), _) => {
            Outcome::Skipped { why: format!("the processor has no {}", features.join(", ")) }
        }
        (Status::Defect(defect), _) => Outcome::Skipped { why: text::defect(*defect).to_owned() },
        (Status::NotHere(obstacle), _) => Outcome::Skipped { why: text::obstacle(obstacle) },
    };
    Measurement { case, outcome }
}

/// The unit of its ticks; `None` if they have no meaning.
fn unit(executor: &Executor) -> Option<(Unit, Provenance)> {
    match executor {
        Executor::Kvm | Executor::QemuKvm => Some((Unit::Cycles, Provenance::Kvm)),
        Executor::QemuTcg { icount: true } => Some((Unit::Instructions, Provenance::QemuTcg)),
        Executor::Interpreter => Some((Unit::Instructions, Provenance::Interpreter)),
        Executor::KvmEmulated { .. } | Executor::QemuTcg { icount: false } => None,
    }
}

/// For each machine its rounds: the ticks of an operation, or none if the round was disturbed, which is discarded.
fn measured(machines: &[Vec<Option<f64>>], operations: u32, unit: Unit, provenance: Provenance) -> Outcome {
    let rounds = || machines.iter().flatten();
    let samples: Vec<f64> = rounds().copied().flatten().collect();
    // A guest's machine is like a program's process: differences between two of them are not visible in one.
    let process = |rounds: &Vec<Option<f64>>| ProcessRounds {
        rounds: rounds.len() as u32,
        ran: None,
        discarded: (0..).zip(rounds).filter(|(_, sample)| sample.is_none()).map(|(at, _)| at).collect(),
    };
    if samples.is_empty() {
        return Outcome::Failed { error: "every round was disturbed".to_owned() };
    }
    Outcome::Measured(Box::new(Measured {
        unit,
        provenance,
        ops_per_sample: operations.into(),
        clock_hz: 1,
        discarded: (rounds().count() - samples.len()) as u64,
        samples,
        processes: machines.iter().map(process).collect(),
        counted: None,
        counters: Vec::new(),
        events: Vec::new(),
        bytes_per_op: None,
        group: SUITE.to_owned(),
        baseline: None,
        notes: Vec::new(),
        span_ns: None,
        traced: Vec::new(),
        traced_apart: Vec::new(),
    }))
}
