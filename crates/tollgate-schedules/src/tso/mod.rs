//! Lamport's fast mutual exclusion algorithm, other locks and litmus tests on processors with store buffers.
//!
//! Source: Lamport, "A fast mutual exclusion algorithm", ACM TOCS 5(1), 1987, algorithm 2. The machine is x86-TSO: Owens,
//! Sarkar, Sewell, "A better x86 memory model: x86-TSO", TPHOLs 2009.
//!
//! - A store goes to the end of its processor's buffer (`buffer.rs`); the oldest one there may reach memory at any time.
//! - A load gives the newest store to its address that is in the buffer of its own processor, else the value in memory.
//! - MFENCE waits until the buffer is empty.
//! - Processes may share a processor: another one goes on there only when the buffer is empty. A switch goes through the
//!   kernel, and the processor drains its store buffer for an interrupt or exception and for the IRET that leads back
//!   (Intel SDM vol. 3A, "Memory Cache Control", "Store Buffer", and "Multiple-Processor Management", "Serializing
//!   Instructions").
//! - A step reads one address or writes one. Jumps take no time.
//!
//! - An instruction with the LOCK prefix waits until the buffer is empty, and reads and writes memory in one step.
//!
//! Programs are texts (`text.rs`) of sentences and instructions of x86 (`x86.rs`), which the machine interprets (`machine.rs`,
//! `program.rs`). The algorithm (`lamport.rs`) is one, a user's file is one, and litmus tests of herd7 (`herd`) are several, with
//! a question about the final state. The tests of x86-TSO show that the machine is the one above (`litmus.rs`, `tests/own.rs`).

mod buffer;
mod formula;
pub mod herd;
mod lamport;
#[cfg(test)]
mod litmus;
mod machine;
mod narrative;
mod program;
mod pseudocode;
mod state;
mod study;
mod symbols;
mod text;
mod text_error;
mod x86;

pub use lamport::{Fences, subjects, with_fences};
pub(crate) use pseudocode::is_pseudocode;
pub use text::from_text;
pub(crate) use text::{code, is_line, listing};
pub use text_error::TextError;
