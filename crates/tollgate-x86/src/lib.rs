//! The state that decides how an x86 processor enters and leaves a kernel: segment selectors and descriptors, gates,
//! task-state segments, the MSRs of SYSENTER and SYSCALL, and the relevant flags and control registers. The crate describes
//! data that the processor reads; it does not read the processor.
//!
//! Every type is decoded from bytes or a register value and encodes to the same bits, including reserved ones. Bytes are in
//! memory order. Addresses are in bytes and linear.
//!
//! Sources are cited by these names, and their sections by title, since section numbers change between editions:
//! - *SDM*: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3A for system structures and volume 2 for
//!   instructions;
//! - *APM*: AMD64 Architecture Programmer's Manual, volume 2 for system structures and volume 3 for instructions.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod control;
mod descriptor;
mod flags;
mod gate;
mod msr;
mod register;
mod selector;
mod tss;
pub mod walk;

pub use control::{Cr0, Cr4, Efer};
pub use descriptor::{AccessRights, Descriptor, DescriptorKind, SystemKind, WideDescriptor};
pub use flags::Rflags;
pub use gate::{Gate, GateKind, WideGate};
pub use msr::{Msr, Star, SysenterCs, is_canonical};
pub use register::Bit;
pub use selector::{Selector, Table};
pub use tss::{Field, Tss32, Tss64};

/// The format of system descriptors, which the bytes alone do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// Outside long mode: gates and system descriptors take 8 bytes.
    Legacy,
    /// In long mode, including compatibility mode: gates and system descriptors take 16 bytes.
    Long,
}

/// The processor's vendor; the two vendors' manuals differ in places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// Intel, as in the SDM.
    Intel,
    /// AMD, as in the APM.
    Amd,
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
