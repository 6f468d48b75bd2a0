//! Page sizes, which are queried and not assumed: 4 KiB and 2 MiB on x86-64; a kernel for arm64 also has 16 KiB and 32 MiB, or 64 KiB and
//! 512 MiB.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub use crate::chosen::lines::read_lines;

/// Bytes of a page.
pub fn page_size() -> usize {
    /// Zero until the first query.
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Relaxed) {
        0 => {
            // SAFETY: the call takes a number. POSIX requires an answer, which is positive.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
            SIZE.store(size, Relaxed);
            size
        }
        size => size,
    }
}

/// Bytes of a huge page: one entry of the tables' next level, which stands for a page of entries of eight bytes each (Intel SDM
/// volume 3, 4.5.4; Arm ARM, D8.2).
pub fn huge_page() -> usize {
    huge_page_of(page_size())
}

const fn huge_page_of(page: usize) -> usize {
    page / 8 * page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_of_pages_has_its_huge_page() {
        let mib = [4, 16, 64].map(|kib| huge_page_of(kib << 10) >> 20);
        assert_eq!(mib, [2, 32, 512]);
    }

    #[test]
    fn a_huge_page_is_what_the_kernel_says() {
        assert!(page_size().is_power_of_two());
        // A kernel without transparent huge pages does not say it.
        let file = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
        let said = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<usize>().ok());
        if let Some(said) = said {
            assert_eq!(huge_page(), said);
        }
        #[cfg(target_arch = "x86_64")]
        assert_eq!((page_size(), huge_page()), (4 << 10, 2 << 20));
    }
}
