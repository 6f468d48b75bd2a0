//! Your own programs, which run in ring 3 under the lab's kernel.
//!
//! - `elf`: reads a statically linked ELF file. `assembler`: makes one from a text. Any other file is a flat binary.
//! - `scan`: names the instructions that use registers the kernel does not keep, and those that LOCK makes invalid.
//! - `archive`: the programs as the kernel reads them. `run`: runs them. `ran`: the results. `walk`: how a fault was
//!   delivered.
//!
//! docs/lab/tollgate.h has the system calls; docs/lab.md has an example.

mod archive;
mod assembler;
mod elf;
mod file;
mod ran;
mod run;
mod scan;
#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests;
mod walk;

use std::ops::Range;

pub(crate) use archive::TEST_AND_SET;
pub use archive::{Archive, ArchiveError, Timer};
pub use assembler::AssemblerError;
pub use elf::{ElfError, Gap};
pub use file::FileError;
pub(crate) use ran::CODE_32;
pub use ran::{Cause, Control, End, Fault, Ran, Written};
pub use run::{Options, run};
pub(crate) use scan::is_refused_lock;
pub use scan::{Foreign, foreign, refused_locks};
pub use walk::walk;

/// Linear addresses that programs may have.
pub const ADDRESSES: Range<u64> = 0x4000_0000..0x8000_0000;
/// The most programs that one machine runs.
pub const MAX_PROGRAMS: usize = 16;
/// The most bytes of all programs of a machine.
pub const MAX_ARCHIVE: usize = 4 << 20;
/// The most bytes of memory that a program takes, without its stack.
pub const MAX_MEMORY: u64 = 4 << 20;
const LONGEST_NAME: usize = 23;

/// A program for ring 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Name: at most 23 characters of printable ASCII.
    pub name: String,
    /// Linear address of the first instruction.
    pub entry: u64,
    /// Segments, in order of addresses. No two share a page.
    pub segments: Vec<Segment>,
    /// Bytes of stack; 0 for the kernel's default, 16 KiB.
    pub stack: u64,
    /// Value of RDI at the start.
    pub argument: u32,
    /// Whether a system call may give it I/O privilege level 3.
    pub iopl: bool,
    /// Whether it is 32-bit code, which runs in compatibility mode.
    pub is_32_bit: bool,
}

/// A part of a program's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Linear address of its first byte.
    pub address: u64,
    /// Bytes in memory: those of `bytes`, then zeros.
    pub size: u64,
    /// Initial contents.
    pub bytes: Vec<u8>,
    /// Access rights of the program.
    pub rights: Rights,
}

/// The rights of a program to a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "their names say it")]
pub struct Rights {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
}

impl Program {
    /// Makes a program of a flat binary: it is loaded and entered at the first address, and may read, write and execute
    /// all of itself. Returns `None` if it is empty or too large.
    pub fn flat(name: &str, bytes: &[u8]) -> Option<Self> {
        let size = bytes.len() as u64;
        let rights = Rights { read: true, write: true, execute: true };
        let segment = Segment { address: ADDRESSES.start, size, bytes: bytes.to_vec(), rights };
        let fits = size > 0 && size <= MAX_MEMORY;
        fits.then(|| Self::new(name, ADDRESSES.start, vec![segment]))
    }

    fn new(name: &str, entry: u64, segments: Vec<Segment>) -> Self {
        let printable = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
        let name = name.chars().map(printable).take(LONGEST_NAME).collect();
        Self { name, entry, segments, stack: 0, argument: 0, iopl: false, is_32_bit: false }
    }

    /// Returns the address of the instruction that raised an exception, given the saved RIP. The traps #BP and #OF save
    /// the address after it: `int3` and `into` have one byte, `int 3` and `int 4` two. It is unknown for #DB, because a
    /// single step may follow a jump.
    fn raised(&self, vector: u8, rip: u64) -> Option<u64> {
        const DEBUG: u8 = 1;
        const BREAKPOINT: u8 = 3;
        const OVERFLOW: u8 = 4;
        let before = match vector {
            DEBUG => return None,
            BREAKPOINT | OVERFLOW => {
                let one = self.bytes_at(rip.checked_sub(1)?, 1);
                if matches!(one, [0xcc | 0xce]) { 1 } else { 2 }
            }
            _ => 0,
        };
        rip.checked_sub(before)
    }

    /// Returns at most `most` of its bytes from an address on, as it was loaded.
    pub fn bytes_at(&self, address: u64, most: usize) -> &[u8] {
        let segment = self.segments.iter().find(|segment| segment.holds(address));
        let bytes = segment.and_then(|segment| {
            let from = usize::try_from(address.checked_sub(segment.address)?).ok()?;
            segment.bytes.get(from..)
        });
        let bytes = bytes.unwrap_or_default();
        bytes.get(..most.min(bytes.len())).unwrap_or_default()
    }
}

impl Segment {
    fn holds(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|from| from < self.size)
    }
}
