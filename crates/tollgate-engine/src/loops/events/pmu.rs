//! The hardware events of a bench process: one group, opened once, of as many of its events as this environment allows.

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use serde::{Deserialize, Serialize};
use tollgate_model::events::{
    BRANCH_MISSES, CACHE_MISSES, KERNEL_CYCLES, KERNEL_INSTRUCTIONS, USER_CYCLES, USER_INSTRUCTIONS,
};
use tollgate_model::text::plainly;
use tollgate_model::traced::Ended;
use tollgate_os::perf::{Event, Group, HardwareEvent, Reading, Rings, Scope};
use tollgate_os::process;

use crate::machine::cpu;

/// In the order of a tally. A group has the first two, four or six of them.
pub(super) const NAMES: [&str; EVENTS] =
    [USER_CYCLES, USER_INSTRUCTIONS, KERNEL_CYCLES, KERNEL_INSTRUCTIONS, BRANCH_MISSES, CACHE_MISSES];

pub(super) const EVENTS: usize = 6;

const LIST: [Event; EVENTS] = [
    Event { kind: HardwareEvent::Cycles, rings: Rings::User },
    Event { kind: HardwareEvent::Instructions, rings: Rings::User },
    Event { kind: HardwareEvent::Cycles, rings: Rings::Kernel },
    Event { kind: HardwareEvent::Instructions, rings: Rings::Kernel },
    Event { kind: HardwareEvent::BranchMisses, rings: Rings::All },
    Event { kind: HardwareEvent::CacheMisses, rings: Rings::All },
];

/// Without misses: each of a core's two hardware threads may have only four counters, and the kernel's watchdog takes one of them.
const WITHOUT_MISSES: usize = 4;
/// Ring 3 alone, which kernel.perf_event_paranoid=2 allows.
const USER: usize = 2;

/// The subject of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The calling thread.
    Thread,
    /// This process, with all its threads, and the children that it waits for.
    Process,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoPmu {
    /// They exist, but this process may not count them.
    pub is_refused: bool,
    pub why: String,
}

pub(super) trait Reads: Send + Sync {
    fn read(&self) -> Option<Reading>;
}

impl Reads for Group {
    fn read(&self) -> Option<Reading> {
        Group::read(self).ok()
    }
}

pub(super) struct Pmu {
    group: Box<dyn Reads>,
    events: usize,
    scope: Scope,
    /// The process and thread that opened it.
    opener: (u32, ThreadId),
}

/// All events of the list; those that the group lacks are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot {
    enabled: u64,
    running: u64,
    counts: [u64; EVENTS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Between {
    /// Whether the group counted all the time.
    pub is_whole: bool,
    pub counts: [u64; EVENTS],
}

impl Pmu {
    pub fn read(&self) -> Option<Snapshot> {
        let reading = self.group.read()?;
        let mut counts = [0; EVENTS];
        counts.iter_mut().zip(reading.counts).for_each(|(to, count)| *to = count);
        Some(Snapshot { enabled: reading.enabled, running: reading.running, counts })
    }

    pub fn counts_processor(&self) -> bool {
        matches!(self.scope, Scope::Processor(_))
    }

    pub fn counts_kernel(&self) -> bool {
        self.events >= WITHOUT_MISSES
    }

    pub fn counts_misses(&self) -> bool {
        self.events == EVENTS
    }

    /// Whether the group counts `of` here. A processor's group counts all threads there, a thread's group only the thread that opened
    /// it. A forked process inherits its parent's group, which continues to count the parent.
    fn counts(&self, of: Of) -> bool {
        match self.scope {
            Scope::Processor(number) => cpu::current() == Some(number),
            Scope::Thread => of == Of::Thread && self.opener == opener(),
        }
    }

    fn describe(&self) -> String {
        let events = match self.events {
            USER => "cycles and instructions of ring 3",
            WITHOUT_MISSES => "cycles and instructions, user and kernel",
            _ => "cycles and instructions, user and kernel, branch and cache misses",
        };
        match self.scope {
            Scope::Processor(number) => format!("{events}, for all of processor {number}"),
            Scope::Thread => {
                format!("{events}, for the timed thread; not in suites that switch between threads")
            }
        }
    }
}

impl Snapshot {
    pub fn since(&self, before: &Self) -> Between {
        let enabled = self.enabled.wrapping_sub(before.enabled);
        let running = self.running.wrapping_sub(before.running);
        let counts = std::array::from_fn(|at| self.counts[at].saturating_sub(before.counts[at]));
        Between { is_whole: enabled == running && enabled > 0, counts }
    }
}

impl Between {
    /// Subtracts the overhead: the end of one reading, the beginning of the next, two clock reads and an empty loop.
    pub fn less(&self, overhead: Option<&Self>) -> Self {
        let Some(overhead) = overhead else { return *self };
        let counts = std::array::from_fn(|at| self.counts[at].saturating_sub(overhead.counts[at]));
        Self { is_whole: self.is_whole && overhead.is_whole, counts }
    }
}

fn opener() -> (u32, ThreadId) {
    (std::process::id(), thread::current().id())
}

static OWN: OnceLock<Option<Pmu>> = OnceLock::new();

pub(super) fn own(of: Of) -> Option<&'static Pmu> {
    OWN.get()?.as_ref().filter(|pmu| pmu.counts(of))
}

