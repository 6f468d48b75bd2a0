//! Readers of untrusted input without a public function that takes bytes: for generated inputs.

use crate::aslr::elf_of;
use crate::{kcore, record, redaction};

/// An ELF file: whether it was taken for a program.
pub fn elf(bytes: &[u8]) -> bool {
    elf_of(&bytes).is_ok()
}

/// The record of a captured tree: whether it could be read.
pub fn record(bytes: &[u8]) -> bool {
    record::is_record(bytes)
}

/// The redaction of a capture: how much of a file is left.
pub fn capture(bytes: &[u8]) -> usize {
    let files = ["/proc/cmdline", "/proc/self/status", "/proc/kallsyms", "/proc/1/environ"];
    let redacted = files.map(|path| redaction::redacted(path, bytes).len());
    redacted.iter().sum::<usize>() + kcore::abridged(bytes).len()
}
