//! Lamport's fast mutual exclusion algorithm, other locks and litmus tests on processors with store buffers.
//!
//! Source: Lamport, "A fast mutual exclusion algorithm", ACM TOCS 5(1), 1987, algorithm 2. The machine is x86-TSO: Owens,
//! Sarkar, Sewell, "A better x86 memory model: x86-TSO", TPHOLs 2009.
//!
//! - A store goes to the end of its processor's buffer (`buffer.rs`); the oldest one there may reach memory at any time.
//! - A load returns the newest store to its address in its own processor's buffer, or else the value in memory.
//! - MFENCE waits until the buffer is empty.
//! - Processes may share a processor, which switches to another one only when the buffer is empty. A switch goes through
//!   the kernel, and the processor drains its store buffer for an interrupt or exception and for the IRET that returns
//!   (Intel SDM vol. 3A, "Memory Cache Control", "Store Buffer", and "Multiple-Processor Management", "Serializing
//!   Instructions").
//! - A step reads or writes one address. Jumps take no time.
//! - An instruction with the LOCK prefix waits until the buffer is empty, and reads and writes memory in one step.
//!
//! Programs are texts (`text.rs`) of sentences and x86 instructions (`x86.rs`), which the machine interprets (`machine.rs`,
//! `program.rs`): the algorithm (`lamport.rs`), users' files, and the threads of herd7's litmus tests with a question about
//! the final state (`herd`). The tests of x86-TSO show that the machine is the one above (`litmus.rs`, `tests/own.rs`).

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