/// Opens the group of this process, which is pinned to `processor`. The group is of the whole processor if that is allowed, else
/// of the calling thread, unless operations switch between threads. Returns what it counts, or why there is none.
pub(crate) fn open(processor: Option<usize>, switches: bool) -> Result<String, NoPmu> {
    let found = permitted().and_then(|()| find(processor, switches, Group::open));
    let said = found.as_ref().map(Pmu::describe).map_err(Clone::clone);
    // A process opens its group once; a second call would not replace the first group.
    let _ = OWN.set(found.ok());
    said
}

fn find<G: Reads + 'static>(
    processor: Option<usize>,
    switches: bool,
    mut open: impl FnMut(Scope, &[Event]) -> io::Result<G>,
) -> Result<Pmu, NoPmu> {
    let mut first = None;
    let scopes = processor.map(Scope::Processor).into_iter().chain([Scope::Thread]);
    for scope in scopes {
        if scope == Scope::Thread && switches {
            break;
        }
        for events in [EVENTS, WITHOUT_MISSES, USER] {
            match open(scope, &LIST[..events]) {
                Ok(group) => {
                    let pmu = Pmu { group: Box::new(group), events, scope, opener: opener() };
                    // With more events than free counters, a group is open but never counts.
                    if pmu.read().is_some_and(|snapshot| snapshot.running > 0) {
                        return Ok(pmu);
                    }
                }
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
    }
    Err(match first {
        Some(error) if switches && is_refusal(&error) => NoPmu {
            is_refused: true,
            why: "per-thread counters would slow the context switches measured here".to_owned(),
        },
        Some(error) => reason(&error),
        None => NoPmu {
            is_refused: false,
            why: "other users of the PMU (perf, the NMI watchdog) leave too few counters free".to_owned(),
        },
    })
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn reason(error: &io::Error) -> NoPmu {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    reason_of(error, paranoid.as_deref(), is_filtered(), has_pmu())
}

fn reason_of(error: &io::Error, paranoid: Option<&str>, is_filtered: bool, has_pmu: Option<bool>) -> NoPmu {
    let refused = |why: String| NoPmu { is_refused: true, why };
    let absent = |why: &str| NoPmu { is_refused: false, why: why.to_owned() };
    let failed = format!("perf_event_open(2): {}", plainly(error));
    match error.raw_os_error() {
        Some(libc::EACCES) => {
            let level = paranoid.map_or("an unknown level", str::trim);
            refused(format!(
                "{failed}; kernel.perf_event_paranoid is {level}, and the process has no CAP_PERFMON"
            ))
        }
        Some(libc::EPERM) if is_filtered => refused(format!("{failed}: a seccomp filter forbids it")),
        Some(libc::EPERM) => refused(failed),
        Some(libc::ENOSYS) if is_filtered => {
            refused(format!("{failed}: a seccomp filter hides it, or the kernel has no CONFIG_PERF_EVENTS"))
        }
        Some(libc::ENOSYS) => absent("the kernel has no perf_event_open(2) (CONFIG_PERF_EVENTS)"),
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) if has_pmu != Some(true) => {
            absent("this kernel sees no PMU, as in most virtual machines (/sys/bus/event_source/devices/cpu)")
        }
        _ => NoPmu { is_refused: false, why: failed },
    }
}

/// Whether the kernel knows a PMU of this processor; `None` if sysfs is not mounted. Hybrid processors have two.
fn has_pmu() -> Option<bool> {
    let devices = Path::new("/sys/bus/event_source/devices");
    devices.exists().then(|| ["cpu", "cpu_core"].iter().any(|name| devices.join(name).exists()))
}

fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"))
}

/// A filter may kill a process that makes the call, so another process tries it first.
fn permitted() -> Result<(), NoPmu> {
    if !is_filtered() {
        return Ok(());
    }
    let tried = process::fork(|| {
        drop(Group::open(Scope::Thread, &LIST[..USER]));
        0
    });
    match tried.and_then(|mut child| child.wait()) {
        Ok(Ended::Signal(_)) => Err(NoPmu {
            is_refused: true,
            why: "perf_event_open(2): a seccomp filter ends the process that calls it".to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Mutex;

    use super::*;

    pub struct Fake(pub Mutex<Vec<Reading>>);

    impl Reads for Fake {
        fn read(&self) -> Option<Reading> {
            let mut readings = self.0.lock().expect("no panic");
            (!readings.is_empty()).then(|| readings.remove(0))
        }
    }

    pub fn reading(enabled: u64, running: u64, counts: &[u64]) -> Reading {
        Reading { enabled, running, counts: counts.to_vec() }
    }

    pub fn fake(events: usize, scope: Scope, readings: Vec<Reading>) -> Pmu {
        Pmu { group: Box::new(Fake(Mutex::new(readings))), events, scope, opener: opener() }
    }

    fn counting() -> Fake {
        Fake(Mutex::new(vec![reading(9, 9, &[1; EVENTS])]))
    }

    #[test]
    fn the_largest_group_that_counts_is_taken_of_the_processor_first() {
        let error = io::Error::from_raw_os_error;
        let all = find(Some(3), true, |_, _| Ok(counting())).expect("a group");
        assert_eq!((all.events, all.scope), (EVENTS, Scope::Processor(3)));
        // Six events open and never count; four do.
        let idle = || Fake(Mutex::new(vec![reading(9, 0, &[0; EVENTS])]));
        let four =
            find(Some(3), false, |_, events| Ok(if events.len() == EVENTS { idle() } else { counting() }));
        assert_eq!(four.map(|pmu| pmu.events).ok(), Some(WITHOUT_MISSES));
        // perf_event_paranoid=2: ring 3 of the own thread.
        let user = |scope: Scope, events: &[Event]| match (scope, events.len()) {
            (Scope::Thread, USER) => Ok(counting()),
            _ => Err(error(libc::EACCES)),
        };
        let own = find(Some(3), false, user).expect("a group");
        assert_eq!((own.events, own.scope, own.counts_kernel()), (USER, Scope::Thread, false));
        let none = find(Some(3), true, user).err().expect("none where threads switch");
        assert!(none.is_refused && none.why.contains("context switches"), "{none:?}");
        let none = find(None, false, |_, _| Ok(idle())).err().expect("no counter is free");
        assert!(none.why.contains("watchdog"), "{none:?}");
    }

    #[test]
    fn each_reason_is_named() {
        let of = |error, paranoid, is_filtered, has_pmu| {
            reason_of(&io::Error::from_raw_os_error(error), paranoid, is_filtered, has_pmu)
        };
        for (none, is_refused, part) in [
            (of(libc::EACCES, Some("3\n"), false, Some(true)), true, "kernel.perf_event_paranoid is 3,"),
            (of(libc::EPERM, Some("2"), true, Some(true)), true, "a seccomp filter forbids it"),
            (of(libc::ENOSYS, None, false, None), false, "CONFIG_PERF_EVENTS"),
            (of(libc::ENOENT, Some("2"), false, Some(false)), false, "no PMU"),
            (of(libc::EOPNOTSUPP, Some("2"), false, None), false, "no PMU"),
            (of(libc::EMFILE, Some("2"), false, Some(true)), false, "perf_event_open(2): "),
        ] {
            assert!(none.is_refused == is_refused && none.why.contains(part), "{none:?}");
        }
    }

    #[test]
    fn the_group_of_a_thread_counts_no_other_thread_and_no_process() {
        let pmu = fake(USER, Scope::Thread, Vec::new());
        assert!(pmu.counts(Of::Thread) && !pmu.counts(Of::Process));
        thread::scope(|scope| {
            scope.spawn(|| assert!(!pmu.counts(Of::Thread)));
        });
        let elsewhere = cpu::current().map_or(0, |cpu| cpu + 1);
        assert!(!fake(EVENTS, Scope::Processor(elsewhere), Vec::new()).counts(Of::Process));
    }

    #[test]
    fn what_opens_here_counts_and_what_does_not_has_a_reason() {
        match find(None, false, Group::open) {
            Err(none) => {
                assert!(!none.why.is_empty());
                eprintln!("skipped: {}", none.why);
            }
            Ok(pmu) => {
                let before = pmu.read().expect("a reading");
                (0..100_000_u64).for_each(|number| {
                    std::hint::black_box(number);
                });
                let counted = pmu.read().expect("a reading").since(&before);
                assert!(!counted.is_whole || counted.counts[1] >= 100_000, "{counted:?}");
            }
        }
    }
}
