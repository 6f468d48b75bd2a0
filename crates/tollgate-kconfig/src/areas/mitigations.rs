//! Mitigations of processor vulnerabilities. The processor and the command line decide which of them run;
//! /sys/devices/system/cpu/vulnerabilities shows the result. Linux 6.9 renamed the options to `MITIGATION_*`.

use tollgate_model::Boundary::{
    ContextSwitch, GuestEntry, KernelCode, KernelEntry, PageFault, Random, SpecialInstruction,
    StoreForwarding, UserCopy,
};

use super::{Machine, Without};

const SPECTRE: &str = "Documentation/admin-guide/hw-vuln/spectre.rst";
const KCONFIG: &str = "arch/x86/Kconfig";

/// These became options in Linux 6.12.
const ALWAYS: &[Without] =
    &[Without::between((0, 0, 0), (6, 12, 0), "older kernels have it, if at all, without an option")
        .on(Machine::X86)];

entries! {
    CPU_MITIGATIONS [KernelEntry, KernelCode, ContextSwitch]
        "the others here are on unless mitigations= turns them off" (KCONFIG)
        .formerly(&["SPECULATION_MITIGATIONS"]).parameters(&["mitigations"]);
    MITIGATION_PAGE_TABLE_ISOLATION [KernelEntry, PageFault]
        "programs have page tables without the kernel: CR3 is written on entry and exit (Meltdown)"
        ("arch/x86/entry/calling.h").formerly(&["PAGE_TABLE_ISOLATION"]).parameters(&["pti", "nopti"]);
    MITIGATION_RETPOLINE [KernelCode]
        "indirect branches go through a thunk that speculation cannot follow (Spectre v2)" (SPECTRE)
        .formerly(&["RETPOLINE"]).parameters(&["spectre_v2", "nospectre_v2"]);
    MITIGATION_RETHUNK [KernelCode]
        "returns jump to a thunk that is patched for the processor at boot (Retbleed, SRSO)"
        ("arch/x86/lib/retpoline.S").formerly(&["RETHUNK"]).parameters(&["retbleed"]);
    MITIGATION_UNRET_ENTRY [KernelEntry]
        "on AMD Zen 1 and 2 each entry untrains the prediction of returns (Retbleed)"
        ("arch/x86/include/asm/nospec-branch.h").formerly(&["CPU_UNRET_ENTRY"]);
    MITIGATION_IBPB_ENTRY [KernelEntry]
        "where IBPB is chosen on AMD, branch predictions are flushed on each entry (Retbleed, SRSO)"
        ("arch/x86/include/asm/nospec-branch.h").formerly(&["CPU_IBPB_ENTRY"]);
    MITIGATION_IBRS_ENTRY [KernelEntry]
        "on Intel before eIBRS SPEC_CTRL is written on entry and exit (Retbleed)"
        ("arch/x86/entry/calling.h").formerly(&["CPU_IBRS_ENTRY"]);
    MITIGATION_SRSO [KernelEntry, KernelCode] "on AMD Zen 1 to 4 returns are made safe from Inception"
        ("Documentation/admin-guide/hw-vuln/srso.rst")
        .formerly(&["CPU_SRSO"]).parameters(&["spec_rstack_overflow"]);
    MITIGATION_CALL_DEPTH_TRACKING [KernelCode]
        "retbleed=stuff can be chosen, which counts calls on Skylake instead of writing SPEC_CTRL"
        ("arch/x86/kernel/callthunks.c").formerly(&["CALL_DEPTH_TRACKING"]);
    MITIGATION_SLS [KernelCode]
        "an int3 stands after each return and indirect jump, which makes the code larger" (KCONFIG)
        .formerly(&["SLS"]);
    MITIGATION_GDS_FORCE [SpecialInstruction]
        "where the microcode does not help against gathers, AVX is disabled"
        ("Documentation/admin-guide/hw-vuln/gather_data_sampling.rst")
        .formerly(&["GDS_FORCE_MITIGATION"]).parameters(&["gather_data_sampling"]);
    MITIGATION_SPECTRE_BHI [KernelEntry]
        "the history of branches is cleared on entry where the hardware does not keep it apart" (SPECTRE)
        .parameters(&["spectre_bhi"]);
    MITIGATION_SPECTRE_V1 [KernelEntry, UserCopy] "fences stand at swapgs and where programs choose an index"
        (SPECTRE).without(ALWAYS).parameters(&["nospectre_v1"]);
    MITIGATION_SPECTRE_V2 [KernelCode, ContextSwitch]
        "indirect branches are isolated, and predictions are flushed at some switches" (SPECTRE)
        .without(ALWAYS);
    MITIGATION_RETBLEED [KernelEntry] "a mitigation of Retbleed is chosen for the processor at boot"
        (KCONFIG).without(ALWAYS);
    MITIGATION_MDS [KernelEntry] "VERW clears the processor's buffers before the return to the program"
        ("Documentation/arch/x86/mds.rst").without(ALWAYS).parameters(&["mds"]);
    MITIGATION_TAA [KernelEntry] "VERW before the return to the program, or TSX off" (KCONFIG)
        .without(ALWAYS).parameters(&["tsx_async_abort"]);
    X86_INTEL_TSX_MODE_ON [KernelEntry]
        "TSX is on, and where TAA concerns the processor exits clear buffers for it" (KCONFIG)
        .parameters(&["tsx"]);
    MITIGATION_MMIO_STALE_DATA [KernelEntry, GuestEntry]
        "VERW before the return to the program or to a guest" (KCONFIG)
        .without(ALWAYS).parameters(&["mmio_stale_data"]);
    MITIGATION_RFDS [KernelEntry] "VERW before the return to the program on Intel Atom cores" (KCONFIG)
        .parameters(&["reg_file_data_sampling"]);
    MITIGATION_TSA [KernelEntry] "VERW before the return to the program on AMD Zen 3 and 4" (KCONFIG)
        .parameters(&["tsa"]);
    MITIGATION_ITS [KernelCode]
        "on Intel indirect branches in the lower half of a cache line go through a thunk"
        ("Documentation/admin-guide/hw-vuln/indirect-target-selection.rst")
        .parameters(&["indirect_target_selection"]);
    MITIGATION_VMSCAPE [GuestEntry]
        "branch predictions are flushed on the first return to the program after a guest ran"
        ("Documentation/admin-guide/hw-vuln/vmscape.rst").parameters(&["vmscape"]);
    MITIGATION_SSB [StoreForwarding]
        "in threads that ask for it loads wait for the addresses of earlier stores" (KCONFIG)
        .without(ALWAYS).parameters(&["spec_store_bypass_disable", "nospec_store_bypass_disable"]);
    MITIGATION_L1TF [GuestEntry]
        "the first-level data cache can be flushed before a guest runs, as l1tf= and KVM say" (KCONFIG)
        .without(ALWAYS).parameters(&["l1tf"]);
    MITIGATION_SRBDS [Random] "microcode makes RDRAND and RDSEED slower" (KCONFIG)
        .without(ALWAYS).parameters(&["srbds"]);
    MITIGATION_GDS "microcode blocks the data that gathers leave behind".without(ALWAYS);
    _ => MITIGATION ARCH_CONFIGURES_CPU_MITIGATIONS
}
