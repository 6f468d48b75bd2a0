//! Groups of hardware events, and [`records`] of what processes map: perf_event_open(2).
//!
//! The events of a group count together or not at all. If the kernel multiplexes the processor's counters among several
//! groups, a group counts for less time than it was enabled.

pub mod records;

use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// A hardware event, by its number in `enum perf_hw_id` (linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HardwareEvent {
    /// `PERF_COUNT_HW_CPU_CYCLES`.
    Cycles = 0,
    /// `PERF_COUNT_HW_INSTRUCTIONS`.
    Instructions = 1,
    /// `PERF_COUNT_HW_CACHE_MISSES`.
    CacheMisses = 3,
    /// `PERF_COUNT_HW_BRANCH_MISSES`.
    BranchMisses = 5,
}

/// The rings in which an event is counted. The hypervisor is excluded if the processor can distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rings {
    /// Ring 3.
    User,
    /// Ring 0.
    Kernel,
    /// Rings 0 and 3.
    All,
}

/// One event to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The kind of event.
    pub kind: HardwareEvent,
    /// The rings in which it counts.
    pub rings: Rings,
}

/// The threads whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The calling thread, on any processor.
    Thread,
    /// Everything that runs on this processor. This needs CAP_PERFMON, or kernel.perf_event_paranoid at 0 or below.
    Processor(usize),
}

/// An open group, which counts until it is dropped.
#[derive(Debug)]
pub struct Group {
    leader: File,
    _members: Vec<File>,
    events: usize,
}

/// The counts of a group since it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Nanoseconds for which the group was enabled.
    pub enabled: u64,
    /// Nanoseconds for which it counted.
    pub running: u64,
    /// The counts, in the order of the events.
    pub counts: Vec<u64>,
}

/// `struct perf_event_attr` in its first version, PERF_ATTR_SIZE_VER0.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

const TYPE_HARDWARE: u32 = 0;
const FORMAT_TIMES: u64 = 1 | 1 << 1;
const FORMAT_GROUP: u64 = 1 << 3;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Words that precede the counts in a reading: their number, and the two times.
const HEAD: usize = 3;

const MOST: usize = 16;

impl Group {
    /// Opens these events as a group, which starts to count at once.
    ///
    /// # Errors
    /// Those of perf_event_open(2): ENOENT or EOPNOTSUPP if the processor has no such counter, as in most virtual machines;
    /// EACCES or EPERM if kernel.perf_event_paranoid or a seccomp filter forbids it; ENOSYS without CONFIG_PERF_EVENTS;
    /// EINVAL for more events than counters.
    pub fn open(scope: Scope, events: &[Event]) -> io::Result<Self> {
        let Some((first, others)) = events.split_first().filter(|_| events.len() <= MOST) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let leader = open(scope, *first, -1)?;
        let members = others.iter().map(|event| open(scope, *event, leader.as_raw_fd()));
        let members = members.collect::<io::Result<_>>()?;
        Ok(Self { leader, _members: members, events: events.len() })
    }

    /// Reads the current counts.
    ///
    /// # Errors
    /// Those of read(2), and if the kernel's answer has an unexpected length.
    pub fn read(&self) -> io::Result<Reading> {
        let mut bytes = [0; (HEAD + MOST) * 8];
        let length = (&self.leader).read(&mut bytes)?;
        parse(&bytes[..length.min(bytes.len())], self.events)
            .ok_or_else(|| io::Error::other("the kernel returned a group of events of another length"))
    }
}

fn parse(bytes: &[u8], events: usize) -> Option<Reading> {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
    match words.as_slice() {
        [number, enabled, running, counts @ ..] if *number == events as u64 && counts.len() == events => {
            Some(Reading { enabled: *enabled, running: *running, counts: counts.to_vec() })
        }
        _ => None,
    }
}

fn open(scope: Scope, event: Event, group: RawFd) -> io::Result<File> {
    let excluded = match event.rings {
        Rings::User => EXCLUDE_KERNEL,
        Rings::Kernel => EXCLUDE_USER,
        Rings::All => 0,
    };
    let attributes = Attributes {
        kind: TYPE_HARDWARE,
        size: mem::size_of::<Attributes>() as u32,
        config: event.kind as u64,
        read_format: FORMAT_TIMES | FORMAT_GROUP,
        flags: excluded | EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    open_with(&attributes, scope, group)
}

fn open_with(attributes: &Attributes, scope: Scope, group: RawFd) -> io::Result<File> {
    let (thread, processor): (libc::pid_t, libc::c_int) = match scope {
        Scope::Thread => (0, -1),
        Scope::Processor(number) => {
            (-1, libc::c_int::try_from(number).map_err(|_| io::ErrorKind::InvalidInput)?)
        }
    };
    // SAFETY: the attributes have the size that is stored in them, and live for the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes as *const Attributes,
            thread,
            processor,
            group,
            CLOSE_ON_EXEC,
        )
    };
    match RawFd::try_from(descriptor) {
        // SAFETY: the descriptor is new, and this is its only owner.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { File::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_has_its_times_and_as_many_counts_as_events() {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let reading = Reading { enabled: 900, running: 300, counts: vec![7, 8] };
        assert_eq!(parse(&bytes(&[2, 900, 300, 7, 8]), 2), Some(reading));
        for words in [&[2_u64, 900, 300, 7][..], &[1, 900, 300, 7, 8], &[2, 900, 300, 7, 8, 9], &[]] {
            assert_eq!(parse(&bytes(words), 2), None, "{words:?}");
        }
    }

    #[test]
    fn the_attributes_have_the_size_of_their_first_version() {
        assert_eq!(mem::size_of::<Attributes>(), 64);
    }

    #[test]
    fn no_events_and_more_than_a_reading_holds_are_refused() {
        let event = Event { kind: HardwareEvent::Cycles, rings: Rings::All };
        for events in [&[][..], &[event; MOST + 1]] {
            let error = Group::open(Scope::Thread, events).expect_err("no group");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn instructions_of_a_loop_are_counted_where_there_is_a_pmu() {
        let event = Event { kind: HardwareEvent::Instructions, rings: Rings::User };
        let group = match Group::open(Scope::Thread, &[event]) {
            Ok(group) => group,
            Err(error) => return eprintln!("skipped: no hardware events here: {error}"),
        };
        let before = group.read().expect("a reading");
        (0..100_000_u64).for_each(|number| {
            std::hint::black_box(number);
        });
        let after = group.read().expect("a reading");
        assert!(after.running == 0 || after.counts[0] - before.counts[0] >= 100_000, "{before:?} {after:?}");
    }
}
