//! Shared results: memory that the engine shares with a bench process. Orders go in, samples and reasons come out,
//! and the records stay readable however the process ends.
//!
//! The memory is an array of 64-bit words, each read and written atomically, so that a child with wild writes can
//! make the parent read a wrong number but never cause undefined behaviour.

use std::fs::{File, Permissions};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::runner::Counters;

/// Greatest number of instances of a group.
pub const MAX_INSTANCES: usize = 1024;
/// Greatest number of rounds of a process.
pub const MAX_ROUNDS: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"tollgat1");

// Offsets in words.
const MAGIC_AT: usize = 0;
const CURRENT_INSTANCE: usize = 1;
const BEATS: usize = 2;
const ROUNDS: usize = 3;
const CLOCK: usize = 4; // kind, hz, source
const PINNED: usize = 7;
const TEXT: usize = 8; // of the clock
const TEXT_WORDS: usize = 64;
const ORDER: usize = TEXT + TEXT_WORDS;
const ORDER_WORDS: usize = 1 << 16;
const INSTANCES: usize = ORDER + ORDER_WORDS;
const INSTANCE_TEXT: usize = 8 + EVENTS; // after state, cost, whole, setup, operations, most, experiment, fixture, events
const INSTANCE_WORDS: usize = INSTANCE_TEXT + TEXT_WORDS;
/// Counts of a batch: the benchmark's events, and its counters.
const EVENTS: usize = 1 + size_of::<Counters>() / 8;
/// Words for each instance: its state, and one slot for each round.
const EACH_INSTANCE: usize = INSTANCE_WORDS + MAX_ROUNDS;

/// No instance is running.
pub const NO_INSTANCE: u64 = u64::MAX;

/// Shared memory for some instances. Untouched pages take no memory.
pub struct SharedResults {
    words: Arc<Mapping>,
    /// Number of instances.
    instances: usize,
    /// None where only a fork can share the memory.
    file: Option<OwnedFd>,
}

/// The state of an instance in a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceState {
    /// The child did not reach it.
    Untried,
    /// It runs.
    Ready(Box<Readiness>),
    /// It cannot exist here.
    Skipped(String),
    /// It failed.
    Failed(String),
}

/// The calibration of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Time of one iteration of its loop.
    pub cost: Duration,
    /// The same, with the untimed parts of a batch.
    pub whole: Duration,
    /// Time of its preparation.
    pub setup: Duration,
    /// Operations in one iteration.
    pub ops: u64,
    /// Greatest number of iterations in a batch.
    pub most: u64,
    /// A number for its experiment; 0 for none.
    pub experiment: u64,
    /// A number for its fixture; 0 for none.
    pub fixture: u64,
    /// One note a line.
    pub notes: String,
}

/// Counts of a batch: the benchmark's events, then its counters.
pub type Events = [u64; EVENTS];

/// One batch in the matrix of rounds and instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Not run.
    Empty,
    /// Ticks of the batch less those of its empty loop.
    Kept(i64),
    /// The thread was switched out or migrated.
    Discarded,
}

impl SharedResults {
    /// New memory for so many instances, in a memfd where the kernel has them, so that it survives an exec.
    ///
    /// # Errors
    /// More than [`MAX_INSTANCES`]; errors of memfd_create(2) and mmap(2).
    pub fn new(instances: usize) -> io::Result<Self> {
        if instances > MAX_INSTANCES {
            return Err(io::Error::other("too many instances for one process"));
        }
        let words = INSTANCES + instances * EACH_INSTANCE;
        // SAFETY: the name is a C string; the flags are plain.
        let descriptor = unsafe { libc::memfd_create(c"tollgate-shared".as_ptr(), libc::MFD_CLOEXEC) };
        let file = (descriptor >= 0).then(|| {
            // SAFETY: the descriptor is new and has no other owner.
            unsafe { OwnedFd::from_raw_fd(descriptor) }
        });
        let file = file.filter(|file| {
            let file = file.try_clone().map(File::from);
            // It is made with all permissions (mm/memfd.c). A link to /proc/self/fd in another user's directory leads a process with
            // that user's file access to it, and must not open it.
            let settle = |file: File| {
                file.set_permissions(Permissions::from_mode(0o600))?;
                file.set_len((words * 8) as u64)
            };
            file.and_then(settle).is_ok()
        });
        let words = Arc::new(Mapping::new(file.as_ref(), words)?);
        words[MAGIC_AT].store(MAGIC, Relaxed);
        words[CURRENT_INSTANCE].store(NO_INSTANCE, Relaxed);
        Ok(Self { words, instances, file })
    }

