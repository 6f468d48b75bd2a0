//! Memory from mmap(2), unmapped with its owner.

use std::{io, ptr};

use tollgate_arch::memory::{huge_page, page_size};

use crate::refusal::checked;

/// A mapping. Its owner decides how the memory is used.
#[derive(Debug)]
pub struct Mapping {
    address: *mut u8,
    length: usize,
    /// The range to unmap at the end.
    whole: (*mut libc::c_void, usize),
}

// SAFETY: a mapping belongs to the process, not to a thread; this only hands out its address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps this many bytes of zeros for reading and writing. `kind` is MAP_SHARED (with children) or MAP_PRIVATE.
    pub fn anonymous(length: usize, kind: libc::c_int) -> io::Result<Self> {
        Self::new(length, libc::PROT_READ | libc::PROT_WRITE, kind | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps this many bytes of a file, or of zeros.
    pub fn new(
        length: usize,
        protection: libc::c_int,
        flags: libc::c_int,
        descriptor: libc::c_int,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        // An empty mapping is an error (EINVAL).
        let length = length.max(1);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, descriptor, offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address: address.cast(), length, whole: (address, length) })
    }

    /// Maps at a multiple of a huge page: the kernel treats aligned windows alike in each run.
    pub fn aligned(
        length: usize,
        protection: libc::c_int,
        flags: libc::c_int,
        descriptor: libc::c_int,
    ) -> io::Result<Self> {
        let length = length.max(1);
        Self::reserved(length, huge_page())?.within(
            |first| first.next_multiple_of(huge_page()),
            length,
            protection,
            flags,
            descriptor,
        )
    }

    /// Maps this many bytes of zeros between two inaccessible pages. Otherwise the kernel could merge them with adjacent memory into one
    /// mapping, and each change of their protection would split it or merge it again.
    pub fn alone(length: usize) -> io::Result<Self> {
        let page = page_size();
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let length = length.max(1).next_multiple_of(page);
        Self::reserved(length, 2 * page)?.within(|first| first + page, length, access, flags, -1)
    }

    fn reserved(length: usize, more: usize) -> io::Result<Self> {
        let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let length = length.checked_add(more).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Self::new(length, libc::PROT_NONE, nothing, -1, 0)
    }

    fn within(
        self,
        place: impl FnOnce(usize) -> usize,
        length: usize,
        protection: libc::c_int,
        flags: libc::c_int,
        descriptor: libc::c_int,
    ) -> io::Result<Self> {
        let address = place(self.address as usize) as *mut u8;
        // SAFETY: within the reservation, to which nothing else refers.
        let mapped =
            unsafe { libc::mmap(address.cast(), length, protection, flags | libc::MAP_FIXED, descriptor, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let whole = self.whole;
        std::mem::forget(self);
        Ok(Self { address, length, whole })
    }

    /// Returns its address.
    pub fn address(&self) -> *mut u8 {
        self.address
    }

    /// Returns its length in bytes, at least 1.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Calls madvise(2) on all of it.
    pub fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is this mapping's; no advice does more than empty its pages.
        checked(unsafe { libc::madvise(self.address.cast(), self.length, advice) }).map(drop)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let (address, length) = self.whole;
        // SAFETY: our own mapping, of this length; no reference outlives its owner.
        unsafe { libc::munmap(address, length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_mapping_begins_at_a_huge_page_and_is_usable_to_its_end() {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let huge = huge_page();
        let mapping = Mapping::aligned(huge + 5, access, flags, -1).expect("memory");
        assert_eq!((mapping.address() as usize % huge, mapping.length()), (0, huge + 5));
        // SAFETY: the last byte of our own mapping, to which nothing else refers.
        unsafe { mapping.address().add(mapping.length() - 1).write_volatile(7) };
        mapping.advise(libc::MADV_DONTNEED).expect("given back");
        // SAFETY: as above.
        assert_eq!(unsafe { mapping.address().add(mapping.length() - 1).read_volatile() }, 0);
        assert_eq!(
            Mapping::aligned(usize::MAX, access, flags, -1).map_err(|error| error.raw_os_error()).err(),
            Some(Some(libc::ENOMEM))
        );
    }

    #[test]
    fn a_mapping_alone_is_no_part_of_another_one() {
        let both = [Mapping::alone(4096).expect("memory"), Mapping::alone(4096).expect("memory")];
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
            return println!("skipped: no /proc");
        };
        for mapping in &both {
            let first = mapping.address() as usize;
            // SAFETY: the first byte of our own mapping, to which nothing else refers.
            unsafe { mapping.address().write_volatile(1) };
            let line = format!("{first:x}-{:x} rw-p", first + 4096);
            assert!(maps.lines().any(|other| other.starts_with(&line)), "{line} is not in\n{maps}");
        }
    }

    #[test]
    fn an_empty_mapping_works() {
        assert_eq!(Mapping::anonymous(0, libc::MAP_PRIVATE).map(|mapping| mapping.length()).ok(), Some(1));
    }
}
