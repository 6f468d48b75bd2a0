//! Processors: affinity, pinning, context switches and processor time.

use std::io;
use std::time::{Duration, Instant};

use tollgate_os::{affinity, process::Child, rusage::Usage};

use crate::refusal::Result;

/// Returns the processors that this thread may run on, ascending.
pub fn allowed() -> Vec<usize> {
    affinity::allowed(0).unwrap_or_default()
}

/// Returns the others of `allowed`, the best partner first: those with another core, upwards from this one and around; siblings come last.
pub fn others(allowed: &[usize]) -> Vec<usize> {
    let Some(home) = current() else { return Vec::new() };
    let siblings = std::fs::read_to_string(format!("{TOPOLOGY}{home}/topology/thread_siblings_list"));
    let siblings = siblings.map(|text| parse_list(&text)).unwrap_or_default();
    let mut others = allowed.to_vec();
    others.retain(|&cpu| cpu != home);
    others.sort_by_key(|&cpu| (siblings.contains(&cpu), cpu < home, cpu));
    others
}

const TOPOLOGY: &str = "/sys/devices/system/cpu/cpu";

/// Parses a list such as `0-3,8` (cpuset(7), list format). Malformed parts are skipped.
pub fn parse_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse::<usize>().ok()?.min(affinity::MOST))
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Pins this thread to one processor.
///
/// # Errors
/// Those of sched_setaffinity(2), such as EINVAL for a processor that does not exist.
pub fn pin(cpu: usize) -> io::Result<()> {
    affinity::pin(0, &[cpu])
}

/// Lets this thread run on `cpus` again. An empty list, or one that the kernel refuses, changes nothing.
pub fn allow(cpus: &[usize]) {
    let _ = affinity::pin(0, cpus);
}

