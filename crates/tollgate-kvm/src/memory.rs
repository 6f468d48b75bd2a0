#![allow(unsafe_code)] // A mapping, and copies into and out of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

const PAGE: usize = 4096;

/// Anonymous memory. The guest writes to it while it runs; this program reads it only between two entries, and only by
/// copies: no reference to it is ever made.
#[derive(Debug)]
pub(super) struct Memory {
    at: *mut u8,
    pub bytes: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: no address is asked for, so no existing mapping is replaced.
        let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, prot, flags) }?;
        Ok(Self { at: at.cast(), bytes })
    }

    pub fn address(&self) -> u64 {
        self.at.addr() as u64
    }

    /// Writes at an address of the guest; returns whether it is in memory.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Some(offset) = self.offset(address, bytes.len()) else { return false };
        // SAFETY: `offset` and the bytes after it lie within the mapping, which no reference points into.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(offset), bytes.len()) };
        true
    }

    /// Reads bytes at an address of the guest; `None` unless all of them are in memory.
    pub fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let offset = self.offset(address, bytes)?;
        let mut copy = vec![0; bytes];
        // SAFETY: as for `write`; `copy` has the length that is copied.
        unsafe { ptr::copy_nonoverlapping(self.at.add(offset), copy.as_mut_ptr(), bytes) };
        Some(copy)
    }

    /// Copies all of it. Untouched pages are zeros and are not read: reading them would take longer than starting a virtual machine.
    pub fn copy(&self) -> Vec<u8> {
        let mut copy = vec![0; self.bytes];
        let touched = self.touched();
        for (page, to) in copy.chunks_exact_mut(PAGE).enumerate() {
            if touched.as_ref().is_none_or(|touched| touched.get(page) != Some(&false)) {
                // SAFETY: `to` is one page of `copy`, at the same offset as the page in the mapping, and both are equally long.
                unsafe { ptr::copy_nonoverlapping(self.at.add(page * PAGE), to.as_mut_ptr(), PAGE) };
            }
        }
        copy
    }

    /// Returns which pages are present or swapped out (`/proc/self/pagemap`), if that is known.
    fn touched(&self) -> Option<Vec<bool>> {
        /// Bytes of a page in that file, and its bits for a page that is present or swapped out.
        const ENTRY: usize = 8;
        const THERE: u64 = 3 << 62;
        let mut entries = vec![0; self.bytes / PAGE * ENTRY];
        let from = self.address() / PAGE as u64 * ENTRY as u64;
        File::open("/proc/self/pagemap").ok()?.read_exact_at(&mut entries, from).ok()?;
        let entries = entries.as_chunks::<ENTRY>().0.iter();
        Some(entries.map(|entry| u64::from_ne_bytes(*entry) & THERE != 0).collect())
    }

    fn offset(&self, address: u64, bytes: usize) -> Option<usize> {
        let offset = usize::try_from(address).ok()?;
        (offset.checked_add(bytes)? <= self.bytes).then_some(offset)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and no reference into it is left.
        let _ = unsafe { munmap(self.at.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_and_what_is_outside_is_refused(
            bytes in 0usize..20_000,
            address in prop_oneof![0u64..30_000, any::<u64>()],
            data in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut memory = Memory::new(bytes).unwrap();
            prop_assert!(memory.bytes >= bytes && memory.bytes.is_multiple_of(PAGE));
            let inside = u128::from(address) + data.len() as u128 <= memory.bytes as u128;
            prop_assert_eq!(memory.write(address, &data), inside);
            prop_assert_eq!(memory.read(address, data.len()), inside.then_some(data.clone()));
            let ones = memory.copy().iter().filter(|&&byte| byte != 0).count();
            let written = data.iter().filter(|&&byte| byte != 0).count();
            prop_assert_eq!(ones, if inside { written } else { 0 });
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(Memory::new(usize::MAX).is_err());
        assert!(Memory::new(1 << 60).is_err());
    }
}
