//! The alignment that direct I/O needs, as statx(2) declares it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::{fmt, io};

use rustix::fs::{AtFlags, CWD, StatxFlags};

/// The answer of statx(2) to `STATX_DIOALIGN`, since Linux 6.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// Required alignment, in bytes.
    Bytes {
        /// Alignment of memory addresses (`stx_dio_mem_align`).
        memory: u32,
        /// Alignment of offsets and lengths (`stx_dio_offset_align`).
        offset: u32,
    },
    /// The file does not support direct I/O: both values are 0.
    None,
    /// The kernel or the file system declares nothing.
    Nothing,
}

impl Declared {
    /// Asks about an open file.
    pub fn of(file: &OwnedFd) -> Self {
        Self::read(rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN))
    }

    /// Asks about the file at a path.
    ///
    /// # Errors
    /// Those of statx(2), such as ENOENT if the file has been removed.
    pub fn at(path: &Path) -> io::Result<Self> {
        let answer = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN);
        if let Err(error) = answer
            && error != rustix::io::Errno::NOSYS
        {
            return Err(error.into());
        }
        Ok(Self::read(answer))
    }

    fn read(answer: rustix::io::Result<rustix::fs::Statx>) -> Self {
        let Ok(known) = answer else { return Self::Nothing };
        if known.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
            return Self::Nothing;
        }
        match (known.stx_dio_mem_align, known.stx_dio_offset_align) {
            (0, _) | (_, 0) => Self::None,
            (memory, offset) => Self::Bytes { memory, offset },
        }
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { memory, offset } => {
                write!(out, "statx(2) reports {memory} for memory, {offset} for offsets")
            }
            Self::None => out.write_str("statx(2) reports that direct I/O is not supported"),
            Self::Nothing => out.write_str("statx(2) reports nothing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_descriptor_declare_the_same() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let open = OwnedFd::from(file.reopen().expect("open"));
        assert_eq!(Declared::at(file.path()).ok(), Some(Declared::of(&open)));
        let path = file.path().to_owned();
        drop(file);
        assert!(Declared::at(&path).is_err());
    }

    #[test]
    fn the_declaration_is_in_bytes() {
        let declared = Declared::Bytes { memory: 4, offset: 512 };
        assert_eq!(declared.to_string(), "statx(2) reports 4 for memory, 512 for offsets");
    }
}
