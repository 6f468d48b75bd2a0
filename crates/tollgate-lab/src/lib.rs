//! A kernel of a few hundred lines that sets up descriptor tables, a TSS and the MSRs of kernel entry by itself and crosses the
//! rings by every mechanism, so that the hardware's share of a price can be told from an operating system's; and what
//! runs it: KVM, QEMU, and an interpreter that is always there.

#![deny(unsafe_code)]

mod engine;
pub mod guest;
mod host;
mod interpreter;
mod kvm;
mod qemu;
#[cfg(test)]
mod sample;

pub use engine::{Engine, LabError, Machine, Output, Provenance};
pub use host::Budget;
pub use interpreter::{Change, Counts, Interpreter, Moment, Registers, Window};
pub use kvm::{Calibration, Counted, Kvm};
pub use qemu::{Accelerator, Qemu};
