//! Memory of which it is known what pages it lies in.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use crate::mapping::{HUGE, Mapping};
use tollgate_engine::Refusal;
use tollgate_engine::limits::{self, Taken};
use tollgate_model::text::plainly;

use super::topology::Sizes;

/// What pages memory is asked to lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Page {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Huge,
}

impl Page {
    /// The word for it in a case's parameters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Small => "4k",
            Self::Huge => "2m",
        }
    }

    /// What the word says; small pages for any other.
    pub fn from_word(word: &str) -> Self {
        if word == Self::Huge.word() { Self::Huge } else { Self::Small }
    }
}

/// How much memory a case shares with others: those that need little should not wait until much is made ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Amount {
    /// A quarter of the last level.
    Little,
    /// As much as the largest case needs.
    Much,
}

impl Amount {
    /// What a case of so many bytes needs.
    pub fn of(bytes: u64, caches: Sizes) -> Self {
        if bytes <= caches.last / 4 { Self::Little } else { Self::Much }
    }

    /// In bytes, where the largest case has so many.
    pub fn bytes(self, largest: u64, caches: Sizes) -> u64 {
        if self == Self::Little { (caches.last / 4).min(largest) } else { largest }
    }
}

/// Private memory that begins at a multiple of a huge page, written once. It goes with its owner.
pub(super) struct Region {
    mapping: Mapping,
    notes: Vec<String>,
    _taken: Taken,
}

impl Region {
    /// So many bytes, rounded up to whole huge pages.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the place allows no more memory, or has no such pages.
    pub fn new(bytes: usize, page: Page) -> Result<Self, Refusal> {
        let bytes = bytes.max(1).next_multiple_of(HUGE);
        let taken = limits::take_memory(bytes as u64)?;
        let refused = |call: &'static str| {
            move |error: io::Error| {
                Refusal::Skip(format!("{call} of {} MiB is refused: {}", bytes >> 20, plainly(&error)))
            }
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Mapping::aligned(bytes, access, flags, -1).map_err(refused("mmap(2)"))?;
        match page {
            // A kernel that has no huge pages refuses to do without.
            Page::Small => drop(mapping.advise(libc::MADV_NOHUGEPAGE)),
            Page::Huge => mapping.advise(libc::MADV_HUGEPAGE).map_err(refused("madvise(2) MADV_HUGEPAGE"))?,
        }
        let mut region = Self { mapping, notes: Vec::new(), _taken: taken };
        if page == Page::Huge {
            region.expect_huge_pages()?;
        }
        for (at, word) in region.words_mut().iter_mut().enumerate().step_by(512) {
            // Not zero, and even: as the timed side would have written it.
            *word = (at as u64 + 1) << 1;
        }
        if page == Page::Huge {
            region.note_huge_pages();
        }
        Ok(region)
    }

    /// As many of so many bytes as every user of such memory in this suite may have, and why it is no more.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub fn at_most(bytes: u64, page: Page) -> Result<(Self, Option<Refusal>), Refusal> {
        /// Latency and the two buffers of stores, each in two kinds of pages, each large and small.
        const USERS: u64 = 12;
        let (fits, why) = match limits::memory_for_each(USERS) {
            Some((each, limit)) if each < bytes => {
                let why = format!("{} MiB would be more than {limit}", bytes >> 20);
                (each / HUGE as u64 * HUGE as u64, Some(Refusal::Skip(why)))
            }
            _ => (bytes, None),
        };
        match why {
            Some(why) if fits == 0 => Err(why),
            why => Ok((Self::new(fits as usize, page)?, why)),
        }
    }

    /// In bytes.
    pub fn length(&self) -> u64 {
        self.mapping.length() as u64
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.mapping.address() as u64
    }

    /// All of it.
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: the mapping is so long, aligned and initialised with zeros, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address().cast(), self.mapping.length() / 8) }
    }

    /// What is to be known of it.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// That the first page is huge: without, all of it need not be written.
    fn expect_huge_pages(&mut self) -> Result<(), Refusal> {
        self.words_mut()[0] = 2;
        match huge_bytes(self.address()) {
            Some(0) => Err(Refusal::Skip(
                "the kernel gives no huge pages to this memory (transparent_hugepage, or none are free)"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// The kernel gives huge pages as far as it has them.
    fn note_huge_pages(&mut self) {
        let all = self.mapping.length() as u64;
        match huge_bytes(self.address()) {
            Some(given) if given < all => {
                self.notes.push(format!("{} of {} MiB lie in huge pages", given >> 20, all >> 20));
            }
            Some(_) => {}
            None => self.notes.push("whether the pages are huge cannot be told here".to_owned()),
        }
    }
}

/// Bytes in huge pages of the mapping that `address` lies in (proc_pid_smaps(5), AnonHugePages). None where nobody says.
fn huge_bytes(address: u64) -> Option<u64> {
    /// Longer than any process's of ours.
    const MOST_LINES: usize = 1 << 16;
    let lines = BufReader::new(File::open("/proc/self/smaps").ok()?).lines().map_while(Result::ok);
    let mut inside = false;
    for line in lines.take(MOST_LINES) {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        if let Some((Some(first), Some(last))) = range.map(|(first, last)| (hex(first), hex(last))) {
            inside = (first..last).contains(&address);
        } else if inside && let Some(kib) = line.strip_prefix("AnonHugePages:") {
            return Some(kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned_and_ours_to_write() {
        for page in [Page::Small, Page::Huge] {
            let mut region = match Region::new(3 << 20, page) {
                Ok(region) => region,
                Err(why) => {
                    eprintln!("skipped: {why:?}");
                    continue;
                }
            };
            assert_eq!((region.address() % HUGE as u64, region.words_mut().len()), (0, (4 << 20) / 8));
            let last = region.words_mut().len() - 1;
            region.words_mut()[last] = 7;
            assert_eq!(region.words_mut()[last], 7);
            assert_eq!(Page::from_word(page.word()), page);
        }
    }

    #[test]
    fn small_pages_are_not_huge_ones() {
        let small = Region::new(4 << 20, Page::Small).expect("memory");
        match huge_bytes(small.address()) {
            Some(bytes) => assert_eq!(bytes, 0),
            None => eprintln!("skipped: no /proc/self/smaps"),
        }
    }
}
