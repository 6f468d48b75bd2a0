//! The structures in maps, which programs and this process share.

#![allow(unsafe_code)] // Structures are read from memory that programs have written.

use super::asm::{Field, Width};
use tollgate_model::traced::{BUCKETS, Parts};

use crate::direct::MOST_BUFFERS;

/// A field of one of these structures, for loads and stores.
macro_rules! field {
    ($structure:ty, $($field:ident).+) => {{
        const fn width<S, F>(_: fn(&S) -> &F) -> usize {
            size_of::<F>()
        }
        $crate::bpf::asm::Field {
            offset: ::std::mem::offset_of!($structure, $($field).+) as i16,
            width: $crate::bpf::asm::Width::from_bytes(width(|s: &$structure| &s.$($field).+)),
        }
    }};
}
pub(super) use field;

/// A structure that maps hold.
///
/// # Safety
/// It consists of integers without room between or after them, so that every pattern of bytes is one.
pub(super) unsafe trait Plain: Copy {
    /// Copies one from the beginning of bytes; None where there are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..size_of::<Self>())?;
        // SAFETY: there are so many bytes, and every pattern of them is such a structure.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: it has so many, all of them written.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

/// The state of a thread. The numbers are the order in which causes of idle time are tested, and the position of each in [`Totals::census`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Running = 0,
    Queued = 1,
    Disk = 2,
    Sleeping = 3,
}

/// Calls have an index: numbers of the 64-bit table as they are, those of the 32-bit table so many further, and those of the
/// x32 ABI twice as many. The last index of a table covers all numbers from there on.
pub(super) const TABLE: usize = 1024;
/// Indices of calls: a power of two, to which programs can mask them.
pub(super) const CALLS: usize = 4 * TABLE;
/// The most slots: Linux has fewer than 400 calls in the one table and 450 in the other.
pub(super) const MOST_SLOTS: usize = 512;
/// Instead of a call: the thread is in none that is traced.
pub(super) const NO_CALL: u32 = 0xffff;

/// What calls change of a thread. As long as the thread is on a processor it lies in the [`Lane`] there, like its registers, and the
/// scheduler's switches save it and load that of the next thread: entry and return of a call need not search for it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Live {
    /// When its call began.
    pub entered: u64,
    /// Time in calls that returned.
    pub in_calls: u64,
    /// The index of the call that it is in, or [`NO_CALL`].
    pub call: u32,
    /// `TRACED` and others of [`Thread`]; 0 for a thread that is not of the tree.
    pub flags: u32,
    /// The file of its call, where files are asked for, see `programs::files`.
    pub file: [u64; 2],
    pub arguments: [u64; 2],
}

/// A thread of the tree, in its storage.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Thread {
    /// While it is on no processor, or was there when the programs were detached.
    pub live: Live,
    /// When it was first seen.
    pub began: u64,
    /// Its state, as [`Doing`], and since when.
    pub since: u64,
    pub doing: u32,
    /// The serial number of its process.
    pub process: u32,
    /// The number of its lane from 1, while `live` is there; 0 while it is here.
    pub lane: u64,
    /// How often it was taken into the tree while it ran: programs may do so at once, and the first one counts it.
    pub taken: u64,
    /// Time off the processor since it last entered or left a call, by [`Doing`].
    pub spent: [u64; 4],
    /// The same, of all stretches outside of calls.
    pub outside: [u64; 4],
    /// The file of its last page fault outside of calls.
    pub fault: [u64; 2],
}

impl Thread {
    /// It waits to execute the command, and is not traced yet.
    pub const ARMED: i32 = 1;
    /// It was off the processor since it last entered or left a call.
    pub const WAITED: i32 = 2;
    /// It has ended, and was added up.
    pub const ENDED: i32 = 4;
    /// It is of the tree, which every thread is that has a storage.
    pub const TRACED: i32 = 8;
    /// It may be in a call that was not seen to begin: it was made by one, or was on a processor when it was taken. Until the next entry or
    /// return of a call.
    pub const FRESH: i32 = 16;
}

/// The mark of a process that is to be traced and runs already: its serial number.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Mark {
    pub serial: u32,
    /// Not 0 once the number is there.
    pub known: u32,
}

/// The totals of a call on one processor.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Slot {
    /// Without the count of calls that were not stopped, which is that of the histogram.
    pub sums: PairRecord,
    pub histogram: [u64; BUCKETS as usize],
}

