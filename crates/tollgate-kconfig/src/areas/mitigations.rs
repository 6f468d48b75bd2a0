//! What is done against leaks of the processor. What of it runs depends on the processor and the command line:
//! /sys/devices/system/cpu/vulnerabilities says. The options were renamed to `MITIGATION_*` in Linux 6.9.

use super::{Entry, about, covers, moves};

const SPECTRE: &str = "Documentation/admin-guide/hw-vuln/spectre.rst";
const KCONFIG: &str = "arch/x86/Kconfig";

/// They became options one by one after Linux 6.9.
const ALWAYS: &str = "older kernels have it, if at all, without an option";

pub(crate) static ENTRIES: &[Entry] = &[
    moves(
        "CPU_MITIGATIONS",
        "every kernel entry",
        "the others here are on unless mitigations= says otherwise",
        KCONFIG,
    )
    .formerly(&["SPECULATION_MITIGATIONS"])
    .parameters(&["mitigations"]),
    moves(
        "MITIGATION_PAGE_TABLE_ISOLATION",
        "every kernel entry, page faults",
        "programs have page tables without the kernel: CR3 is written on the way in and out (Meltdown)",
        "arch/x86/entry/calling.h",
    )
    .formerly(&["PAGE_TABLE_ISOLATION"])
    .parameters(&["pti", "nopti"]),
    moves(
        "MITIGATION_RETPOLINE",
        "indirect calls in the kernel",
        "they go by a thunk that speculation cannot follow (Spectre v2)",
        SPECTRE,
    )
    .formerly(&["RETPOLINE"])
    .parameters(&["spectre_v2", "nospectre_v2"]),
    moves(
        "MITIGATION_RETHUNK",
        "every return in the kernel",
        "returns jump to a thunk that is patched for the processor at boot (Retbleed, SRSO)",
        "arch/x86/lib/retpoline.S",
    )
    .formerly(&["RETHUNK"])
    .parameters(&["retbleed"]),
    moves(
        "MITIGATION_UNRET_ENTRY",
        "every kernel entry",
        "on AMD Zen 1 and 2 each entry untrains the prediction of returns (Retbleed)",
        "arch/x86/include/asm/nospec-branch.h",
    )
    .formerly(&["CPU_UNRET_ENTRY"]),
    moves(
        "MITIGATION_IBPB_ENTRY",
        "every kernel entry",
        "where IBPB is chosen on AMD, branch predictions are thrown away on each entry (Retbleed, SRSO)",
        "arch/x86/include/asm/nospec-branch.h",
    )
    .formerly(&["CPU_IBPB_ENTRY"]),
    moves(
        "MITIGATION_IBRS_ENTRY",
        "every kernel entry",
        "on Intel before eIBRS SPEC_CTRL is written on entry and exit (Retbleed)",
        "arch/x86/entry/calling.h",
    )
    .formerly(&["CPU_IBRS_ENTRY"]),
    moves(
        "MITIGATION_SRSO",
        "every kernel entry, every return",
        "on AMD Zen 1 to 4 returns are made safe from Inception",
        "Documentation/admin-guide/hw-vuln/srso.rst",
    )
    .formerly(&["CPU_SRSO"])
    .parameters(&["spec_rstack_overflow"]),
    moves(
        "MITIGATION_CALL_DEPTH_TRACKING",
        "every call in the kernel",
        "retbleed=stuff can be chosen, which counts calls on Skylake instead of writing SPEC_CTRL",
        "arch/x86/kernel/callthunks.c",
    )
    .formerly(&["CALL_DEPTH_TRACKING"]),
    moves(
        "MITIGATION_SLS",
        "everything in the kernel, slightly",
        "an int3 stands behind each return and indirect jump, which makes the code larger",
        KCONFIG,
    )
    .formerly(&["SLS"]),
    moves(
        "MITIGATION_GDS_FORCE",
        "vector code with gather",
        "where the microcode does not help, AVX is switched off altogether",
        "Documentation/admin-guide/hw-vuln/gather_data_sampling.rst",
    )
    .formerly(&["GDS_FORCE_MITIGATION"])
    .parameters(&["gather_data_sampling"]),
    moves(
        "MITIGATION_SPECTRE_BHI",
        "every kernel entry",
        "the history of branches is cleared on entry where the hardware does not keep it apart",
        SPECTRE,
    )
    .parameters(&["spectre_bhi"]),
    moves(
        "MITIGATION_SPECTRE_V1",
        "every kernel entry",
        "fences stand at swapgs and where programs choose an index",
        SPECTRE,
    )
    .without(ALWAYS)
    .parameters(&["nospectre_v1"]),
    moves(
        "MITIGATION_SPECTRE_V2",
        "indirect calls, context switches",
        "indirect branches are kept apart, and predictions are thrown away at some switches",
        SPECTRE,
    )
    .without(ALWAYS),
    moves(
        "MITIGATION_RETBLEED",
        "every kernel entry",
        "a way against Retbleed is chosen for the processor at boot",
        KCONFIG,
    )
    .without(ALWAYS),
    moves(
        "MITIGATION_MDS",
        "every kernel exit",
        "VERW clears the processor's buffers before the return to the program",
        "Documentation/arch/x86/mds.rst",
    )
    .without(ALWAYS)
    .parameters(&["mds"]),
    moves(
        "MITIGATION_TAA",
        "every kernel exit",
        "VERW before the return to the program, or TSX off",
        KCONFIG,
    )
    .without(ALWAYS)
    .parameters(&["tsx_async_abort"]),
    moves(
        "X86_INTEL_TSX_MODE_ON",
        "transactions, kernel exit",
        "TSX is on, and where TAA concerns the processor exits pay for it",
        KCONFIG,
    )
    .parameters(&["tsx"]),
    moves(
        "MITIGATION_MMIO_STALE_DATA",
        "every kernel exit",
        "VERW before the return to the program or to a guest",
        KCONFIG,
    )
    .without(ALWAYS)
    .parameters(&["mmio_stale_data"]),
    moves(
        "MITIGATION_RFDS",
        "every kernel exit",
        "VERW before the return to the program on Intel Atom cores",
        KCONFIG,
    )
    .parameters(&["reg_file_data_sampling"]),
    moves(
        "MITIGATION_TSA",
        "every kernel exit",
        "VERW before the return to the program on AMD Zen 3 and 4",
        KCONFIG,
    )
    .parameters(&["tsa"]),
    moves(
        "MITIGATION_ITS",
        "indirect calls and returns",
        "on Intel those in the lower half of a cache line go by a thunk",
        "Documentation/admin-guide/hw-vuln/indirect-target-selection.rst",
    )
    .parameters(&["indirect_target_selection"]),
    moves(
        "MITIGATION_VMSCAPE",
        "returns of a hypervisor's process",
        "branch predictions are thrown away on the first return to the program after a guest ran",
        "Documentation/admin-guide/hw-vuln/vmscape.rst",
    )
    .parameters(&["vmscape"]),
    moves(
        "MITIGATION_SSB",
        "loads after stores",
        "in threads that ask for it loads wait for the addresses of earlier stores",
        KCONFIG,
    )
    .without(ALWAYS)
    .parameters(&["spec_store_bypass_disable", "nospec_store_bypass_disable"]),
    moves(
        "MITIGATION_L1TF",
        "entering a guest",
        "the first-level data cache can be flushed before a guest runs, as l1tf= and KVM say",
        KCONFIG,
    )
    .without(ALWAYS)
    .parameters(&["l1tf"]),
    moves("MITIGATION_SRBDS", "RDRAND and RDSEED", "microcode makes them slower", KCONFIG)
        .without(ALWAYS)
        .parameters(&["srbds"]),
    about("MITIGATION_GDS", "microcode blocks what gathers leave behind").without(ALWAYS),
    covers("MITIGATION"),
    covers("ARCH_CONFIGURES_CPU_MITIGATIONS"),
];
