//! Resources used by processes: getrusage(2).

use std::mem;

/// Times, faults and context switches. Counts have the names of getrusage(2), without `ru_`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in user mode, in nanoseconds; the kernel's resolution is microseconds.
    pub user_ns: u64,
    /// Time in the kernel, in nanoseconds.
    pub sys_ns: u64,
    /// Peak resident set size, in KiB.
    pub maxrss_kib: u64,
    /// Page faults that needed no I/O.
    pub minflt: u64,
    /// Page faults that needed I/O.
    pub majflt: u64,
    /// Reads from storage, in sectors of 512 bytes; 0 if the kernel does not account for them.
    pub inblock: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
}

impl Usage {
    /// Returns the usage of the calling thread.
    pub fn of_thread() -> Self {
        Self::get(libc::RUSAGE_THREAD)
    }

    /// Returns the usage of this process, with all its threads.
    pub fn of_process() -> Self {
        Self::get(libc::RUSAGE_SELF)
    }

    /// Returns the usage of the children that were waited for, and of theirs.
    pub fn of_children() -> Self {
        Self::get(libc::RUSAGE_CHILDREN)
    }

    /// Returns the time in user mode and in the kernel, in nanoseconds.
    pub fn run_ns(&self) -> u64 {
        self.user_ns.wrapping_add(self.sys_ns)
    }

    /// Returns the page faults of both kinds.
    pub fn faults(&self) -> u64 {
        self.minflt.wrapping_add(self.majflt)
    }

    /// Returns the context switches of both kinds.
    pub fn switches(&self) -> u64 {
        self.nvcsw.wrapping_add(self.nivcsw)
    }

    fn get(who: libc::c_int) -> Self {
        // SAFETY: all zeros are a valid `rusage`.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes to `usage`; on failure it stays zero.
        unsafe { libc::getrusage(who, &raw mut usage) };
        Self::from_raw(&usage)
    }

    pub(crate) fn from_raw(usage: &libc::rusage) -> Self {
        let ns = |time: libc::timeval| {
            (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_usec as u64 * 1000)
        };
        Self {
            user_ns: ns(usage.ru_utime),
            sys_ns: ns(usage.ru_stime),
            maxrss_kib: usage.ru_maxrss as u64,
            minflt: usage.ru_minflt as u64,
            majflt: usage.ru_majflt as u64,
            inblock: usage.ru_inblock as u64,
            nvcsw: usage.ru_nvcsw as u64,
            nivcsw: usage.ru_nivcsw as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_switch_of_this_thread() {
        let before = Usage::of_thread();
        // No switch if the time is over before the thread has left its processor, as in a slow guest.
        let switches = |_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Usage::of_thread().nvcsw > before.nvcsw
        };
        assert!((0..1000).any(switches));
        assert!(Usage::of_process().switches() >= Usage::of_thread().switches());
    }
}