/// The totals of a processor. So many [`Slot`]s follow as there is room for, see [`Totals::slots`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Lane {
    /// The address of the task on this processor, and its `live` where it is of the tree.
    pub task: u64,
    pub live: Live,
    /// The same of a thread that left without a switch that was seen. The kernel reports nearly all of them, not all.
    pub left_task: u64,
    pub left: Live,
    /// Not 0 where a thread was taken into the tree since the last switch here: the one on this processor may be it, and `live` may not
    /// be loaded. See [`Lane::TAKING`].
    pub unsure: u64,
    /// Its number, from 1.
    pub number: u64,
    /// Time outside of calls of threads that ended: all, and by [`Doing`] off the processor.
    pub outside: u64,
    pub outside_spent: [u64; 4],
    /// The serial number of the process whose thread is on this processor.
    pub process: u64,
    /// Where `--tree` and `--by file` ask for them: calls that did not wait, before they are added to the maps.
    pub pairs: [RecentPair; RECENT],
    pub files: [RecentFile; RECENT],
}

/// The places of a processor for calls that are about to come again, each for those whose index (by file, its sum with the inode's number) has the same
/// lowest bits: a power of two. Calls come in runs, of a few kinds on a few files, and so a search in a map is saved for most of them.
pub(super) const RECENT: usize = 8;

/// Calls of one kind of one process.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RecentPair {
    /// The key of the map by process and call.
    pub call: u32,
    pub process: u32,
    /// 0 where nothing is here.
    pub count: u64,
    pub errors: u64,
    pub total: u64,
    pub max: u64,
}

/// Calls of one kind on one file.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RecentFile {
    pub key: FileKey,
    /// 0 where nothing is here.
    pub count: u64,
    pub errors: u64,
    pub total: u64,
    pub bytes: u64,
}

impl Lane {
    /// A bit of [`Lane::unsure`] that programs do not clear: running threads are being taken into the tree.
    pub const TAKING: u64 = 2;
}

/// The totals of all processors.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Totals {
    /// How many threads run, are queued and wait for a disk, in 20 bits each, and in bit 63 whether real time is not
    /// known by cause: before the command began and after it ended.
    pub census: u64,
    /// Real time by [`Totals::census`]: some ran, or idle by cause, or unknown. The moment at which
    /// such a stretch ended is added and the one at which it began subtracted, so that the order among processors does not matter.
    pub stretches: [u64; 5],
    /// When the command was executed, and when its process ended; 0 before.
    pub began: u64,
    pub ended: u64,
    pub alive: u64,
    pub threads: u64,
    pub processes: u64,
    /// Slots that were given to calls.
    pub slots: u64,
    /// Slots for single calls that were handed out.
    pub events: u64,
    /// Uncounted events, see `collect::MISSED`.
    pub lost_threads: u64,
    pub lost_calls: u64,
    pub lost_processes: u64,
    pub lost_pairs: u64,
    pub lost_files: u64,
    pub lost_names: u64,
    pub lost_blocks: u64,
    /// Processes that came into the control group since the trace began.
    pub arrived: u64,
    /// Not 0 while processes that come into the control group, or are made there, are taken: from the beginning of the trace to its end, and
    /// not as long as the programs are attached.
    pub takes_in: u64,
    /// Not 0 when the trace has ended: programs are detached one by one, and of a call the return may be seen alone.
    pub over: u64,
    /// Time outside of calls of the threads that are there, as of [`Lane::outside`]: made anew each time that it is asked for.
    pub glance: u64,
    pub glance_spent: [u64; 4],
    /// The slot of each call from 1, 0 for none yet, or [`Totals::UNWANTED`].
    pub slot_of: [u16; CALLS],
    /// The call of each slot. Two slots have the same where two processors gave them at once.
    pub call_of: [u16; MOST_SLOTS],
}

impl Totals {
    /// In [`Totals::slot_of`]: this call is not to be traced.
    pub const UNWANTED: u16 = u16::MAX;
    /// The bit of [`Totals::census`] that says that the cause is unknown.
    pub const UNKNOWN: u64 = 1 << 63;
}

/// A thread that sleeps: its stacks, as numbers in the map of stacks, negative where there is none.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Asleep {
    pub kernel: i32,
    pub user: i32,
}

/// Sleeps that are added up together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct BlockKey {
    pub stacks: [i32; 2],
    /// The stack of what ended them.
    pub waking: i32,
    pub call: u32,
    /// The number of the sleeping process, and the name of the thread, where stacks are asked for.
    pub process: u32,
    /// The number of the thread that ended them, or in the middle of which an interrupt did.
    pub waker: u32,
    pub name: [u64; 2],
    pub waker_name: [u64; 2],
}

