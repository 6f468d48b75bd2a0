//! A test-and-set that the page-fault handler restarts (`guest/system/restart.s`), compared with other locks under the
//! lab's kernel: what each takes, and whether it holds wherever a program loses the processor.
//!
//! - [`LOCKS`]: the locks; [`MUTANTS`]: the test-and-set with one part wrong.
//! - [`measure()`]: one uncontended acquisition and release, in instructions, memory references, and time.
//! - [`ENTRIES`]: entries of SYSCALL in a preemptible kernel, right and wrong, which [`prove`] takes as well.
//! - [`OwnEntry`]: an entry read from a file, which [`prove_own`] takes.
//! - [`prove`]: explores the orders in which two or three programs can run, with the interpreter.

mod entries;
mod list;
mod measure;
mod own;
mod proof;
#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests;

pub use entries::{ENTRIES, Entry};
pub use list::{Group, LOCKS, Lock, MUTANTS, Mutant, Subject};
pub use measure::{LockRow, Results, measure};
pub use own::{OwnEntry, OwnError};
pub use proof::{Bounds, Point, Proof, prove, prove_all, prove_own};

use crate::LabError;
use crate::guest::{Image, Parameters, entry_of, lock_programs};
use crate::system::{ADDRESSES, Archive, Program, TEST_AND_SET, Timer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kernel(u32);

impl Kernel {
    const HOOK: u32 = TEST_AND_SET[0];
    const HANDLER: u32 = TEST_AND_SET[1];
    const WORDS: u32 = 1 << 10;
    const HOOK_OF_TIMER: u32 = 1 << 11;
    const RESUME: u32 = 1 << 12;
    const REPEAT: u32 = 1 << 13;
    const RIGHT: Self = Self(Self::HOOK | Self::HANDLER | Self::WORDS);
}

#[derive(Debug, Clone)]
struct Work {
    /// The index of each program in `locks.s`.
    programs: Vec<usize>,
    kernel: Kernel,
    rounds: u32,
    /// Whether only locks are measured, one after the other, without a critical section. Each program is then the first.
    alone: bool,
}

const MOST_ROUNDS: u32 = 0xff_ffff;

impl Work {
    fn list(&self) -> Result<Vec<Program>, LabError> {
        (1..).zip(&self.programs).map(|(number, place)| self.program(number, *place)).collect()
    }

    fn program(&self, number: u32, place: usize) -> Result<Program, LabError> {
        let (Some(mut flat), Some(entry)) =
            (Program::flat("lock", lock_programs()), entry_of(place, self.alone))
        else {
            return Err(LabError::Unfinished { why: "the programs of locks are missing".to_owned() });
        };
        flat.entry = ADDRESSES.start + entry;
        flat.iopl = true;
        flat.stack = 4096;
        for segment in &mut flat.segments {
            segment.rights.write = false;
        }
        let number = if self.alone { 1 } else { number };
        flat.argument = number | self.rounds.clamp(1, MOST_ROUNDS) << 8;
        Ok(flat)
    }

    fn image(&self) -> Result<Image, LabError> {
        let archive = Archive::new(&self.list()?, Timer::Off)?.with_options(self.kernel.0);
        Ok(Image::with_programs(&Parameters::default(), archive.bytes()))
    }
}
