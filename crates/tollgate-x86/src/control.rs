use crate::register::bits_of;

bits_of! {
    /// CR0. SDM 3A, "Control registers".
    Cr0 {
        PE = 0, "Protected mode.";
        MP = 1, "WAIT faults while TS is set.";
        EM = 2, "There is no x87 FPU: its instructions fault.";
        TS = 3, "A task switch happened: the next x87 or SSE instruction faults.";
        ET = 4, "The x87 FPU is present: always set.";
        NE = 5, "x87 errors are exceptions.";
        WP = 16, "The kernel cannot write read-only pages.";
        AM = 18, "Alignment is checked where RFLAGS.AC asks for it.";
        NW = 29, "Not write-through.";
        CD = 30, "Caches are off.";
        PG = 31, "Paging.";
    }
}

bits_of! {
    /// CR4. SDM 3A, "Control registers".
    Cr4 {
        VME = 0, "Virtual-8086 extensions.";
        PVI = 1, "Protected-mode virtual interrupts.";
        TSD = 2, "RDTSC is for ring 0.";
        DE = 3, "Debugging extensions.";
        PSE = 4, "4 MiB pages.";
        PAE = 5, "Page tables of 64-bit entries; long mode needs it.";
        MCE = 6, "Machine checks.";
        PGE = 7, "Global pages survive a write to CR3.";
        PCE = 8, "RDPMC in every ring.";
        OSFXSR = 9, "SSE is saved by FXSAVE.";
        OSXMMEXCPT = 10, "SSE errors are exceptions.";
        UMIP = 11, "SGDT, SIDT, SLDT, SMSW and STR are for ring 0.";
        LA57 = 12, "Linear addresses have 57 bits.";
        VMXE = 13, "VMX may be used.";
        SMXE = 14, "SMX may be used.";
        FSGSBASE = 16, "FS and GS bases can be read and written in ring 3.";
        PCIDE = 17, "Translations carry a process-context identifier: a switch need not flush them.";
        OSXSAVE = 18, "XSAVE may be used.";
        KL = 19, "Key locker.";
        SMEP = 20, "The kernel cannot execute user pages.";
        SMAP = 21, "The kernel cannot touch user pages unless RFLAGS.AC is set.";
        PKE = 22, "Protection keys of user pages.";
        CET = 23, "Control-flow enforcement: shadow stacks and indirect-branch tracking.";
        PKS = 24, "Protection keys of kernel pages.";
        UINTR = 25, "User interrupts.";
        LASS = 27, "A program cannot address the other half, the kernel's or the user's, even if the pages allow it.";
        LAM_SUP = 28, "The upper bits of kernel data addresses are ignored.";
        FRED = 32, "Flexible return and event delivery: the IDT is not used.";
    }
}

bits_of! {
    /// IA32_EFER, MSR C0000080h. SDM 3A, "Extended feature enable register"; APM 2, "Extended feature enable register (EFER)".
    Efer {
        SCE = 0, "SYSCALL and SYSRET.";
        LME = 8, "Long mode is wanted: it is entered when paging begins.";
        LMA = 10, "Long mode is active.";
        NXE = 11, "Pages can be closed to execution.";
        SVME = 12, "AMD: SVM may be used.";
        LMSLE = 13, "AMD: segment limits in long mode.";
        FFXSR = 14, "AMD: FXSAVE leaves XMM registers out in ring 0.";
        TCE = 15, "AMD: INVLPG flushes no more than it must.";
        MCOMMIT = 17, "AMD: MCOMMIT may be used.";
        INTWB = 18, "AMD: WBINVD and WBNOINVD can be interrupted.";
        UAIE = 20, "AMD: the upper bits of data addresses are ignored.";
        AIBRSE = 21, "AMD: automatic IBRS: indirect branches in the kernel are protected without an MSR write.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn bits_are_named_from_the_lowest() {
        let names: Vec<&str> = Efer(0xd01).set().map(|bit| bit.name).collect();
        assert_eq!(names, ["SCE", "LME", "LMA", "NXE"]);
        for bits in [Cr0::BITS, Cr4::BITS, Efer::BITS, crate::Rflags::BITS] {
            assert!(bits.is_sorted_by(|a, b| a.number < b.number));
            assert!(bits.iter().all(|bit| bit.number < 64 && bit.about.ends_with('.')));
        }
    }
}
