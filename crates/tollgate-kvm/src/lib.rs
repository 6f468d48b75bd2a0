//! KVM: a virtual machine with one processor, some memory and two ports, without a kernel image.
//!
//! - `vm`: the virtual machine, its `memory`, and the `state` of registers that a guest is entered with.
//! - `run`: runs the guest and serves its ports until its `alarm` or an `exit` ends it.
//! - `calibration` and `ring0`: whether the processor itself executes the guest's ring 0. `statistics`: KVM's counters.
//! - `kvm`: opens KVM. Guests are x86-64 programs: on other architectures `absent` refuses them.
//!
//! Each run has a thread and a virtual machine of its own; the machine is gone when the thread ends.
//!
//! Source: the kernel's Documentation/virt/kvm/api.rst.

#![deny(unsafe_code)]

#[cfg(not(target_arch = "x86_64"))]
mod absent;
#[cfg(target_arch = "x86_64")]
mod alarm;
mod calibration;
#[cfg(target_arch = "x86_64")]
mod exit;
#[cfg(target_arch = "x86_64")]
mod kvm;
#[cfg(target_arch = "x86_64")]
mod memory;
#[cfg(target_arch = "x86_64")]
mod refused;
#[cfg(target_arch = "x86_64")]
mod ring0;
#[cfg(target_arch = "x86_64")]
mod run;
mod serial;
#[cfg(target_arch = "x86_64")]
mod state;
#[cfg(target_arch = "x86_64")]
mod statistics;
#[cfg(target_arch = "x86_64")]
mod vm;

use std::time::Duration;

#[cfg(not(target_arch = "x86_64"))]
pub use absent::Kvm;
pub use calibration::{Calibration, Counted};
#[cfg(target_arch = "x86_64")]
pub use kvm::Kvm;
pub use serial::written;

/// Says in a clause that the time limit was reached.
pub fn out_of_patience(patience: Duration) -> String {
    format!("it was stopped after {patience:?}")
}

/// An image, and the machine that runs it.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    /// Bytes of the image.
    pub image: &'a [u8],
    /// The physical address that they are loaded at.
    pub base: u64,
    /// The address that is entered first, in flat 32-bit protected mode as multiboot leaves it.
    pub entry: u64,
    /// Bytes of memory, from address 0.
    pub memory: usize,
    /// The limit of wall-clock time.
    pub patience: Duration,
}

/// The state of a guest after its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Bytes that it wrote to its serial port.
    pub serial: Vec<u8>,
    /// Its memory, from address 0.
    pub memory: Vec<u8>,
    /// Why it was stopped, in a clause; `None` if it ended itself by a byte to port F4h.
    pub cut_short: Option<String>,
}

/// Why a guest was not run.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, thiserror::Error)]
pub enum KvmError {
    /// The bytes of the image, loaded at its base, do not fit into the bytes of memory.
    #[error("an image of {image} bytes at {base:x} does not fit into {memory} bytes of memory")]
    TooLarge { image: usize, base: u64, memory: usize },
    /// KVM is absent or may not be used; `why` is a clause.
    #[error("KVM cannot be used: {why}")]
    Unavailable { why: String },
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
