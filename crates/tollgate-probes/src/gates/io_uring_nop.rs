//! Many operations through one crossing.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, Refusal, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe, each, number};

// include/uapi/linux/io_uring.h
const IORING_OFF_SQ_RING: libc::off_t = 0;
const IORING_OFF_SQES: libc::off_t = 0x1000_0000;
const IORING_FEAT_SINGLE_MMAP: u32 = 1;
const SQE: usize = 64;
const CQE: usize = 16;

timed_loop! {
    /// Submits a batch of no-operations that lie ready in the ring, waits for all of them, and takes
    /// their completions off. Word 0: the ring's descriptor; 1: the batch; 2: submission tail; 3:
    /// completion head; 4: completion tail (all three addresses).
    ///
    /// On x86 a plain store is a release and a plain load an acquire, as the ring's protocol asks.
    submit_and_reap:
        "mov rcx, [r13 + 16]", "mov eax, [rcx]", "add eax, [r13 + 8]", "mov [rcx], eax",
        "mov rdi, [r13]", "mov rsi, [r13 + 8]", "mov rdx, rsi", "mov r10d, 1", "xor r8d, r8d", "xor r9d, r9d",
        "mov eax, 426",
        "syscall",
        "mov rcx, [r13 + 32]", "mov edx, [rcx]", "mov rcx, [r13 + 24]", "mov [rcx], edx"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/io-uring-nop",
    operation: "One io_uring no-operation, submitted and awaited in batches of this size by one SYSCALL each.",
    timed: |_| Timed::once("syscall", TimedLoop::Long(submit_and_reap)),
    cases: || each("batch", &[1, 8, 64]),
    arm: |probe, params| {
        let batch = number(params, "batch");
        let ring = Ring::new(batch as u32).map_err(refusal)?;
        let words = ring.words(batch);
        let submitted = move |result: u64| match result as i64 {
            count if count == batch as i64 => Ok(()),
            other => Err(format!("io_uring_enter returned {other} instead of {batch}")),
        };
        // SAFETY: the addresses lie in mappings that the arm owns; entries 0 to batch - 1 are
        // no-operations for good, and the kernel only reads them.
        Ok(unsafe { Loop::new((probe.timed)(params), words, Some(Box::new(ring)), submitted) }?
            .here()
            .with_ops(batch))
    },
    ..PLAIN
};

fn refusal(error: io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => Refusal::Skip("this kernel has no io_uring".to_owned()),
        Some(libc::EPERM | libc::EACCES) => Refusal::Skip(
            "io_uring is switched off or forbidden (kernel.io_uring_disabled, seccomp)".to_owned(),
        ),
        _ => Refusal::of("io_uring cannot be set up", &error),
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

/// A ring whose submission entries are all no-operations, in order. The kernel tears it down when the
/// descriptor closes; the mappings go with their owner.
struct Ring {
    descriptor: OwnedFd,
    rings: Mapping,
    _entries: Mapping,
    tail: u32,
    completion_head: u32,
    completion_tail: u32,
}

impl Ring {
    fn new(entries: u32) -> io::Result<Self> {
        let mut parameters = Parameters::default();
        // SAFETY: the structure is io_uring_params as the kernel defines it (120 bytes).
        let descriptor = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &mut parameters) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        if parameters.features & IORING_FEAT_SINGLE_MMAP == 0 {
            return Err(io::Error::other("the kernel is older than 5.4"));
        }
        let array = parameters.sq.more[2] as usize;
        let completions = parameters.cq.more[1] as usize;
        let submission_end = array + parameters.sq_entries as usize * 4;
        let completion_end = completions + parameters.cq_entries as usize * CQE;
        let rings = Mapping::new(&descriptor, IORING_OFF_SQ_RING, submission_end.max(completion_end))?;
        let submissions = Mapping::new(&descriptor, IORING_OFF_SQES, parameters.sq_entries as usize * SQE)?;
        for index in 0..parameters.sq_entries {
            // Slot n of the ring holds entry n. A zeroed entry is IORING_OP_NOP.
            // SAFETY: the index is within the array, the array within the mapping.
            unsafe { rings.address.add(array + index as usize * 4).cast::<u32>().write_volatile(index) };
        }
        Ok(Self {
            descriptor,
            rings,
            _entries: submissions,
            tail: parameters.sq.tail,
            completion_head: parameters.cq.head,
            completion_tail: parameters.cq.tail,
        })
    }

    fn words(&self, batch: u64) -> [u64; 7] {
        let address = |offset: u32| self.rings.address as u64 + u64::from(offset);
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
}

struct Mapping {
    address: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(descriptor: &OwnedFd, offset: libc::off_t, length: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                descriptor.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address: address.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `new` with this length; the loop that used it is gone with its arm.
        unsafe { libc::munmap(self.address.cast(), self.length) };
    }
}
