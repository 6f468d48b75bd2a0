//! Calls and faults that change an address space: threads share one, with its lock.

use std::io;

use tollgate_engine::users::{Operation, Seat, Work};

use super::cases::{SCALED, has_others, numbers, processes_only, threads_at_both_ends};
use super::work::calls;
use crate::prelude::*;
use crate::syscall::call;

pub const FAULT: Benchmark = Benchmark {
    name: "scaling/page-fault",
    operation: "The first store to a page of 4 KiB of private memory by each user; after 256 of them madvise gives the pages back.",
    avoid: "Reuse memory, touch it before it is needed (MAP_POPULATE), and use huge pages.",
    source: "will-it-scale, page_fault1.c; Documentation/mm/process_addrs.rst",
    crosses: &[Exception, PageFault, KernelAllocation, Tlb, CacheLine, TlbShootdown],
    crossed_in: of_one_address_space,
    timed: |_| Timed::Whole("a store; madvise(2) MADV_DONTNEED"),
    in_everything: threads_at_both_ends,
    ..SCALED
};

pub const MMAP: Benchmark = Benchmark {
    name: "scaling/mmap",
    operation: "mmap and munmap of 128 MiB of private memory that is not touched, by each user.",
    avoid: "Keep mappings, and let an allocator hand out parts of them.",
    source: "mmap(2); will-it-scale, mmap1.c; Documentation/mm/process_addrs.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("mmap(2), munmap(2)"),
    ..SCALED
};

pub const BRK: Benchmark = Benchmark {
    name: "scaling/brk",
    operation: "brk to a page more and back by each user, a process: the break of threads is that of this program's own heap.",
    avoid: "Use an allocator that keeps freed memory (M_TRIM_THRESHOLD).",
    source: "brk(2); will-it-scale, brk1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("brk(2)"),
    cases: |machine| processes_only(&numbers(machine).0),
    thorough_cases: |machine| processes_only(&numbers(machine).1),
    ..SCALED
};

pub const DOES_FAULT: Operation = Operation { prepare: faults, switches: false };
pub const DOES_MMAP: Operation = Operation { prepare: maps, switches: false };
pub const DOES_BRK: Operation = Operation { prepare: breaks, switches: false };

/// Threads that give pages back have the other processors forget them.
fn of_one_address_space(params: &Params, boundary: Boundary) -> bool {
    match boundary {
        CacheLine => has_others(params),
        TlbShootdown => has_others(params) && word(params, "kind") == "threads",
        _ => true,
    }
}

const PAGE: usize = 4096;

fn faults(_: Seat) -> io::Result<Box<dyn Work>> {
    const PAGES: usize = 256;
    let mapping = Mapping::anonymous(PAGES * PAGE, libc::MAP_PRIVATE)?;
    // A kernel without huge pages refuses this advice.
    let _ = mapping.advise(libc::MADV_NOHUGEPAGE);
    let mut next = 0;
    calls(move || {
        if next == PAGES {
            next = 0;
            let address = mapping.address() as u64;
            // SAFETY: the range is this mapping's, to which nothing else refers.
            let given_back = unsafe {
                call(libc::SYS_madvise, [address, (PAGES * PAGE) as u64, libc::MADV_DONTNEED as u64, 0])
            };
            if given_back < 0 {
                return given_back;
            }
        }
        // SAFETY: a byte of a page of the mapping.
        unsafe { mapping.address().add(next * PAGE).write_volatile(1) };
        next += 1;
        0
    })
}

fn maps(_: Seat) -> io::Result<Box<dyn Work>> {
    const BYTES: usize = 128 << 20;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let failed = || -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    calls(move || {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return failed();
        }
        // SAFETY: the mapping is new, and nothing refers to it.
        unsafe { call(libc::SYS_munmap, [address as u64, BYTES as u64, 0, 0]) }
    })
}

fn breaks(_: Seat) -> io::Result<Box<dyn Work>> {
    Ok(Box::new(Breaks))
}

/// Between two windows the allocator of this process may move the break, so that each begins where it is.
struct Breaks;

impl Work for Breaks {
    fn make(&mut self, times: u64) -> Result<(), i32> {
        // SAFETY: the call takes an address; nothing is taken from the allocator, since the break ends where it was.
        let brk = |to: u64| unsafe { call(libc::SYS_brk, [to, 0, 0, 0]) };
        let now = brk(0);
        let more = now + PAGE as i64;
        for _ in 0..times {
            // The call returns the break, also where it did not move.
            if [brk(more as u64), brk(now as u64)] != [more, now] {
                return Err(libc::ENOMEM);
            }
        }
        Ok(())
    }
}
