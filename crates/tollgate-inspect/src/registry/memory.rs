//! Memory management.

use tollgate_model::Boundary::{AddressSpaceCopy, PageFault, ProcessMemory, Tlb};

use super::{FactSpec, choice, line, number, one};
use crate::memory;

pub(super) const FACTS: &[FactSpec] = &[
    one("memory.total", memory::total, "The bytes of memory that the kernel manages."),
    one("memory.swap", memory::swap, "The bytes of swap space."),
    one("memory.thp", memory::huge_pages, "The use of transparent huge pages: always, madvise or never.")
        .affects(
            &[PageFault, Tlb, AddressSpaceCopy, ProcessMemory],
            "a huge page is one fault and one TLB entry instead of 512",
        ),
    choice(
        "memory.thp_defrag",
        "/sys/kernel/mm/transparent_hugepage/defrag",
        "When a fault waits for memory to be compacted for a huge page.",
    )
    .affects(&[PageFault], "a fault may compact memory first"),
    choice(
        "memory.thp_shmem",
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "The use of transparent huge pages for shared memory.",
    )
    .affects(&[PageFault], "a fault on shared memory may bring a huge page"),
    number("memory.reserved_huge_pages", "/proc/sys/vm/nr_hugepages", "The number of reserved huge pages."),
    number(
        "memory.ksm",
        "/sys/kernel/mm/ksm/run",
        "Whether KSM merges equal pages: 0 no, 1 yes, 2 unmerged.",
    )
    .affects(&[PageFault], "a write to a merged page faults and copies it"),
    line(
        "memory.lru_gen",
        "/sys/kernel/mm/lru_gen/enabled",
        "The parts of the multi-generational LRU that are on.",
    ),
    number(
        "memory.overcommit",
        "/proc/sys/vm/overcommit_memory",
        "The overcommit mode: 0 heuristic, 1 always, 2 never.",
    )
    .affects(&[AddressSpaceCopy], "strict accounting refuses the fork of a large process"),
    number(
        "memory.swappiness",
        "/proc/sys/vm/swappiness",
        "The preference for swapping over dropping page cache, 0 to 200.",
    ),
    number(
        "memory.max_map_count",
        "/proc/sys/vm/max_map_count",
        "The largest number of mappings of a process.",
    ),
    number("memory.mmap_min_addr", "/proc/sys/vm/mmap_min_addr", "The lowest address that may be mapped."),
];
