//! The readers of untrusted input that have no public way in by bytes: for generated inputs.

use crate::aslr::elf_of;
use crate::{kcore, redaction, told};

/// An ELF file: whether it was taken for a program.
pub fn elf(bytes: &[u8]) -> bool {
    elf_of(&bytes).is_ok()
}

/// What a captured tree keeps beside its files: whether it could be read.
pub fn record(bytes: &[u8]) -> bool {
    told::is_record(bytes)
}

/// What a capture keeps of the files that it does not keep whole: how much of it is left.
pub fn capture(bytes: &[u8]) -> usize {
    let files = ["/proc/cmdline", "/proc/self/status", "/proc/kallsyms", "/proc/1/environ"];
    let redacted = files.map(|path| redaction::redacted(path, bytes).len());
    redacted.iter().sum::<usize>() + kcore::abridged(bytes).len()
}
