//! The interpreter: an x86 processor of AMD or Intel, with the instructions that a small kernel needs. It is always available,
//! and two runs are identical to the byte.
//!
//! It has 32-bit protected mode without paging, compatibility mode, and 64-bit mode with four levels of page tables.
//! [`tollgate_x86::walk`] walks crossings, exceptions included; iced decodes. The two interrupt controllers and channel 0 of the
//! timer exist; nothing else comes from outside. Alignment is checked if CR0.AM and RFLAGS.AC ask for it.
//!
//! Not modelled: real-address and virtual-8086 mode, 16-bit code, paging outside long mode, tasks, debug registers, x87 and SSE.
//! An instruction outside the model ends the run (or the program in ring 3, if its kernel has asked to be told), and is named
//! with its bytes. #UD is raised only for an instruction that every processor refuses, that uses registers of an extension that
//! CPUID does not offer, or that is VEX-encoded. Arithmetic is compared with the host's processor, and all counts with QEMU's.

mod access;
mod arithmetic;
mod code;
mod control;
mod cpuid;
mod crossing;
mod decoded;
mod effect;
mod execute;
mod explore;
mod jumps;
mod memory;
mod pic;
mod pit;
mod ports;
pub(crate) mod preempted;
mod run;
mod segments;
mod state;
mod strings;
mod system;
mod tlb;
mod translation;
mod watch;

use std::ops::ControlFlow;

use tollgate_x86::Vendor;

use crate::host::fits;
use crate::{Engine, LabError, Machine, Output, Provenance};

pub use effect::Effect;
pub(crate) use explore::{Explorer, StateId, Stop};
pub(crate) use watch::written;
pub use watch::{Change, Moment, Registers, Window};

use state::{End, Processor};
use watch::Watcher;

/// The interpreter. If the machine names no vendor, the processor is Intel's.
///
/// The time-stamp counter is the number of instructions so far, plus the time spent waiting for the timer: an instruction
/// takes a nanosecond of the timer's time. An instruction counts when it completes; one with REP and n repetitions counts n +
/// 1 times, or n if a comparison ends it. An instruction that faults on its operands does not count: it may be executed again.
/// An instruction that is itself refused, an invalid opcode or one for another ring, counts as one. QEMU's `-icount
/// shift=0` counts in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interpreter;

impl Engine for Interpreter {
    fn run(&self, image: &[u8], base: u64, entry: u64, machine: Machine) -> Result<Output, LabError> {
        run(image, base, entry, machine, None)
    }
}

impl Interpreter {
    /// Runs as [`Engine::run`] does, and passes each instruction in the window to the observer. The end of the window, or
    /// [`ControlFlow::Break`], stops the run.
    ///
    /// # Errors
    /// Those of [`Engine::run`].
    pub fn watch(
        &self,
        image: &[u8],
        base: u64,
        entry: u64,
        machine: Machine,
        window: Window,
        tell: &mut dyn FnMut(&Moment) -> ControlFlow<()>,
    ) -> Result<Output, LabError> {
        run(image, base, entry, machine, Some(Watcher::new(window, tell)))
    }
}

fn run(
    image: &[u8],
    base: u64,
    entry: u64,
    machine: Machine,
    watcher: Option<Watcher>,
) -> Result<Output, LabError> {
    fits(image, base, machine)?;
    let size = machine.memory;
    // Allocating zeros cannot fail gracefully, so the size is checked first.
    Vec::<u8>::new().try_reserve_exact(size).map_err(|why| LabError::Unavailable {
        engine: "the interpreter",
        why: format!("{size} bytes of memory cannot be allocated: {why}"),
    })?;
    let mut memory = vec![0; size];
    let begin = base as usize;
    memory[begin..begin + image.len()].copy_from_slice(image);
    let vendor = machine.vendor.unwrap_or(Vendor::Intel);
    let mut processor = Processor::new(vendor, memory, entry);
    let ended = processor.run(machine.instructions, machine.patience, watcher);
    Ok(Output {
        serial: processor.ports.serial,
        provenance: Provenance::Interpreter,
        cut_short: match ended {
            End::Asked => None,
            End::CutShort(why) => Some(why),
        },
        memory: Some(processor.memory.bytes),
        counts: Some(processor.counts),
        unknown: processor.unknown,
    })
}
