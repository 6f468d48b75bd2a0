//! Asks the kernel, right before a read, whether the read's pages are in the page cache.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::data_dir::FileSystemKind;
use super::refusal::{pread, refused};
use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResidencyCall {
    /// cachestat(2), since Linux 6.5.
    Cachestat,
    /// mincore(2) of an untouched mapping.
    Mincore,
}

impl ResidencyCall {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cachestat => "cachestat(2)",
            Self::Mincore => "mincore(2)",
        }
    }
}

/// How residency of a file's pages can be checked, found by a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trial {
    pub call: ResidencyCall,
    pub drops: bool,
}

impl Trial {
    /// Reads a page of a clean file, drops it, and finds a call that reports both.
    ///
    /// A call that never reports a page as resident is useless: a file of an overlay has no pages of its own for cachestat(2). So
    /// is a call that never reports a page as absent, unless pages cannot be dropped.
    pub fn make(file: &OwnedFd, kind: FileSystemKind) -> Result<Self> {
        let page = page_size() as u64;
        let mut stays = None;
        for call in [ResidencyCall::Cachestat, ResidencyCall::Mincore] {
            let Ok(residency) = Residency::by(call, file, page) else { continue };
            drop_pages(file)?;
            let Ok(after_dropping) = residency.resident(0, page) else { continue };
            read_byte(file)?;
            let Ok(after_reading) = residency.resident(0, page) else { continue };
            match (after_dropping, after_reading) {
                (0, 1..) => return Ok(Self { call, drops: true }),
                (1.., 1..) => stays = stays.or(Some(Self { call, drops: false })),
                (_, 0) => {}
            }
        }
        match stays {
            // cachestat(2) counts pages. mincore(2) reports all pages as resident in some sandboxes and for other users' files.
            Some(trial)
                if trial.call == ResidencyCall::Cachestat || matches!(kind, FileSystemKind::Memory(_)) =>
            {
                Ok(trial)
            }
            Some(_) => Err(skip!(
                "residency cannot be checked here: mincore(2) reports every page as resident, and cachestat(2) is missing"
            )),
            None => Err(skip!(
                "residency cannot be checked here: neither cachestat(2) nor mincore(2) reports a page that was just read"
            )),
        }
    }

    pub fn must_drop(self, kind: FileSystemKind) -> Result<()> {
        match self.why_stays(kind) {
            None => Ok(()),
            Some(why) => Err(skip!("uncached reads are not possible here: {why}")),
        }
    }

    pub fn why_stays(self, kind: FileSystemKind) -> Option<String> {
        match (self.drops, kind) {
            (true, _) => None,
            (false, FileSystemKind::Memory(name)) => {
                Some(format!("pages of a file on {name} are its storage and cannot be dropped"))
            }
            (false, _) => Some(format!(
                "{} reports that clean pages stay after posix_fadvise(2) asks to drop them",
                self.call.name()
            )),
        }
    }
}

pub(crate) struct Residency {
    file: RawFd,
    /// The whole file, mapped and never touched, for mincore(2).
    mapping: Option<Mapping>,
}

impl Residency {
    /// Checks the first `length` bytes of `file` by this call. The file must stay open for as long as the result lives.
    pub fn by(call: ResidencyCall, file: &OwnedFd, length: u64) -> io::Result<Self> {
        let mapping = match call {
            ResidencyCall::Cachestat => None,
            ResidencyCall::Mincore => Some(untouched(file, length)?),
        };
        Ok(Self { file: file.as_raw_fd(), mapping })
    }

    pub fn resident(&self, offset: u64, length: u64) -> io::Result<u64> {
        match &self.mapping {
            None => cachestat(self.file, offset, length),
            Some(mapping) => resident_of(mapping, offset, length),
        }
    }
}

/// Drops the pages of the first `length` bytes of a file. Returns whether none of them is cached afterwards.
pub(crate) fn emptied(call: ResidencyCall, file: &OwnedFd, length: u64) -> io::Result<bool> {
    let residency = Residency::by(call, file, length)?;
    // Dirty pages stay until they are written; a page in use cannot be dropped.
    for write in [|_: &OwnedFd| {}, write_pages, synchronize] {
        write(file);
        let _ = drop_pages(file);
        if residency.resident(0, length)? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes this file's dirty pages and waits, without its metadata, which takes a journal commit (sync_file_range(2)).
pub(crate) fn write_pages(file: &OwnedFd) {
    let whole =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: an open descriptor; the length 0 means to the end.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, whole) };
}

fn synchronize(file: &OwnedFd) {
    let _ = rustix::fs::fsync(file);
}

