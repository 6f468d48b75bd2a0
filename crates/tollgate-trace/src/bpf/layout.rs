//! The structures in maps, which programs and this process share.

#![allow(unsafe_code)] // Structures are read from memory that programs have written.

use super::asm::{Field, Width};
use tollgate_model::traced::{BUCKETS, Parts};

use crate::direct::MOST_BUFFERS;

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
/// It must consist of integers without padding, so that every bit pattern is valid.
pub(super) unsafe trait Plain: Copy {
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..size_of::<Self>())?;
        // SAFETY: the slice has the size of the structure, and every bit pattern is valid.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the structure has that size, and all its bytes are initialized.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

/// The state of a thread. The numbers are the order in which causes of idle time are tested, and positions in [`Totals::census`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Running = 0,
    Queued = 1,
    Disk = 2,
    Sleeping = 3,
}

/// The size of a table of calls. The index of a call is its number in the 64-bit table, its number plus this in the 32-bit
/// table, and plus twice this for the x32 ABI. The last index of a table covers all higher numbers.
pub(super) const TABLE: usize = 1024;
/// The number of call indices: a power of two, so that programs can mask with it.
pub(super) const CALLS: usize = 4 * TABLE;
/// The most slots: Linux has fewer than 400 calls in the one table and 450 in the other.
pub(super) const MOST_SLOTS: usize = 512;
/// In place of a call index: the thread is in no traced call.
pub(super) const NO_CALL: u32 = 0xffff;

/// The part of a thread that calls change. While the thread is on a processor this part is in the [`Lane`] there, like its
/// registers, and switches save and load it. The entry and return of a call need not search for it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Live {
    pub entered: u64,
    pub in_calls: u64,
    pub call: u32,
    /// `TRACED` and other flags of [`Thread`]; 0 for a thread outside of the tree.
    pub flags: u32,
    /// The file of its call, if files were requested, see `programs::files`.
    pub file: [u64; 2],
    pub arguments: [u64; 2],
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Thread {
    /// Valid while it is on no processor, or if it was on one when the programs were detached.
    pub live: Live,
    pub began: u64,
    /// When its current state began, and the state as [`Doing`].
    pub since: u64,
    pub doing: u32,
    /// The serial number of its process.
    pub process: u32,
    /// The number of its lane from 1, while `live` is there; 0 while it is here.
    pub lane: u64,
    /// How often it was added to the tree while it ran: programs may do so at the same time, and the first one counts it.
    pub taken: u64,
    /// Time off the processor since it last entered or left a call, by [`Doing`].
    pub spent: [u64; 4],
    /// Time off the processor over all stretches outside of calls, by [`Doing`].
    pub outside: [u64; 4],
    /// The file of its last page fault outside of calls.
    pub fault: [u64; 2],
}

impl Thread {
    /// It waits to execute the command, and is not traced yet.
    pub const ARMED: i32 = 1;
    /// It was off the processor since it last entered or left a call.
    pub const WAITED: i32 = 2;
    pub const ENDED: i32 = 4;
    /// It is in the tree, as every thread with storage is.
    pub const TRACED: i32 = 8;
    /// Until its next entry or return, it may be in a call whose entry was not seen, as after a fork or when it was just added.
    pub const FRESH: i32 = 16;
}

/// Marks a running process that is to be traced with its serial number.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Mark {
    pub serial: u32,
    /// Nonzero once the number is valid.
    pub known: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Slot {
    /// Without the count of calls that ran, which the histogram has.
    pub sums: PairRecord,
    pub histogram: [u64; BUCKETS as usize],
}

/// The totals of a processor. [`Slot`]s follow, as many as there is room for, see [`Totals::slots`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Lane {
    /// The address of the task on this processor, and its `live` if it is in the tree.
    pub task: u64,
    pub live: Live,
    /// A thread whose switch was missed, and its `live`. The kernel reports nearly all switches, not all.
    pub left_task: u64,
    pub left: Live,
    /// Nonzero if a thread was added since the last switch: if it runs here, `live` may not be loaded. See [`Lane::TAKING`].
    pub unsure: u64,
    pub number: u64,
    /// Time outside of calls of ended threads: total, and off the processor by [`Doing`].
    pub outside: u64,
    pub outside_spent: [u64; 4],
    pub process: u64,
    /// For `--tree` and `--by file`: calls that did not wait, before they are added to the maps.
    pub pairs: [RecentPair; RECENT],
    pub files: [RecentFile; RECENT],
}

