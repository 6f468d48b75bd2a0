//! The state that decides how an x86 processor enters and leaves a kernel: segment selectors and descriptors,
//! gates, task-state segments, the MSRs of SYSENTER and SYSCALL, and the flags and control registers as far as
//! they take part. The crate describes data that the processor reads; it does not read the processor.
//!
//! Every type is made from the bytes or the register and gives them back bit for bit, reserved bits included
//! (`decode` and `encode` are inverses). Bytes are in memory order. Addresses are bytes, and linear.
//!
//! Sources, by the names used throughout, with sections by their titles, for their numbers move from edition to
//! edition:
//! - *SDM*: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3A for system structures
//!   and volume 2 for instructions;
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

/// In which form the processor reads its system descriptors: bytes alone do not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// Outside long mode: a gate or system descriptor takes 8 bytes.
    Legacy,
    /// In long mode, also while a 32-bit program runs: a gate or system descriptor takes 16 bytes.
    Long,
}

/// The processor's vendor, where the two vendors' manuals differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// Intel, by the SDM.
    Intel,
    /// AMD, by the APM.
    Amd,
}

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
