//! The delivery of a fault, step by step: the interpreter runs the programs again to the same fault, and records it.

use std::ops::ControlFlow;
use std::time::Duration;

use tollgate_x86::walk::Exception;

use super::{Cause, Fault, Options, Program};
use crate::engines::machine;
use crate::guest::{BASE, Image, Parameters};
use crate::{Effect, Interpreter, LabError, Machine, Moment, Window};

/// The limit of instructions that are examined, from the first one at the fault's address.
const MOST: u64 = 1_000_000;
const RSP: usize = 4;
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the instruction that faulted and the steps of the exception's delivery. Returns `None` if the instruction is
/// unknown, or does not fault again: another engine may have given the programs other times.
///
/// # Errors
/// Those of [`super::run()`].
pub fn walk(programs: &[Program], options: Options, fault: &Fault) -> Result<Option<Moment>, LabError> {
    let Cause::Exception { vector, .. } = fault.cause else { return Ok(None) };
    // Without the address, everything that the programs do is examined, from the first one's entry.
    let Some(from) = fault.at.or(programs.first().map(|program| program.entry)) else { return Ok(None) };
    let archive = options.archive(programs)?;
    let image = Image::with_programs(&Parameters::default(), archive.bytes());
    let machine = Machine { patience: PATIENCE, ..machine(options.vendor) };
    let machine = Machine { instructions: options.instructions.min(machine.instructions), ..machine };
    let window = Window { from: Some(from), after: 0, until: None, at_most: MOST };
    let mut found = None;
    let mut note = |moment: &Moment| {
        if is_it(moment, vector, fault) {
            found = Some(moment.clone());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    Interpreter.watch(image.bytes(), BASE, image.entry(), machine, window, &mut note)?;
    Ok(found)
}

/// Returns whether this is the moment of the fault. An instruction that faults leaves the registers as they were. A
/// single-stepped one has changed them, and the delivery changes only RSP.
fn is_it(moment: &Moment, vector: u8, fault: &Fault) -> bool {
    const DEBUG: u8 = 1;
    let raised = match moment.exception {
        Some(raised) => raised.exception == Exception(vector),
        // INT n, INT3, INT1 and INTO raise no exception: they go through the gate.
        None => fault.at != Some(fault.rip) && moment.text.starts_with("int"),
    };
    let saved =
        |effect: &Effect| matches!(effect, Effect::Memory { bytes: 8, value, .. } if *value == fault.rip);
    let mut registers = if vector == DEBUG { moment.after.general } else { moment.before.general };
    let same = fault.general.is_none_or(|general| {
        if vector == DEBUG {
            registers[RSP] = general[RSP];
        }
        general == registers
    });
    let is_there = fault.at.is_none_or(|at| at == moment.before.rip);
    raised && moment.before.cpl == 3 && is_there && moment.effects.iter().any(saved) && same
}
