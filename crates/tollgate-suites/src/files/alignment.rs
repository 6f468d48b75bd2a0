//! Alignment of direct I/O: as statx(2) declares it, and as reads accept it.
//!
//! The two can differ: tmpfs declares nothing and accepts any buffer.

use std::fmt;
use std::os::fd::OwnedFd;

use tollgate_os::direct::Declared;

use super::aligned::{Aligned, exactly_aligned};
use super::refusal::pread;
use crate::prelude::*;

const MOST: usize = 4096;

/// The smallest powers of two with which reads of this file succeed. Each is found with the others at 4096.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted {
    pub memory: Option<usize>,
    pub offset: Option<usize>,
    pub length: Option<usize>,
}

impl Accepted {
    /// Tries reads of a file of at least 8 KiB that was opened with O_DIRECT.
    pub fn read(file: &OwnedFd) -> Result<Self> {
        let mut buffer = Aligned::new(2 * MOST, 2 * MOST)?;
        let mut memory = None;
        for alignment in powers() {
            if reads(file, exactly_aligned(&mut buffer, alignment, MOST)?, 0) {
                memory = Some(alignment);
                break;
            }
        }
        let bytes = buffer.bytes_mut();
        let offset = powers().find(|&alignment| reads(file, &mut bytes[..MOST], alignment));
        let length = powers().find(|&alignment| reads(file, &mut bytes[..alignment], 0));
        Ok(Self { memory, offset, length })
    }
}

fn powers() -> impl Iterator<Item = usize> {
    (0..=MOST.trailing_zeros()).map(|power| 1 << power)
}

fn reads(file: &OwnedFd, bytes: &mut [u8], offset: usize) -> bool {
    pread(file, bytes, offset as u64).is_ok_and(|got| got == bytes.len())
}

impl fmt::Display for Accepted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |alignment: Option<usize>| match alignment {
            Some(bytes) => bytes.to_string(),
            None => format!("not even {MOST}"),
        };
        write!(
            out,
            "tried: {} for memory, {} for offsets, {} for lengths",
            named(self.memory),
            named(self.offset),
            named(self.length)
        )
    }
}

pub(super) fn note(file: &OwnedFd) -> Result<String> {
    Ok(format!("alignment in bytes: {}; {}", Declared::of(file), Accepted::read(file)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use super::{super::data, super::data_dir::tests::Own};

    #[test]
    fn declared_alignment_is_accepted_repeatedly() {
        let own = Own::with_limit(8 << 20);
        let (made, _) = data::uncached(&own.dir).expect("a file");
        let direct = match own.dir.open(c"uncached", libc::O_RDONLY | libc::O_DIRECT) {
            Ok(direct) => direct,
            Err(error) => return eprintln!("skipped: no direct I/O in the directory for tests: {error}"),
        };
        let accepted = Accepted::read(&direct).expect("memory");
        assert_eq!(accepted, Accepted::read(&direct).expect("memory"));
        if let Declared::Bytes { memory, offset } = Declared::of(&made.file) {
            assert!(accepted.memory.is_some_and(|least| least <= memory as usize), "{accepted}");
            assert!(accepted.offset.is_some_and(|least| least <= offset as usize), "{accepted}");
            assert!(accepted.length.is_some_and(|least| least <= offset as usize), "{accepted}");
        }
        // Without O_DIRECT every alignment is accepted.
        let any = Accepted { memory: Some(1), offset: Some(1), length: Some(1) };
        assert_eq!(Accepted::read(&made.file), Ok(any));
    }

    #[test]
    fn the_note_is_in_bytes() {
        let accepted = Accepted { memory: Some(4), offset: Some(512), length: None };
        assert_eq!(accepted.to_string(), "tried: 4 for memory, 512 for offsets, not even 4096 for lengths");
    }
}
