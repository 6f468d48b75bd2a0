//! Memory that the engine shares with a bench process. The task goes in, results come out, and they outlive the process.
//!
//! Samples and counts are typed records of atomic words. So a child with wild writes can make the parent read a wrong number, but
//! never cause undefined behaviour. All else is JSON.

use std::fs::{File, Permissions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{io, mem::offset_of, os::unix::fs::PermissionsExt, sync::Arc};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tollgate_os::memfd;

use crate::loops::events::{self, NoPmu};
use crate::loops::instance::Readiness;
use crate::machine::affinity::Observed;
use crate::machine::clock::{Clock, FrequencySource};
use crate::{
    loops::heartbeat::Heartbeat, loops::runner::Counters, machine::mapping::Mapping, refusal::Result,
};

/// The most instances of a group.
pub const MAX_INSTANCES: usize = 2048;
pub const MAX_ROUNDS: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"tollgat2");

const NO_INSTANCE: u64 = u64::MAX;

/// The start of the memory. Then come the records of all instances, and the samples round by round: few rounds need few pages.
#[repr(C)]
struct Head {
    magic: AtomicU64,
    current: AtomicU64,
    beats: AtomicU64,
    rounds: AtomicU64,
    report: Json<{ 1 << 9 }>,
    task: Json<{ 1 << 16 }>,
}

#[repr(C)]
struct WorkerPage {
    events: [AtomicU64; EVENTS],
    state: Json<{ 1 << 10 }>,
}

#[repr(C)]
struct Sample {
    kind: AtomicU64,
    /// Ticks of the batch less those of its empty loop.
    ticks: AtomicI64,
}

#[repr(C)]
struct Json<const WORDS: usize> {
    /// In bytes; 0 while there is no value.
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Json<WORDS> {
    fn write(&self, value: &impl Serialize) -> bool {
        let Some(json) = serde_json::to_vec(value).ok().filter(|json| json.len() <= WORDS * 8) else {
            return false;
        };
        // A process that is killed during the write leaves no value.
        self.length.store(0, Release);
        for (word, chunk) in self.words.iter().zip(json.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Release);
        }
        self.length.store(json.len() as u64, Release);
        true
    }

    fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let length = usize::try_from(self.length.load(Acquire)).ok()?;
        let words = self.words.get(..length.div_ceil(8))?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        serde_json::from_slice(&bytes[..length]).ok()
    }
}

/// Shared memory for some instances. Untouched pages take no memory.
pub struct SharedResults {
    memory: Arc<Mapping>,
    instances: usize,
    /// `None` if only a fork can share the memory.
    file: Option<OwnedFd>,
}

/// The findings of a bench process before its task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The time stamp counter with the source of its frequency, or the reason against it. `None` if it was not asked for.
    pub clock: Option<Result<(Clock, FrequencySource), String>>,
    /// [`Clock::step`] of that clock, or of the kernel's; `None` if the clock was not asked for, or counts instructions.
    #[serde(default)]
    pub step: Option<u64>,
    pub pin_error: Option<i32>,
    /// The observation of pinned threads; `None` if it was not asked for, or could not be made.
    pub affinity: Option<Observed>,
    /// The hardware events that are counted, or why none are; `None` if it was not asked for.
    #[serde(default)]
    pub pmu: Option<Result<String, NoPmu>>,
}

/// The calibration of an instance in a child, or why it cannot be measured. `None` if the child did not reach it.
pub type InstanceState = Option<Result<Readiness>>;

/// Counts of a batch: the benchmark's events, its counters, then the counts next to any time.
pub type Events = [u64; EVENTS];

const EVENTS: usize = OWN_EVENTS + events::WORDS;

pub(crate) const OWN_EVENTS: usize = 1 + size_of::<Counters>() / 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Empty,
    Kept(i64),
    /// The thread was switched out or migrated.
    Discarded,
}

const fn size(instances: usize) -> usize {
    size_of::<Head>() + instances * (size_of::<WorkerPage>() + MAX_ROUNDS * size_of::<Sample>())
}

