//! How memory is given out.

use super::{FactSpec, choice, line, number, one};
use crate::memory;

pub(super) const FACTS: &[FactSpec] = &[
    one("memory.total", memory::total, "The bytes of memory that the kernel manages."),
    one("memory.swap", memory::swap, "The bytes of swap space."),
    one("memory.thp", memory::huge_pages, "When memory comes in huge pages: always, madvise or never.")
        .moves("page faults and memory: a huge page is one fault and one TLB entry instead of 512"),
    choice(
        "memory.thp_defrag",
        "/sys/kernel/mm/transparent_hugepage/defrag",
        "When a fault waits until a huge page is put together.",
    )
    .moves("page faults: where it waits, a fault may compact memory first"),
    choice(
        "memory.thp_shmem",
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "When shared memory comes in huge pages.",
    )
    .moves("page faults of shared memory"),
    number("memory.reserved_huge_pages", "/proc/sys/vm/nr_hugepages", "How many huge pages are set aside."),
    number(
        "memory.ksm",
        "/sys/kernel/mm/ksm/run",
        "Whether equal pages are merged: 0 no, 1 yes, 2 unmerged.",
    )
    .moves("writes to merged pages: each is a fault and a copy"),
    line(
        "memory.lru_gen",
        "/sys/kernel/mm/lru_gen/enabled",
        "The parts of the multi-generational LRU that are on.",
    ),
    number(
        "memory.overcommit",
        "/proc/sys/vm/overcommit_memory",
        "Whether more memory may be promised than there is: 0 within reason, 1 always, 2 never.",
    )
    .moves("whether a large process can fork: where nothing is promised beyond what there is, it is refused"),
    number(
        "memory.swappiness",
        "/proc/sys/vm/swappiness",
        "How readily memory is swapped out rather than dropped, 0 to 200.",
    ),
    number("memory.max_map_count", "/proc/sys/vm/max_map_count", "How many mappings a process may have."),
    number("memory.mmap_min_addr", "/proc/sys/vm/mmap_min_addr", "The lowest address that may be mapped."),
];
