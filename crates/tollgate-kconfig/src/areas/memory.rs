//! Pages, allocators, and copies between programs and the kernel.

use super::{Entry, about, covers, moves};

const HARDENING: &str = "security/Kconfig.hardening";
const MM: &str = "mm/Kconfig";

pub(crate) static ENTRIES: &[Entry] = &[
    moves(
        "TRANSPARENT_HUGEPAGE",
        "page faults, TLB misses, fork",
        "memory can come in pages of 2 MiB: fewer faults, each dearer",
        "Documentation/admin-guide/mm/transhuge.rst",
    )
    .parameters(&["transparent_hugepage"]),
    moves(
        "TRANSPARENT_HUGEPAGE_ALWAYS",
        "page faults, fork",
        "unless told otherwise all memory may be huge pages",
        MM,
    ),
    moves(
        "TRANSPARENT_HUGEPAGE_MADVISE",
        "page faults, fork",
        "unless told otherwise only memory with MADV_HUGEPAGE is",
        MM,
    ),
    moves("TRANSPARENT_HUGEPAGE_NEVER", "page faults, fork", "unless told otherwise no memory is", MM),
    moves(
        "NUMA",
        "allocation, lines between nodes",
        "memory is taken from the node of the processor that asks",
        "arch/x86/Kconfig",
    )
    .parameters(&["numa"]),
    moves(
        "NUMA_BALANCING",
        "page faults",
        "pages are unmapped now and then to see who uses them: faults that programs did not cause",
        "init/Kconfig",
    )
    .parameters(&["numa_balancing"]),
    about("NUMA_BALANCING_DEFAULT_ENABLED", "balancing is on where there are several nodes"),
    moves(
        "MEM_ALLOC_PROFILING",
        "allocation in the kernel",
        "where it is switched on, each allocation is counted for the line of code that makes it",
        "lib/Kconfig.debug",
    )
    .parameters(&["sysctl.vm.mem_profiling"]),
    moves(
        "INIT_ON_ALLOC_DEFAULT_ON",
        "whatever takes memory in the kernel",
        "pages and objects are zeroed when they are handed out",
        HARDENING,
    )
    .parameters(&["init_on_alloc"]),
    moves(
        "INIT_ON_FREE_DEFAULT_ON",
        "whatever gives memory back in the kernel",
        "pages and objects are zeroed when they come back",
        HARDENING,
    )
    .parameters(&["init_on_free"]),
    moves("INIT_STACK_ALL_ZERO", "everything in the kernel", "variables on the stack are zeroed", HARDENING),
    moves(
        "INIT_STACK_ALL_PATTERN",
        "everything in the kernel",
        "variables on the stack are filled with a pattern",
        HARDENING,
    )
    .formerly(&["INIT_STACK_ALL"]),
    moves(
        "HARDENED_USERCOPY",
        "read, write and other copies",
        "each copy whose length is not fixed checks that it stays within its object",
        "mm/usercopy.c",
    )
    .parameters(&["hardened_usercopy"]),
    about("HARDENED_USERCOPY_DEFAULT_ON", "copies are checked unless hardened_usercopy= says otherwise")
        .without("older kernels check wherever they have HARDENED_USERCOPY"),
    moves(
        "FORTIFY_SOURCE",
        "copies in the kernel",
        "copies whose size is not known to the compiler check bounds",
        "include/linux/fortify-string.h",
    ),
    moves(
        "SLAB_FREELIST_HARDENED",
        "allocation in the kernel",
        "pointers in the lists of free objects are disguised and checked",
        "mm/Kconfig",
    ),
    moves(
        "SLAB_FREELIST_RANDOM",
        "allocation in the kernel",
        "free objects are handed out in random order",
        MM,
    ),
    moves(
        "RANDOM_KMALLOC_CACHES",
        "allocation in the kernel",
        "each place that allocates uses one of 16 copies of the caches",
        MM,
    ),
    moves(
        "SLAB_BUCKETS",
        "allocation in the kernel",
        "objects whose size programs choose have caches of their own",
        MM,
    ),
    moves(
        "SLUB_CPU_PARTIAL",
        "allocation in the kernel",
        "each processor keeps partly used slabs: fewer locks, less even",
        MM,
    ),
    moves(
        "SLUB_STATS",
        "allocation in the kernel",
        "what each processor does with each cache is counted",
        MM,
    ),
    moves(
        "SLUB_TINY",
        "allocation in the kernel",
        "small instead of fast: no objects are kept per processor",
        MM,
    ),
    about("SLAB", "the allocator before SLUB, which kernels from 6.8 on do not have"),
    moves(
        "SHUFFLE_PAGE_ALLOCATOR",
        "allocation of pages",
        "free pages are shuffled where page_alloc.shuffle says so",
        MM,
    )
    .parameters(&["page_alloc.shuffle"]),
    moves(
        "VMAP_STACK",
        "making a thread",
        "kernel stacks are mapped with a guard page; two per processor are kept",
        "kernel/fork.c",
    ),
    moves(
        "PER_VMA_LOCK",
        "page faults of threads at once",
        "a fault locks one mapping instead of the whole address space",
        MM,
    ),
    moves("SPLIT_PTE_PTLOCKS", "page faults of threads at once", "each page table has a lock of its own", MM)
        .without("older kernels have it by SPLIT_PTLOCK_CPUS"),
    moves(
        "BROADCAST_TLB_FLUSH",
        "unmapping with several threads",
        "where the processor has INVLPGB, other processors are not interrupted to flush",
        "arch/x86/mm/tlb.c",
    ),
    moves(
        "PT_RECLAIM",
        "giving memory back",
        "page tables that madvise leaves empty are given back as well",
        MM,
    ),
    moves(
        "LRU_GEN",
        "page faults, reclaim",
        "where LRU_GEN_ENABLED or lru_gen/enabled in sysfs says so, pages are aged in generations",
        "Documentation/mm/multigen_lru.rst",
    ),
    about("LRU_GEN_ENABLED", "pages are aged in generations unless lru_gen/enabled in sysfs says otherwise"),
    moves(
        "KSM",
        "page faults on merged memory",
        "where root lets it run, equal pages are merged, and a write copies them again",
        MM,
    ),
    moves("MEM_SOFT_DIRTY", "page faults on writing", "writes can be tracked by faults", MM),
    moves("USERFAULTFD", "page faults", "programs can answer faults themselves", MM),
    moves("READ_ONLY_THP_FOR_FS", "page faults on code", "code of programs can come in pages of 2 MiB", MM),
    moves(
        "ZSWAP",
        "page faults on swapped memory",
        "where it is enabled, pages are compressed before they are swapped",
        MM,
    )
    .parameters(&["zswap.enabled"]),
    moves(
        "X86_5LEVEL",
        "TLB misses",
        "where the processor has it, page walks have five levels",
        "Documentation/arch/x86/x86_64/5level-paging.rst",
    )
    .without("newer kernels always have it")
    .parameters(&["no5lvl"]),
    moves(
        "ADDRESS_MASKING",
        "copies from and to programs",
        "pointers of programs may have tags, which are taken off",
        "arch/x86/Kconfig",
    ),
    about("PGTABLE_LEVELS", "levels of a page walk that the kernel is built for"),
    covers("MEMORY"),
    covers("MMU"),
    covers("MM"),
    covers("SLUB"),
    covers("SLOB"),
    covers("SPARSEMEM"),
    covers("FLATMEM"),
    covers("HUGETLB"),
    covers("HUGETLBFS"),
    covers("HUGETLB_PAGE"),
    covers("COMPACTION"),
    covers("MIGRATION"),
    covers("CMA"),
    covers("SWAP"),
    covers("ZRAM"),
    covers("ZPOOL"),
    covers("ZBUD"),
    covers("Z3FOLD"),
    covers("ZSMALLOC"),
    covers("ZONE"),
    covers("DEFERRED_STRUCT_PAGE_INIT"),
    covers("PAGE_REPORTING"),
    covers("PAGE_POOL"),
    covers("PAGE_MAPCOUNT"),
    covers("NO_PAGE_MAPCOUNT"),
    covers("PERSISTENT_HUGE_ZERO_FOLIO"),
    covers("SPLIT_PTLOCK_CPUS"),
    covers("SPLIT_PMD_PTLOCKS"),
    covers("DAMON"),
    covers("SHMEM"),
    covers("SECRETMEM"),
    covers("ANON_VMA_NAME"),
    covers("BALLOON_COMPACTION"),
    covers("THP"),
    covers("NODES"),
    covers("AMD_NUMA"),
    covers("X86_64_ACPI_NUMA"),
    covers("X86_PAT"),
    covers("MTRR"),
    covers("ARCH_MMAP_RND_BITS"),
    covers("ARCH_MMAP_RND_COMPAT_BITS"),
    covers("IDLE_PAGE_TRACKING"),
    covers("VM_EVENT_COUNTERS"),
    covers("PERCPU"),
];
