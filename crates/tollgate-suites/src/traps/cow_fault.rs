use super::handler::TRAP;
use super::memory::{Region, file_of};
use super::touched::{self, Before, Counting, SMALL, Touched};
use crate::prelude::*;

/// Limit for a batch: the file and the copies are 1 MiB each.
const MOST: usize = 256;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/cow-fault",
    operation: "One store to a page of a private file mapping that was only read before: a copy-on-write fault.",
    avoid: "Write to pages before they are shared, or map them shared.",
    source: "mmap(2), MAP_PRIVATE; Linux mm/memory.c, do_wp_page()",
    crosses: &[KernelEntry, Exception, KernelCode, PageFault, Tlb, KernelAllocation],
    beside: &[
        ("traps/minor-fault", "a fault that copies nothing"),
        ("traps/return", "the same where no call is around each store"),
    ],
    timed: |_| SMALL,
    counts: Some("minor faults"),
    kind: Kind::Instance(|timed, _, _| instance(timed)),
    ..TRAP
};

pub(super) fn instance(timed: Timed) -> Result<Instance> {
    let file = file_of(MOST * page_size())?;
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let region = Region::of_file(&file, MOST * page_size(), writable, libc::MAP_PRIVATE)?;
    region.small_pages();
    let touched = Touched { before: Before::Read, ..Touched::new(region, page_size(), 0, Counting::Faults) };
    touched.instance(timed, 1, touched::aligned(page_size()))
}
