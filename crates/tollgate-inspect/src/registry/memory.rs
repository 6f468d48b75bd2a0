use tollgate_model::Boundary::{AddressSpaceCopy, PageFault, ProcessMemory, Tlb};

use crate::memory;

facts! {
    pub(super) FACTS
    "memory.total" Of(memory::total) "The bytes of memory that the kernel manages.";
    "memory.page_size" Of(memory::page_size) "The bytes of a page: 4 KiB, on arm64 also 16 or 64 KiB."
        [PageFault, Tlb, AddressSpaceCopy, ProcessMemory]
        "larger pages are fewer faults and TLB entries, each with more to clear and to copy";
    "memory.swap" Of(memory::listed, "SwapTotal") "The bytes of swap space.";
    "memory.thp" Choice("/sys/kernel/mm/transparent_hugepage/enabled")
        "The use of transparent huge pages: always, madvise or never."
        [PageFault, Tlb, AddressSpaceCopy, ProcessMemory]
        "a huge page is one fault and one TLB entry instead of hundreds";
    "memory.thp_defrag" Choice("/sys/kernel/mm/transparent_hugepage/defrag")
        "When a fault waits for memory to be compacted for a huge page."
        [PageFault] "a fault may compact memory first";
    "memory.thp_shmem" Choice("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
        "The use of transparent huge pages for shared memory."
        [PageFault] "a fault on shared memory may bring a huge page";
    "memory.reserved_huge_pages" Number("/proc/sys/vm/nr_hugepages") "The number of reserved huge pages.";
    "memory.ksm" Number("/sys/kernel/mm/ksm/run") "Whether KSM merges equal pages: 0 no, 1 yes, 2 unmerged."
        [PageFault] "a write to a merged page faults and copies it";
    "memory.lru_gen" Line("/sys/kernel/mm/lru_gen/enabled")
        "The parts of the multi-generational LRU that are on.";
    "memory.overcommit" Number("/proc/sys/vm/overcommit_memory")
        "The overcommit mode: 0 heuristic, 1 always, 2 never."
        [AddressSpaceCopy] "strict accounting refuses the fork of a large process";
    "memory.swappiness" Number("/proc/sys/vm/swappiness")
        "The preference for swapping over dropping page cache, 0 to 200.";
    "memory.max_map_count" Number("/proc/sys/vm/max_map_count")
        "The largest number of mappings of a process.";
    "memory.mmap_min_addr" Number("/proc/sys/vm/mmap_min_addr") "The lowest address that may be mapped.";
}
