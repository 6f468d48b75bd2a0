//! The certificate of a read: whether what it reads is in memory or not, asked of the kernel right before it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::mapping::Mapping;
use tollgate_engine::Refusal;

use super::place::Kind;
use super::refusal::{checked, refused};

/// Of both, and of the memory that files are cached in on x86-64.
pub(crate) const PAGE: u64 = 4096;

/// By whom it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Witness {
    /// cachestat(2), since Linux 6.5.
    Cachestat,
    /// mincore(2) of a mapping that nobody touches.
    Mincore,
}

impl Witness {
    /// The call.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cachestat => "cachestat(2)",
            Self::Mincore => "mincore(2)",
        }
    }
}

/// What can be certified of a file, found by trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trial {
    pub witness: Witness,
    /// Whether pages that were dropped are gone.
    pub drops: bool,
}

impl Trial {
    /// Reads a page of a file that is written out, drops it, and looks who notices both.
    ///
    /// A witness that never says that a page is there is none: a file of an overlay has no pages of its own for
    /// cachestat(2). Nor is one that never says that a page is gone, unless pages cannot go.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where nobody can certify anything.
    pub fn of(file: &OwnedFd, kind: Kind) -> Result<Self, Refusal> {
        let mut stays = None;
        for witness in [Witness::Cachestat, Witness::Mincore] {
            // A call that is not there, or forbidden, is no witness.
            let Ok(certificate) = Certificate::by(witness, file, PAGE) else { continue };
            drop_pages(file)?;
            let Ok(after_dropping) = certificate.resident(0, PAGE) else { continue };
            read_page(file)?;
            let Ok(after_reading) = certificate.resident(0, PAGE) else { continue };
            match (after_dropping, after_reading) {
                (0, 1..) => return Ok(Self { witness, drops: true }),
                (1.., 1..) => stays = stays.or(Some(Self { witness, drops: false })),
                (_, 0) => {}
            }
        }
        match stays {
            // cachestat(2) counts what there is. mincore(2) is told to say that all is there by sandboxes, and for
            // files of others.
            Some(trial) if trial.witness == Witness::Cachestat || matches!(kind, Kind::Memory(_)) => Ok(trial),
            Some(_) => Err(Refusal::Skip(
                "nothing certifies what is in memory here: mincore(2) says so of every page, dropped or not, and \
                 there is no cachestat(2)"
                    .to_owned(),
            )),
            None => Err(Refusal::Skip(
                "nothing certifies what is in memory here: neither cachestat(2) nor mincore(2) sees a page that was \
                 just read"
                    .to_owned(),
            )),
        }
    }

    /// That pages of such a file can be dropped.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with the reason why not.
    pub fn must_drop(self, kind: Kind) -> Result<(), Refusal> {
        match self.why_stays(kind) {
            None => Ok(()),
            Some(why) => Err(Refusal::Skip(format!("no read is uncached here: {why}"))),
        }
    }

    /// Why pages of such a file cannot be dropped, where they cannot.
    pub fn why_stays(self, kind: Kind) -> Option<String> {
        match (self.drops, kind) {
            (true, _) => None,
            (false, Kind::Memory(name)) => {
                Some(format!("the pages of a file on {name} are its storage and cannot be dropped"))
            }
            (false, _) => Some(format!(
                "by {} the pages of a file that is written out stay when posix_fadvise(2) asks to drop them",
                self.witness.name()
            )),
        }
    }
}

/// Says which pages of one file are in memory.
pub(crate) struct Certificate {
    file: RawFd,
    /// For mincore(2): the whole file, never touched.
    mapping: Option<Mapping>,
}

impl Certificate {
    /// By this witness, of the first `length` bytes of `file`, which must stay open for as long.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn by(witness: Witness, file: &OwnedFd, length: u64) -> io::Result<Self> {
        let mapping = match witness {
            Witness::Cachestat => None,
            Witness::Mincore => Some(untouched(file, length)?),
        };
        Ok(Self { file: file.as_raw_fd(), mapping })
    }

    /// How many pages of a range that begins and ends between pages are in memory.
    ///
    /// # Errors
    /// What the witness says instead.
    pub fn resident(&self, offset: u64, length: u64) -> io::Result<u64> {
        match &self.mapping {
            None => cachestat(self.file, offset, length),
            Some(mapping) => resident_of(mapping, offset, length),
        }
    }
}

/// Pages of a range of a file that are in the page cache (include/uapi/linux/mman.h).
fn cachestat(file: RawFd, offset: u64, length: u64) -> io::Result<u64> {
    /// For all architectures.
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
    // SAFETY: both structures are as the kernel defines them, the second is valid for writing.
    checked(unsafe { libc::syscall(SYS_CACHESTAT, file, &range, &mut statistics, 0) })?;
    Ok(statistics.cached)
}

