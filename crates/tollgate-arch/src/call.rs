//! System calls without the C library. They do not write errno, which signal handlers must not.

pub use crate::chosen::call::{call, call6};

/// Lets another thread run (sched_yield(2)).
#[inline(always)]
pub fn sched_yield() {
    // SAFETY: the call takes nothing.
    unsafe { call(libc::SYS_sched_yield, [0; 4]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_their_arguments_in_order_and_answer_with_the_error() {
        let page = memory_of(0);
        assert!(page > 0 && page % 4096 == 0, "{page}");
        // SAFETY: the range was just mapped, and nothing refers to it.
        assert_eq!(unsafe { call(libc::SYS_munmap, [page as u64, 4096, 0, 0]) }, 0);
        // An offset that is not a multiple of a page.
        assert_eq!(memory_of(1), -i64::from(libc::EINVAL));
        // SAFETY: no call has this number.
        assert_eq!(unsafe { call(-1, [0; 4]) }, -i64::from(libc::ENOSYS));
    }

    /// A new page of zeros. The sixth argument must be a multiple of a page.
    fn memory_of(offset: u64) -> i64 {
        let (access, flags) = (libc::PROT_READ as u64, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64);
        // SAFETY: a new mapping at an address of the kernel's choice.
        unsafe { call6(libc::SYS_mmap, [0, 4096, access, flags, u64::MAX, offset]) }
    }
}
