//! The delivery of a fault, step by step: the programs run once more in the interpreter, which comes to the same fault and tells of it.

use std::ops::ControlFlow;
use std::time::Duration;

use tollgate_x86::walk::Exception;

use super::{Cause, Fault, Options, Program};
use crate::engines::machine;
use crate::guest::{BASE, Image, Parameters};
use crate::{Effect, Interpreter, LabError, Machine, Moment, Window};

/// Instructions that are looked at from the first one at the fault's address on.
const MOST: u64 = 1_000_000;
/// Where the general registers have RSP.
const RSP: usize = 4;
/// The time limit of the second run.
const PATIENCE: Duration = Duration::from_secs(5);

/// The instruction that faulted and the steps of the exception's delivery. None where it does not fault so a second time, as it may be
/// of programs that another engine gave other times; none for an instruction that is not known.
///
/// # Errors
/// As of [`super::run()`].
pub fn walk(programs: &[Program], options: Options, fault: &Fault) -> Result<Option<Moment>, LabError> {
    let Cause::Exception { vector, .. } = fault.cause else { return Ok(None) };
    // Without the address all that the programs do is looked at: the first one's entry comes first.
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

/// Whether it is the moment of this fault. An instruction that faults leaves the registers as they were; one that is single-stepped has
/// changed them, and the delivery only RSP.
fn is_it(moment: &Moment, vector: u8, fault: &Fault) -> bool {
    const DEBUG: u8 = 1;
    let raised = match moment.exception {
        Some(raised) => raised.exception == Exception(vector),
        // INT n, INT3, INT1 and INTO raise nothing: they go through the gate.
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
