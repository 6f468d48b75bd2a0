//! Processors: which are allowed, pinning to one, and whether the thread stayed on it.

use std::io;
use std::mem;

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
    fn sleeping_is_a_switch() {
        let before = switches();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(switches() > before);
    }
}