/// Returns the processor on which this thread runs.
pub fn current() -> Option<usize> {
    // SAFETY: sched_getcpu(3) has no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Returns the calling thread's id by system call: std refers to gettid(3) weakly, which a static program may leave at address 0.
pub fn own_thread() -> libc::pid_t {
    // SAFETY: gettid(2) has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Returns the one processor that this thread and its future children and threads are bound to.
///
/// # Errors
/// [`Refusal::Skip`](crate::Refusal::Skip) if it is not pinned to one.
pub fn home() -> Result<usize> {
    match allowed().as_slice() {
        [home] => Ok(*home),
        _ => Err(skip!("the thread cannot be pinned to one processor here (sched_setaffinity(2))")),
    }
}

/// Returns the context switches of this thread, voluntary and involuntary.
pub fn switches() -> u64 {
    Usage::of_thread().switches()
}

/// Returns the page faults of this thread that needed no I/O.
pub fn minor_faults() -> u64 {
    Usage::of_thread().minflt
}

/// Returns the context switches of all threads of this process, voluntary and involuntary.
pub fn switches_of_process() -> u64 {
    Usage::of_process().switches()
}

/// Measures whether this process and its children had a processor to themselves for a while.
///
/// A thread that waits for a child is always switched out, so its switches say nothing. But if all of them share one processor,
/// elapsed time beyond their processor time belongs to other processes.
#[derive(Debug)]
pub struct CpuShare {
    began: Instant,
    used: Duration,
    /// Processor-time clocks of participating processes that are still running.
    clocks: Vec<libc::clockid_t>,
}

impl CpuShare {
    /// Begins measuring.
    pub fn begin() -> Self {
        Self::begin_with(&[])
    }

    /// Begins measuring with children that take part and keep running.
    pub fn begin_with(children: &[Child]) -> Self {
        let clocks: Vec<libc::clockid_t> =
            children.iter().filter_map(|child| clock_of(child.pid())).collect();
        let used = time_used() + time_of(&clocks);
        Self { began: Instant::now(), used, clocks }
    }

    /// Whether this process, its reaped children and the participants used nearly all of the time. True if the kernel does not
    /// account in microseconds.
    pub fn was_full(self) -> bool {
        self.was_full_with(&[])
    }

    /// Like [`Self::was_full`], with running children made since the beginning. It is called before they end: ending many takes
    /// as long as making them, and a disturbance of the end does not disturb the making.
    pub fn was_full_with(self, born: &[libc::pid_t]) -> bool {
        let passed = self.began.elapsed();
        let used = self.used_with(born);
        used.is_zero() || is_little(passed.saturating_sub(used), passed)
    }

    fn used_with(&self, born: &[libc::pid_t]) -> Duration {
        let born: Vec<libc::clockid_t> = born.iter().filter_map(|&pid| clock_of(pid)).collect();
        (time_used() + time_of(&self.clocks) + time_of(&born)).saturating_sub(self.used)
    }
}

/// Whether other work took so little that the time is still the operation's.
fn is_little(others: Duration, passed: Duration) -> bool {
    /// The two clocks are read one after the other, and one of them in whole microseconds.
    const SLACK: Duration = Duration::from_micros(15);
    others <= passed / 20 + SLACK
}

/// Whether threads had their own processors to themselves during `messages` messages; `queued` is the time that they waited runnable.
///
/// An idle processor is free at once, or soon after if it is still handling the other end's last wake-up. A long message has more
/// such waits than a short one, so a share of the time is allowed as well.
pub fn were_free(queued: Duration, passed: Duration, messages: u64) -> bool {
    const EACH: Duration = Duration::from_micros(2);
    let each = EACH.saturating_mul(u32::try_from(messages).unwrap_or(u32::MAX));
    is_little(queued.saturating_sub(each), passed)
}

fn clock_of(pid: libc::pid_t) -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: `clock` is valid for writing.
    let outcome = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
    (outcome == 0).then_some(clock)
}

/// The processor time of this process and of the children that it has waited for.
fn time_used() -> Duration {
    Duration::from_nanos(Usage::of_process().run_ns() + Usage::of_children().run_ns())
}

fn time_of(clocks: &[libc::clockid_t]) -> Duration {
    let time = |&clock: &libc::clockid_t| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writing; on failure it stays zero.
        unsafe { libc::clock_gettime(clock, &mut time) };
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    clocks.iter().map(time).sum()
}

#[cfg(test)]
mod tests {
    use tollgate_model::traced::Ended;
    use tollgate_os::process;

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
        assert_eq!(parse_list("0-18446744073709551615").len(), affinity::MOST + 1);
    }

    #[test]
    fn refuses_a_processor_that_cannot_exist() {
        assert!(pin(usize::MAX).is_err());
    }

    #[test]
    fn sleep_makes_the_share_less_than_full() {
        // In a process of its own, because other tests' threads use time as well.
        let child = process::fork_bound(|| {
            let slept = CpuShare::begin();
            // A share of zero would look like a kernel that does not account.
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(3) {}
            std::thread::sleep(Duration::from_millis(30));
            i32::from(slept.was_full())
        });
        assert_eq!(child.and_then(|mut child| child.wait()).expect("it ends"), Ended::Exit(0));
    }

    #[test]
    fn a_running_childs_time_is_counted() {
        let spin = || {
            loop {
                std::hint::spin_loop();
            }
        };
        let children = [process::fork_bound(spin).expect("a process")];
        let cpu_share = CpuShare::begin_with(&children);
        assert_eq!(cpu_share.clocks.len(), 1);
        let before = time_of(&cpu_share.clocks);
        let until = Instant::now() + Duration::from_secs(120);
        while time_of(&cpu_share.clocks) == before && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let used = time_of(&cpu_share.clocks);
        drop(children);
        assert!(used > before);
    }

    #[test]
    fn a_child_that_was_made_since_counts_while_it_runs() {
        let child = process::fork_bound(|| {
            const LONG: Duration = Duration::from_millis(60);
            let spin = || {
                loop {
                    std::hint::spin_loop();
                }
            };
            let share = CpuShare::begin();
            let Ok(spinning) = process::fork_bound(spin) else { return 2 };
            let Some(clock) = clock_of(spinning.pid()) else { return 2 };
            let until = Instant::now() + Duration::from_secs(120);
            while time_of(&[clock]) < LONG && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            let without = share.used_with(&[]);
            i32::from(share.used_with(&[spinning.pid()]) < without + LONG)
        });
        assert_eq!(child.and_then(|mut child| child.wait()).expect("it ends"), Ended::Exit(0));
    }

    #[test]
    fn long_messages_may_wait_for_a_part_of_their_time() {
        let us = Duration::from_micros;
        // Eight round trips: of 64 KiB in 120 µs each, and of one byte in 50 µs.
        assert!(were_free(us(8 * 6), us(8 * 120), 8));
        assert!(were_free(us(8 * 2), us(8 * 50), 8));
        assert!(!were_free(us(3_000), us(8 * 120 + 3_000), 8));
        assert!(!were_free(us(300), us(8 * 50 + 300), 8));
    }

    #[test]
    fn others_are_all_allowed_processors_but_this_one() {
        let before = allowed();
        let Some(&last) = before.last() else { panic!("no processor allowed") };
        pin(last).expect("an allowed processor");
        let mut others = others(&before);
        allow(&before);
        assert!(!others.contains(&last));
        others.push(last);
        others.sort_unstable();
        assert_eq!(others, before);
    }

    #[test]
    fn sleeping_is_a_switch() {
        let before = switches();
        // On a very busy machine the time may be over before the thread is asleep.
        let has_switched = || {
            std::thread::sleep(std::time::Duration::from_millis(2));
            switches() > before
        };
        assert!((0..100).any(|_| has_switched()));
    }
}