impl SharedResults {
    /// Makes memory for at most [`MAX_INSTANCES`] instances, in a memfd if the kernel has them, so that it survives an exec.
    pub fn new(instances: usize) -> io::Result<Self> {
        if instances > MAX_INSTANCES {
            return Err(io::Error::other("too many instances for one process"));
        }
        let file = memfd::create("tollgate-shared").ok().map(OwnedFd::from);
        let file = file.filter(|file| {
            let file = file.try_clone().map(File::from);
            // A memfd has all permissions (mm/memfd.c). A process with another user's file access must not open it through a link to
            // /proc/self/fd in that user's directory.
            let settle = |file: File| {
                file.set_permissions(Permissions::from_mode(0o600))?;
                file.set_len(size(instances) as u64)
            };
            file.and_then(settle).is_ok()
        });
        let shared = Self { memory: map(file.as_ref(), instances)?, instances, file };
        shared.head().magic.store(MAGIC, Relaxed);
        shared.head().current.store(NO_INSTANCE, Relaxed);
        Ok(shared)
    }

    pub fn open(file: OwnedFd) -> io::Result<Self> {
        let file = File::from(file);
        let bytes = file.metadata()?.len();
        let instances = (0..=MAX_INSTANCES).find(|&instances| size(instances) as u64 == bytes);
        let wrong_size = || io::Error::other("not tollgate's shared results: wrong size");
        let (instances, file) = (instances.ok_or_else(wrong_size)?, OwnedFd::from(file));
        let shared = Self { memory: map(Some(&file), instances)?, instances, file: Some(file) };
        if shared.head().magic.load(Relaxed) != MAGIC {
            return Err(io::Error::other("not tollgate's shared results: wrong magic"));
        }
        Ok(shared)
    }

    pub fn descriptor(&self) -> Option<i32> {
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is page-aligned, begins with zeros or another process's words, and outlives this; all access is atomic.
        unsafe { &*self.memory.address().cast() }
    }

    fn records(&self) -> &[WorkerPage] {
        // SAFETY: as in `head`; `map` made room for these after it.
        unsafe {
            let first = self.memory.address().add(size_of::<Head>()).cast();
            std::slice::from_raw_parts(first, self.instances)
        }
    }

    fn samples(&self) -> &[Sample] {
        // SAFETY: as in `head`; `map` made room for these after the records.
        unsafe {
            let first = self.records().as_ptr().add(self.instances).cast();
            std::slice::from_raw_parts(first, self.instances * MAX_ROUNDS)
        }
    }

    /// Writes the task, of at most 512 KiB.
    pub fn set_task(&self, task: &impl Serialize) -> io::Result<()> {
        let too_long = || io::Error::other("too many instances for one process");
        self.head().task.write(task).then_some(()).ok_or_else(too_long)
    }

    pub fn task<T: DeserializeOwned>(&self) -> Option<T> {
        self.head().task.read()
    }

    pub fn set_report(&self, report: &Report) {
        self.head().report.write(report);
    }

    pub fn report(&self) -> Report {
        self.head().report.read().unwrap_or_default()
    }

    pub fn enter(&self, instance: usize) {
        self.head().current.store(instance as u64, Relaxed);
        self.beat();
    }

    pub fn leave(&self) {
        self.head().current.store(NO_INSTANCE, Relaxed);
        self.beat();
    }

    pub fn beat(&self) {
        self.head().beats.fetch_add(1, Relaxed);
    }

    pub fn heartbeat(&self) -> Heartbeat {
        // SAFETY: the word is atomic and lies in the head.
        unsafe { Heartbeat::at(Arc::clone(&self.memory), offset_of!(Head, beats)) }
    }

    pub fn beats(&self) -> u64 {
        self.head().beats.load(Relaxed)
    }

    /// The instance that runs, or ran when the process ended.
    pub fn current_instance(&self) -> Option<usize> {
        let instance = self.head().current.load(Relaxed);
        (instance < self.instances as u64).then_some(instance as usize)
    }

    pub fn finish_round(&self) {
        self.head().rounds.fetch_add(1, Relaxed);
    }

    pub fn begin_round(&self, round: usize) {
        self.head().rounds.fetch_max(round as u64 + 1, Relaxed);
    }

    pub fn rounds(&self) -> usize {
        (self.head().rounds.load(Relaxed) as usize).min(MAX_ROUNDS)
    }

    /// Rounds that are recorded after the process has ended: the complete ones, or an incomplete first one.
    pub fn rounds_recorded(&self) -> usize {
        let begun = || (0..self.instances).any(|instance| self.slot(0, instance) != Slot::Empty);
        if self.rounds() == 0 && begun() { 1 } else { self.rounds() }
    }

