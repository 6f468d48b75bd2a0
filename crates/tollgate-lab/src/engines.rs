//! Chooses the engine that runs the guest, and knows what its clock shows.

use std::time::Duration;

use tollgate_kvm::Kvm;
use tollgate_x86::Vendor;

use crate::kvm::provenance;
use crate::{Accelerator, Engine, Interpreter, LabError, Machine, Provenance, Qemu};

const MEMORY: usize = 16 << 20;
/// The limit of instructions: more than all experiments together execute.
const INSTRUCTIONS: u64 = 50_000_000;
const PATIENCE: Duration = Duration::from_secs(4);
/// The time limit of all machines together: after it no new machine starts. KVM's emulator can end a machine in every experiment.
const ALL_TOGETHER: Duration = Duration::from_secs(4);
/// The same limit if instructions are counted: their number bounds a run, and the result must not depend on the load.
const ALL_COUNTED: Duration = Duration::from_secs(60);
/// Rounds per machine if the clock shows time: one cold round, and ten that count.
const TIMED_ROUNDS: u32 = 11;

/// The choice of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// KVM if it executes ring 0 on the processor, else the interpreter.
    #[default]
    Auto,
    /// KVM, even if it emulates ring 0.
    Kvm,
    /// QEMU's translator, which counts instructions.
    Qemu,
    /// QEMU with KVM.
    QemuKvm,
    /// The interpreter, which counts instructions.
    Interpreter,
}

/// A remark on the choice of the engine.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineNote {
    /// KVM emulates ring 0 here, so its times are not latencies; `why` says in a clause how that was detected.
    Emulated { why: String },
    /// KVM cannot be used here; `why` is the text of a [`LabError`].
    NoKvm { why: String },
}

pub(crate) struct Chosen {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) notes: Vec<EngineNote>,
    pub(crate) emulated: Option<String>,
    /// Rounds on each machine. If the clock shows time, the first is cold and does not count.
    pub(crate) rounds: u32,
    pub(crate) limit: Duration,
}

/// Returns the guest's machine, with the processor of a vendor if the engine can choose.
pub fn machine(vendor: Option<Vendor>) -> Machine {
    Machine { memory: MEMORY, vendor, patience: PATIENCE, instructions: INSTRUCTIONS }
}

pub(crate) fn choose(choice: EngineChoice) -> Result<Chosen, LabError> {
    match choice {
        EngineChoice::Interpreter => Ok(interpreter(Vec::new())),
        EngineChoice::Qemu => {
            let qemu = Qemu::find()?.with(Accelerator::Tcg { icount: true });
            Ok(Chosen { engine: Box::new(qemu), ..interpreter(Vec::new()) })
        }
        EngineChoice::QemuKvm => {
            let qemu = Qemu::find()?;
            // QEMU uses the same KVM: if KVM emulates ring 0, it does so for QEMU as well.
            let chosen = kvm()?;
            Ok(Chosen { engine: Box::new(qemu.with(Accelerator::Kvm)), ..chosen })
        }
        EngineChoice::Kvm => kvm(),
        EngineChoice::Auto => Ok(match kvm() {
            Ok(chosen) if chosen.emulated.is_none() => chosen,
            Ok(chosen) => interpreter(chosen.notes),
            Err(error) => interpreter(vec![EngineNote::NoKvm { why: error.to_string() }]),
        }),
    }
}

fn interpreter(notes: Vec<EngineNote>) -> Chosen {
    Chosen { engine: Box::new(Interpreter), notes, emulated: None, rounds: 1, limit: ALL_COUNTED }
}

fn kvm() -> Result<Chosen, LabError> {
    let kvm = Kvm::open()?;
    let emulated = match provenance(kvm.calibrate()) {
        Provenance::KvmEmulated { why } => Some(why),
        _ => None,
    };
    let notes = emulated.iter().map(|why| EngineNote::Emulated { why: why.clone() }).collect();
    let rounds = if emulated.is_some() { 1 } else { TIMED_ROUNDS };
    Ok(Chosen { engine: Box::new(kvm), notes, emulated, rounds, limit: ALL_TOGETHER })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_takes_an_engine_whose_figures_say_something() {
        let chosen = choose(EngineChoice::Auto).expect("the interpreter is always there");
        assert_eq!(chosen.emulated, None);
        // Without a note it is KVM, which is timed over several rounds.
        assert_eq!(chosen.notes.is_empty(), chosen.rounds == TIMED_ROUNDS);
    }

    #[test]
    fn the_interpreter_needs_one_round() {
        let chosen = choose(EngineChoice::Interpreter).expect("it is always there");
        assert!(chosen.rounds == 1 && chosen.notes.is_empty() && chosen.emulated.is_none());
    }
}
