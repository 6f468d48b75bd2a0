//! Finds how a thread passed the time between two stops.
//!
//! `/proc/PID/task/TID/schedstat` has a thread's processor time and its wait for a processor, in nanoseconds, and the number of
//! its time slices, which are counted when they begin. Reading it takes a tenth of the time of a stop. A thread that had one slice
//! between two stops left the processor only to stop: its processor time counts, and the rest is the overhead of stopping.
//!
//! The usage that wait4(2) returns at each stop tells preemption from a wait by the numbers of voluntary and involuntary switches.
//! A kernel without schedstat has only that. It may lose a wait, because the kernel may count the switch of a stop before or after
//! it reports the stop.

use std::{fs::File, os::unix::fs::FileExt};

use tollgate_model::traced::Parts;
use tollgate_os::rusage::Usage;

/// The most threads that keep their file open. Others open it each time.
const MOST_OPEN: usize = 256;

#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// Nanoseconds on a processor and runnable, and the number of time slices. `None` if not available.
    pub exact: Option<[u64; 3]>,
    pub usage: Usage,
}

#[derive(Debug, Default)]
pub struct Source {
    file: Option<File>,
}

/// The number of open files, and whether the kernel has no such files.
#[derive(Debug)]
pub struct Files {
    open: usize,
    absent: bool,
}

impl Files {
    /// A kernel without CONFIG_SCHED_INFO has no such files, or they contain zeroes.
    pub fn new() -> Self {
        let own = File::open("/proc/thread-self/schedstat").ok().and_then(|file| numbers(&file));
        Self { open: 0, absent: own.is_none_or(|numbers| numbers == [0; 3]) }
    }
}

