//! The maps of a trace: their sizes for a request, and their initial contents.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::kernel::Kernel;
use super::layout::{
    CALLS, Doing, EventRecord, FileId, FileKey, FileRecord, Lane, Live, MOST_SLOTS, NO_CALL, NameRecord,
    PairRecord, PathKey, Plain, ProcessRecord, RefusedRecord, Scratch, Slot, Thread, Totals, field,
};
use super::names;
use super::operations;
use super::programs;
use super::sys::{MOST_PROCESSORS, Map, MapKind, Shared};
use crate::request::Request;

/// The most processes that are counted separately, and calls of each of them.
pub(super) const MOST_PROCESSES: u32 = 65_536;
pub(super) const MOST_PAIRS: u32 = 262_144;
/// The most files and calls on each of them, paths and calls that named them, and names that are kept.
pub(super) const MOST_FILES: u32 = 65_536;
pub(super) const MOST_REFUSED: u32 = 4096;
/// The most single calls that are kept: 72 MB.
const MOST_EVENTS: usize = 1_000_000;
/// The memory for the slots of all processors, if that leaves each enough of them.
const SLOT_BYTES: usize = 64 << 20;
/// The fewest slots of a processor. A build needs about 80.
const FEWEST_SLOTS: usize = 96;

pub(super) struct Maps {
    threads: Map,
    totals: Map,
    lanes: Map,
    processors: usize,
    slots: usize,
    pub tree: Option<Tree>,
    pub events: Option<Events>,
    pub files: Option<Files>,
    unwanted: Vec<usize>,
    /// The number of serial numbers that no process has.
    unused: AtomicU64,
    shared_totals: Shared,
    shared_lanes: Shared,
}

pub(super) struct Tree {
    pub processes: Map,
    pub pairs: Map,
}

pub(super) struct Files {
    aims: Map,
    scratch: Map,
    pub files: Map,
    pub paths: Map,
    pub names: Map,
    pub refused: Map,
}

pub(super) struct Events {
    map: Map,
    pub room: usize,
    shared: Shared,
}

