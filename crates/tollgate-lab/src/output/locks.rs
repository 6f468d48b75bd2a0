use serde::Serialize;
use tollgate_model::stats;
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};

use super::{json, text};
use crate::locks::{Group, LockRow, Results};
use crate::{EngineNote, Note};

/// The measured costs of locks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MeasuredLocks"))]
pub struct Locks {
    /// The executor: `kvm`, `kvm-emulated`, `qemu-kvm`, `qemu-tcg` or `interpreter`.
    provenance: &'static str,
    /// The processor's vendor according to the guest's CPUID, or null.
    maker: Option<String>,
    /// The unit of the samples; null if ticks have no meaning.
    unit: Option<&'static str>,
    /// One object per lock.
    locks: Vec<LockRecord>,
    /// Remarks, one sentence each.
    remarks: Vec<String>,
    /// The executor, in a sentence.
    #[serde(skip)]
    executed: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MeasuredLock"))]
struct LockRecord {
    /// Its name.
    name: &'static str,
    /// `lock` or `restart`.
    group: &'static str,
    /// A sentence about it.
    about: &'static str,
    /// The operation.
    operation: &'static str,
    /// `done` or `not-here`.
    status: &'static str,
    /// The median of its samples, or null.
    per_operation: Option<f64>,
    /// One sample per machine, in `unit`.
    samples: Vec<f64>,
    /// Instructions of one operation. On every engine the interpreter counts these, `reads` and `writes`.
    instructions: u64,
    /// Memory reads of one operation.
    reads: u64,
    /// Memory writes of one operation.
    writes: u64,
    /// Why it is `not-here`, or null.
    why: Option<String>,
}

impl Locks {
    /// Makes the document of a measurement.
    pub fn of(results: &Results) -> Self {
        let unit = text::unit(Some(&results.provenance));
        let mut document = Self {
            provenance: json::provenance(&results.provenance),
            maker: results.maker.clone(),
            unit,
            locks: results.rows.iter().map(|row| LockRecord::new(row, unit.is_some())).collect(),
            remarks: Vec::new(),
            executed: text::executed(&results.provenance),
        };
        let note = |note: &EngineNote| text::note(&Note::Engine(note.clone()));
        document.remarks = document.published().into_iter().chain(results.notes.iter().map(note)).collect();
        document
    }

    /// Compares the system call with the test-and-set, as the publication does.
    fn published(&self) -> Option<String> {
        let figure = |name| self.locks.iter().find(|lock| lock.name == name)?.per_operation;
        let times = figures::significant(figure("lock-call")? / figure("lock-restart")?, 3);
        Some(format!(
            "lock-call takes {times} × the {} of lock-restart. Published in 2000 for a PlayStation 2: more than 7 × the time.",
            self.unit?
        ))
    }

    /// Formats the document as text, at most `width` columns wide.
    pub fn page(&self, width: usize) -> String {
        let unit = self.unit.unwrap_or("result");
        // If the engine counts instructions, `unit` is their count already.
        let counted: &[&str] = if unit == "instructions" { &[] } else { &["instructions"] };
        let header: Vec<&'static str> =
            ["lock", unit].iter().chain(counted).chain(&["reads", "writes"]).copied().collect();
        let mut table = Table::new(&header).with_dispensable(2);
        let mut headed = None;
        for lock in &self.locks {
            if headed.replace(lock.group) != Some(lock.group) {
                table.heading(match lock.group {
                    "lock" => "acquired and released",
                    _ => "what a restart adds",
                });
            }
            let mut cells = vec![format!("  {}", lock.name), lock.figure()];
            cells.extend(counted.iter().map(|_| lock.instructions.to_string()));
            cells.extend([lock.reads, lock.writes].map(|number| number.to_string()));
            let look = if lock.why.is_some() { Look::Faint } else { Look::Plain };
            let remarks: Vec<String> =
                std::iter::once(lock.operation.to_owned()).chain(lock.why.clone()).collect();
            table.row(look, &cells, &remarks);
        }
        let mut text = table.render(width);
        text.push('\n');
        let maker = self.maker.as_deref().map_or(String::new(), |maker| format!("; the guest found {maker}"));
        let said = format!("{}{maker}. Without contention, and without the loop around it.", self.executed);
        text.push_str(&paragraph(&said, width, ""));
        for remark in &self.remarks {
            text.push_str(&paragraph(remark, width, ""));
        }
        text
    }
}

impl LockRecord {
    fn new(row: &LockRow, has_figures: bool) -> Self {
        let LockRow { lock, instructions, references, ticks } = row;
        let samples = ticks.as_ref().map_or(&[][..], Vec::as_slice);
        Self {
            name: lock.name,
            group: match lock.group {
                Group::Lock => "lock",
                Group::Restart => "restart",
            },
            about: lock.about,
            operation: lock.operation,
            status: if ticks.is_ok() { "done" } else { "not-here" },
            per_operation: per_operation(samples).filter(|_| has_figures),
            samples: samples.iter().copied().filter(|_| has_figures).collect(),
            instructions: *instructions,
            reads: references.reads,
            writes: references.writes,
            why: ticks.as_ref().err().cloned(),
        }
    }

    fn figure(&self) -> String {
        match (self.per_operation, self.status) {
            (Some(ticks), _) => text::amount(ticks),
            (None, "not-here") => "not here".to_owned(),
            (None, _) => "?".to_owned(),
        }
    }
}

/// Returns the median of the undisturbed samples, in which the longer machine took the longer time.
fn per_operation(samples: &[f64]) -> Option<f64> {
    stats::median(&samples.iter().copied().filter(|&sample| sample > 0.0).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::LOCKS;
    use crate::{Provenance, References};

    /// Makes rows with these ticks, under KVM.
    fn document(ticks: &[(&str, Result<&[f64], &str>)]) -> Locks {
        let row = |(name, ticks): &(&str, Result<&[f64], &str>)| LockRow {
            lock: LOCKS.iter().find(|lock| lock.name == *name).expect("a lock"),
            instructions: 110,
            references: References { reads: 43, writes: 29, page_walks: 0 },
            ticks: ticks.map(<[f64]>::to_vec).map_err(str::to_owned),
        };
        Locks::of(&Results {
            provenance: Provenance::Kvm,
            maker: None,
            operations: 4000,
            rows: ticks.iter().map(row).collect(),
            notes: Vec::new(),
        })
    }

    #[test]
    fn cycles_stand_beside_the_instructions() {
        let ticks = [("lock-restart", Ok(&[30.0, -5.0, 32.0, 34.0][..])), ("lock-call", Ok(&[320.0]))];
        let text = document(&ticks).page(80);
        assert!(text.contains("cycles  instructions  reads  writes"), "{text}");
        // A sample below zero was disturbed.
        let row = text.lines().find(|line| line.contains("lock-restart ")).expect("a row");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["lock-restart", "32", "110", "43", "29"]);
        assert!(text.contains("lock-call takes 10.0 × the cycles of lock-restart"), "{text}");
    }

    #[test]
    fn an_engine_that_did_not_come_to_the_end_has_no_figure() {
        let text = document(&[("lock-cli", Err("#PF ended its program at 102420"))]).page(80);
        assert!(text.contains("not here") && text.contains("#PF ended its program at 102420"), "{text}");
        assert!(!text.contains("lock-call takes"), "{text}");
    }
}
