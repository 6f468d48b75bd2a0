//! The delivery of a fault, step by step: the programs run once more in the interpreter, which comes to the same fault and tells of it.

use std::ops::ControlFlow;
use std::time::Duration;

use tollgate_x86::walk::Exception;

use super::{Cause, Fault, Options, Program};
use crate::engines::machine;
use crate::guest::{BASE, Image, Parameters};
use crate::{Interpreter, LabError, Machine, Moment, Window};

/// Instructions that are looked at from the first one at the fault's address on.
const MOST: u64 = 1_000_000;
/// The time limit of the second run.
const PATIENCE: Duration = Duration::from_secs(5);

/// The instruction that faulted and the steps of the exception's delivery. None where it does not fault so a second time, as it may be
/// of programs that another engine gave other times; none for an instruction that is not known.
///
/// # Errors
/// As of [`super::run()`].
pub fn walk(programs: &[Program], options: Options, fault: &Fault) -> Result<Option<Moment>, LabError> {
    let Cause::Exception { vector, .. } = fault.cause else { return Ok(None) };
    let archive = options.archive(programs)?;
    let image = Image::with_programs(&Parameters::default(), archive.bytes());
    let machine = Machine { patience: PATIENCE, ..machine(options.vendor) };
    let machine = Machine { instructions: options.instructions.min(machine.instructions), ..machine };
    let window = Window { from: Some(fault.rip), after: 0, until: None, at_most: MOST };
    let mut found = None;
    let mut note = |moment: &Moment| {
        let is_it = moment.before.rip == fault.rip
            && moment.before.cpl == 3
            && moment.exception.is_some_and(|raised| raised.exception == Exception(vector))
            && fault.general.is_none_or(|general| general == moment.before.general);
        if is_it {
            found = Some(moment.clone());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    Interpreter.watch(image.bytes(), BASE, image.entry(), machine, window, &mut note)?;
    Ok(found)
}
