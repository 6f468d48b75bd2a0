//! Processors: which are allowed, pinning to one, and whether the thread stayed on it.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

/// The processors that this thread may run on, ascending.
pub fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid for writing its own size.
    if unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: every index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// The processor to measure on where nobody chose one: the last of those allowed, since processor 0 serves
/// most interrupts; on a processor with two kinds of cores the last of the fast ones.
pub fn usual(allowed: &[usize]) -> Option<usize> {
    // Only hybrid processors of Intel's have it (drivers/base of the performance counters' cpu_core).
    let fast = std::fs::read_to_string("/sys/devices/cpu_core/cpus").map(|text| parse_list(&text));
    let last_fast = fast.ok().and_then(|fast| allowed.iter().rfind(|cpu| fast.contains(cpu)).copied());
    last_fast.or(allowed.last().copied())
}

/// A list such as `0-3,8` (cpuset(7), list format). What does not look like one is left out.
fn parse_list(text: &str) -> Vec<usize> {
    const MOST: usize = libc::CPU_SETSIZE as usize;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse::<usize>().ok()?.min(MOST))
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Binds this thread to one processor.
///
/// # Errors
/// What sched_setaffinity(2) says, such as EINVAL for a processor that does not exist.
pub fn pin(cpu: usize) -> io::Result<()> {
    set_affinity(&[cpu])
}

/// Lets this thread run on `cpus` again. An empty list, or one that the kernel refuses, changes nothing.
pub fn allow(cpus: &[usize]) {
    let _ = set_affinity(cpus);
}

fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the index is below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: `set` is valid for reading its own size.
    match unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How often this thread has been switched out, willingly or not (getrusage(2), RUSAGE_THREAD).
pub fn switches() -> u64 {
    // SAFETY: an all-zero rusage is valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is valid for writing; on failure it stays zero.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

/// Whether this process, and what it waited for, had a processor to themselves for a while.
///
/// A thread that waits for a child is switched out by nature: that it was says nothing. But where all of them
/// share one processor, the time that passed and that nobody of them used was somebody else's.
#[derive(Debug)]
pub struct Attendance {
    began: Instant,
    used: Duration,
}

impl Attendance {
    /// From now on.
    pub fn begin() -> Self {
        Self { began: Instant::now(), used: time_used() }
    }

    /// Whether nearly all of the time since was used by this process and the children that it has waited
    /// for. Where the kernel does not account in microseconds this cannot be told, and is taken to be so.
    pub fn was_whole(self) -> bool {
        /// The two clocks are read one after the other, and one of them in whole microseconds.
        const SLACK: Duration = Duration::from_micros(15);
        let passed = self.began.elapsed();
        let used = time_used().saturating_sub(self.used);
        used.is_zero() || passed <= used + passed / 20 + SLACK
    }
}

/// Processor time of this process and of the children that it has waited for (getrusage(2)).
fn time_used() -> Duration {
    let time = |who| {
        // SAFETY: an all-zero rusage is valid.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: `usage` is valid for writing; on failure it stays zero.
        unsafe { libc::getrusage(who, &mut usage) };
        let microseconds = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
        microseconds(usage.ru_utime) + microseconds(usage.ru_stime)
    };
    let microseconds = time(libc::RUSAGE_SELF) + time(libc::RUSAGE_CHILDREN);
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_and_returns() {
        let before = allowed();
        let Some(&last) = before.last() else { panic!("no processor allowed") };
        pin(last).expect("an allowed processor");
        assert_eq!(allowed(), [last]);
        allow(&before);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn lists_are_ranges_and_numbers() {
        assert_eq!(parse_list("0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(parse_list("x,3,5-x,2-1"), [3]);
        assert_eq!(parse_list("0-18446744073709551615").len(), libc::CPU_SETSIZE as usize + 1);
        assert_eq!(usual(&[]), None);
    }

    #[test]
    fn refuses_a_processor_that_cannot_exist() {
        assert!(pin(usize::MAX).is_err());
    }

    #[test]
    fn time_that_nobody_of_us_used_was_somebody_elses() {
        // In a process of its own: other tests' threads use time as well.
        // SAFETY: the child only reads clocks and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let slept = Attendance::begin();
            // Something must be used, or the kernel seems not to account.
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(3) {}
            std::thread::sleep(Duration::from_millis(30));
            // SAFETY: ends the copy without running what belongs to the original.
            unsafe { libc::_exit(i32::from(slept.was_whole())) };
        }
        let mut status = -1;
        // SAFETY: `child` is our child; `status` is valid for writing.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    }

    #[test]
    fn sleeping_is_a_switch() {
        let before = switches();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(switches() > before);
    }
}