impl Maps {
    pub fn new(request: &Request) -> Result<Self, String> {
        let processors = processors();
        let slots = (SLOT_BYTES / (processors * size_of::<Slot>())).clamp(FEWEST_SLOTS, MOST_SLOTS);
        let lane = size_of::<Lane>() + slots * size_of::<Slot>();
        let totals = Map::new(MapKind::Array, "tollgate_totals", 4, size_of::<Totals>(), 1).map_err(first)?;
        let threads = Map::new(MapKind::TaskStorage, "tollgate_thread", 4, size_of::<Thread>(), 0).map_err(
            |error| {
                if is_refusal(&error) {
                    return needs_privileges();
                }
                // Too many open files says nothing about the kernel.
                if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                    return no_map(error);
                }
                format!(
                    "this kernel has no task storage for BPF, which Linux 5.11 and later have: {}",
                    tollgate_model::text::plainly(&error)
                )
            },
        )?;
        let lanes = Map::new(MapKind::Array, "tollgate_lanes", 4, lane, processors as u32).map_err(no_map)?;
        let shared_totals = Shared::new(&totals, 1).map_err(no_map)?;
        let shared_lanes = Shared::new(&lanes, processors).map_err(no_map)?;
        let unwanted = request.only.as_ref().map(names::all_but).unwrap_or_default();
        let maps = Self {
            tree: request.tree.then(Tree::new).transpose().map_err(no_map)?,
            files: request.files.then(Files::new).transpose().map_err(no_map)?,
            events: Events::new(request.events).map_err(no_map)?,
            threads,
            totals,
            lanes,
            processors,
            slots,
            unwanted,
            unused: AtomicU64::new(0),
            shared_totals,
            shared_lanes,
        };
        maps.prepare();
        Ok(maps)
    }

    /// Returns the number of processors, including offline ones below the last one online.
    pub fn processors(&self) -> usize {
        self.processors
    }

    pub fn for_programs(&self, kernel: &Kernel) -> programs::Maps {
        programs::Maps {
            threads: self.threads.raw(),
            totals: self.totals.raw(),
            lanes: self.lanes.raw(),
            slots: self.slots as u32,
            tree: self
                .tree
                .as_ref()
                .map(|tree| programs::Tree { processes: tree.processes.raw(), pairs: tree.pairs.raw() }),
            events: self.events.as_ref().map(|events| (events.map.raw(), events.room as u32)),
            files: self.files.as_ref().zip(kernel.files).map(|(files, offsets)| programs::files::Files {
                offsets,
                aims: files.aims.raw(),
                scratch: files.scratch.raw(),
                files: files.files.raw(),
                paths: files.paths.raw(),
                names: files.names.raw(),
                refused: files.refused.raw(),
            }),
        }
    }

    /// Clears the totals of the calibration, before the command begins.
    ///
    /// # Errors
    /// If a traced thread is still about to leave its processor, or a map cannot be cleared.
    pub fn reset(&self) -> Result<(), String> {
        let census = self.total(field!(Totals, census).offset);
        for _ in 0..100_000 {
            if matches!(census.load(Ordering::Acquire), 0 | Totals::UNKNOWN) {
                break;
            }
            std::thread::yield_now();
        }
        if !matches!(census.load(Ordering::Acquire), 0 | Totals::UNKNOWN) {
            return Err("the calibration process did not end".to_owned());
        }
        // Only what was assigned was written.
        let used = |handed_out: i16, room: usize, bytes: usize| {
            (self.total(handed_out).load(Ordering::Acquire) as usize).min(room) * bytes / 8
        };
        let slots = used(field!(Totals, slots).offset, self.slots, size_of::<Slot>());
        for lane in self.shared_lanes.words().chunks_exact(self.lane_words()) {
            clear(&lane[..size_of::<Lane>() / 8 + slots]);
        }
        if let Some(events) = &self.events {
            let kept = used(field!(Totals, events).offset, events.room, size_of::<EventRecord>());
            clear(&events.shared.words()[..kept]);
        }
        clear(self.shared_totals.words());
        if let Some(tree) = &self.tree {
            tree.processes.clear().and_then(|()| tree.pairs.clear()).map_err(no_map)?;
        }
        if let Some(files) = &self.files {
            files.clear().map_err(no_map)?;
        }
        self.prepare();
        Ok(())
    }

    /// Writes what programs expect in maps that are otherwise empty.
    fn prepare(&self) {
        for (number, lane) in (1..).zip(self.of_lanes(field!(Lane, number).offset)) {
            lane.store(number, Ordering::Relaxed);
        }
        self.mark_unwanted();
        self.total(field!(Totals, census).offset).store(Totals::UNKNOWN, Ordering::Release);
    }

    fn mark_unwanted(&self) {
        let base = field!(Totals, slot_of).offset as usize;
        for &index in &self.unwanted {
            let byte = base + 2 * index;
            if let Some(word) = self.shared_totals.words().get(byte / 8) {
                word.fetch_or(u64::from(Totals::UNWANTED) << (byte % 8 * 8), Ordering::Relaxed);
            }
        }
    }

    /// Traces a call until [`Self::reset`], even if it was not requested.
    pub fn want(&self, index: usize) {
        let byte = field!(Totals, slot_of).offset as usize + 2 * (index % CALLS);
        if let Some(word) = self.shared_totals.words().get(byte / 8) {
            word.fetch_and(!(u64::from(Totals::UNWANTED) << (byte % 8 * 8)), Ordering::Relaxed);
        }
    }

    /// Adds a process to the tree: as the command that it is about to execute, or as it is.
    pub fn adopt(&self, process: BorrowedFd, armed: bool) -> io::Result<()> {
        let flags = Thread::TRACED | if armed { Thread::ARMED } else { Thread::FRESH };
        let now = crate::clock::now();
        let live = Live { call: NO_CALL, flags: flags as u32, ..Live::default() };
        let thread = Thread { live, began: now, since: now, ..Thread::default() };
        if let Some(tree) = &self.tree {
            let record = ProcessRecord { threads: 1, ..ProcessRecord::default() };
            tree.processes.update(&0u32.to_ne_bytes(), record.bytes())?;
        }
        for counter in [field!(Totals, alive), field!(Totals, threads), field!(Totals, processes)] {
            self.total(counter.offset).fetch_add(1, Ordering::AcqRel);
        }
        if !armed {
            self.total(field!(Totals, census).offset).store(1, Ordering::Release);
        }
        self.threads.update(&process.as_raw_fd().to_ne_bytes(), thread.bytes())?;
        self.look_again();
        Ok(())
    }

    /// Starts the clock; there is no thread yet.
    pub fn begin(&self, now: u64) {
        self.total(field!(Totals, began).offset).store(now, Ordering::Release);
        // The first stretch begins as if all threads slept, see [`Totals::stretches`].
        let asleep = field!(Totals, stretches).offset + 8 * Doing::Sleeping as i16;
        self.total(asleep).fetch_sub(now, Ordering::AcqRel);
        self.total(field!(Totals, census).offset).store(0, Ordering::Release);
        self.total(field!(Totals, takes_in).offset).store(1, Ordering::Release);
    }

    pub fn end(&self) {
        self.total(field!(Totals, takes_in).offset).store(0, Ordering::Release);
        self.total(field!(Totals, over).offset).store(1, Ordering::Release);
    }

    /// Adds a running process, whose threads are added one by one afterwards. Returns its serial number.
    pub fn enter(&self, pid: u32, name: &str) -> io::Result<u32> {
        let serial = self.total(field!(Totals, processes).offset).fetch_add(1, Ordering::AcqRel) as u32;
        if let Some(tree) = &self.tree {
            let began = self.total(field!(Totals, began).offset).load(Ordering::Acquire);
            let mut bytes = [0u8; 16];
            bytes.iter_mut().zip(name.bytes().take(15)).for_each(|(to, from)| *to = from);
            let name = [0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte])));
            // It is its own parent, since the tree begins here.
            let record = ProcessRecord { parent: serial, pid, began, name, ..ProcessRecord::default() };
            tree.processes.update(&serial.to_ne_bytes(), record.bytes())?;
        }
        Ok(serial)
    }

    /// Removes a process that was added and has no thread. Its number is reused unless another one was assigned since.
    pub fn take_back(&self, serial: u32) -> io::Result<()> {
        if let Some(tree) = &self.tree {
            tree.processes.remove(&serial.to_ne_bytes())?;
        }
        let number = u64::from(serial);
        let processes = self.total(field!(Totals, processes).offset);
        if processes.compare_exchange(number + 1, number, Ordering::AcqRel, Ordering::Acquire).is_err() {
            self.unused.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    pub fn has_taken(&self, process: BorrowedFd) -> bool {
        let mut thread = [0; size_of::<Thread>()];
        self.threads.lookup(&process.as_raw_fd().to_ne_bytes(), &mut thread).is_ok()
    }

    /// While running threads are added, each processor checks its threads for newly added ones.
    pub fn taking(&self, is_going_on: bool) {
        self.look_again();
        for unsure in self.of_lanes(field!(Lane, unsure).offset) {
            if is_going_on {
                unsure.store(Lane::TAKING, Ordering::SeqCst);
            }
        }
        // A program that was updating the word may have restored it.
        while !is_going_on && self.of_lanes(field!(Lane, unsure).offset).any(is_taking) {
            self.look_again();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A thread that was added to the tree may be on a processor: the next call there looks for it.
    fn look_again(&self) {
        for unsure in self.of_lanes(field!(Lane, unsure).offset) {
            unsure.store(1, Ordering::SeqCst);
        }
    }

    fn of_lanes(&self, offset: i16) -> impl Iterator<Item = &AtomicU64> {
        let lanes = self.shared_lanes.words().chunks_exact(self.lane_words()).take(self.processors);
        lanes.filter_map(move |lane| lane.get(offset as usize / 8))
    }

    fn lane_words(&self) -> usize {
        (size_of::<Lane>() + self.slots * size_of::<Slot>()) / 8
    }

    /// Returns whether every call is traced, so that all other time is outside of calls.
    pub fn traces_all(&self) -> bool {
        self.unwanted.is_empty()
    }

    pub fn arrived(&self) -> u64 {
        self.total(field!(Totals, arrived).offset).load(Ordering::Acquire)
    }

    pub fn forget_glance(&self) {
        let spent = (0..4).map(|at| field!(Totals, glance_spent).offset + 8 * at);
        for offset in spent.chain([field!(Totals, glance).offset]) {
            self.total(offset).store(0, Ordering::Release);
        }
    }

    pub fn seen(&self) -> u64 {
        self.total(field!(Totals, threads).offset).load(Ordering::Acquire)
    }

    pub fn alive(&self) -> u64 {
        self.total(field!(Totals, alive).offset).load(Ordering::Acquire)
    }

    fn total(&self, offset: i16) -> &AtomicU64 {
        &self.shared_totals.words()[offset as usize / 8]
    }

    pub fn totals(&self) -> Option<Totals> {
        let mut totals = Totals::read(&bytes(self.shared_totals.words()))?;
        totals.processes = totals.processes.saturating_sub(self.unused.load(Ordering::Acquire));
        Some(totals)
    }

    pub fn lanes(&self, used: usize) -> impl Iterator<Item = (Lane, Vec<Slot>)> {
        let used = used.min(self.slots);
        self.shared_lanes.words().chunks_exact(self.lane_words()).take(self.processors).filter_map(
            move |lane| {
                let (head, slots) = lane.split_at(size_of::<Lane>() / 8);
                let slots = slots.chunks_exact(size_of::<Slot>() / 8).take(used);
                Some((Lane::read(&bytes(head))?, slots.filter_map(|slot| Slot::read(&bytes(slot))).collect()))
            },
        )
    }
}

fn is_taking(unsure: &AtomicU64) -> bool {
    unsure.load(Ordering::SeqCst) & Lane::TAKING != 0
}

impl Tree {
    fn new() -> io::Result<Self> {
        let (process, pair) = (size_of::<ProcessRecord>(), size_of::<PairRecord>());
        Ok(Self {
            processes: Map::new(MapKind::Hash, "tollgate_proc", 4, process, MOST_PROCESSES)?,
            pairs: Map::new(MapKind::Hash, "tollgate_pairs", 8, pair, MOST_PAIRS)?,
        })
    }
}

impl Files {
    fn new() -> io::Result<Self> {
        let mut aims = [0u8; CALLS];
        for (numbers, aim) in operations::aims() {
            names::indices(numbers).for_each(|index| aims[index % CALLS] = aim);
        }
        let record = size_of::<FileRecord>();
        let files = Self {
            aims: Map::new(MapKind::Array, "tollgate_aims", 4, CALLS, 1)?,
            scratch: Map::new(MapKind::PerCpuArray, "tollgate_scratc", 4, size_of::<Scratch>(), 1)?,
            files: Map::new(MapKind::Hash, "tollgate_files", size_of::<FileKey>(), record, MOST_FILES)?,
            paths: Map::new(MapKind::Hash, "tollgate_paths", size_of::<PathKey>(), record, MOST_FILES)?,
            names: Map::preallocated(
                "tollgate_names",
                size_of::<FileId>(),
                size_of::<NameRecord>(),
                MOST_FILES,
            )?,
            refused: Map::new(
                MapKind::Hash,
                "tollgate_refuse",
                size_of::<FileKey>(),
                size_of::<RefusedRecord>(),
                MOST_REFUSED,
            )?,
        };
        files.aims.update(&0u32.to_ne_bytes(), &aims)?;
        Ok(files)
    }

    fn clear(&self) -> io::Result<()> {
        self.files.clear()?;
        self.paths.clear()?;
        self.names.clear()?;
        self.refused.clear()
    }
}

impl Events {
    fn new(wanted: usize) -> io::Result<Option<Self>> {
        if wanted == 0 {
            return Ok(None);
        }
        let room = wanted.min(MOST_EVENTS);
        let map = Map::new(MapKind::Array, "tollgate_events", 4, size_of::<EventRecord>(), room as u32)?;
        let shared = Shared::new(&map, room)?;
        Ok(Some(Self { map, room, shared }))
    }

    pub fn records(&self, used: usize) -> impl Iterator<Item = EventRecord> {
        let words = self.shared.words().chunks_exact(size_of::<EventRecord>() / 8).take(used.min(self.room));
        words.filter_map(|words| EventRecord::read(&bytes(words)))
    }
}

fn clear(words: &[AtomicU64]) {
    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
}

fn bytes(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
}

/// Returns the last online processor's number plus one, since programs index by it. Events on later processors count as lost.
fn processors() -> usize {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let last = list.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or_else(possible, |last| last.saturating_add(1)).clamp(1, MOST_PROCESSORS)
}

/// Returns the number of possible processors, if there is no /sys: a lookup in a per-CPU map returns that many values.
fn possible() -> usize {
    const UNWRITTEN: u8 = 0xa5;
    let mut values = vec![UNWRITTEN; 8 * MOST_PROCESSORS];
    let map = Map::new(MapKind::PerCpuArray, "tollgate_cpus", 4, 8, 1);
    match map.and_then(|map| map.lookup(&0u32.to_ne_bytes(), &mut values)) {
        Ok(()) => values.chunks_exact(8).take_while(|value| value[0] != UNWRITTEN).count(),
        Err(_) => MOST_PROCESSORS / 64,
    }
}

pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

pub(super) fn needs_privileges() -> String {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        return "the kernel is locked down (confidentiality), and BPF programs may not read its memory"
            .to_owned();
    }
    "bpf(2) was refused: it needs CAP_BPF and CAP_PERFMON, or root, and a seccomp filter must not forbid it"
        .to_owned()
}

fn first(error: io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no bpf(2)".to_owned(),
        Some(libc::EPERM | libc::EACCES) => needs_privileges(),
        Some(libc::EINVAL) => {
            "this kernel has no BPF maps that can be mapped (Linux 5.5 and later have them, sandboxes such as gVisor do not)".to_owned()
        }
        _ => no_map(error),
    }
}

fn no_map(error: io::Error) -> String {
    format!("the kernel refused a BPF map: {}", tollgate_model::text::plainly(&error))
}
