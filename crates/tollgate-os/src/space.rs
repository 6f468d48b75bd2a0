//! The free space of a file system, if it states a size.

use rustix::fs::StatVfs;

/// Returns the bytes that users other than root may still write, from statvfs(3). `None` if the file system states no size:
/// it has 0 blocks, like a tmpfs without a limit (tmpfs(5)), or as many as fit in an off_t, like an unlimited tmpfs of
/// gVisor (`math.MaxInt64` bytes in pkg/sentry/fsimpl/tmpfs).
pub fn free(stat: &StatVfs) -> Option<u64> {
    const HIGHEST: u64 = i64::MAX.cast_unsigned();
    let placeholder = HIGHEST.checked_div(stat.f_frsize)?;
    let is_stated = (1..placeholder).contains(&stat.f_blocks);
    is_stated.then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free_of(blocks: u64, available: u64, block: u64) -> Option<u64> {
        let mut stat = rustix::fs::statvfs("/").unwrap();
        (stat.f_blocks, stat.f_bavail, stat.f_frsize) = (blocks, available, block);
        free(&stat)
    }

    #[test]
    fn a_size_that_is_a_placeholder_is_none() {
        assert_eq!(free_of(1 << 30, 5, 4096), Some(5 * 4096));
        // A full file system, and one of 4 EiB.
        assert_eq!(free_of(1 << 30, 0, 4096), Some(0));
        assert_eq!(free_of(1 << 50, 1 << 50, 4096), Some(1 << 62));
        // gVisor's, as statvfs(3) reports it there: 8589934592 GiB.
        assert_eq!(free_of(2_251_799_813_685_247, 2_251_799_813_685_247, 4096), None);
        assert_eq!(free_of(i64::MAX as u64, i64::MAX as u64, 4096), None);
        assert_eq!(free_of(u64::MAX, u64::MAX, 512), None);
        // A tmpfs with size=0, /proc, and values that no file system reports.
        assert_eq!(free_of(0, 0, 4096), None);
        assert_eq!(free_of(1, 1, 0), None);
    }
}