/// How many there were, and how long they took.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct BlockRecord {
    pub count: u64,
    pub total: u64,
}

/// A process, by its serial number.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct ProcessRecord {
    pub parent: u32,
    pub pid: u32,
    pub execs: u32,
    pub threads: u32,
    pub began: u64,
    pub ended: u64,
    pub outside: u64,
    pub outside_spent: [u64; 4],
    pub name: [u64; 2],
}

/// The sums of a call: of a process, or of one processor.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct PairRecord {
    pub count: u64,
    pub errors: u64,
    pub total: u64,
    pub max: u64,
    pub unfinished: u64,
    /// Calls that were stopped before they began, see `programs::stopped`. They are not in `count`.
    pub stopped: u64,
    /// Time off the processor by [`Doing`]; the first is not used.
    pub spent: [u64; 4],
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct EventRecord {
    pub began: u64,
    pub total: u64,
    pub result: u64,
    /// The first argument.
    pub argument: u64,
    pub spent: [u64; 4],
    pub process: u32,
    pub thread: u32,
    pub call: u32,
    /// Not 0 once all is written.
    pub written: u32,
}

/// An entry of a directory, as long as it has its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct FileId {
    pub inode: u64,
    /// As the kernel has it: 12 bits and 20.
    pub device: u32,
    /// The inode's generation and the hash of the name, which depends on the directory: one or the other.
    pub tells_apart: u32,
}

/// Instead of a call: a page fault of a mapped file.
pub(super) const FAULT: usize = CALLS - 1;

/// A file and a call that worked on it, or [`FAULT`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct FileKey {
    pub id: FileId,
    pub call: u32,
    pub padding: u32,
}

/// The longest path that is read in one piece, and the longest name, each with the 0 at its end.
pub(super) const PATH: usize = 232;
pub(super) const NAME: usize = 256;

/// A path, as it was given to a call.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct PathKey {
    /// The directory that it begins at; nothing where it begins with a slash.
    pub directory: FileId,
    pub call: u32,
    /// With the 0 at its end. [`PATH`] of one that may have been longer.
    pub length: u32,
    pub path: [u8; PATH],
}

/// The name of an entry, and its directory: itself, where there is no other above it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct NameRecord {
    pub parent: FileId,
    pub name: [u8; NAME],
}

/// Memory for data that does not fit on the stack.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Scratch {
    pub path: PathKey,
    pub name: NameRecord,
}

/// The totals of an operation on a file.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct FileRecord {
    pub count: u64,
    pub errors: u64,
    pub total: u64,
    pub bytes: u64,
    pub spent: [u64; 4],
}

/// A call of direct I/O that was refused: the first of its file and call, and how many there were.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RefusedRecord {
    pub count: u64,
    /// The file's position.
    pub position: u64,
    /// The second, third and fourth argument: the buffer or vector, its length, the offset where the call takes one.
    pub arguments: [u64; 3],
    /// Of a vector the first buffers: address and length of each.
    pub vector: [u64; 2 * MOST_BUFFERS],
}

/// One of four words of 8 bytes that are kept by [`Doing`].
pub(super) const fn by_doing(array: Field, doing: Doing) -> Field {
    Field { offset: array.offset + 8 * doing as i16, width: Width::Double }
}

/// Time that was passed with so much off the processor: the rest was on it.
pub(super) fn parts(total: u64, spent: [u64; 4]) -> Parts {
    let [_, runqueue_ns, disk_ns, sleep_ns] = spent;
    let off = runqueue_ns.saturating_add(disk_ns).saturating_add(sleep_ns);
    Parts { on_cpu_ns: total.saturating_sub(off), sleep_ns, disk_ns, runqueue_ns, unknown_ns: 0 }
}

macro_rules! plain {
    ($($structure:ty),+) => {
        $(
            // SAFETY: repr(C), integers only, and the fields of 4 and 2 bytes come in groups of 8.
            unsafe impl Plain for $structure {}
        )+
    };
}
plain!(
    Live,
    Thread,
    Mark,
    Asleep,
    BlockKey,
    BlockRecord,
    Slot,
    Lane,
    RecentPair,
    RecentFile,
    Totals,
    ProcessRecord,
    PairRecord,
    EventRecord,
    FileRecord,
    RefusedRecord,
    FileId,
    FileKey,
    PathKey,
    NameRecord
);
