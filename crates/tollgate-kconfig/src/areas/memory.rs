use tollgate_model::Boundary::{
    AddressSpaceCopy, CacheLine, KernelAllocation, KernelCode, MemoryAccess, PageCache, PageFault,
    ProcessCreation, ProcessExit, Tlb, TlbShootdown, UserCopy,
};

use super::{Machine, Without};

const HARDENING: &str = "security/Kconfig.hardening";
const MM: &str = "mm/Kconfig";

entries! {
    TRANSPARENT_HUGEPAGE [PageFault, Tlb, AddressSpaceCopy]
        "memory can come in pages of 2 MiB: fewer faults, each slower"
        ("Documentation/admin-guide/mm/transhuge.rst").parameters(&["transparent_hugepage"]);
    TRANSPARENT_HUGEPAGE_ALWAYS [PageFault, AddressSpaceCopy] "by default all memory may be huge pages" (MM);
    TRANSPARENT_HUGEPAGE_MADVISE [PageFault, AddressSpaceCopy] "by default only memory with MADV_HUGEPAGE is"
        (MM);
    TRANSPARENT_HUGEPAGE_NEVER [PageFault, AddressSpaceCopy] "by default no memory is" (MM);
    NUMA [KernelAllocation, PageFault, MemoryAccess, CacheLine]
        "memory is taken from the node of the processor that asks" ("arch/x86/Kconfig").parameters(&["numa"]);
    NUMA_BALANCING [PageFault]
        "the kernel unmaps pages now and then to see which threads use them: faults that programs did not cause"
        ("init/Kconfig").parameters(&["numa_balancing"]);
    NUMA_BALANCING_DEFAULT_ENABLED "balancing is on where there are several nodes";
    MEM_ALLOC_PROFILING [KernelAllocation]
        "where it is switched on, each allocation is counted for the line of code that makes it"
        ("lib/Kconfig.debug").parameters(&["sysctl.vm.mem_profiling"]);
    INIT_ON_ALLOC_DEFAULT_ON [KernelAllocation] "pages and objects are zeroed when they are handed out"
        (HARDENING).parameters(&["init_on_alloc"]);
    INIT_ON_FREE_DEFAULT_ON [KernelAllocation, ProcessExit]
        "pages and objects are zeroed when they come back" (HARDENING).parameters(&["init_on_free"]);
    INIT_STACK_ALL_ZERO [KernelCode] "variables on the stack are zeroed" (HARDENING);
    INIT_STACK_ALL_PATTERN [KernelCode] "variables on the stack are filled with a pattern" (HARDENING)
        .formerly(&["INIT_STACK_ALL"]);
    HARDENED_USERCOPY [UserCopy] "each copy whose length is not fixed checks that it stays within its object"
        ("mm/usercopy.c").parameters(&["hardened_usercopy"]);
    HARDENED_USERCOPY_DEFAULT_ON "copies are checked unless hardened_usercopy= says otherwise"
        .without(&[Without::between((4, 8, 0), (6, 15, 0), "older kernels check wherever they have HARDENED_USERCOPY")]);
    FORTIFY_SOURCE [KernelCode, UserCopy] "copies whose size is not known to the compiler check bounds"
        ("include/linux/fortify-string.h");
    SLAB_FREELIST_HARDENED [KernelAllocation]
        "pointers in the lists of free objects are disguised and checked" ("mm/Kconfig");
    SLAB_FREELIST_RANDOM [KernelAllocation] "free objects are handed out in random order" (MM);
    RANDOM_KMALLOC_CACHES [KernelAllocation] "each place that allocates uses one of 16 copies of the caches"
        (MM);
    SLAB_BUCKETS [KernelAllocation] "objects whose size programs choose have caches of their own" (MM);
    SLUB_CPU_PARTIAL [KernelAllocation] "each processor keeps partly used slabs: fewer locks, less even" (MM);
    SLUB_STATS [KernelAllocation] "events of each processor and cache are counted" (MM);
    SLUB_TINY [KernelAllocation] "small instead of fast: no objects are kept per processor" (MM);
    SLAB "the allocator before SLUB, which kernels from 6.8 on do not have";
    SHUFFLE_PAGE_ALLOCATOR [KernelAllocation, PageFault]
        "free pages are shuffled where page_alloc.shuffle says so" (MM).parameters(&["page_alloc.shuffle"]);
    VMAP_STACK [ProcessCreation] "kernel stacks are mapped with a guard page; two per processor are cached"
        ("kernel/fork.c");
    PER_VMA_LOCK [PageFault] "a fault locks one mapping instead of the whole address space" (MM);
    SPLIT_PTE_PTLOCKS [PageFault] "each page table has a lock of its own" (MM)
        .without(&[Without::between((2, 6, 15), (6, 12, 0), "older kernels have it by SPLIT_PTLOCK_CPUS")]);
    BROADCAST_TLB_FLUSH [TlbShootdown]
        "where the processor has INVLPGB, other processors are not interrupted to flush"
        ("arch/x86/mm/tlb.c");
    PT_RECLAIM [PageFault] "page tables that madvise leaves empty are given back as well" (MM);
    LRU_GEN [PageFault, PageCache]
        "where LRU_GEN_ENABLED or lru_gen/enabled in sysfs says so, pages are aged in generations"
        ("Documentation/mm/multigen_lru.rst");
    LRU_GEN_ENABLED "pages are aged in generations unless lru_gen/enabled in sysfs says otherwise";
    KSM [PageFault] "where root lets it run, equal pages are merged, and a write copies them again" (MM);
    MEM_SOFT_DIRTY [PageFault] "writes can be tracked by faults" (MM);
    USERFAULTFD [PageFault] "programs can answer faults themselves" (MM);
    READ_ONLY_THP_FOR_FS [PageFault] "code of programs can come in pages of 2 MiB" (MM);
    ZSWAP [PageFault] "where it is enabled, pages are compressed before they are swapped" (MM)
        .parameters(&["zswap.enabled"]);
    X86_5LEVEL [Tlb, PageFault] "where the processor has it, page walks have five levels"
        ("Documentation/arch/x86/x86_64/5level-paging.rst")
        .without(&[Without::since((6, 16, 0), "newer kernels always have it").on(Machine::X86_64)])
        .parameters(&["no5lvl"]);
    ADDRESS_MASKING [UserCopy] "pointers of programs may have tags, which are removed" ("arch/x86/Kconfig");
    PGTABLE_LEVELS "levels of a page walk that the kernel is built for";
    _ => MEMORY MMU MM SLUB SLOB SPARSEMEM FLATMEM HUGETLB HUGETLBFS HUGETLB_PAGE COMPACTION MIGRATION CMA
        SWAP ZRAM ZPOOL ZBUD Z3FOLD ZSMALLOC ZONE DEFERRED_STRUCT_PAGE_INIT PAGE_REPORTING PAGE_POOL
        PAGE_MAPCOUNT NO_PAGE_MAPCOUNT PERSISTENT_HUGE_ZERO_FOLIO SPLIT_PTLOCK_CPUS SPLIT_PMD_PTLOCKS DAMON
        SHMEM SECRETMEM ANON_VMA_NAME BALLOON_COMPACTION THP NODES AMD_NUMA X86_64_ACPI_NUMA X86_PAT MTRR
        ARCH_MMAP_RND_BITS ARCH_MMAP_RND_COMPAT_BITS IDLE_PAGE_TRACKING VM_EVENT_COUNTERS PERCPU
}