    pub fn set_slot(&self, round: usize, instance: usize, slot: Slot) {
        let Some(sample) = self.sample(round, instance) else { return };
        let (kind, ticks) = match slot {
            Slot::Empty => (0, 0),
            Slot::Kept(ticks) => (1, ticks),
            Slot::Discarded => (2, 0),
        };
        sample.ticks.store(ticks, Relaxed);
        sample.kind.store(kind, Release);
    }

    pub fn slot(&self, round: usize, instance: usize) -> Slot {
        let Some(sample) = self.sample(round, instance) else { return Slot::Empty };
        match sample.kind.load(Acquire) {
            1 => Slot::Kept(sample.ticks.load(Relaxed)),
            2 => Slot::Discarded,
            _ => Slot::Empty,
        }
    }

    fn sample(&self, round: usize, instance: usize) -> Option<&Sample> {
        let exists = round < MAX_ROUNDS && instance < self.instances;
        exists.then(|| &self.samples()[round * self.instances + instance])
    }

    /// Records the state of `instance`. If it is too long, the notes and the end of the reason are dropped.
    pub fn set_instance(&self, instance: usize, state: &Result<Readiness>) {
        /// Characters, each of which takes at most six bytes in JSON.
        const MOST: usize = 1 << 10;
        let Some(record) = self.records().get(instance) else { return };
        if record.state.write(state) {
            return;
        }
        let shorter = match state.clone() {
            Ok(ready) => Ok(Readiness { notes: Vec::new(), ..ready }),
            Err(mut refusal) => {
                let why = refusal.why_mut();
                *why = why.chars().take(MOST).collect();
                Err(refusal)
            }
        };
        record.state.write(&shorter);
    }

    pub fn instance(&self, instance: usize) -> InstanceState {
        let plain = |text: &mut String| {
            *text = text.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
        };
        let mut state: Result<Readiness> = self.records().get(instance)?.state.read()?;
        match &mut state {
            Ok(ready) => ready.notes.iter_mut().for_each(plain),
            Err(refusal) => plain(refusal.why_mut()),
        }
        Some(state)
    }

    pub fn add_events(&self, instance: usize, events: Events) {
        let Some(record) = self.records().get(instance) else { return };
        for (word, number) in record.events.iter().zip(events) {
            word.fetch_add(number, Relaxed);
        }
    }

    /// Subtracts the counts of a batch that is discarded later.
    pub fn take_back_events(&self, instance: usize, events: Events) {
        self.add_events(instance, events.map(u64::wrapping_neg));
    }

    pub fn events(&self, instance: usize) -> Events {
        let of = |record: &WorkerPage| std::array::from_fn(|which| record.events[which].load(Relaxed));
        self.records().get(instance).map_or(Events::default(), of)
    }
}

