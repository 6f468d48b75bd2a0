//! The kernel's checks of itself. Most of them slow everything down, some many times over.

use tollgate_model::Boundary::{
    AddressSpaceCopy, BlockRead, BlockWrite, ContextSwitch, IdleExit, InterProcessorInterrupt,
    KernelAllocation, KernelCode, KernelEntry, PageFault, ProcessCreation, ProcessExit, Socket, Timer, Tlb,
    TlbShootdown, WakeUp,
};

use super::Without;

const DEBUG: &str = "lib/Kconfig.debug";

entries! {
    DEBUG_ENTRY [KernelEntry] "the entry code checks the state that it comes from and goes to"
        ("arch/x86/Kconfig.debug");
    DEBUG_PREEMPT [KernelCode] "each use of this processor's number checks that it cannot change" (DEBUG);
    LOCKDEP [KernelCode] "each lock taken is checked against all orders seen"
        ("Documentation/locking/lockdep-design.rst");
    PROVE_LOCKING [KernelCode] "orders of locks are proved right while the kernel runs" (DEBUG);
    DEBUG_LOCK_ALLOC [KernelCode] "freeing a held lock is detected; mutexes lose their fast path" (DEBUG);
    DEBUG_SPINLOCK [KernelCode] "locks know their owner, and check it" (DEBUG);
    DEBUG_MUTEXES [KernelCode] "mutexes check how they are used" (DEBUG);
    DEBUG_RT_MUTEXES [KernelCode] "mutexes check their use" (DEBUG);
    DEBUG_RWSEMS [KernelCode] "semaphores of readers and writers check their use" (DEBUG);
    LOCK_STAT [KernelCode] "waiting for and holding each lock is timed"
        ("Documentation/locking/lockstat.rst");
    LOCK_EVENT_COUNTS [KernelCode] "events at locks are counted" ("arch/Kconfig");
    DEBUG_ATOMIC_SLEEP [KernelCode] "functions that may sleep check that they are allowed to" (DEBUG);
    DEBUG_IRQFLAGS [KernelCode, KernelEntry] "switching interrupts on and off is checked" (DEBUG);
    DEBUG_LIST [KernelCode] "changes of lists check their neighbours" (DEBUG);
    LIST_HARDENED [KernelCode] "changes of lists make the fast checks of their neighbours"
        ("security/Kconfig.hardening");
    DEBUG_VM [PageFault, AddressSpaceCopy] "the management of memory checks itself" (DEBUG);
    DEBUG_VM_PGFLAGS [PageFault] "flags of pages are checked whenever they are used" (DEBUG);
    DEBUG_VIRTUAL [PageFault, KernelAllocation] "turning addresses into pages checks the addresses" (DEBUG);
    DEBUG_PAGEALLOC [PageFault, KernelAllocation] "free pages can be unmapped" ("mm/Kconfig.debug")
        .parameters(&["debug_pagealloc"]);
    DEBUG_OBJECTS [Timer, KernelAllocation] "the lives of objects can be tracked, kind by kind" (DEBUG);
    DEBUG_KMEMLEAK [KernelAllocation] "each allocation is recorded, and memory searched for pointers"
        ("Documentation/dev-tools/kmemleak.rst");
    DEBUG_CREDENTIALS [ProcessCreation, ProcessExit] "credentials are checked" (DEBUG);
    DEBUG_NOTIFIERS [KernelCode] "each call of a chain of notifiers is checked" (DEBUG);
    DEBUG_SG [BlockRead, BlockWrite] "lists of buffers are checked" (DEBUG);
    DEBUG_NET [Socket] "the network code checks itself" ("net/Kconfig.debug");
    KASAN [KernelCode] "each access to memory looks at a shadow of it" ("Documentation/dev-tools/kasan.rst");
    KMSAN [KernelCode] "uses of memory that was never written are tracked"
        ("Documentation/dev-tools/kmsan.rst");
    KCSAN [KernelCode] "accesses are watched for races, some of them delayed"
        ("Documentation/dev-tools/kcsan.rst");
    UBSAN [KernelCode] "arithmetic and indices check what the language leaves undefined"
        ("Documentation/dev-tools/ubsan.rst");
    UBSAN_BOUNDS [KernelCode] "indices of arrays check their bounds" ("lib/Kconfig.ubsan");
    KFENCE [KernelAllocation] "now and then an object lies beside a guard page"
        ("Documentation/dev-tools/kfence.rst").parameters(&["kfence.sample_interval"]);
    KCOV [KernelCode] "each branch records that it was taken, for tasks that ask"
        ("Documentation/dev-tools/kcov.rst");
    GCOV_KERNEL [KernelCode] "branches count how often they are taken" ("Documentation/dev-tools/gcov.rst");
    SLUB_DEBUG_ON [KernelAllocation] "objects are filled, fenced and checked" ("mm/Kconfig.debug")
        .parameters(&["slub_debug", "slab_debug"]);
    PAGE_POISONING [KernelAllocation, PageFault] "free pages can be filled with a pattern, and checked"
        ("mm/Kconfig.debug").parameters(&["page_poison"]);
    PAGE_OWNER [KernelAllocation, PageFault] "the kernel can record which code took a page"
        ("mm/Kconfig.debug").parameters(&["page_owner"]);
    PAGE_TABLE_CHECK [PageFault, AddressSpaceCopy] "entries of page tables can be checked"
        ("mm/Kconfig.debug").parameters(&["page_table_check"]);
    PAGE_TABLE_CHECK_ENFORCED "page tables are checked unless page_table_check=off is given";
    SCHED_DEBUG "files that show the scheduler; the help of the option calls their overhead minimal"
        .without(&[Without::since((6, 15, 0), "newer kernels always have it")]);
    SCHED_STACK_END_CHECK [ContextSwitch] "the end of the stack is checked" (DEBUG);
    LATENCYTOP [ContextSwitch, WakeUp]
        "where it is switched on, the stack of each thread that waited is recorded" ("kernel/latencytop.c");
    PROVE_RCU [KernelCode] "each reader is checked" ("kernel/rcu/Kconfig.debug");
    RCU_EQS_DEBUG [KernelEntry, IdleExit] "RCU checks each time that it begins or ends to watch a processor"
        ("kernel/rcu/Kconfig.debug");
    CSD_LOCK_WAIT_DEBUG [InterProcessorInterrupt, TlbShootdown]
        "waiting for another processor is watched where csdlock_debug= says so" (DEBUG)
        .parameters(&["csdlock_debug"]);
    X86_DEBUG_FPU [ContextSwitch] "the state of the FPU is checked" ("arch/x86/Kconfig.debug");
    DEBUG_TLBFLUSH [Tlb, TlbShootdown] "flushes are counted" ("include/linux/vmstat.h");
    FAULT_INJECTION "the frame of failures that can be injected";
    FAILSLAB [KernelAllocation] "each allocation of an object asks whether it is to fail" (DEBUG);
    FAIL_PAGE_ALLOC [KernelAllocation, PageFault] "each allocation of pages asks whether it is to fail"
        (DEBUG);
    BUG_ON_DATA_CORRUPTION [KernelCode] "damaged lists stop the kernel, so they are checked"
        ("security/Kconfig.hardening");
    TRACE_IRQFLAGS [KernelCode, KernelEntry] "switching interrupts on and off is followed" (DEBUG);
    DEBUG_INFO "larger files, the same code";
    DEBUG_FS "files for debugging, without overhead unless they are read";
    _ => DEBUG HAVE_DEBUG HAVE_KCSAN HAVE_ARCH_KASAN HAVE_ARCH_KMSAN HAVE_ARCH_KCSAN ARCH_HAS_UBSAN
        ARCH_HAS_DEBUG GCOV LOCKUP_DETECTOR SOFTLOCKUP HARDLOCKUP DETECT_HUNG_TASK BOOTPARAM KGDB KUNIT TEST
        RUNTIME_TESTING_MENU LKDTM MAGIC_SYSRQ PANIC FAIL FAULT PAGE_EXTENSION PTDUMP DYNAMIC_DEBUG
        EARLY_PRINTK CRASH CONSISTENT_BUG
}
