//! A small kernel that sets up descriptor tables, a TSS and the MSRs of kernel entry, and crosses the rings by every
//! mechanism without an operating system, so that the processor's share of a latency is known apart from the kernel's.
//!
//! [`guest`] is that kernel and its experiments. Three engines run it: [`Kvm`](tollgate_kvm::Kvm), [`Qemu`], and an
//! [`Interpreter`] that needs nothing; elsewhere a multiboot loader boots it. [`run()`] chooses an engine, repeats the
//! experiments on machine after machine, and returns typed [`Results`]; [`output`] shows them. [`system::run`] runs
//! your own programs in ring 3 under the same kernel. The crate prints nothing.

#![deny(unsafe_code)]

mod engine;
mod engines;
pub mod guest;
mod host;
mod interpreter;
mod judgement;
mod kvm;
pub mod locks;
pub mod output;
mod program;
mod qemu;
mod references;
#[cfg(test)]
mod sample;
mod schedule;
pub mod setup;

pub use engine::{Counts, Engine, LabError, Machine, Output, Provenance, Unknown};
pub use engines::{EngineChoice, EngineNote, machine};
pub use host::expect_guest;
pub use interpreter::{Change, Effect, Interpreter, Moment, Registers, Window};
pub use judgement::{Defect, Mistake, Obstacle, Status};
pub use qemu::{Accelerator, Qemu};
pub use references::References;
pub use schedule::{EntryRow, Note, Results, run, serial};

/// Your own programs, in ring 3 under the lab's kernel.
pub mod system {
    pub use crate::program::*;
}