fn map(file: Option<&OwnedFd>, instances: usize) -> io::Result<Arc<Mapping>> {
    let (kind, descriptor) = match file {
        Some(file) => (0, file.as_raw_fd()),
        None => (libc::MAP_ANONYMOUS, -1),
    };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | kind;
    Mapping::new(size(instances), access, flags, descriptor, 0).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::refusal::Refusal;
    use proptest::prelude::*;

    #[test]
    fn slots_and_instances_are_read_as_written() {
        let shared = SharedResults::new(MAX_INSTANCES).expect("shared memory");
        for slot in [Slot::Kept(0), Slot::Kept(-5), Slot::Kept(i64::MAX), Slot::Discarded, Slot::Empty] {
            shared.set_slot(7, 3, slot);
            assert_eq!(shared.slot(7, 3), slot);
        }
        assert_eq!(shared.instance(MAX_INSTANCES - 1), None);
        for state in [
            Ok(Readiness {
                cost: Duration::from_nanos(77),
                most: u64::MAX,
                experiment: Some("fork with Plain".into()),
                notes: vec!["sysenter".into(), "ü".repeat(100)],
                ..Readiness::default()
            }),
            Err(Refusal::Skip("no IA-32 emulation".into())),
            Err(Refusal::Fail("ü".repeat(100))),
        ] {
            shared.set_instance(MAX_INSTANCES - 1, &state);
            assert_eq!(shared.instance(MAX_INSTANCES - 1), Some(state));
        }
        let events = |first: [u64; 4]| {
            let mut events = Events::default();
            (events[0], events[1], events[2], events[EVENTS - 1]) = first.into();
            events
        };
        shared.add_events(3, events([5, 1, 0, 0]));
        shared.add_events(3, events([9, 0, 7, 3]));
        shared.take_back_events(3, events([2, 0, 1, 3]));
        assert_eq!(shared.events(3), events([12, 1, 6, 0]));
        assert_eq!((shared.events(4), shared.events(MAX_INSTANCES)), (Events::default(), Events::default()));
        assert_eq!((shared.rounds(), shared.rounds_recorded()), (0, 0));
        shared.set_slot(0, 5, Slot::Discarded);
        assert_eq!((shared.rounds(), shared.rounds_recorded()), (0, 1));
        shared.set_slot(MAX_ROUNDS, MAX_INSTANCES, Slot::Discarded);
        assert_eq!(shared.slot(MAX_ROUNDS, MAX_INSTANCES), Slot::Empty);
    }

    #[test]
    fn the_clock_and_the_pinning_are_reported() {
        let shared = SharedResults::new(0).expect("shared memory");
        assert_eq!(shared.report(), Report::default());
        let clock = Some(Ok((Clock::Tsc { hz: 3 }, FrequencySource::Stated)));
        let over = Duration::from_millis(40);
        let affinity = Some(Observed { pinned: 1, ran_on: [Some(1), None], quick: 9, over });
        let pmu = Some(Err(NoPmu { is_refused: true, why: "EPERM".to_owned() }));
        let report = Report { clock, pin_error: Some(libc::EINVAL), affinity, pmu, step: Some(26) };
        shared.set_report(&report);
        assert_eq!(shared.report(), report);
    }

    #[test]
    fn what_another_process_made_is_opened_by_its_size_and_magic() {
        let shared = SharedResults::new(3).expect("shared memory");
        let Some(file) = &shared.file else { return eprintln!("skipped: no memfd_create(2)") };
        shared.set_slot(9, 2, Slot::Kept(-7));
        let copy = || File::from(file.try_clone().expect("a descriptor"));
        assert_eq!(SharedResults::open(copy().into()).expect("the same").slot(9, 2), Slot::Kept(-7));
        shared.head().magic.store(1, Relaxed);
        assert!(SharedResults::open(copy().into()).is_err());
        copy().set_len(size(3) as u64 - 8).expect("shorter");
        assert!(SharedResults::open(copy().into()).is_err());
    }

    #[test]
    fn a_heartbeat_outlives_its_shared_results() {
        let shared = SharedResults::new(1).expect("shared memory");
        let (heartbeat, memory) = (shared.heartbeat(), Arc::clone(&shared.memory));
        heartbeat.beat();
        assert_eq!(shared.beats(), 1);
        drop(shared);
        heartbeat.beat();
        let shared = SharedResults { memory, instances: 1, file: None };
        assert_eq!(shared.beats(), 2);
        Heartbeat::default().beat();
    }

    #[test]
    fn control_characters_of_a_reason_are_not_shown() {
        let shared = SharedResults::new(1).expect("shared memory");
        shared.set_instance(0, &Err(Refusal::Fail("a\u{1b}[1mb\nc".into())));
        assert_eq!(shared.instance(0), Some(Err(Refusal::Fail("a?[1mb\nc".into()))));
    }

    proptest! {
        #[test]
        fn any_reason_is_kept_or_cut_at_a_character_boundary(text in "\\PC{0,400}", times in 1_usize..30) {
            let text = text.repeat(times);
            let shared = SharedResults::new(1).expect("shared memory");
            shared.set_instance(0, &Err(Refusal::Fail(text.clone())));
            let Some(Err(Refusal::Fail(back))) = shared.instance(0) else { panic!("state changed") };
            prop_assert!(text.starts_with(&back) && (back == text || back.len() >= 1024));
        }

        #[test]
        fn wild_writes_are_read_without_panic(words in proptest::collection::vec(any::<u64>(), 200)) {
            let shared = SharedResults::new(MAX_INSTANCES).expect("shared memory");
            let all = || (0..).map(|at| {
                // SAFETY: the first words of the mapping, to which every access is atomic.
                unsafe { &*shared.memory.address().cast::<AtomicU64>().add(at) }
            });
            let starts = [0, size_of::<Head>() / 8, offset_of!(Head, report) / 8];
            for start in starts {
                all().skip(start).zip(&words).for_each(|(at, word)| at.store(*word, Relaxed));
                (0..8).for_each(|instance| drop(shared.instance(instance)));
                shared.report();
                shared.current_instance();
                prop_assert!(shared.rounds() <= MAX_ROUNDS);
            }
        }
    }
}
