use std::fs::File;
use std::io::{self, BufRead, BufReader};

use tollgate_engine::limits::MORE;
use tollgate_model::text::plainly;

use super::topology::Sizes;
use crate::prelude::*;

words! {
    pub(super) enum Page("page") { Small = "4k", Huge = "2m" }
}

impl Page {
    /// Size of the parts of a region in bytes. A huge page has up to 512 MiB, which small pages need not fill.
    fn step(self) -> usize {
        if self == Self::Huge { huge_page() } else { 2 << 20 }
    }
}

/// How much memory a case shares with others: small cases should not wait for the preparation of large memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Amount {
    /// A quarter of the last level.
    Little,
    /// As much as the largest case needs.
    Much,
}

impl Amount {
    pub fn new(bytes: u64, caches: Sizes) -> Self {
        if bytes <= caches.last / 4 { Self::Little } else { Self::Much }
    }

    /// Returns the amount in bytes, given the size of the largest case.
    pub fn bytes(self, largest: u64, caches: Sizes) -> u64 {
        if self == Self::Little { (caches.last / 4).min(largest) } else { largest }
    }
}

/// Private memory aligned to a huge page, written once. Unmapped on drop.
pub(super) struct Region {
    mapping: Mapping,
    notes: Vec<String>,
    _taken: Taken,
}

impl Region {
    /// Makes a region of this size, rounded up.
    pub fn new(bytes: usize, page: Page, quota: &Quota) -> Result<Self> {
        Self::placed(bytes, page, quota, |_| Ok(()))
    }

    /// Like [`Region::new`]; `place` sets where its pages come from, before any is touched.
    pub fn placed(
        bytes: usize,
        page: Page,
        quota: &Quota,
        place: impl FnOnce(&Mapping) -> Result<()>,
    ) -> Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(page.step());
        let taken = quota.take_memory(bytes as u64)?;
        let refused = |call: &'static str| {
            move |error: io::Error| skip!("{call} of {} MiB is refused: {}", bytes >> 20, plainly(&error))
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Mapping::aligned(bytes, access, flags, -1).map_err(refused("mmap(2)"))?;
        match page {
            // A kernel without huge pages refuses this advice.
            Page::Small => drop(mapping.advise(libc::MADV_NOHUGEPAGE)),
            Page::Huge => mapping.advise(libc::MADV_HUGEPAGE).map_err(refused("madvise(2) MADV_HUGEPAGE"))?,
        }
        place(&mapping)?;
        let mut region = Self { mapping, notes: Vec::new(), _taken: taken };
        if page == Page::Huge {
            region.expect_huge_pages()?;
        }
        for (at, word) in region.words_mut().iter_mut().enumerate().step_by(512) {
            // Nonzero and even, as the timed side writes it.
            *word = (at as u64 + 1) << 1;
        }
        if page == Page::Huge {
            region.note_huge_pages();
        }
        Ok(region)
    }

    /// Makes a region of this size, or a smaller one if this suite's users cannot all have so much. Also returns the limit.
    pub fn at_most(bytes: u64, page: Page, quota: &Quota) -> Result<(Self, Option<Refusal>)> {
        /// Latency, two buffers of stores, two of bandwidth, each in two page sizes and amounts; page walks in two sizes.
        const USERS: u64 = 22;
        let (fits, why) = match quota.memory_for_each(USERS) {
            Some((each, limit)) if each < bytes => {
                let why = format!("{} MiB{MORE}{limit}", bytes >> 20);
                (each - each % page.step() as u64, Some(Refusal::Skip(why)))
            }
            _ => (bytes, None),
        };
        match why {
            Some(why) if fits == 0 => Err(why),
            why => Ok((Self::new(fits as usize, page, quota)?, why)),
        }
    }

    pub fn length(&self) -> u64 {
        self.mapping.length() as u64
    }

    pub fn address(&self) -> u64 {
        self.mapping.address() as u64
    }

    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: the mapping has this length, is aligned and initialised, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address().cast(), self.mapping.length() / 8) }
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Checks that the first page is huge, before all of the region is written.
    fn expect_huge_pages(&mut self) -> Result<()> {
        self.words_mut()[0] = 2;
        match huge_bytes(self.address()) {
            Some(0) => Err(skip!("the kernel gives no huge pages (transparent_hugepage, or none are free)")),
            _ => Ok(()),
        }
    }

    fn note_huge_pages(&mut self) {
        let all = self.mapping.length() as u64;
        match huge_bytes(self.address()) {
            Some(given) if given < all => {
                self.notes.push(format!("{} of {} MiB in huge pages", given >> 20, all >> 20));
            }
            Some(_) => {}
            None => self.notes.push("page size unknown".to_owned()),
        }
    }
}

/// Returns the bytes in huge pages of the mapping at `address` (proc_pid_smaps(5), AnonHugePages), `None` if unknown.
fn huge_bytes(address: u64) -> Option<u64> {
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
    use crate::testing::ready;

    #[test]
    fn a_region_is_aligned_and_writable() {
        for page in [Page::Small, Page::Huge] {
            let Some(mut region) = ready(page, Region::new(3 << 20, page, &Quota::default())) else {
                continue;
            };
            let bytes = (3_usize << 20).next_multiple_of(page.step());
            assert_eq!((region.address() % huge_page() as u64, region.words_mut().len()), (0, bytes / 8));
            let last = region.words_mut().len() - 1;
            region.words_mut()[last] = 7;
            assert_eq!(region.words_mut()[last], 7);
        }
    }

    #[test]
    fn small_pages_are_not_huge_ones() {
        let small = Region::new(4 << 20, Page::Small, &Quota::default()).expect("memory");
        match huge_bytes(small.address()) {
            Some(bytes) => assert_eq!(bytes, 0),
            None => eprintln!("skipped: no /proc/self/smaps"),
        }
    }
}
