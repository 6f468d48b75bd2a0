use serde::Serialize;

use super::text;
use crate::{EntryRow, Provenance, Results, Status};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LabResults"))]
pub struct LabDocument<'a> {
    /// The executor: `kvm`, `kvm-emulated`, `qemu-kvm`, `qemu-tcg` or `interpreter`; null with `--from`.
    provenance: Option<&'static str>,
    /// The processor's vendor according to the guest's CPUID, or null.
    maker: Option<&'a str>,
    /// The unit of a tick: `instructions`, `cycles` or `ticks` (with `--from`); null if ticks have no meaning.
    unit: Option<&'static str>,
    /// One object per experiment.
    experiments: Vec<LabExperiment>,
    /// Remarks, one sentence each.
    remarks: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LabExperiment {
    /// Its name.
    name: &'static str,
    /// Its group.
    group: &'static str,
    /// The operation.
    operation: &'static str,
    /// `done`, `refused`, `lacking`, `not-here`, `defect` (of the engine) or `wrong`.
    status: &'static str,
    /// The median of its rounds per operation, or null.
    per_operation: Option<f64>,
    /// Memory reads of one operation. Only the interpreter counts this and the next two.
    reads: Option<u64>,
    /// Memory writes of one operation.
    writes: Option<u64>,
    /// Page-table walks of one operation.
    page_walks: Option<u64>,
    /// Its rounds.
    rounds: Vec<Round>,
    /// The fault, or null.
    fault: Option<Fault>,
    /// Whether the fault agrees with the vendor's manual; null without a fault.
    as_expected: Option<bool>,
    /// Why there are no figures, or null.
    why: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LabRound"))]
struct Round {
    /// Operations in each batch.
    operations: u32,
    /// Ticks that they took: the difference of two batches. Null if the second batch was shorter, as can happen on a disturbed processor.
    ticks: Option<u64>,
    /// The number of operations that arrived in the first batch and in the second.
    arrived: [u64; 2],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LabFault"))]
struct Fault {
    /// Its vector.
    vector: u8,
    /// Its error code.
    error: u32,
    /// The saved CS.
    cs: u16,
    /// The saved RIP, in hexadecimal.
    rip: String,
}

impl<'a> LabDocument<'a> {
    /// Makes the document of a run.
    pub fn new(results: &'a Results, remarks: &'a [String]) -> Self {
        let unit = text::unit(results.provenance.as_ref());
        Self {
            provenance: results.provenance.as_ref().map(provenance),
            maker: results.maker.as_deref(),
            unit,
            experiments: results.rows.iter().map(|row| LabExperiment::new(row, unit.is_some())).collect(),
            remarks,
        }
    }
}

pub(super) fn provenance(provenance: &Provenance) -> &'static str {
    match provenance {
        Provenance::Kvm => "kvm",
        Provenance::KvmEmulated { .. } => "kvm-emulated",
        Provenance::QemuKvm => "qemu-kvm",
        Provenance::QemuTcg { .. } => "qemu-tcg",
        Provenance::Interpreter => "interpreter",
    }
}

impl LabExperiment {
    fn new(row: &EntryRow, has_figures: bool) -> Self {
        let (status, why) = match &row.status {
            Status::Done(_) => ("done", None),
            Status::Refused { .. } => ("refused", None),
            Status::Lacks(features) => ("lacking", Some(features.join(", "))),
            Status::Defect(defect) => ("defect", Some(text::defect(*defect).to_owned())),
            Status::NotHere(obstacle) => ("not-here", Some(text::obstacle(obstacle))),
            Status::Wrong(mistake) => ("wrong", Some(text::mistake(*mistake))),
        };
        let rounds = if let Status::Done(rounds) = &row.status { rounds.as_slice() } else { &[] };
        let refused = match &row.status {
            Status::Refused { fault, is_right } => Some((fault, *is_right)),
            _ => None,
        };
        Self {
            name: row.experiment.name,
            group: text::group(row.experiment.group),
            operation: row.experiment.operation,
            status,
            per_operation: text::per_operation(rounds).filter(|_| has_figures),
            reads: row.references.map(|references| references.reads),
            writes: row.references.map(|references| references.writes),
            page_walks: row.references.map(|references| references.page_walks),
            rounds: rounds
                .iter()
                .map(|round| Round {
                    operations: round.iterations,
                    ticks: round.ticks().filter(|_| has_figures),
                    arrived: [round.count_one, round.count_two],
                })
                .collect(),
            fault: refused.map(|(fault, _)| Fault {
                vector: fault.vector,
                error: fault.error,
                cs: fault.cs,
                rip: format!("{:#x}", fault.rip),
            }),
            as_expected: refused.map(|(_, is_right)| is_right),
            why,
        }
    }
}
