//! Executable mappings and forks of all processes of the machine, which perf_event_open(2) records in a ring buffer per
//! processor.

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use tollgate_arch::memory::page_size;

use super::{Attributes, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, Scope, open_with};

/// One record of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A process maps a file or anonymous memory as executable (PERF_RECORD_MMAP2).
    Mapping(Mapping),
    /// A process forks another one with the same mappings (PERF_RECORD_FORK).
    Fork {
        /// Number of the new process.
        process: u32,
        /// Number of the process that it is a copy of.
        parent: u32,
    },
    /// The ring had no room for this number of records (PERF_RECORD_LOST).
    Lost(u64),
}

/// Executable memory, and the file that it maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Number of the process in the reader's PID namespace.
    pub process: u32,
    /// The first address.
    pub begin: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Major and minor number of the file system's device; zeros for memory without a file.
    pub device: (u32, u32),
    /// Inode of the file.
    pub inode: u64,
    /// Path of the file in the mount namespace of the process; `[vdso]` or `//anon` for memory without one.
    pub path: Vec<u8>,
}

/// The rings of some processors. Dropping this stops the recording.
#[derive(Debug)]
pub struct Records(Vec<Ring>);

impl Records {
    /// Starts to record what runs on these processors, except those that are offline. This needs CAP_PERFMON, or
    /// kernel.perf_event_paranoid at 0 or below.
    ///
    /// # Errors
    /// Those of perf_event_open(2) and mmap(2).
    pub fn begin(processors: impl Iterator<Item = usize>) -> io::Result<Self> {
        let is_offline = |error: &io::Error| error.raw_os_error() == Some(libc::ENODEV);
        let rings = processors.map(Ring::new).filter(|ring| !ring.as_ref().is_err_and(is_offline));
        rings.collect::<io::Result<_>>().map(Self)
    }

    /// Passes each record since the last call to `each`, in order within a processor, and frees its space in the ring.
    pub fn read(&mut self, each: &mut impl FnMut(Record)) {
        let mut bytes = Vec::new();
        for ring in &mut self.0 {
            ring.take(&mut bytes);
            parse(&bytes, each);
        }
    }
}

const TYPE_SOFTWARE: u32 = 1;
/// An event that counts nothing; it is opened for its records only.
const SOFTWARE_DUMMY: u64 = 9;
// Bits of `struct perf_event_attr` (include/uapi/linux/perf_event.h): executable mappings, forks, and mappings with the
// file's inode.
const MAPPINGS: u64 = 1 << 8;
const FORKS: u64 = 1 << 13;
const WITH_INODES: u64 = 1 << 23;

/// Pages of records per processor: room for about a thousand mappings.
const PAGES: usize = 32;
// Offsets in `struct perf_event_mmap_page`, which is in the page before the records.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

#[derive(Debug)]
struct Ring {
    memory: NonNull<u8>,
    _event: File,
}

// SAFETY: the memory belongs to the ring, and is read only through `&mut`.
unsafe impl Send for Ring {}

impl Ring {
    fn bytes() -> usize {
        (1 + PAGES) * page_size()
    }

    fn new(processor: usize) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: SOFTWARE_DUMMY,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | MAPPINGS | FORKS | WITH_INODES,
            ..Attributes::default()
        };
        let event = open_with(&attributes, Scope::Processor(processor), -1)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address =
            unsafe { rustix::mm::mmap(ptr::null_mut(), Self::bytes(), access, MapFlags::SHARED, &event, 0) }?;
        let memory = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, _event: event })
    }

    /// Replaces the contents of `bytes` with the new records.
    fn take(&mut self, bytes: &mut Vec<u8>) {
        let data = PAGES * page_size();
        bytes.clear();
        let (head, tail) = (self.position(DATA_HEAD), self.position(DATA_TAIL));
        let (end, begin) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let new = end.wrapping_sub(begin) as usize;
        if new <= data {
            let at = begin as usize % data;
            for (from, length) in [(at, new.min(data - at)), (0, new.saturating_sub(data - at))] {
                // SAFETY: `from` and `length` are within the pages of records, and the kernel does not overwrite records
                // that lie after the tail.
                bytes.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(self.memory.as_ptr().add(page_size() + from), length)
                });
            }
        }
        tail.store(end, Ordering::Release);
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is one of the two aligned words of the first page, which the kernel reads and writes atomically.
        unsafe { &*self.memory.as_ptr().add(at).cast::<AtomicU64>() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), Self::bytes()) };
    }
}

const RECORD_LOST: u32 = 2;
const RECORD_FORK: u32 = 7;
const RECORD_MMAP2: u32 = 10;

