use tollgate_model::Boundary::{
    Call, CompatEntry, ContextSwitch, Exception, IoUring, KernelCode, KernelEntry, KernelImage, PageFault,
    ProcessCreation, Random, SeccompFilter, Signal, SpecialInstruction, SystemCall, UserCopy, VdsoClock,
    Vsyscall,
};

use super::{Machine, Without};

/// The vDSO of 64-bit programs came in 2.6.23, that of 32-bit programs in 3.15.
const OWN_VDSO: &[Without] = &[
    Without::between((2, 6, 23), (5, 3, 0), "x86 before 5.3 has a vDSO of its own").on(Machine::X86_64),
    Without::between((3, 15, 0), (5, 3, 0), "x86 before 5.3 has a vDSO of its own").on(Machine::X86),
];

entries! {
    IA32_EMULATION [CompatEntry] "the entries of 32-bit programs are there"
        ("arch/x86/entry/entry_64_compat.S").parameters(&["ia32_emulation"]);
    IA32_EMULATION_DEFAULT_DISABLED [CompatEntry]
        "32-bit programs are refused unless ia32_emulation=1 is given" ("arch/x86/Kconfig");
    X86_X32_ABI [SystemCall] "numbers with bit 30 have a separate table, which the dispatch tries"
        ("arch/x86/entry/syscall_64.c").formerly(&["X86_X32"]);
    X86_FRED [KernelEntry, Exception]
        "where the processor has FRED, entry and return go by it instead of IDT, syscall and iret"
        ("Documentation/arch/x86/x86_64/fred.rst").parameters(&["fred"]);
    X86_UMIP [SpecialInstruction]
        "SGDT, SIDT, SLDT, SMSW and STR trap in programs, and the kernel emulates them, an older one only some"
        ("arch/x86/kernel/umip.c").formerly(&["X86_INTEL_UMIP"]);
    X86_SMAP [KernelEntry, UserCopy, PageFault]
        "where the processor has SMAP, copies from and to programs stand between STAC and CLAC"
        ("arch/x86/Kconfig").without(&[Without::since((5, 18, 0), "newer kernels always have it").on(Machine::X86)])
        .parameters(&["nosmap"]);
    CONTEXT_TRACKING_USER [KernelEntry]
        "on the processors of nohz_full= each crossing is reported to RCU and to the accounting of time"
        ("kernel/context_tracking.c").parameters(&["nohz_full"]);
    CONTEXT_TRACKING_USER_FORCE [KernelEntry] "context tracking runs on every processor"
        ("kernel/time/Kconfig").formerly(&["CONTEXT_TRACKING_FORCE"]);
    CONTEXT_TRACKING "before 6.0 the tracking itself, since then only its frame";
    VIRT_CPU_ACCOUNTING_GEN [KernelEntry] "where context tracking runs, the clock is read at each crossing"
        ("kernel/sched/cputime.c");
    AUDITSYSCALL [SystemCall] "tasks that are audited take the slow path of every system call"
        ("kernel/auditsc.c").parameters(&["audit"]);
    SECCOMP [SystemCall] "a thread with a mode set takes the slow path of every system call"
        ("kernel/seccomp.c");
    SECCOMP_FILTER [SystemCall, SeccompFilter]
        "filters run at every system call, but for those that the cache of verdicts answers"
        ("kernel/seccomp.c");
    RANDOMIZE_KSTACK_OFFSET_DEFAULT [SystemCall] "each system call shifts its stack by a random amount"
        ("include/linux/randomize_kstack.h").parameters(&["randomize_kstack_offset"]);
    RANDOMIZE_KSTACK_OFFSET "the offset can be enabled with randomize_kstack_offset=on";
    KSTACK_ERASE [KernelEntry]
        "the part of the kernel stack that was used is erased before the return to the program"
        ("security/Kconfig.hardening").formerly(&["GCC_PLUGIN_STACKLEAK"]);
    STACKPROTECTOR [KernelCode] "functions with arrays keep a canary and check it when they return"
        ("arch/Kconfig").formerly(&["CC_STACKPROTECTOR"]);
    STACKPROTECTOR_STRONG [KernelCode]
        "more functions keep a canary: all with an array or an address on the stack" ("arch/Kconfig")
        .formerly(&["CC_STACKPROTECTOR_STRONG"]);
    ZERO_CALL_USED_REGS [KernelCode] "every function clears the registers that it used before it returns"
        ("security/Kconfig.hardening");
    X86_KERNEL_IBT [KernelCode] "where the processor has IBT, indirect branches must land on ENDBR"
        ("arch/x86/Kconfig").parameters(&["ibt"]);
    FINEIBT "with CFI and IBT the target checks its own type, unless cfi= says otherwise";
    CFI [KernelCode] "each indirect call compares the type of its target first" ("arch/Kconfig")
        .formerly(&["CFI_CLANG"]).parameters(&["cfi"]);
    X86_USER_SHADOW_STACK [Signal, ProcessCreation, ContextSwitch, Call]
        "programs may have a shadow stack, which is kept up at signals and switches"
        ("Documentation/arch/x86/shstk.rst");
    X86_INTEL_MEMORY_PROTECTION_KEYS [ContextSwitch]
        "where threads differ in their rights by key, PKRU is written at the switch"
        ("arch/x86/kernel/process_64.c").parameters(&["nopku"]);
    RSEQ [ContextSwitch, Signal]
        "the sequence of a thread that registered is checked on the return to the program" ("kernel/rseq.c");
    DEBUG_RSEQ [SystemCall]
        "each return of a system call checks that it was not made within a restartable sequence"
        ("kernel/rseq.c");
    MODIFY_LDT_SYSCALL [ContextSwitch] "programs may have an LDT, which is loaded at the switch to them"
        ("arch/x86/kernel/ldt.c");
    X86_IOPL_IOPERM [ContextSwitch]
        "the bitmap of a thread that asked for ports is copied into the TSS on the return to it"
        ("arch/x86/kernel/process.c");
    X86_16BIT [KernelEntry] "with espfix, a return to a 16-bit segment uses a stack of its own"
        ("arch/x86/entry/entry_64.S");
    GENERIC_GETTIMEOFDAY [VdsoClock] "the clock is read in the vDSO, without entering the kernel"
        ("lib/vdso/gettimeofday.c").without(OWN_VDSO).parameters(&["vdso"]);
    VDSO_GETRANDOM [Random]
        "random numbers are generated in the vDSO, and the kernel is entered only for a new key"
        ("lib/vdso/getrandom.c");
    LEGACY_VSYSCALL_EMULATE [Vsyscall]
        "a call of it is a page fault that the kernel emulates; the page can be read"
        ("arch/x86/entry/vsyscall/vsyscall_64.c")
        .without(&[Without::since((5, 19, 0), "newer kernels do it for vsyscall=emulate alone").on(Machine::X86_64)])
        .parameters(&["vsyscall"]);
    LEGACY_VSYSCALL_NATIVE [Vsyscall] "the page holds system calls, which are made as they are"
        ("arch/x86/entry/vsyscall/vsyscall_64.c");
    LEGACY_VSYSCALL_XONLY [Vsyscall] "a call of it is a page fault that the kernel emulates"
        ("arch/x86/entry/vsyscall/vsyscall_64.c");
    LEGACY_VSYSCALL_NONE [Vsyscall] "a call of it kills the program"
        ("arch/x86/entry/vsyscall/vsyscall_64.c");
    JUMP_LABEL [KernelCode] "a feature that is switched off takes a nop instead of a test" ("arch/Kconfig");
    CC_OPTIMIZE_FOR_SIZE [KernelCode, KernelImage] "the compiler makes the kernel small instead of fast"
        ("init/Kconfig");
    LTO_CLANG_THIN [KernelCode, KernelImage] "the kernel is optimised across its files when it is linked"
        ("arch/Kconfig");
    LTO_CLANG_FULL [KernelCode, KernelImage] "the kernel is optimised as a whole when it is linked"
        ("arch/Kconfig");
    IO_URING [IoUring] "programs may hand over many operations with one system call, or none"
        ("init/Kconfig");
    _ => VSYSCALL LEGACY_VSYSCALL X86_VSYSCALL COMPAT_VDSO VDSO GENERIC_VDSO GENERIC_ENTRY GENERIC_SYSCALL
        GENERIC_IRQ_ENTRY X86_ESPFIX64 X86_MCE IA32 COMPAT COMPAT_32BIT_TIME COMPAT_32 VM86 X86_LEGACY_VM86
        CC_OPTIMIZE LTO HAVE_SECCOMP
}
