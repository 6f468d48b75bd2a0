//! A run of the guest as JSON.

use serde::Serialize;

use super::text;
use crate::{Provenance, Results, Row, Status};

/// The output of `--format json`.
#[derive(Serialize)]
pub struct Document<'a> {
    provenance: Option<&'static str>,
    maker: Option<&'a str>,
    unit: Option<&'static str>,
    experiments: Vec<Record>,
    remarks: &'a [String],
}

#[derive(Serialize)]
struct Record {
    name: &'static str,
    group: &'static str,
    operation: &'static str,
    status: &'static str,
    per_operation: Option<f64>,
    reads: Option<u64>,
    writes: Option<u64>,
    page_walks: Option<u64>,
    rounds: Vec<Round>,
    fault: Option<Fault>,
    as_expected: Option<bool>,
    why: Option<String>,
}

#[derive(Serialize)]
struct Round {
    operations: u32,
    ticks: Option<u64>,
    arrived: [u64; 2],
}

#[derive(Serialize)]
struct Fault {
    vector: u8,
    error: u32,
    cs: u16,
    rip: String,
}

impl<'a> Document<'a> {
    /// Of a run.
    pub fn of(results: &'a Results, remarks: &'a [String]) -> Self {
        let unit = text::unit(results.provenance.as_ref());
        Self {
            provenance: results.provenance.as_ref().map(provenance),
            maker: results.maker.as_deref(),
            unit,
            experiments: results.rows.iter().map(|row| Record::of(row, unit.is_some())).collect(),
            remarks,
        }
    }
}

/// The executor, in a word.
pub(super) fn provenance(provenance: &Provenance) -> &'static str {
    match provenance {
        Provenance::Kvm => "kvm",
        Provenance::KvmEmulated { .. } => "kvm-emulated",
        Provenance::QemuKvm => "qemu-kvm",
        Provenance::QemuTcg { .. } => "qemu-tcg",
        Provenance::Interpreter => "interpreter",
    }
}

impl Record {
    fn of(row: &Row, has_figures: bool) -> Self {
        let mut record = Self {
            name: row.experiment.name,
            group: text::group(row.experiment.group),
            operation: row.experiment.operation,
            status: "done",
            per_operation: None,
            reads: row.references.map(|references| references.reads),
            writes: row.references.map(|references| references.writes),
            page_walks: row.references.map(|references| references.page_walks),
            rounds: Vec::new(),
            fault: None,
            as_expected: None,
            why: None,
        };
        match &row.status {
            Status::Done(rounds) => {
                record.per_operation = text::per_operation(rounds).filter(|_| has_figures);
                record.rounds = rounds
                    .iter()
                    .map(|round| Round {
                        operations: round.iterations,
                        ticks: round.ticks().filter(|_| has_figures),
                        arrived: [round.count_one, round.count_two],
                    })
                    .collect();
            }
            Status::Refused { fault, is_right } => {
                record.status = "refused";
                record.as_expected = Some(*is_right);
                record.fault = Some(Fault {
                    vector: fault.vector,
                    error: fault.error,
                    cs: fault.cs,
                    rip: format!("{:#x}", fault.rip),
                });
            }
            Status::Lacks(features) => {
                record.status = "lacking";
                record.why = Some(features.join(", "));
            }
            Status::Defect(defect) => {
                record.status = "defect";
                record.why = Some(text::defect(*defect).to_owned());
            }
            Status::NotHere(obstacle) => {
                record.status = "not-here";
                record.why = Some(text::obstacle(obstacle));
            }
            Status::Wrong(mistake) => {
                record.status = "wrong";
                record.why = Some(text::mistake(*mistake));
            }
        }
        record
    }
}
