use tollgate_arch::memory::page_size;
use tollgate_model::text::plainly;

use crate::machine::mapping::Mapping;
use crate::machine::memory;

/// The most pages that are touched at once: 256 MiB.
const MOST_PAGES: u64 = 1 << 16;
/// They are at most this fraction of the available memory.
const PART: u64 = 8;

pub fn used() -> Result<u64, String> {
    memory::used().map_err(|refusal| refusal.why().to_owned())
}

/// Writes a byte to each of `pages` new pages, in order. They are small if this kernel allows. Fails if they are too many.
pub fn touch(pages: u64) -> Result<(), String> {
    let page = page_size();
    let too_many = |what: &str| format!("{pages} pages of {page} bytes are {what}");
    if pages == 0 {
        return Ok(());
    }
    if pages > MOST_PAGES {
        return Err(too_many("more than an agent touches"));
    }
    let length = pages as usize * page;
    if memory::available().is_some_and(|available| length as u64 > available / PART) {
        return Err(too_many("more than an eighth of the available memory"));
    }
    let mapping = Mapping::anonymous(length, libc::MAP_PRIVATE)
        .map_err(|error| format!("mmap: {}", plainly(&error)))?;
    // SAFETY: the range is the mapping's own. It fails if the kernel has no huge pages, which is fine.
    unsafe { libc::madvise(mapping.address().cast(), length, libc::MADV_NOHUGEPAGE) };
    for at in (0..length).step_by(page) {
        // SAFETY: within the mapping, which may be written to, and to which nothing else refers.
        unsafe { mapping.address().add(at).write_volatile(1) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_touched_and_too_many_are_refused() {
        let faults = || tollgate_os::rusage::Usage::of_thread().minflt;
        let before = faults();
        touch(64).expect("256 KiB");
        assert!(faults() >= before + 64);
        assert_eq!(touch(0), Ok(()));
        assert!(touch(MOST_PAGES + 1).is_err() && touch(u64::MAX).is_err());
    }
}