/// Parses consecutive records, each of which starts with `struct perf_event_header`. Other kinds and truncated records are
/// skipped.
fn parse(mut bytes: &[u8], each: &mut impl FnMut(Record)) {
    while let Some(head) = bytes.first_chunk::<8>() {
        let size = usize::from(u16::from_ne_bytes([head[6], head[7]]));
        let Some(record) = bytes.get(..size.max(head.len())) else { return };
        if let Some(record) = one(u32::from_ne_bytes([head[0], head[1], head[2], head[3]]), record) {
            each(record);
        }
        bytes = &bytes[record.len()..];
    }
}

fn one(kind: u32, record: &[u8]) -> Option<Record> {
    let word = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    let double = |at: usize| Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    match kind {
        RECORD_LOST => Some(Record::Lost(double(16)?)),
        RECORD_FORK => {
            let (process, parent) = (word(8)?, word(12)?);
            // A fork record with the parent's own number is a new thread.
            (process != parent).then_some(Record::Fork { process, parent })
        }
        RECORD_MMAP2 => {
            let path = record.get(72..)?;
            let end = path.iter().position(|byte| *byte == 0)?;
            Some(Record::Mapping(Mapping {
                process: word(8)?,
                begin: double(16)?,
                bytes: double(24)?,
                offset: double(32)?,
                device: (word(40)?, word(44)?),
                inode: double(48)?,
                path: path[..end].to_vec(),
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, rest: &[u8]) -> Vec<u8> {
        let size = 8 + rest.len() as u16;
        [&kind.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes(), rest].concat()
    }

    fn read(bytes: &[u8]) -> Vec<Record> {
        let mut records = Vec::new();
        parse(bytes, &mut |record| records.push(record));
        records
    }

    #[test]
    fn mappings_forks_and_losses_are_read() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        // pid, tid, address, length, offset, device, inode, generation, protection and flags.
        let mapping = words(&[7, 8, 0x1000, 0, 0x2000, 0, 0x3000, 0, 254, 1, 99, 0, 0, 0, 5, 2]);
        let bytes = [
            record(RECORD_MMAP2, &[&mapping, &b"/bin/true\0\0\0\0\0\0\0"[..]].concat()),
            record(9, &[0; 24]),
            record(RECORD_FORK, &words(&[9, 7, 9, 7, 0, 0])),
            record(RECORD_FORK, &words(&[7, 7, 10, 7, 0, 0])),
            record(RECORD_LOST, &words(&[0, 0, 3, 0])),
        ];
        let expected = Mapping {
            process: 7,
            begin: 0x1000,
            bytes: 0x2000,
            offset: 0x3000,
            device: (254, 1),
            inode: 99,
            path: b"/bin/true".to_vec(),
        };
        let fork = Record::Fork { process: 9, parent: 7 };
        assert_eq!(read(&bytes.concat()), [Record::Mapping(expected), fork, Record::Lost(3)]);
    }

    #[test]
    fn what_this_machine_executes_is_recorded() {
        let online = super::super::super::affinity::allowed(0).expect("processors");
        let mut records = match Records::begin(online.into_iter()) {
            Ok(records) => records,
            Err(error) => return eprintln!("skipped: no records here: {error}"),
        };
        let mut child = std::process::Command::new("/bin/true").spawn().expect("it starts");
        let child_id = child.id();
        child.wait().expect("it ends");
        let (mut mapped, mut forked) = (Vec::new(), false);
        records.read(&mut |record| match record {
            Record::Mapping(mapping) if mapping.process == child_id => mapped.push(mapping.path),
            Record::Fork { process, parent } if process == child_id => forked = parent == std::process::id(),
            _ => {}
        });
        assert!(forked && mapped.iter().any(|path| path.ends_with(b"/true")), "{forked} {mapped:?}");
        let mut again = 0;
        records.read(&mut |record| {
            again += usize::from(matches!(record, Record::Mapping(m) if m.process == child_id))
        });
        assert_eq!(again, 0, "each record is given once");
    }

    #[test]
    fn a_ring_goes_round() {
        let online = super::super::super::affinity::allowed(0).expect("processors");
        let Ok(mut records) = Records::begin(online.into_iter()) else {
            return eprintln!("skipped: no records here");
        };
        let (mut seen, mut lost) = (0, 0);
        // More records than fit in a ring.
        for _ in 0..600 {
            std::process::Command::new("/bin/true").status().expect("it ends");
            records.read(&mut |record| match record {
                Record::Mapping(mapping) => seen += usize::from(mapping.path.ends_with(b"/true")),
                Record::Lost(number) => lost += number,
                Record::Fork { .. } => {}
            });
        }
        assert!(seen >= 600 && lost == 0, "{seen} {lost}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes: Vec<u8>, kind in 0u32..12, rest: Vec<u8>) {
            read(&bytes);
            read(&[record(kind, &rest), bytes].concat());
        }
    }
}