fn untouched(file: &OwnedFd, length: u64) -> io::Result<Mapping> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    Mapping::new(length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
}

/// The pages of a mapping of the whole file that are in memory.
fn resident_of(mapping: &Mapping, offset: u64, length: u64) -> io::Result<u64> {
    let (offset, length) = (offset as usize, length as usize);
    if offset.checked_add(length).is_none_or(|end| end > mapping.length()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut pages = vec![0_u8; length.div_ceil(PAGE as usize)];
    // SAFETY: the range lies within the mapping; there is a byte for each page of it.
    checked(unsafe {
        let start = mapping.address().byte_add(offset);
        libc::mincore(start.cast(), length, pages.as_mut_ptr().cast::<libc::c_uchar>())
    })?;
    Ok(pages.iter().filter(|&page| page & 1 != 0).count() as u64)
}

/// Asks the kernel to forget the pages of this file, of no other. Those that are dirty stay: it must have been written
/// out.
///
/// # Errors
/// As [`refused`].
pub(crate) fn drop_pages(file: &OwnedFd) -> Result<(), Refusal> {
    advise(file, libc::POSIX_FADV_DONTNEED)
}

/// Tells the kernel how this descriptor will be read.
///
/// # Errors
/// As [`refused`].
pub(super) fn advise(file: &OwnedFd, advice: libc::c_int) -> Result<(), Refusal> {
    // SAFETY: an open descriptor; the length 0 means to the end.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) } {
        0 => Ok(()),
        error => Err(refused("posix_fadvise(2)", &io::Error::from_raw_os_error(error))),
    }
}

fn read_page(file: &OwnedFd) -> Result<(), Refusal> {
    let mut page = [0_u8; PAGE as usize];
    // SAFETY: the buffer is valid for writing its own length.
    let got =
        checked(unsafe { libc::pread(file.as_raw_fd(), page.as_mut_ptr().cast(), page.len(), 0) } as i64);
    super::refusal::whole("pread(2)", got, page.len())
}

#[cfg(test)]
mod tests {
    use super::super::data::{self, Contents};
    use super::super::place::tests::Own;
    use super::*;

    #[test]
    fn what_was_read_is_there_and_what_was_dropped_is_not() {
        let own = Own::new();
        let made = data::file(&own.place, c"data", 1 << 20, 1 << 20, Contents(7)).expect("a file");
        let trial = match Trial::of(&made.file, own.place.kind()) {
            Ok(trial) => trial,
            Err(why) => return eprintln!("skipped: {why:?}"),
        };
        if let Err(why) = trial.must_drop(own.place.kind()) {
            return eprintln!("skipped: {why:?}");
        }
        for witness in [Witness::Cachestat, Witness::Mincore] {
            let certificate = Certificate::by(witness, &made.file, made.length).expect("a mapping");
            drop_pages(&made.file).expect("discarded");
            advise(&made.file, libc::POSIX_FADV_RANDOM).expect("advised");
            let resident = |offset, length| certificate.resident(offset, length);
            if witness != trial.witness && resident(0, PAGE).is_err() {
                eprintln!("skipped: there is no {}", witness.name());
                continue;
            }
            assert_eq!(resident(0, 1 << 20).expect("an answer"), 0, "{witness:?}");
            read_page(&made.file).expect("read");
            assert_eq!(resident(0, PAGE).expect("an answer"), 1, "{witness:?}");
            // Nothing is read ahead of what was asked for.
            assert_eq!(resident(PAGE, (1 << 20) - PAGE).expect("an answer"), 0, "{witness:?}");
        }
    }

    #[test]
    fn beyond_the_mapping_is_no_answer() {
        let own = Own::new();
        let made = data::file(&own.place, c"data", 1 << 20, 1 << 20, Contents(7)).expect("a file");
        let certificate = Certificate::by(Witness::Mincore, &made.file, made.length).expect("a mapping");
        assert!(certificate.resident(made.length, PAGE).is_err());
        assert!(certificate.resident(u64::MAX, PAGE).is_err());
    }

    #[test]
    fn where_pages_are_the_storage_they_cannot_be_dropped() {
        let stays = Trial { witness: Witness::Cachestat, drops: false };
        let Err(Refusal::Skip(why)) = stays.must_drop(Kind::Memory("tmpfs")) else { panic!("it is refused") };
        assert!(why.ends_with("the pages of a file on tmpfs are its storage and cannot be dropped"), "{why}");
        assert!(stays.must_drop(Kind::Other).is_err());
        assert!(Trial { drops: true, ..stays }.must_drop(Kind::Other).is_ok());
    }
}
