//! A MIPS processor that runs `tst()`, a test-and-set without an instruction for it.
//!
//! The Emotion Engine of the PlayStation 2 lacks ll and sc, and a system call for every lock is slow. Machida and Shinohara
//! ("The Implementation of user level test-and-set on PS2 Linux", Sony Research Forum 2000) let the kernel report
//! preemptions instead. On every return to user mode it sets k1, a register that no program uses, to an address to which no
//! program can store. `tst()` keeps the address of the lock in k1 and stores through it. If it was preempted in between,
//! the store faults, and the handler restarts `tst()`.
//!
//! The model has the published programs' instructions with delay slots (`instruction.rs`, `processor.rs`), the kernel's
//! return path and handler (`kernel.rs`), and processes that take and release the lock, preempted between any two
//! instructions (`machine.rs`). The caller of `tst()` has no instructions: it calls, is in its critical section, and stores
//! 0.

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

/// Returns the published programs, and the mutants of the last of them.
pub fn subjects() -> &'static [&'static dyn Subject] {
    static STUDIES: LazyLock<Vec<Study>> = LazyLock::new(|| {
        programs::PROGRAMS.iter().chain(mutants::MUTANTS).filter_map(programs::Source::study).collect()
    });
    static SUBJECTS: LazyLock<Vec<&'static dyn Subject>> =
        LazyLock::new(|| STUDIES.iter().map(|study| study as &dyn Subject).collect());
    &SUBJECTS
}
