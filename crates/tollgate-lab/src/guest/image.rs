//! The guest's bytes, as they are loaded into a machine.

#![allow(unsafe_code)] // The bytes lie between symbols of the assembled section.

use std::arch::global_asm;
use std::ops::Range;

use super::parameters::{Command, Parameters};

#[cfg(not(target_arch = "x86_64"))]
global_asm!(include_str!("absent.s"));

#[cfg(target_arch = "x86_64")]
global_asm!(
    include_str!("entry.s"),
    include_str!("system/layout.s"),
    include_str!("tables.s"),
    include_str!("handlers.s"),
    include_str!("program.s"),
    include_str!("pieces.s"),
    include_str!("experiments.s"),
    include_str!("wrong.s"),
    include_str!("dispatch.s"),
    include_str!("records.s"),
    include_str!("system/entry.s"),
    include_str!("system/load.s"),
    include_str!("system/schedule.s"),
    include_str!("system/calls.s"),
    include_str!("system/faults.s"),
    include_str!("system/words.s"),
    include_str!("system/restart.s"),
    include_str!("system/locks.s"),
    include_str!("dump.s"),
    options(att_syntax, raw)
);

unsafe extern "C" {
    static tollgate_guest_begin: u8;
    static tollgate_guest_parameters: u8;
    static tollgate_guest_entry: u8;
    static tollgate_guest_experiments: u8;
    static tollgate_guest_experiments_end: u8;
    static tollgate_guest_code: u8;
    static tollgate_guest_code_end: u8;
    static tollgate_guest_end: u8;
}

/// Physical address at which the image must be loaded.
pub const BASE: u64 = 0x10_0000;

/// Bytes of an entry in the list of experiments, `.LENTRY` in `experiments.s`.
const LINE: usize = 32;

/// Offset in the parameters of the word that says where the archive begins.
const FOLLOWS: usize = 12;

const PAGE: usize = 4096;

/// Bytes of an entry in the list of code.
const CODE_LINE: usize = 12;

/// A stretch of instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Range in the image, in bytes from its beginning.
    pub place: Range<usize>,
    /// Decoding mode: 32 or 64.
    pub bits: u32,
}

/// The guest with its parameters: a flat binary that begins with a header of multiboot 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// Makes the image with these parameters.
    pub fn new(parameters: &Parameters) -> Self {
        let mut bytes = assembled().to_vec();
        let at = offset(&raw const tollgate_guest_parameters);
        if let Some(place) = bytes.get_mut(at..at + 32) {
            place.copy_from_slice(&parameters.bytes());
        }
        Self { bytes }
    }

    /// Makes the image that runs the programs of `archive` (format: `program/archive.rs`). The archive follows the
    /// kernel at a multiple of 4096. The kernel survives any bytes in it.
    pub fn with_programs(parameters: &Parameters, archive: &[u8]) -> Self {
        let parameters = Parameters { command: Command::System, ..*parameters };
        let Self { mut bytes } = Self::new(&parameters);
        let begins = bytes.len().next_multiple_of(PAGE);
        bytes.resize(begins, 0);
        let at = offset(&raw const tollgate_guest_parameters) + FOLLOWS;
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&(begins as u32).to_le_bytes());
        }
        bytes.extend(archive);
        Self { bytes }
    }

    /// Returns the bytes to load at [`BASE`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the physical address to enter, in flat 32-bit protected mode.
    pub fn entry(&self) -> u64 {
        BASE + offset(&raw const tollgate_guest_entry) as u64
    }

    /// Returns the address of the loop that does an experiment's operation once per iteration: in the image for ring 0,
    /// else in the program's own page. `None` if there is no such experiment.
    pub fn start(&self, number: u8) -> Option<u64> {
        let line = self.lines().find(|line| line[0] == u32::from(number))?;
        Some(u64::from(line[1]))
    }

    /// Returns the address of the code that prepares an experiment's setup.
    pub fn preparation(&self, number: u8) -> Option<u64> {
        let line = self.lines().find(|line| line[0] == u32::from(number))?;
        Some(u64::from(line[3]))
    }

    /// Returns the ranges that hold instructions; the rest is data.
    pub fn code(&self) -> Vec<Code> {
        let lines = self.between(&raw const tollgate_guest_code, &raw const tollgate_guest_code_end);
        let lines = lines.chunks_exact(CODE_LINE);
        lines
            .map(|line| Code { place: word(line, 0) as usize..word(line, 1) as usize, bits: word(line, 2) })
            .collect()
    }

    fn between(&self, from: *const u8, to: *const u8) -> &[u8] {
        self.bytes.get(offset(from)..offset(to)).unwrap_or_default()
    }

    fn lines(&self) -> impl Iterator<Item = [u32; LINE / 4]> + '_ {
        let (from, to) = (&raw const tollgate_guest_experiments, &raw const tollgate_guest_experiments_end);
        self.between(from, to).chunks_exact(LINE).map(|line| std::array::from_fn(|at| word(line, at)))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.as_chunks::<4>().0.get(at).map_or(0, |word| u32::from_le_bytes(*word))
}

fn assembled() -> &'static [u8] {
    let begin = &raw const tollgate_guest_begin;
    // SAFETY: both symbols are in one section of this program's read-only data, and the bytes between them are
    // initialised and never written.
    unsafe { std::slice::from_raw_parts(begin, offset(&raw const tollgate_guest_end)) }
}

fn offset(symbol: *const u8) -> usize {
    symbol.addr() - (&raw const tollgate_guest_begin).addr()
}

mod locks;
#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests;

pub(crate) use locks::{LockWords, entry_of, lock_programs, system_state};
