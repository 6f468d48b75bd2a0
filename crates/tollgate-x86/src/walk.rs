//! The walk: the processor's steps in a crossing from one ring to another, or back.
//!
//! [`walk`] takes a [`Machine`], which provides registers and memory, and a [`Crossing`]. It follows the manuals'
//! pseudo-code in order: each check, load and push is a [`Step`], which the machine may watch and which displays as a
//! sentence. Registers are written once nothing can fault any more, so after a fault the machine is unchanged, except for
//! what was already pushed onto the new stack, as on the processor.
//!
//! A machine need not know everything. Unknown values are pushed and loaded as "not known". A check that needs one counts
//! as passed and is shown as unchecked. If the walk cannot continue without a value, it ends as [`Outcome::Unknown`].
//!
//! Sources: SDM volume 2, the operation of INT n, IRET, CALL, JMP, RET, SYSENTER, SYSEXIT, SYSCALL, SYSRET and SWAPGS; SDM
//! 3A, the chapters "Protection" and "Interrupt and exception handling"; APM volume 3, the same instructions, where the
//! vendors differ. [`NotModelled`] covers real-address and virtual-8086 mode, the exchange of two tasks' registers, and
//! event delivery by FRED. Shadow stacks and branch tracking (CR4.CET) are not modelled either; a step says so.
//! Alignment checks (#AC) and the debug traps that TF and a TSS request after the crossing are omitted without a step.
//!
//! ```
//! use tollgate_x86::walk::{Crossing, Mode, Outcome, Sketch, walk};
//! use tollgate_x86::{Msr, Vendor, Width};
//!
//! let mut last = String::new();
//! let mut machine = Sketch::new(Vendor::Intel, Width::Legacy, |step| last = step.to_string());
//! machine.set_program(3, Mode::Protected);
//! machine.set_msr(Msr::SysenterCs, 0x8);
//! machine.set_msr(Msr::SysenterEip, 0x8086_5710);
//! assert_eq!(walk(&mut machine, Crossing::Sysenter), Outcome::Done);
//! assert_eq!(machine.rip, Some(0x8086_5710));
//! assert_eq!(machine.rsp, None, "SYSENTER_ESP is not known");
//! assert_eq!(last, "EIP 80865710 from MSR 176, SYSENTER_EIP");
//! ```

mod call;
mod event;
mod fast;
mod flags;
mod gate;
mod generated;
mod interrupt;
mod interrupt_return;
mod machine;
mod number;
mod outcome;
mod reading;
mod registers;
mod return_far;
mod rule;
mod say;
mod sketch;
mod stack;
mod step;
mod task;
mod task_stack;
#[cfg(test)]
mod tests;

pub use event::{Event, Next};
#[doc(hidden)]
pub use generated::walk_generated;
pub use machine::{By, Machine, Miss};
pub use number::Number;
pub use outcome::{Exception, Fault, NotModelled, Outcome, Severity, Unknown};
pub use registers::{Bounds, Directory, Hidden, Mode, Register, Segment, SegmentRegister, TableRegister};
pub use rule::{Role, Rule};
pub use sketch::{Piece, Sketch};
pub use step::{FlagsBy, Item, Origin, Step};

use crate::{Cr0, Cr4, Rflags, Selector, Width};

/// Operand size of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// 16 bits.
    Word,
    /// 32 bits.
    Double,
    /// 64 bits: REX.W, in 64-bit mode.
    Quad,
}

impl Size {
    /// Returns the size in bytes.
    pub const fn bytes(self) -> u8 {
        match self {
            Self::Word => 2,
            Self::Double => 4,
            Self::Quad => 8,
        }
    }

    /// Truncates a value to this size.
    pub const fn cut(self, value: u64) -> u64 {
        match self {
            Self::Word => value & 0xffff,
            Self::Double => value & 0xffff_ffff,
            Self::Quad => value,
        }
    }
}

/// A transfer from one ring to another, or back.
///
/// RIP is the value that the processor would save: the address of the next instruction, or for a fault that of the faulting
/// instruction.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// An event through the interrupt descriptor table.
    Event(Event),
    /// CALL to another segment or through a call gate. The selector is that of code, a call gate, a task gate or a TSS; for
    /// a gate, offset and size are ignored.
    FarCall { selector: Selector, offset: u64, size: Size },
    /// JMP, like [`Crossing::FarCall`].
    FarJump { selector: Selector, offset: u64, size: Size },
    /// RET to another segment, which also releases `release` bytes of parameters.
    FarReturn { size: Size, release: u16 },
    /// IRET, IRETD and IRETQ.
    InterruptReturn { size: Size },
    /// SYSENTER.
    Sysenter,
    /// SYSEXIT. `wide` is REX.W, which returns to 64-bit code.
    Sysexit { wide: bool },
    /// SYSCALL.
    Syscall,
    /// SYSRET. `wide` is REX.W, which returns to 64-bit code.
    Sysret { wide: bool },
    /// SWAPGS.
    Swapgs,
}

/// The error says why the walk ended early, and is never [`Outcome::Done`].
type Walked<T> = Result<T, Outcome>;

/// Walks one crossing on `machine`.
pub fn walk(machine: &mut impl Machine, crossing: Crossing) -> Outcome {
    let begin = Step::Begin {
        crossing,
        mode: machine.mode(),
        width: machine.width(),
        vendor: machine.vendor(),
        cpl: machine.cpl(),
    };
    machine.step(&begin);
    match cross(machine, crossing) {
        Ok(()) => Outcome::Done,
        Err(outcome) => outcome,
    }
}

fn cross(machine: &mut impl Machine, crossing: Crossing) -> Walked<()> {
    refuse_other_modes(machine)?;
    match crossing {
        Crossing::Event(event) => interrupt::enter(machine, event),
        Crossing::FarCall { selector, offset, size } => call::far(machine, selector, offset, size, true),
        Crossing::FarJump { selector, offset, size } => call::far(machine, selector, offset, size, false),
        Crossing::FarReturn { size, release } => return_far::leave(machine, size, release),
        Crossing::InterruptReturn { size } => interrupt_return::leave(machine, size),
        Crossing::Sysenter => fast::sysenter(machine),
        Crossing::Sysexit { wide } => fast::sysexit(machine, wide),
        Crossing::Syscall => fast::syscall(machine),
        Crossing::Sysret { wide } => fast::sysret(machine, wide),
        Crossing::Swapgs => fast::swapgs(machine),
    }
}

/// Ends the walk in a mode that is not modelled. An unknown mode counts as protected mode of the machine's width.
fn refuse_other_modes(machine: &mut impl Machine) -> Walked<()> {
    if machine.register(Register::Cr0).is_some_and(|bits| !Cr0(bits).has(Cr0::PE)) {
        return Err(Outcome::NotModelled(NotModelled::RealMode));
    }
    let virtual_8086 = machine.register(Register::Rflags).is_some_and(|bits| Rflags(bits).has(Rflags::VM));
    if virtual_8086 && machine.width() == Width::Legacy {
        return Err(Outcome::NotModelled(NotModelled::Virtual8086));
    }
    if cr4_has(machine, Cr4::CET) {
        machine.step(&Step::WithoutCet);
    }
    Ok(())
}

fn cr4_has(machine: &impl Machine, bit: Cr4) -> bool {
    machine.register(Register::Cr4).is_some_and(|bits| Cr4(bits).has(bit))
}

/// Returns whether FRED delivers events and calls. It needs 64-bit tables, so CR4.FRED counts only in long mode.
fn fred(machine: &impl Machine) -> bool {
    machine.width() == Width::Long && cr4_has(machine, Cr4::FRED)
}