    /// The shared results that another process made, from their descriptor.
    ///
    /// # Errors
    /// When the descriptor is not such a file.
    pub fn open(file: OwnedFd) -> io::Result<Self> {
        let file = File::from(file);
        let wrong_size = || io::Error::other("not tollgate's shared results: wrong size");
        let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| wrong_size())?;
        let of_instances = (bytes / 8).checked_sub(INSTANCES).ok_or_else(wrong_size)?;
        let instances = of_instances / EACH_INSTANCE;
        if bytes % 8 != 0 || of_instances % EACH_INSTANCE != 0 || instances > MAX_INSTANCES {
            return Err(wrong_size());
        }
        let file = OwnedFd::from(file);
        let words = Arc::new(Mapping::new(Some(&file), bytes / 8)?);
        if words[MAGIC_AT].load(Relaxed) != MAGIC {
            return Err(io::Error::other("not tollgate's shared results: wrong magic"));
        }
        Ok(Self { words, instances, file: Some(file) })
    }

    /// The descriptor to hand to another program.
    pub fn descriptor(&self) -> Option<i32> {
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Writes the order, as text.
    ///
    /// # Errors
    /// When it is longer than 64 KiB less 8 bytes.
    pub fn set_order(&self, order: &str) -> io::Result<()> {
        if order.len() > (ORDER_WORDS - 1) * 8 {
            return Err(io::Error::other("too many instances for one process"));
        }
        self.write_text(ORDER, ORDER_WORDS, order);
        Ok(())
    }

    /// The order.
    pub fn order(&self) -> String {
        self.read_text(ORDER, ORDER_WORDS)
    }

    /// Records which instance runs, and counts an event.
    pub fn enter(&self, instance: usize) {
        self.words[CURRENT_INSTANCE].store(instance as u64, Relaxed);
        self.beat();
    }

    /// Records that no instance runs, and counts an event.
    pub fn leave(&self) {
        self.words[CURRENT_INSTANCE].store(NO_INSTANCE, Relaxed);
        self.beat();
    }

    /// Counts an event, as a sign of progress.
    pub fn beat(&self) {
        self.words[BEATS].fetch_add(1, Relaxed);
    }

    /// A handle that counts progress, for an instance whose batch takes long.
    pub fn heartbeat(&self) -> Heartbeat {
        Heartbeat(Arc::clone(&self.words))
    }

    /// Events so far.
    pub fn beats(&self) -> u64 {
        self.words[BEATS].load(Relaxed)
    }

    /// The instance that runs, or ran when the process ended.
    pub fn current_instance(&self) -> Option<usize> {
        let instance = self.words[CURRENT_INSTANCE].load(Relaxed);
        (instance < self.instances as u64).then_some(instance as usize)
    }

    /// Ends a round.
    pub fn finish_round(&self) {
        self.words[ROUNDS].fetch_add(1, Relaxed);
    }

    /// Complete rounds.
    pub fn rounds(&self) -> usize {
        (self.words[ROUNDS].load(Relaxed) as usize).min(MAX_ROUNDS)
    }

    /// Recorded rounds after the process has ended: the complete ones, or an incomplete first one.
    pub fn rounds_recorded(&self) -> usize {
        let begun = || (0..self.instances).any(|instance| self.slot(0, instance) != Slot::Empty);
        if self.rounds() == 0 && begun() { 1 } else { self.rounds() }
    }

    /// Records a batch.
    pub fn set_slot(&self, round: usize, instance: usize, slot: Slot) {
        if round >= MAX_ROUNDS || instance >= self.instances {
            return;
        }
        // The two low bits hold the kind; ticks of a batch are far below 2^61.
        let word = match slot {
            Slot::Empty => 0,
            Slot::Discarded => 2,
            Slot::Kept(ticks) => (ticks << 2) as u64 | 1,
        };
        self.words[self.slot_at(round, instance)].store(word, Relaxed);
    }

    /// A recorded batch.
    pub fn slot(&self, round: usize, instance: usize) -> Slot {
        if round >= MAX_ROUNDS || instance >= self.instances {
            return Slot::Empty;
        }
        let word = self.words[self.slot_at(round, instance)].load(Relaxed);
        match word & 3 {
            1 => Slot::Kept(word as i64 >> 2),
            2 => Slot::Discarded,
            _ => Slot::Empty,
        }
    }

    /// Rounds lie one after the other, so that few rounds need few pages.
    fn slot_at(&self, round: usize, instance: usize) -> usize {
        INSTANCES + self.instances * INSTANCE_WORDS + round * self.instances + instance
    }

    /// Records the state of `instance`.
    pub fn set_instance(&self, instance: usize, state: &InstanceState) {
        if instance >= self.instances {
            return;
        }
        let at = INSTANCES + instance * INSTANCE_WORDS;
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (code, numbers, text) = match state {
            InstanceState::Untried => (0, [0; 7], ""),
            InstanceState::Ready(ready) => {
                let [cost, whole, setup] = [ready.cost, ready.whole, ready.setup].map(nanoseconds);
                (
                    1,
                    [cost, whole, setup, ready.ops, ready.most, ready.experiment, ready.fixture],
                    ready.notes.as_str(),
                )
            }
            InstanceState::Skipped(why) => (2, [0; 7], why.as_str()),
            InstanceState::Failed(error) => (3, [0; 7], error.as_str()),
        };
        self.write_text(at + INSTANCE_TEXT, TEXT_WORDS, text);
        for (offset, number) in numbers.into_iter().enumerate() {
            self.words[at + 1 + offset].store(number, Relaxed);
        }
        self.words[at].store(code, Relaxed);
    }

    /// The state of `instance`.
    pub fn instance(&self, instance: usize) -> InstanceState {
        if instance >= self.instances {
            return InstanceState::Untried;
        }
        let at = INSTANCES + instance * INSTANCE_WORDS;
        let text = self.read_text(at + INSTANCE_TEXT, TEXT_WORDS);
        match self.words[at].load(Relaxed) {
            1 => {
                let word = |offset: usize| self.words[at + offset].load(Relaxed);
                // No batch takes an hour: a larger number comes from a wild write, and must not overflow a sum.
                let time = |offset: usize| Duration::from_nanos(word(offset)).min(Duration::from_secs(3600));
                InstanceState::Ready(Box::new(Readiness {
                    cost: time(1),
                    whole: time(2),
                    setup: time(3),
                    // Likewise no loop has more operations.
                    ops: word(4).clamp(1, 1 << 20),
                    most: word(5).max(1),
                    experiment: word(6),
                    fixture: word(7),
                    notes: text,
                }))
            }
            2 => InstanceState::Skipped(text),
            3 => InstanceState::Failed(text),
            _ => InstanceState::Untried,
        }
    }

    /// Adds to the counts of an instance's kept batches.
    pub fn add_events(&self, instance: usize, events: Events) {
        for (word, number) in self.events_of(instance).iter().zip(events) {
            word.fetch_add(number, Relaxed);
        }
    }

    /// Subtracts the counts of a batch that is discarded later.
    pub fn take_back_events(&self, instance: usize, events: Events) {
        self.add_events(instance, events.map(u64::wrapping_neg));
    }

    /// The counts of an instance's kept batches.
    pub fn events(&self, instance: usize) -> Events {
        let mut events = Events::default();
        for (number, word) in events.iter_mut().zip(self.events_of(instance)) {
            *number = word.load(Relaxed);
        }
        events
    }

    /// The words of those counts; empty for an instance that does not exist.
    fn events_of(&self, instance: usize) -> &[AtomicU64] {
        let at = INSTANCES + instance * INSTANCE_WORDS + INSTANCE_TEXT;
        if instance < self.instances { &self.words[at - EVENTS..at] } else { &[] }
    }

    /// Records the usable clock: a code, its frequency, the code of the frequency's source, and the reason against
    /// the TSC.
    pub fn set_clock(&self, clock: [u64; 3], why: &str) {
        self.write_text(TEXT, TEXT_WORDS, why);
        for (offset, value) in clock.into_iter().enumerate().rev() {
            self.words[CLOCK + offset].store(value, Relaxed);
        }
    }

    /// The record of [`SharedResults::set_clock`]; zeros before.
    pub fn clock(&self) -> ([u64; 3], String) {
        let word = |offset: usize| self.words[CLOCK + offset].load(Relaxed);
        ([word(0), word(1), word(2)], self.read_text(TEXT, TEXT_WORDS))
    }

    /// Records the error number of pinning the process, or 0.
    pub fn set_pinned(&self, error: i32) {
        self.words[PINNED].store(error as u64, Relaxed);
    }

    /// The record of [`SharedResults::set_pinned`].
    pub fn pinned(&self) -> i32 {
        self.words[PINNED].load(Relaxed) as i32
    }

    /// The first word holds the length in bytes; longer text is cut at a character boundary.
    fn write_text(&self, at: usize, words: usize, text: &str) {
        let mut length = text.len().min((words - 1) * 8);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        for (word, chunk) in self.words[at + 1..at + words].iter().zip(text.as_bytes()[..length].chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Relaxed);
        }
        self.words[at].store(length as u64, Relaxed);
    }

    fn read_text(&self, at: usize, words: usize) -> String {
        let length = (self.words[at].load(Relaxed) as usize).min((words - 1) * 8);
        let mut bytes: Vec<u8> = self.words[at + 1..at + 1 + length.div_ceil(8)]
            .iter()
            .flat_map(|word| word.load(Relaxed).to_le_bytes())
            .collect();
        bytes.truncate(length);
        String::from_utf8_lossy(&bytes)
            .chars()
            .map(|c| if c.is_control() && c != '\n' { '?' } else { c })
            .collect()
    }
}