/// Places per processor for calls that are likely to be repeated: a power of two. A place serves the calls whose index (by file,
/// plus the inode's number) has the same low bits. Calls come in runs of few kinds on few files, so most need no map lookup.
pub(super) const RECENT: usize = 8;

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RecentPair {
    pub call: u32,
    pub process: u32,
    /// 0 if the place is empty.
    pub count: u64,
    pub errors: u64,
    pub total: u64,
    pub max: u64,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RecentFile {
    pub key: FileKey,
    pub count: u64,
    pub errors: u64,
    pub total: u64,
    pub bytes: u64,
}

impl Lane {
    /// A bit of [`Lane::unsure`] that programs do not clear: running threads are being added to the tree.
    pub const TAKING: u64 = 2;
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Totals {
    /// The numbers of threads that run, are queued and wait for a disk, in 20 bits each. Bit 63 is set while the cause of
    /// real time is unknown: before the command began and after it ended.
    pub census: u64,
    /// Real time by [`Totals::census`]: some thread ran, or idle by cause, or unknown. The end of a stretch is added and its
    /// beginning subtracted, so the order among processors does not matter.
    pub stretches: [u64; 5],
    /// When the command was executed, and when its process ended; 0 before.
    pub began: u64,
    pub ended: u64,
    pub alive: u64,
    pub threads: u64,
    pub processes: u64,
    pub slots: u64,
    pub events: u64,
    /// Uncounted events, see `collect::missed`.
    pub lost_threads: u64,
    pub lost_calls: u64,
    pub lost_processes: u64,
    pub lost_pairs: u64,
    pub lost_files: u64,
    pub lost_names: u64,
    pub lost_blocks: u64,
    pub arrived: u64,
    /// Nonzero while processes that enter the control group, or are created there, are added: from the beginning of the
    /// trace to its end, not for as long as the programs are attached.
    pub takes_in: u64,
    /// Nonzero after the trace has ended: programs are detached one by one, so a return may be seen without its entry.
    pub over: u64,
    /// Time outside of calls of the threads that exist, like [`Lane::outside`]; computed on each request.
    pub glance: u64,
    pub glance_spent: [u64; 4],
    /// The slot of each call from 1, 0 if it has none yet, or [`Totals::UNWANTED`].
    pub slot_of: [u16; CALLS],
    /// The call of each slot. Two slots have the same call if two processors assigned them at once.
    pub call_of: [u16; MOST_SLOTS],
}

impl Totals {
    pub const UNWANTED: u16 = u16::MAX;
    pub const UNKNOWN: u64 = 1 << 63;
}

/// The stacks of a sleeping thread, as ids in the stack map; negative if there is none.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Asleep {
    pub kernel: i32,
    pub user: i32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct BlockKey {
    pub stacks: [i32; 2],
    pub waking: i32,
    pub call: u32,
    /// The number of the sleeping process, and the name of the thread, if stacks were requested.
    pub process: u32,
    /// The number of the thread that ended them, or that was interrupted by what did.
    pub waker: u32,
    pub name: [u64; 2],
    pub waker_name: [u64; 2],
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct BlockRecord {
    pub count: u64,
    pub total: u64,
}

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

/// The sums of a call: in a process, or on one processor.
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
    pub argument: u64,
    pub spent: [u64; 4],
    pub process: u32,
    pub thread: u32,
    pub call: u32,
    /// Nonzero once the record is complete.
    pub written: u32,
}

/// A directory entry under its current name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct FileId {
    pub inode: u64,
    /// As in the kernel: 12 bits and 20.
    pub device: u32,
    /// The inode's generation XOR the hash of the name, which depends on the directory.
    pub tells_apart: u32,
}

/// In place of a call index: a page fault of a mapped file.
pub(super) const FAULT: usize = CALLS - 1;

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct FileKey {
    pub id: FileId,
    pub call: u32,
    pub padding: u32,
}

/// The longest path that is read in one piece, and the longest name, including the terminating NUL.
pub(super) const PATH: usize = 232;
pub(super) const NAME: usize = 256;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct PathKey {
    /// The directory where it starts; zero for an absolute path.
    pub directory: FileId,
    pub call: u32,
    /// Including the terminating NUL. [`PATH`] if the path may be longer.
    pub length: u32,
    pub path: [u8; PATH],
}

/// The name of an entry, and its directory, which is itself at the root.
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

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct FileRecord {
    pub count: u64,
    pub errors: u64,
    pub total: u64,
    pub bytes: u64,
    pub spent: [u64; 4],
}

/// Refused direct I/O: the first call of its file and kind, and how many there were.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RefusedRecord {
    pub count: u64,
    pub position: u64,
    /// The second, third and fourth argument: the buffer or vector, its length, and the offset if the call takes one.
    pub arguments: [u64; 3],
    /// Address and length of the first buffers of a vector.
    pub vector: [u64; 2 * MOST_BUFFERS],
}

pub(super) const fn by_doing(array: Field, doing: Doing) -> Field {
    Field { offset: array.offset + 8 * doing as i16, width: Width::Double }
}

/// Splits a total into parts; time not spent off the processor was on it.
pub(super) fn parts(total: u64, spent: [u64; 4]) -> Parts {
    let [_, runqueue_ns, disk_ns, sleep_ns] = spent;
    let off = runqueue_ns.saturating_add(disk_ns).saturating_add(sleep_ns);
    Parts { on_cpu_ns: total.saturating_sub(off), sleep_ns, disk_ns, runqueue_ns, unknown_ns: 0 }
}

macro_rules! plain {
    ($($structure:ty),+) => {
        $(
            // SAFETY: repr(C), integers only, and fields of 4 and 2 bytes come in groups of 8.
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
