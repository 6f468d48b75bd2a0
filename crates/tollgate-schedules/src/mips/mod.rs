//! A MIPS processor that runs `tst()`, a test-and-set without an instruction for it.
//!
//! The Emotion Engine of the PlayStation 2 has no ll and sc, and a system call for every lock is slow. Machida and
//! Shinohara ("The Implementation of user level test-and-set on PS2 Linux", Sony Research Forum 2000) let the kernel report
//! preemptions instead. On every return to user mode it sets k1, a register that no program uses, to an address that
//! no program can store to. `tst()` keeps the address of the lock in k1 and stores through it: if it was preempted since, the
//! store faults, and the handler starts `tst()` again.
//!
//! The model has the instructions of the published programs with their delay slots (`instruction.rs`, `processor.rs`), the
//! kernel's return path and its handler (`kernel.rs`), and processes that take the lock and give it back, preempted
//! between any two instructions (`machine.rs`). The caller of `tst()` is not written in instructions: it calls, is in its
//! critical section, and stores 0.

use std::sync::LazyLock;

use crate::subject::Subject;

mod assembler;
mod conclusion;
mod effect;
mod instruction;
mod kernel;
mod lines;
mod machine;
mod memory;
mod mutants;
mod narrative;
mod play;
mod printed;
mod processor;
mod program;
mod programs;
mod prose;
mod register;
mod state;
mod study;
mod text;
mod text_error;

pub(crate) use assembler::is_mnemonic;
pub(crate) use lines::number;
pub use text::from_text;
pub use text_error::{DecodeError, Problem, TextError};

use study::Study;

/// The published programs, and the mutants of the last of them.
pub fn subjects() -> &'static [&'static dyn Subject] {
    static STUDIES: LazyLock<Vec<Study>> = LazyLock::new(|| {
        programs::PROGRAMS.iter().chain(mutants::MUTANTS).filter_map(programs::Source::study).collect()
    });
    static SUBJECTS: LazyLock<Vec<&'static dyn Subject>> =
        LazyLock::new(|| STUDIES.iter().map(|study| study as &dyn Subject).collect());
    &SUBJECTS
}