/// Tells the parent that its child makes progress. It keeps the memory mapped for as long as it lives.
#[derive(Clone)]
pub struct Heartbeat(Arc<Mapping>);

impl Heartbeat {
    /// Counts one more event.
    pub fn beat(&self) {
        self.0[BEATS].fetch_add(1, Relaxed);
    }
}

/// Words in shared memory, unmapped with the last owner.
struct Mapping {
    address: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory belongs to the process, not to a thread, and every access to it is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps so many words of `file`, or of new memory that forks share.
    fn new(file: Option<&OwnedFd>, words: usize) -> io::Result<Self> {
        let (flags, descriptor) = match file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                words * 8,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_NORESERVE,
                descriptor,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { address, words })
    }
}

impl Deref for Mapping {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, has this length and holds zeros or another process's words; it stays
        // until `drop`, and every access to it in any process is atomic.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` made the mapping with this length, and references to it borrow from this owner.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.words * 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_and_instances_are_read_as_written() {
        let shared = SharedResults::new(MAX_INSTANCES).expect("shared memory");
        for slot in [Slot::Kept(0), Slot::Kept(-5), Slot::Kept(1 << 60), Slot::Discarded, Slot::Empty] {
            shared.set_slot(7, 3, slot);
            assert_eq!(shared.slot(7, 3), slot);
        }
        for state in [
            InstanceState::Ready(Box::new(Readiness {
                cost: Duration::from_nanos(77),
                whole: Duration::from_micros(5),
                setup: Duration::from_millis(3),
                ops: 64,
                most: u64::MAX,
                experiment: 9,
                fixture: 0,
                notes: "sysenter".into(),
            })),
            InstanceState::Skipped("no IA-32 emulation".into()),
            InstanceState::Failed("ü".repeat(100)),
            InstanceState::Untried,
        ] {
            shared.set_instance(MAX_INSTANCES - 1, &state);
            assert_eq!(shared.instance(MAX_INSTANCES - 1), state);
        }
        shared.add_events(3, [5, 1, 0, 0, 0]);
        shared.add_events(3, [9, 0, 7, 0, 3]);
        shared.take_back_events(3, [2, 0, 1, 0, 3]);
        assert_eq!(shared.events(3), [12, 1, 6, 0, 0]);
        assert_eq!((shared.events(4), shared.events(MAX_INSTANCES)), (Events::default(), Events::default()));
        assert_eq!((shared.rounds(), shared.rounds_recorded()), (0, 0));
        shared.set_slot(0, 5, Slot::Discarded);
        assert_eq!((shared.rounds(), shared.rounds_recorded()), (0, 1));
        shared.set_slot(MAX_ROUNDS, MAX_INSTANCES, Slot::Discarded);
        assert_eq!(shared.slot(MAX_ROUNDS, MAX_INSTANCES), Slot::Empty);
    }

    #[test]
    fn a_heartbeat_outlives_its_shared_results() {
        let shared = SharedResults::new(1).expect("shared memory");
        let heartbeat = shared.heartbeat();
        heartbeat.beat();
        assert_eq!(shared.beats(), 1);
        drop(shared);
        heartbeat.beat();
        assert_eq!(heartbeat.0[BEATS].load(Relaxed), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_kept_or_cut_at_a_character_boundary(text in "\\PC{0,400}") {
            let shared = SharedResults::new(MAX_INSTANCES).expect("shared memory");
            shared.set_instance(0, &InstanceState::Failed(text.clone()));
            let InstanceState::Failed(back) = shared.instance(0) else { panic!("state changed") };
            prop_assert!(text.starts_with(&back) && (back == text || back.len() > 240));
        }

        #[test]
        fn wild_writes_are_read_without_panic(words in proptest::collection::vec(any::<u64>(), 200)) {
            let shared = SharedResults::new(MAX_INSTANCES).expect("shared memory");
            for (index, word) in words.iter().enumerate() {
                shared.words[(INSTANCES + index) % shared.words.len()].store(*word, Relaxed);
                shared.words[index % ORDER].store(*word, Relaxed);
            }
            for instance in 0..8 {
                shared.instance(instance);
            }
            shared.clock();
            shared.current_instance();
            prop_assert!(shared.rounds() <= MAX_ROUNDS);
        }
    }
}