impl Source {
    pub fn read(&mut self, process: libc::pid_t, thread: libc::pid_t, files: &mut Files) -> Option<[u64; 3]> {
        if files.absent {
            return None;
        }
        if let Some(file) = &self.file {
            return numbers(file);
        }
        let file = File::open(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
        let read = numbers(&file);
        if files.open < MOST_OPEN {
            files.open += 1;
            self.file = Some(file);
        }
        read
    }

    /// Closes the file after the thread has ended, or has got another id.
    pub fn forget(&mut self, files: &mut Files) {
        if self.file.take().is_some() {
            files.open -= 1;
        }
    }
}

fn numbers(file: &File) -> Option<[u64; 3]> {
    let mut text = [0u8; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    parse(text.get(..length)?)
}

fn parse(text: &[u8]) -> Option<[u64; 3]> {
    let mut numbers = text.split(|byte| !byte.is_ascii_digit()).filter(|word| !word.is_empty()).map(|word| {
        word.iter().fold(0u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
    });
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Stretch {
    /// On a processor, runnable, and away for an unknown reason (`unknown_ns`).
    pub parts: Parts,
    /// A page fault or a read accessed a disk in between.
    pub disk: bool,
    /// The thread is known to have left the processor.
    pub left: bool,
    /// The thread is known to have given it up.
    pub gave_away: bool,
}

impl Stretch {
    /// Computes the stretch of `wall_ns` between two readings. `alone`: the process has only this thread.
    pub fn between(before: &Reading, after: &Reading, wall_ns: u64, alone: bool) -> Self {
        let usage = |field: fn(&Usage) -> u64| field(&after.usage).saturating_sub(field(&before.usage));
        let exact = before
            .exact
            .zip(after.exact)
            .map(|(before, after)| [0, 1, 2].map(|at| after[at].saturating_sub(before[at])));
        // The stop at the end is itself a voluntary switch, and begins a time slice. It may be reported before the kernel counts
        // it, so the switch counts of two stops may be off by one. Slices are counted when they begin, and are exact.
        let taken = usage(|usage| usage.nivcsw);
        let counted = usage(|usage| usage.nvcsw) > 1 || after.usage.nvcsw == 0;
        let (left, gave_away) = match exact {
            // These belong to the thread; usage also includes children that were waited for, and other threads.
            Some([_, _, slices]) => (slices > 1, slices > 1 && (!alone || counted || slices - 1 > taken)),
            None => (counted || taken > 0, counted),
        };
        let parts = match exact {
            Some([run, ready, _]) if left => split(wall_ns, run, ready, gave_away),
            Some([run, ..]) => on_cpu(run.min(wall_ns)),
            None if !alone => Parts { unknown_ns: wall_ns, ..Parts::default() },
            None => {
                let run = usage(Usage::run_ns);
                match (left, gave_away) {
                    (false, _) => on_cpu(run.min(wall_ns)),
                    // A preempted thread is runnable.
                    (true, false) => split(wall_ns, run, wall_ns, false),
                    (true, true) => split(wall_ns, run, 0, true),
                }
            }
        };
        let disk = alone && usage(|usage| usage.majflt.wrapping_add(usage.inblock)) > 0;
        let gave_away = alone && gave_away && after.usage.nvcsw != 0;
        Self { parts, disk, left: gave_away || (left && exact.is_some()), gave_away }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            parts: self.parts.plus(other.parts),
            disk: self.disk || other.disk,
            left: self.left || other.left,
            gave_away: self.gave_away || other.gave_away,
        }
    }
}

fn on_cpu(on_cpu_ns: u64) -> Parts {
    Parts { on_cpu_ns, ..Parts::default() }
}

/// Splits the time. A preempted thread gets its run time and its wait for a processor; a thread that gave it up gets all of the time.
fn split(wall_ns: u64, run: u64, ready: u64, gave_away: bool) -> Parts {
    let on_cpu_ns = run.min(wall_ns);
    let runqueue_ns = ready.min(wall_ns - on_cpu_ns);
    let unknown_ns = if gave_away { wall_ns - on_cpu_ns - runqueue_ns } else { 0 };
    Parts { on_cpu_ns, runqueue_ns, unknown_ns, ..Parts::default() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reading(exact: Option<[u64; 3]>, user_ns: u64, nvcsw: u64, nivcsw: u64) -> Reading {
        Reading { exact, usage: Usage { user_ns, nvcsw, nivcsw, ..Usage::default() } }
    }

    fn parts(on_cpu_ns: u64, runqueue_ns: u64, unknown_ns: u64) -> Parts {
        Parts { on_cpu_ns, runqueue_ns, unknown_ns, ..Parts::default() }
    }

    #[test]
    fn a_thread_that_never_left_took_its_processor_time() {
        let before = reading(None, 1000, 7, 2);
        let of = |after| Stretch::between(&before, &after, 20_000, true).parts;
        assert_eq!(of(reading(None, 2000, 8, 2)), parts(1000, 0, 0));
        assert_eq!(of(reading(None, 2000, 8, 3)), parts(1000, 19_000, 0), "its processor was taken");
        assert_eq!(of(reading(None, 2000, 9, 2)), parts(1000, 0, 19_000), "it gave it away");
    }

    #[test]
    fn exact_numbers_give_the_wait_for_a_processor() {
        let before = reading(Some([1000, 50, 7]), 1000, 7, 2);
        let of = |after, alone| Stretch::between(&before, &after, 20_000, alone).parts;
        let after = |slices, voluntary| reading(Some([1700, 3050, slices]), 1000, voluntary, 2);
        assert_eq!(of(after(9, 9), true), parts(700, 3000, 16_300));
        assert_eq!(of(after(8, 8), true), parts(700, 0, 0));
        // If there are several threads, only these numbers belong to this one.
        assert_eq!(of(after(8, 99), false), parts(700, 0, 0));
        assert_eq!(of(after(9, 99), false), parts(700, 3000, 16_300));
        assert_eq!(of(reading(None, 9000, 99, 9), false), parts(0, 0, 20_000));
    }

    /// A read of 200 ms came out as 20 µs: the stop before it was reported after it was counted, the stop after it before that.
    #[test]
    fn a_wait_is_seen_whether_stops_are_counted_or_not() {
        const WALL: u64 = 200_000_000;
        let before = |counted: u64| reading(Some([1000, 50, 7]), 1000, 6 + counted, 2);
        let after =
            |slices, counted: u64| reading(Some([1700, 3050, slices]), 1000, 7 + slices - 8 + counted, 2);
        for (earlier, later) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let of = |slices| Stretch::between(&before(earlier), &after(slices, later), WALL, true);
            assert_eq!(of(9).parts.total_ns(), WALL, "{earlier} and {later}");
            assert_eq!(of(8).parts, parts(700, 0, 0), "{earlier} and {later}: it did not wait");
            assert!(of(9).gave_away && !of(8).gave_away);
        }
        let preempted = reading(Some([1700, 3050, 9]), 1000, 7, 3);
        assert_eq!(Stretch::between(&before(1), &preempted, WALL, true).parts, parts(700, 3000, 0));
    }

    #[test]
    fn schedstat_is_three_numbers() {
        assert_eq!(parse(b"123 45 6\n"), Some([123, 45, 6]));
        assert_eq!(parse(b"123 45"), None);
        assert_eq!(parse(b""), None);
    }

    proptest! {
        #[test]
        fn parts_never_exceed_the_time(
            before: [u64; 3], after: [u64; 3], wall: u64, counts: [u64; 2], alone: bool, exact: bool,
        ) {
            let (a, b) = (exact.then_some(before), exact.then_some(after));
            let stretch = Stretch::between(&reading(a, 0, counts[0], 0), &reading(b, counts[0], counts[1], 1), wall, alone);
            prop_assert!(stretch.parts.total_ns() <= wall);
        }

        #[test]
        fn any_text_is_taken(text: Vec<u8>) {
            let _ = parse(&text);
        }
    }
}
