//! io_uring(7): a ring shared with the kernel.
//!
//! Timed loops are instructions on the ring's own words ([`Ring::words`]), whose addresses the crate io-uring does not expose.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::{io, sync::atomic::AtomicU32};

use crate::descriptor::owned;
use crate::prelude::*;

// include/uapi/linux/io_uring.h
const IORING_OFF_SQ_RING: libc::off_t = 0;
const IORING_OFF_SQES: libc::off_t = 0x1000_0000;
const IORING_FEAT_SINGLE_MMAP: u32 = 1;
const SQE: usize = 64;
const CQE: usize = 16;
const IORING_OP_FSYNC: u8 = 3;
const IORING_OP_READ: u8 = 22;
const IORING_OP_WRITE: u8 = 23;
/// The next entry starts when this one has completed.
const IOSQE_IO_LINK: u8 = 1 << 2;
const IORING_ENTER_GETEVENTS: u32 = 1;

pub(crate) fn refused(error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => skip!("this kernel has no io_uring"),
        Some(libc::EPERM | libc::EACCES) => {
            skip!("io_uring is disabled or forbidden (kernel.io_uring_disabled, seccomp)")
        }
        _ => Refusal::new("io_uring cannot be set up", error),
    }
}

#[repr(C)]
#[derive(Default)]
struct Offsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    // Submission: flags, dropped, array; completion: overflow, cqes, flags.
    more: [u32; 3],
    reserved: u32,
    user_address: u64,
}

#[repr(C)]
#[derive(Default)]
struct Parameters {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: Offsets,
    cq: Offsets,
}

/// A ring whose submission entries are initially no-operations. The kernel removes it when the descriptor closes.
pub(crate) struct Ring {
    descriptor: OwnedFd,
    rings: Mapping,
    entries: Mapping,
    count: u32,
    tail: u32,
    completion_head: u32,
    completion_tail: u32,
    completion_mask: u32,
    completions: u32,
}

