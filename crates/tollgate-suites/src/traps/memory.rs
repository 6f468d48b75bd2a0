//! Mappings with controlled residency, and the kernel's accounts of them.

use std::{fs::File, io, os::fd::AsRawFd, os::unix::fs::FileExt};

use tollgate_model::text::plainly;
use tollgate_os::memfd;

use crate::prelude::*;

/// The value of every byte in a file of [`file_of`].
pub(super) const FILLING: u8 = 0x5a;

/// Checks a load of eight bytes of such a file.
pub(super) fn filled(result: u64) -> Result<(), String> {
    const FILLED: u64 = u64::from_ne_bytes([FILLING; 8]);
    match result {
        FILLED => Ok(()),
        other => Err(format!("the page holds {other:#x} instead of {FILLED:#x}")),
    }
}

/// A mapping that is aligned to a huge page.
pub(super) struct Region(Mapping);

impl Region {
    pub fn anonymous(length: usize, protection: libc::c_int) -> Result<Self> {
        Self::map(length, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
    }

    pub fn of_file(file: &File, length: usize, protection: libc::c_int, kind: libc::c_int) -> Result<Self> {
        Self::map(length, protection, kind, file.as_raw_fd())
    }

    fn map(
        length: usize,
        protection: libc::c_int,
        flags: libc::c_int,
        descriptor: libc::c_int,
    ) -> Result<Self> {
        // A memory limit is a property of the environment, not a temporary shortage.
        let refused =
            |error| skip!("mmap(2) of {} KiB is refused: {}", (length + huge_page()) / 1024, plainly(&error));
        Mapping::aligned(length, protection, flags, descriptor).map(Self).map_err(refused)
    }

    pub fn start(&self) -> u64 {
        self.0.address() as u64
    }

    pub fn length(&self) -> usize {
        self.0.length()
    }

    pub fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        self.0.advise(advice)
    }

    /// Sets small pages under every policy. A kernel without huge pages refuses the advice.
    pub fn small_pages(&self) {
        let _ = self.advise(libc::MADV_NOHUGEPAGE);
    }

    /// Discards every page, so that the next touch of each faults.
    pub fn discard(&self) -> Result<()> {
        self.advise(libc::MADV_DONTNEED).or_refused("madvise(MADV_DONTNEED) is refused")
    }

    pub fn protect(&self, protection: libc::c_int) -> Result<()> {
        // SAFETY: the range is this mapping's, and nothing is borrowed from it.
        let outcome = unsafe { libc::mprotect(self.0.address().cast(), self.0.length(), protection) };
        checked(outcome).map(drop).or_refused("mprotect(2) is refused")
    }

    /// Replaces the mapping with inaccessible anonymous memory, so that no page is mapped.
    pub fn clear(&self) -> Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the range is this mapping's, and nothing is borrowed from it.
        let mapped =
            unsafe { libc::mmap(self.0.address().cast(), self.0.length(), libc::PROT_NONE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(Refusal::last("mmap(2) is refused"));
        }
        Ok(())
    }

    /// Counts the resident pages among the first `pages` (mincore(2)).
    pub fn resident(&self, pages: usize) -> Result<usize> {
        let pages = pages.min(self.0.length() / page_size());
        let mut present = vec![0_u8; pages];
        // SAFETY: `present` has a byte for each page of the range, which is this mapping's.
        let outcome =
            unsafe { libc::mincore(self.0.address().cast(), pages * page_size(), present.as_mut_ptr()) };
        checked(outcome).or_refused("mincore(2) is refused")?;
        Ok(present.iter().filter(|&&byte| byte & 1 == 1).count())
    }

    pub fn read(&self, offset: usize) -> u8 {
        // SAFETY: kept within the mapping; only called while it is readable.
        unsafe { self.0.address().add(offset.min(self.0.length() - 1)).read_volatile() }
    }

    pub fn write(&mut self, offset: usize, byte: u8) {
        // SAFETY: kept within the mapping; only called while it is writable.
        unsafe { self.0.address().add(offset.min(self.0.length() - 1)).write_volatile(byte) }
    }
}

/// Makes a file in memory (memfd_create(2)) with [`FILLING`] in every byte.
pub(super) fn file_of(length: usize) -> Result<File> {
    let file = memfd::create("tollgate-traps");
    let file = file.or_refused("memfd_create(2) is refused")?;
    let filling = vec![FILLING; 16 * page_size()];
    for offset in (0..length).step_by(filling.len()) {
        let rest = filling.len().min(length - offset);
        file.write_all_at(&filling[..rest], offset as u64)
            .or_refused("a file in memory cannot be written")?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_populates_a_page_and_advice_discards_it() {
        let mut region =
            Region::anonymous(8 * page_size(), libc::PROT_READ | libc::PROT_WRITE).expect("memory");
        region.small_pages();
        assert_eq!(region.start() as usize % huge_page(), 0);
        if region.resident(8).expect("mincore") > 0 {
            eprintln!("skipped: mincore(2) is not reliable here");
            return;
        }
        region.write(3 * page_size(), 7);
        assert_eq!((region.resident(8), region.read(3 * page_size())), (Ok(1), 7));
        region.discard().expect("given back");
        assert_eq!((region.resident(8), region.read(3 * page_size())), (Ok(0), 0));
    }

    #[test]
    fn a_file_is_filled_to_its_end() {
        let file = file_of(17 * page_size()).expect("a file");
        assert_eq!(file.metadata().expect("its length").len(), 17 * page_size() as u64);
        let region =
            Region::of_file(&file, 17 * page_size(), libc::PROT_READ, libc::MAP_SHARED).expect("mapped");
        assert_eq!((region.read(0), region.read(17 * page_size() - 1)), (FILLING, FILLING));
    }
}
