//! The ways into the kernel and out of it, and what every crossing does there.

use super::{Entry, about, covers, moves};

pub(crate) static ENTRIES: &[Entry] = &[
    moves(
        "IA32_EMULATION",
        "int 0x80, 32-bit sysenter and syscall",
        "the entries of 32-bit programs are there",
        "arch/x86/entry/entry_64_compat.S",
    )
    .parameters(&["ia32_emulation"]),
    moves(
        "IA32_EMULATION_DEFAULT_DISABLED",
        "int 0x80, 32-bit sysenter and syscall",
        "32-bit programs are refused unless ia32_emulation=1 is given",
        "arch/x86/Kconfig",
    ),
    moves(
        "X86_X32_ABI",
        "system calls",
        "numbers with bit 30 have a table of their own, which the dispatch tries",
        "arch/x86/entry/syscall_64.c",
    )
    .formerly(&["X86_X32"]),
    moves(
        "X86_FRED",
        "every kernel entry",
        "where the processor has FRED, entry and return go by it instead of IDT, syscall and iret",
        "Documentation/arch/x86/x86_64/fred.rst",
    )
    .parameters(&["fred"]),
    moves(
        "X86_UMIP",
        "SGDT, SIDT, SLDT, SMSW, STR",
        "they trap in programs, and the kernel emulates them, an older one only some",
        "arch/x86/kernel/umip.c",
    )
    .formerly(&["X86_INTEL_UMIP"]),
    moves(
        "X86_SMAP",
        "kernel entries, copies, page faults",
        "where the processor has SMAP, copies from and to programs stand between STAC and CLAC",
        "arch/x86/Kconfig",
    )
    .without("newer kernels always have it")
    .parameters(&["nosmap"]),
    moves(
        "CONTEXT_TRACKING_USER",
        "every kernel entry",
        "on the processors of nohz_full= each crossing is told to RCU and to the accounting of time",
        "kernel/context_tracking.c",
    )
    .parameters(&["nohz_full"]),
    moves(
        "CONTEXT_TRACKING_USER_FORCE",
        "every kernel entry",
        "context tracking runs on every processor",
        "kernel/time/Kconfig",
    )
    .formerly(&["CONTEXT_TRACKING_FORCE"]),
    about("CONTEXT_TRACKING", "before 6.0 the tracking itself, since then only its frame"),
    moves(
        "VIRT_CPU_ACCOUNTING_GEN",
        "every kernel entry",
        "where context tracking runs, the clock is read at each crossing",
        "kernel/sched/cputime.c",
    ),
    moves(
        "AUDITSYSCALL",
        "system calls",
        "tasks that are audited take the slow way of every system call",
        "kernel/auditsc.c",
    )
    .parameters(&["audit"]),
    moves(
        "SECCOMP",
        "system calls",
        "a thread with a mode set takes the slow way of every system call",
        "kernel/seccomp.c",
    ),
    moves(
        "SECCOMP_FILTER",
        "system calls of filtered threads",
        "filters run at every system call, but for those that the cache of verdicts answers",
        "kernel/seccomp.c",
    ),
    moves(
        "RANDOMIZE_KSTACK_OFFSET_DEFAULT",
        "system calls",
        "each system call moves its stack by a random amount",
        "include/linux/randomize_kstack.h",
    )
    .parameters(&["randomize_kstack_offset"]),
    about("RANDOMIZE_KSTACK_OFFSET", "the offset can be switched on with randomize_kstack_offset=on"),
    moves(
        "KSTACK_ERASE",
        "every kernel exit",
        "the part of the kernel stack that was used is erased before the return to the program",
        "security/Kconfig.hardening",
    )
    .formerly(&["GCC_PLUGIN_STACKLEAK"]),
    moves(
        "STACKPROTECTOR",
        "everything in the kernel",
        "functions with arrays keep a canary and look at it when they return",
        "arch/Kconfig",
    )
    .formerly(&["CC_STACKPROTECTOR"]),
    moves(
        "STACKPROTECTOR_STRONG",
        "everything in the kernel",
        "more functions keep a canary: all with an array or an address on the stack",
        "arch/Kconfig",
    )
    .formerly(&["CC_STACKPROTECTOR_STRONG"]),
    moves(
        "ZERO_CALL_USED_REGS",
        "everything in the kernel",
        "every function clears the registers that it used before it returns",
        "security/Kconfig.hardening",
    ),
    moves(
        "X86_KERNEL_IBT",
        "indirect calls in the kernel",
        "where the processor has IBT, indirect branches must land on ENDBR",
        "arch/x86/Kconfig",
    )
    .parameters(&["ibt"]),
    about("FINEIBT", "with CFI and IBT the target checks its own type, unless cfi= says otherwise"),
    moves(
        "CFI",
        "indirect calls in the kernel",
        "each indirect call compares the type of its target first",
        "arch/Kconfig",
    )
    .formerly(&["CFI_CLANG"])
    .parameters(&["cfi"]),
    moves(
        "X86_USER_SHADOW_STACK",
        "signals, clone, context switches",
        "programs may have a shadow stack, which is kept up at signals and switches",
        "Documentation/arch/x86/shstk.rst",
    ),
    moves(
        "X86_INTEL_MEMORY_PROTECTION_KEYS",
        "context switches",
        "where threads differ in their rights by key, PKRU is written at the switch",
        "arch/x86/kernel/process_64.c",
    )
    .parameters(&["nopku"]),
    moves(
        "RSEQ",
        "returns after a switch or a signal",
        "a thread that registered has its sequence looked at on the way back to the program",
        "kernel/rseq.c",
    ),
    moves(
        "DEBUG_RSEQ",
        "system calls",
        "each return of a system call checks that it was not made within a restartable sequence",
        "kernel/rseq.c",
    ),
    moves(
        "MODIFY_LDT_SYSCALL",
        "context switches between LDT users",
        "programs may have an LDT, which is loaded when they are switched in",
        "arch/x86/kernel/ldt.c",
    ),
    moves(
        "X86_IOPL_IOPERM",
        "returns of threads with I/O ports",
        "the bitmap of a thread that asked for ports is brought into the TSS on the way back to it",
        "arch/x86/kernel/process.c",
    ),
    moves(
        "X86_16BIT",
        "returns to 16-bit segments",
        "with espfix, such a return goes by a stack of its own",
        "arch/x86/entry/entry_64.S",
    ),
    moves(
        "GENERIC_GETTIMEOFDAY",
        "reading the clock",
        "the clock is read in the vDSO, without entering the kernel",
        "lib/vdso/gettimeofday.c",
    )
    .without("x86 before 5.3 has a vDSO of its own")
    .parameters(&["vdso"]),
    moves(
        "VDSO_GETRANDOM",
        "getrandom",
        "random numbers are made in the vDSO, and the kernel is entered only for a new key",
        "lib/vdso/getrandom.c",
    ),
    moves(
        "LEGACY_VSYSCALL_EMULATE",
        "the old vsyscall page",
        "a call of it is a page fault that the kernel emulates; the page can be read",
        "arch/x86/entry/vsyscall/vsyscall_64.c",
    )
    .without("newer kernels do it for vsyscall=emulate alone")
    .parameters(&["vsyscall"]),
    moves(
        "LEGACY_VSYSCALL_NATIVE",
        "the old vsyscall page",
        "the page holds system calls, which are made as they are",
        "arch/x86/entry/vsyscall/vsyscall_64.c",
    ),
    moves(
        "LEGACY_VSYSCALL_XONLY",
        "the old vsyscall page",
        "a call of it is a page fault that the kernel emulates",
        "arch/x86/entry/vsyscall/vsyscall_64.c",
    ),
    moves(
        "LEGACY_VSYSCALL_NONE",
        "the old vsyscall page",
        "a call of it kills the program",
        "arch/x86/entry/vsyscall/vsyscall_64.c",
    ),
    moves(
        "JUMP_LABEL",
        "everything in the kernel",
        "what is switched off costs a nop instead of a test",
        "arch/Kconfig",
    ),
    moves(
        "CC_OPTIMIZE_FOR_SIZE",
        "everything in the kernel",
        "the compiler makes the kernel small instead of fast",
        "init/Kconfig",
    ),
    moves(
        "LTO_CLANG_THIN",
        "everything in the kernel",
        "the kernel is optimised across its files when it is linked",
        "arch/Kconfig",
    ),
    moves(
        "LTO_CLANG_FULL",
        "everything in the kernel",
        "the kernel is optimised as a whole when it is linked",
        "arch/Kconfig",
    ),
    moves(
        "IO_URING",
        "reading and writing files",
        "programs may hand over many operations with one system call, or none",
        "init/Kconfig",
    ),
    covers("VSYSCALL"),
    covers("LEGACY_VSYSCALL"),
    covers("X86_VSYSCALL"),
    covers("COMPAT_VDSO"),
    covers("VDSO"),
    covers("GENERIC_VDSO"),
    covers("GENERIC_ENTRY"),
    covers("GENERIC_SYSCALL"),
    covers("GENERIC_IRQ_ENTRY"),
    covers("X86_ESPFIX64"),
    covers("X86_MCE"),
    covers("IA32"),
    covers("COMPAT"),
    covers("COMPAT_32BIT_TIME"),
    covers("COMPAT_32"),
    covers("VM86"),
    covers("X86_LEGACY_VM86"),
    covers("CC_OPTIMIZE"),
    covers("LTO"),
    covers("HAVE_SECCOMP"),
];