impl Ring {
    /// Makes a ring with this number of entries, a power of two.
    pub fn new(entries: u32) -> io::Result<Self> {
        let mut parameters = Parameters::default();
        // SAFETY: the structure is io_uring_params as the kernel defines it (120 bytes).
        let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &mut parameters) };
        let descriptor = owned(made)?;
        if parameters.features & IORING_FEAT_SINGLE_MMAP == 0 {
            return Err(io::Error::other("the kernel is older than 5.4"));
        }
        let array = parameters.sq.more[2] as usize;
        let completions = parameters.cq.more[1] as usize;
        let submission_end = array + parameters.sq_entries as usize * 4;
        let completion_end = completions + parameters.cq_entries as usize * CQE;
        let map = |length: usize, offset: libc::off_t| {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            Mapping::new(length, access, flags, descriptor.as_raw_fd(), offset)
        };
        let rings = map(submission_end.max(completion_end), IORING_OFF_SQ_RING)?;
        let submissions = map(parameters.sq_entries as usize * SQE, IORING_OFF_SQES)?;
        for index in 0..parameters.sq_entries {
            // Slot n of the ring holds entry n. A zeroed entry is IORING_OP_NOP.
            // SAFETY: the index is within the array, the array within the mapping.
            unsafe { rings.address().add(array + index as usize * 4).cast::<u32>().write_volatile(index) };
        }
        Ok(Self {
            descriptor,
            rings,
            entries: submissions,
            count: parameters.sq_entries,
            tail: parameters.sq.tail,
            completion_head: parameters.cq.head,
            completion_tail: parameters.cq.tail,
            completion_mask: parameters.cq.ring_mask,
            completions: parameters.cq.more[1],
        })
    }

    /// Returns a loop's words: descriptor, batch, and addresses of submission tail, completion head and completion tail.
    pub fn words(&self, batch: u64) -> [u64; 7] {
        let address = |offset: u32| self.rings.address() as u64 + u64::from(offset);
        [
            self.descriptor.as_raw_fd() as u64,
            batch,
            address(self.tail),
            address(self.completion_head),
            address(self.completion_tail),
            0,
            0,
        ]
    }

    /// Makes entry `index` a read of `length` bytes at `offset` of a file into `buffer`. Returns false if there is no such entry.
    ///
    /// # Safety
    /// After submission the buffer must stay valid for writing until its completion is consumed.
    pub unsafe fn set_read(
        &mut self,
        index: u32,
        file: RawFd,
        offset: u64,
        buffer: *mut u8,
        length: u32,
    ) -> bool {
        if index >= self.count {
            return false;
        }
        let entry = Entry {
            opcode: IORING_OP_READ,
            file,
            offset,
            address: buffer as u64,
            length,
            user_data: u64::from(index),
            ..Entry::default()
        };
        // SAFETY: the entry lies within the mapping of entries, which the kernel only reads when it is submitted.
        unsafe { self.entries.address().add(index as usize * SQE).cast::<Entry>().write_volatile(entry) };
        true
    }

    /// Submits the first `batch` entries and waits for all of them. The tail of the ring must be a multiple of the number of
    /// entries, as after batches of all entries.
    #[inline(always)]
    pub fn submit_and_wait(&mut self, batch: u32) -> io::Result<u32> {
        let tail = self.word(self.tail);
        tail.store(tail.load(Relaxed).wrapping_add(batch), Release);
        let descriptor = self.descriptor.as_raw_fd();
        // SAFETY: the entries are prepared; no signal mask.
        let submitted = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                descriptor,
                batch,
                batch,
                IORING_ENTER_GETEVENTS,
                std::ptr::null::<libc::c_void>(),
                0,
            )
        };
        u32::try_from(submitted).map_err(|_| io::Error::last_os_error())
    }

    /// Queues an operation until the next [`Ring::enter`]. The caller queues no more than the ring has entries.
    ///
    /// # Safety
    /// After submission the buffer must stay valid until its completion is consumed. For a read nothing else may refer to it.
    #[inline(always)]
    pub unsafe fn put(&mut self, request: &Request) {
        let tail = self.word(self.tail);
        let at = tail.load(Relaxed);
        let entry = Entry {
            opcode: match request.what {
                What::Read => IORING_OP_READ,
                What::Write => IORING_OP_WRITE,
                What::Fsync => IORING_OP_FSYNC,
            },
            flags: if request.is_linked { IOSQE_IO_LINK } else { 0 },
            file: request.file,
            offset: request.offset,
            address: request.buffer as u64,
            length: request.length,
            operation_flags: request.flags,
            user_data: request.tag,
            ..Entry::default()
        };
        // Slot n holds entry n, and the number of entries is a power of two.
        let slot = (at & (self.count - 1)) as usize;
        // SAFETY: the slot lies within the mapping of entries; the kernel has read the one that was there (`enter`).
        unsafe { self.entries.address().add(slot * SQE).cast::<Entry>().write_volatile(entry) };
        tail.store(at.wrapping_add(1), Release);
    }

    /// Submits `submit` queued operations, and waits for at least `wait` completions.
    #[inline(always)]
    pub fn enter(&mut self, submit: u32, wait: u32) -> io::Result<u32> {
        let descriptor = self.descriptor.as_raw_fd();
        let nothing = std::ptr::null::<libc::c_void>();
        let flags = if wait > 0 { IORING_ENTER_GETEVENTS } else { 0 };
        // SAFETY: the entries are prepared; no signal mask.
        let submitted =
            unsafe { libc::syscall(libc::SYS_io_uring_enter, descriptor, submit, wait, flags, nothing, 0) };
        u32::try_from(submitted).map_err(|_| io::Error::last_os_error())
    }

    /// Consumes the completions: entry and result of each.
    pub fn take_completions(&mut self, mut each: impl FnMut(u64, i32)) -> u32 {
        let (head, tail) = (self.word(self.completion_head), self.word(self.completion_tail));
        let (begin, end) = (head.load(Relaxed), tail.load(Acquire));
        let mask = self.word(self.completion_mask).load(Relaxed);
        let mut at = begin;
        while at != end {
            let slot = self.completions as usize + (at & mask) as usize * CQE;
            // SAFETY: the slot lies within the mapping; the kernel wrote it before it moved the tail.
            let completion = unsafe { self.rings.address().add(slot).cast::<Completion>().read_volatile() };
            each(completion.user_data, completion.result);
            at = at.wrapping_add(1);
        }
        head.store(end, Release);
        end.wrapping_sub(begin)
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel's offset points to an aligned word within the shared mapping.
        unsafe { &*self.rings.address().add(offset as usize).cast::<AtomicU32>() }
    }
}

/// The type of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Read,
    Write,
    Fsync,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub what: What,
    pub file: RawFd,
    pub offset: u64,
    pub buffer: *mut u8,
    pub length: u32,
    /// Flags of preadv2(2) and pwritev2(2).
    pub flags: u32,
    /// Returned with the completion.
    pub tag: u64,
    /// The next operation starts when this one has completed.
    pub is_linked: bool,
}

/// `struct io_uring_sqe`.
#[repr(C)]
#[derive(Default)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    file: i32,
    offset: u64,
    address: u64,
    length: u32,
    operation_flags: u32,
    user_data: u64,
    more: [u64; 3],
}

/// `struct io_uring_cqe`.
#[repr(C)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submitted_reads_complete_with_their_data() {
        let mut ring = match Ring::new(4) {
            Ok(ring) => ring,
            Err(error) => return eprintln!("skipped: {:?}", refused(&error)),
        };
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        for _ in 0..3 {
            let mut buffers = [[0_u8; 4]; 4];
            for (index, buffer) in buffers.iter_mut().enumerate() {
                // SAFETY: the buffers live until all completions are consumed, below.
                assert!(unsafe { ring.set_read(index as u32, file.as_raw_fd(), 0, buffer.as_mut_ptr(), 4) });
            }
            assert_eq!(ring.submit_and_wait(4).expect("submitted"), 4);
            let mut seen = 0;
            assert_eq!(
                ring.take_completions(|entry, result| {
                    assert_eq!(result, 4);
                    seen |= 1 << entry;
                }),
                4
            );
            assert_eq!(seen, 0b1111);
            assert_eq!(buffers, [*b"\x7fELF"; 4]);
        }
        // SAFETY: refused before anything is written.
        assert!(!unsafe { ring.set_read(4, 0, 0, std::ptr::null_mut(), 0) });
    }
}
