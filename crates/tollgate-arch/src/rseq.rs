//! The C library's variables of rseq(2).

pub use crate::chosen::rseq::{SIGNATURE, library};

/// The library's variables of <sys/rseq.h>, null for a library without them, and this thread's pointer, from which the offset counts.
pub struct Library {
    /// `__rseq_offset`.
    pub offset: *const isize,
    /// `__rseq_size`.
    pub size: *const u32,
    /// The thread's pointer.
    pub thread: usize,
}

impl Library {
    /// Returns the address of this thread's area; `None` if the library does not know rseq(2), or if its registration was refused or
    /// disabled (GLIBC_TUNABLES=glibc.pthread.rseq=0).
    #[inline(always)]
    pub fn area(&self) -> Option<usize> {
        if self.offset.is_null() || self.size.is_null() {
            return None;
        }
        // SAFETY: the library defines both with these types (<sys/rseq.h>) and never changes them once a program runs.
        let (offset, size) = unsafe { (*self.offset, *self.size) };
        (size > 0).then(|| self.thread.wrapping_add_signed(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{child, counter};

    #[test]
    fn the_counter_and_the_library_name_the_same_processor() {
        // SAFETY: the counter is there.
        let ((first, _), (last, on)) = unsafe { (counter::start(), counter::end()) };
        assert!(counter::is_there() && first > 0 && first <= last, "{first} {last}");
        let Some(area) = library().area() else { return println!("skipped: no rseq area: {on}") };
        // Another processor may come between the two, but not always.
        let agree = || {
            // SAFETY: the counter is there, and the library registered the area of this thread: cpu_id is its second word.
            let (on, said) = unsafe { (counter::end().1, (area as *const u32).add(1).read_volatile()) };
            // Above 12 bits, x86-64 has the node.
            on & 0xfff == said
        };
        assert!((0..100).any(|_| agree()));
        assert!(counter::stated_rate().is_none_or(|hz| hz > 1_000_000));
    }

    #[test]
    fn a_child_leaves_at_once_or_with_the_error_of_its_program() {
        let code = |child: i64| {
            let mut status = 0;
            // SAFETY: the status is valid for writing.
            assert_eq!(i64::from(unsafe { libc::waitpid(child as libc::pid_t, &raw mut status, 0) }), child);
            libc::WEXITSTATUS(status)
        };
        // SAFETY: the child is awaited.
        assert_eq!(code(unsafe { child::vfork_and_leave() }), 0);
        let nothing = [std::ptr::null()];
        // SAFETY: a C string and two empty lists.
        let failed =
            unsafe { child::vfork_and_exec(c"/nowhere".as_ptr(), nothing.as_ptr(), nothing.as_ptr()) };
        assert_eq!(code(failed), libc::ENOENT);
    }
}
