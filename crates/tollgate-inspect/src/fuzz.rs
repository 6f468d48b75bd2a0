//! Gives fuzzers access to parsers of untrusted input that are not public.

use crate::aslr::elf_of;
use crate::{kcore, record, redaction};

/// Parses an ELF file and returns whether it is a program.
pub fn elf(bytes: &[u8]) -> bool {
    elf_of(&bytes).is_ok()
}

/// Parses the record of a captured tree and returns whether that succeeded.
pub fn record(bytes: &[u8]) -> bool {
    record::is_record(bytes)
}

/// Redacts a capture and returns how many bytes are left.
pub fn capture(bytes: &[u8]) -> usize {
    let files = ["/proc/cmdline", "/proc/self/status", "/proc/kallsyms", "/proc/1/environ"];
    let redacted = files.map(|path| redaction::redacted(path, bytes).len());
    redacted.iter().sum::<usize>() + kcore::abridged(bytes).len()
}