/// Counts the cached pages of a range of a file by cachestat(2) (include/uapi/linux/mman.h).
fn cachestat(file: RawFd, offset: u64, length: u64) -> io::Result<u64> {
    /// The number is the same on all architectures.
    const SYS_CACHESTAT: libc::c_long = 451;
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Statistics {
        cached: u64,
        dirty: u64,
        in_writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let range = Range { offset, length };
    let mut statistics = Statistics::default();
    // SAFETY: both structures are as the kernel defines them, and the second is valid for writing.
    checked(unsafe { libc::syscall(SYS_CACHESTAT, file, &range, &mut statistics, 0) })?;
    Ok(statistics.cached)
}

fn untouched(file: &OwnedFd, length: u64) -> io::Result<Mapping> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    Mapping::new(length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
}

fn resident_of(mapping: &Mapping, offset: u64, length: u64) -> io::Result<u64> {
    let (offset, length) = (offset as usize, length as usize);
    if offset.checked_add(length).is_none_or(|end| end > mapping.length()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // A block may be a part of a page.
    let within = offset % page_size();
    let (offset, length) = (offset - within, length + within);
    let mut pages = vec![0_u8; length.div_ceil(page_size())];
    // SAFETY: the range lies within the mapping; there is a byte for each page of it.
    checked(unsafe {
        let start = mapping.address().byte_add(offset);
        libc::mincore(start.cast(), length, pages.as_mut_ptr().cast::<libc::c_uchar>())
    })?;
    Ok(pages.iter().filter(|&page| page & 1 != 0).count() as u64)
}

pub(crate) fn drop_pages(file: &OwnedFd) -> Result<()> {
    advise(file, libc::POSIX_FADV_DONTNEED)
}

pub(super) fn advise(file: &OwnedFd, advice: libc::c_int) -> Result<()> {
    // SAFETY: an open descriptor; the length 0 means to the end.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) } {
        0 => Ok(()),
        error => Err(refused("posix_fadvise(2)", &io::Error::from_raw_os_error(error))),
    }
}

/// Reads the first byte, which caches the first page.
fn read_byte(file: &OwnedFd) -> Result<()> {
    let mut byte = [0];
    let got = pread(file, &mut byte, 0);
    super::refusal::whole("pread(2)", got, byte.len())
}

#[cfg(test)]
mod tests {
    use super::super::data::{self, Contents};
    use super::super::data_dir::tests::Own;
    use super::*;

    #[test]
    fn read_pages_are_resident_and_dropped_ones_are_not() {
        let own = Own::new();
        let made = data::file(&own.dir, c"data", 1 << 20, 1 << 20, Contents(7)).expect("a file");
        let trial = match Trial::make(&made.file, own.dir.kind()) {
            Ok(trial) => trial,
            Err(why) => return eprintln!("skipped: {why:?}"),
        };
        if let Err(why) = trial.must_drop(own.dir.kind()) {
            return eprintln!("skipped: {why:?}");
        }
        for call in [ResidencyCall::Cachestat, ResidencyCall::Mincore] {
            let residency = Residency::by(call, &made.file, made.length).expect("a mapping");
            drop_pages(&made.file).expect("discarded");
            advise(&made.file, libc::POSIX_FADV_RANDOM).expect("advised");
            let resident = |offset, length| residency.resident(offset, length);
            let page = page_size() as u64;
            if call != trial.call && resident(0, page).is_err() {
                eprintln!("skipped: there is no {}", call.name());
                continue;
            }
            assert_eq!(resident(0, 1 << 20).expect("an answer"), 0, "{call:?}");
            read_byte(&made.file).expect("read");
            assert_eq!(resident(0, page).expect("an answer"), 1, "{call:?}");
            // Nothing is read ahead.
            assert_eq!(resident(page, (1 << 20) - page).expect("an answer"), 0, "{call:?}");
        }
    }

    #[test]
    fn a_range_beyond_the_mapping_is_an_error() {
        let own = Own::new();
        let made = data::file(&own.dir, c"data", 1 << 20, 1 << 20, Contents(7)).expect("a file");
        let residency = Residency::by(ResidencyCall::Mincore, &made.file, made.length).expect("a mapping");
        assert!(residency.resident(made.length, 4096).is_err());
        assert!(residency.resident(u64::MAX, 4096).is_err());
    }

    #[test]
    fn pages_of_tmpfs_cannot_be_dropped() {
        let stays = Trial { call: ResidencyCall::Cachestat, drops: false };
        let Err(Refusal::Skip(why)) = stays.must_drop(FileSystemKind::Memory("tmpfs")) else {
            panic!("it is refused")
        };
        assert!(why.ends_with("pages of a file on tmpfs are its storage and cannot be dropped"), "{why}");
        assert!(stays.must_drop(FileSystemKind::Other).is_err());
        assert!(Trial { drops: true, ..stays }.must_drop(FileSystemKind::Other).is_ok());
    }
}
