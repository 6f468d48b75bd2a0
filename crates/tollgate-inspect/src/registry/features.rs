use tollgate_model::Boundary::{
    Atomic, Call, ClockSource, CompatFastEntry, ContextSwitch, Exception, IdleExit, InterProcessorInterrupt,
    KernelEntry, LockContention, MemoryAccess, PageFault, Signal, SpecialInstruction, SplitLock,
    StoreForwarding, SystemCall, Timer, Tlb, TlbShootdown, UserCopy, VdsoClock, VdsoGetcpu,
};

use crate::leaves::Register::{Eax, Ebx, Ecx, Edx};

facts! {
    pub(super) FACTS
    "cpu.feature.fred" Feature(7, 1, Eax, 17) "Flexible return and event delivery."
        [KernelEntry, Exception]
        "FRED delivers events without a walk of the interrupt table and returns without IRET";
    "cpu.feature.lkgs" Feature(7, 1, Eax, 18) "Loading the kernel's GS base without SWAPGS.";
    "cpu.feature.fsgsbase" Feature(7, 0, Ebx, 0) "Reading and writing FS and GS bases in user mode."
        [ContextSwitch, Exception]
        "the kernel writes the FS and GS bases without an MSR write, at switches and at paranoid entries";
    "cpu.feature.pcid" Feature(1, 0, Ecx, 17) "Process-context identifiers in page-table switches."
        [KernelEntry, ContextSwitch]
        "without PCID each switch of page tables empties the TLB, under PTI at each crossing";
    "cpu.feature.invpcid" Feature(7, 0, Ebx, 10) "Invalidating TLB entries of a chosen context.";
    "cpu.feature.smep" Feature(7, 0, Ebx, 7) "The kernel cannot execute user pages.";
    "cpu.feature.smap" Feature(7, 0, Ebx, 20) "The kernel cannot access user pages while RFLAGS.AC is clear."
        [KernelEntry, UserCopy] "STAC and CLAC surround each user copy, and each entry runs CLAC";
    "cpu.feature.umip" Feature(7, 0, Ecx, 2) "User mode cannot read descriptor-table registers."
        [SpecialInstruction]
        "SGDT, SIDT, SLDT, STR and SMSW fault in user mode; the kernel emulates them or kills the program";
    "cpu.feature.rdtscp" Feature(0x8000_0001, 0, Edx, 27)
        "Reading the time-stamp counter together with the processor's number."
        [VdsoClock, ClockSource] "without RDTSCP a reading of the TSC needs a fence";
    "cpu.feature.rdpid" Feature(7, 0, Ecx, 22) "Reading the processor's number alone."
        [VdsoGetcpu] "without RDPID the vDSO reads the number from a segment limit";
    "cpu.feature.invariant_tsc" Feature(0x8000_0007, 0, Edx, 8)
        "The time-stamp counter ticks at one rate in all states."
        [ClockSource] "without it the kernel may read time from a slow device";
    "cpu.feature.la57" Feature(7, 0, Ecx, 16) "Page tables of five levels."
        [PageFault, Tlb] "a page walk has one level more where the kernel uses five";
    "cpu.feature.pge" Feature(1, 0, Edx, 13) "Pages that stay in the TLB when page tables are switched.";
    "cpu.feature.sep" Feature(1, 0, Edx, 11) "SYSENTER and SYSEXIT."
        [CompatFastEntry] "without SYSENTER a 32-bit system call on Intel enters by interrupt";
    "cpu.feature.syscall" Feature(0x8000_0001, 0, Edx, 11) "SYSCALL and SYSRET.";
    "cpu.feature.erms" Feature(7, 0, Ebx, 9) "Fast string copies with REP MOVSB."
        [UserCopy] "the kernel copies with REP MOVSB";
    "cpu.feature.fsrm" Feature(7, 0, Edx, 4) "REP MOVSB that is also fast for short strings."
        [UserCopy] "the kernel copies short pieces with REP MOVSB too";
    "cpu.feature.invlpgb" Feature(0x8000_0008, 0, Ebx, 3)
        "Invalidating the TLBs of other processors without interrupting them."
        [TlbShootdown] "the kernel flushes other processors without interrupting them";
    "cpu.feature.waitpkg" Feature(7, 0, Ecx, 5) "Waiting for a write to memory in user mode.";
    "cpu.feature.monitor" Feature(1, 0, Ecx, 3) "MONITOR and MWAIT."
        [IdleExit] "without MWAIT an idle processor halts, and an interrupt has to wake it";
    "cpu.feature.x2apic" Feature(1, 0, Ecx, 21) "Interrupt controllers with MSR access (x2APIC)."
        [InterProcessorInterrupt]
        "the kernel reaches an older controller through memory, which is a VM exit in a guest";
    "cpu.feature.tsc_deadline_timer" Feature(1, 0, Ecx, 24) "Timers that one MSR sets."
        [Timer] "one MSR write sets a timer";
    "cpu.feature.pdpe1gb" Feature(0x8000_0001, 0, Edx, 26) "Pages of 1 GiB.";
    "cpu.feature.rtm" Feature(7, 0, Ebx, 11) "Transactions on memory.";
    "cpu.feature.pku" Feature(7, 0, Ecx, 3) "Protection keys for user pages.";
    "cpu.feature.user_shstk" Feature(7, 0, Ecx, 7) "Shadow stacks."
        [Call, Signal] "processes that use a shadow stack write and read it";
    "cpu.feature.ibt" Feature(7, 0, Edx, 20) "Landing marks for indirect branches.";
    "cpu.feature.bus_lock_detect" Feature(7, 0, Ecx, 24) "Traps after locks across two lines."
        [SplitLock] "each split lock may trap";
    "cpu.feature.arch_capabilities" Feature(7, 0, Edx, 29)
        "An MSR that lists what the processor is not vulnerable to."
        [KernelEntry, ContextSwitch] "the kernel does not mitigate what the MSR lists";
    "cpu.feature.md_clear" Feature(7, 0, Edx, 10) "VERW clears buffers."
        [KernelEntry] "VERW clears buffers at kernel exit only with this feature";
    "cpu.feature.flush_l1d" Feature(7, 0, Edx, 28) "An MSR that flushes the first-level data cache.";
    "cpu.feature.serialize" Feature(7, 0, Edx, 14) "Serializing without leaving user mode or a guest.";
    "cpu.feature.hybrid_cpu" Feature(7, 0, Edx, 15) "Cores of several kinds."
        * "latency depends on the kind of core";
    "cpu.feature.autoibrs" Feature(0x8000_0021, 0, Eax, 8)
        "Predictors that are restricted on entry without an MSR write."
        [KernelEntry] "AMD restricts predictors on entry without an MSR write";
    "cpu.feature.vmx" Feature(1, 0, Ecx, 5) "Intel's virtualization: virtual machines can be run here.";
    "cpu.feature.svm" Feature(0x8000_0001, 0, Ecx, 2)
        "AMD's virtualization: virtual machines can be run here.";
    "cpu.feature.atomics" Hwcap("ID_AA64ISAR0_EL1.Atomic") "Atomic operations in one instruction (LSE)."
        [Atomic, LockContention]
        "without LSE an atomic operation is a loop of LDXR and STXR, which fails while others write the line";
    "cpu.feature.uscat" Hwcap("ID_AA64MMFR2_EL1.AT") "Accesses within 16 bytes that are atomic though misaligned (LSE2).";
    "cpu.feature.lrcpc" Hwcap("ID_AA64ISAR1_EL1.LRCPC") "Loads that acquire and may pass earlier releases.";
    "cpu.feature.ssbs" Hwcap("ID_AA64PFR1_EL1.SSBS") "A bit that lets loads pass earlier stores in speculation; the kernel hides one with an erratum."
        [StoreForwarding, KernelEntry]
        "a processor that needs the mitigation and lacks the bit calls its firmware at each entry";
    "cpu.feature.sb" Hwcap("ID_AA64ISAR1_EL1.SB") "A barrier against speculation in one instruction.";
    "cpu.feature.paca" Hwcap("ID_AA64ISAR1_EL1.APA or API") "Pointers that are signed and checked (PAuth)."
        [KernelEntry, ContextSwitch] "the kernel loads keys at entries, at returns and at switches";
    "cpu.feature.pacg" Hwcap("ID_AA64ISAR1_EL1.GPA or GPI") "Codes that are made of two values and a key (PAuth).";
    "cpu.feature.bti" Hwcap("ID_AA64PFR1_EL1.BT") "Landing marks for indirect branches.";
    "cpu.feature.mte" Hwcap("ID_AA64PFR1_EL1.MTE") "Memory whose tags are compared with those of pointers."
        [KernelEntry, ContextSwitch, MemoryAccess]
        "loads and stores of a process that asks for it are checked, and entries look for a check that failed";
    "cpu.feature.ecv" Hwcap("ID_AA64MMFR0_EL1.ECV") "A counter that is read in order without a barrier."
        [VdsoClock, ClockSource] "without ECV each reading of the counter waits for an ISB";
    "cpu.feature.dit" Hwcap("ID_AA64PFR0_EL1.DIT") "Instructions whose time does not depend on their data.";
    "cpu.feature.flagm" Hwcap("ID_AA64ISAR0_EL1.TS") "Instructions that change the flags.";
    "cpu.feature.sve" Hwcap("ID_AA64PFR0_EL1.SVE") "Vectors of a length that the processor chooses."
        [SystemCall, ContextSwitch, Signal]
        "the vectors of a thread that uses SVE are discarded at calls and saved at switches and signals";
    "cpu.feature.sme" Hwcap("ID_AA64PFR1_EL1.SME") "Matrices and a mode for streams of vectors."
        [ContextSwitch, Signal] "the matrix of a thread that uses SME is saved at switches and signals";
    "cpu.feature.mops" Hwcap("ID_AA64ISAR2_EL1.MOPS") "Copies and fills of memory by three instructions."
        [UserCopy] "newer kernels copy with CPYF";
    "cpu.feature.pan" Hidden() "The kernel cannot access user pages except by unprivileged instructions (ID_AA64MMFR1_EL1.PAN)."
        [KernelEntry, UserCopy] "without PAN the kernel may take the program's page tables away at each entry and give them back for each copy";
    "cpu.feature.e0pd" Hidden() "Accesses of user mode to the kernel's half of addresses fault without a walk (ID_AA64MMFR2_EL1.E0PD)."
        [KernelEntry] "without E0PD the kernel needs PTI where its address is random";
    "cpu.feature.csv2" Hidden() "Branch predictors that other contexts cannot train (ID_AA64PFR0_EL1.CSV2)."
        [ContextSwitch] "without CSV2 the kernel asks the firmware to invalidate predictors";
    "cpu.feature.csv3" Hidden() "Loads that fault give no data to speculation (ID_AA64PFR0_EL1.CSV3)."
        [KernelEntry] "without CSV3 the kernel needs PTI";
}
