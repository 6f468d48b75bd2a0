//! The processors that a thread may run on, without a fixed limit.
//!
//! The C library's `cpu_set_t` holds 1,024 processors, and the kernel refuses a mask that is smaller than its own with
//! EINVAL (sched_getaffinity(2)). So the masks here grow.

use std::{io, marker::PhantomData};

const BITS: usize = u64::BITS as usize;
/// An upper limit that no kernel reaches (`CONFIG_NR_CPUS` is at most 8,192 on x86-64).
pub const MOST: usize = 1 << 16;

/// Returns the processors that a thread may run on, ascending; 0 is the calling thread.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn allowed(thread: libc::pid_t) -> io::Result<Vec<usize>> {
    let mut mask = vec![0_u64; 1024 / BITS];
    loop {
        let bytes = size_of_val(mask.as_slice());
        // SAFETY: the mask is valid for writing its own size. The raw call returns how much it wrote; the C library's
        // wrapper does not.
        let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, bytes, mask.as_mut_ptr()) };
        match usize::try_from(written) {
            Ok(written) => {
                mask.truncate(written.div_ceil(size_of::<u64>()));
                let is_set = |cpu: &usize| mask[cpu / BITS] >> (cpu % BITS) & 1 == 1;
                return Ok((0..mask.len() * BITS).filter(is_set).collect());
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::EINVAL) || mask.len() * BITS >= MOST {
                    return Err(error);
                }
                mask.resize(mask.len() * 2, 0);
            }
        }
    }
}

/// Lets a thread run on these processors only; 0 is the calling thread.
///
/// # Errors
/// Those of sched_setaffinity(2), such as EINVAL if none of them exists or may be used.
pub fn pin(thread: libc::pid_t, cpus: &[usize]) -> io::Result<()> {
    let words = cpus.iter().max().map_or(1, |last| last / BITS + 1);
    if words > MOST / BITS {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut mask = vec![0_u64; words];
    for cpu in cpus {
        mask[cpu / BITS] |= 1 << (cpu % BITS);
    }
    let bytes = size_of_val(mask.as_slice());
    // SAFETY: the mask is valid for reading its own size.
    match unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, bytes, mask.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Restricts the calling thread to some processors until this is dropped; then it may run where it could before.
#[derive(Debug)]
#[must_use = "the thread may run where it could before when this is dropped"]
pub struct Pinned {
    /// Empty if the thread already had these processors.
    before: Vec<usize>,
    /// Makes this `!Send`: affinity belongs to a thread.
    of_thread: PhantomData<*const ()>,
}

impl Pinned {
    /// Lets the calling thread run on these processors only.
    ///
    /// # Errors
    /// As [`pin`].
    pub fn to(cpus: &[usize]) -> io::Result<Self> {
        let mut before = allowed(0)?;
        if before == cpus {
            before.clear();
        } else {
            pin(0, cpus)?;
        }
        Ok(Self { before, of_thread: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.before.is_empty() {
            let _ = pin(0, &self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_comes_back() {
        let before = allowed(0).expect("a mask");
        let last = *before.last().expect("a processor");
        let pinned = Pinned::to(&[last]).expect("an allowed processor");
        assert_eq!(allowed(0).expect("a mask"), [last]);
        drop(pinned);
        assert_eq!(allowed(0).expect("a mask"), before);
    }

    #[test]
    fn numbers_beyond_those_of_the_c_library_reach_the_kernel() {
        let before = allowed(0).expect("a mask");
        // The kernel ignores processors that it does not have.
        let mut with_more = before.clone();
        with_more.extend([1024, 5000, MOST - 1]);
        pin(0, &with_more).expect("some of them are there");
        assert_eq!(allowed(0).expect("a mask"), before);
        for absent in [MOST - 1, MOST, usize::MAX] {
            let error = pin(0, &[absent]).expect_err("no such processor");
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{absent}");
        }
    }
}
