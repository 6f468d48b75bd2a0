//! Mitigations of the processor's vulnerabilities. Those with their own entries are known to affect a boundary.

use tollgate_model::Boundary::{
    ContextSwitch, GuestEntry, KernelCode, KernelEntry, Random, SpecialInstruction, StoreForwarding, UserCopy,
};

use crate::{kernel, mitigation, process};

facts! {
    pub(super) FACTS
    "mitigation.parameters" Of(kernel::mitigation_parameters)
        "The mitigation parameters of the kernel's command line."
        [KernelEntry, KernelCode, ContextSwitch] "the parameters choose what each crossing does";
    "mitigation.pti" Of(mitigation::pti)
        "Whether page tables are switched at every crossing, as the kernel says."
        [KernelEntry] "each crossing switches page tables twice; x86-64 without PCID empties the TLB";
    "mitigation.meltdown" Vulnerability("meltdown") "The mitigation of Meltdown."
        [KernelEntry] "PTI switches page tables at every crossing";
    "mitigation.spectre_v1" Vulnerability("spectre_v1") "The mitigation of Spectre variant 1."
        [KernelEntry, UserCopy] "a fence follows SWAPGS, and user copies mask addresses";
    "mitigation.spectre_v2" Vulnerability("spectre_v2") "The mitigation of Spectre variant 2."
        [KernelEntry, KernelCode, ContextSwitch]
        "retpolines take the place of indirect calls in the kernel; where IBRS is named entries write an MSR, and where IBPB is on switches flush predictors; where BHB is named entries of arm64 clear the branch history";
    "mitigation.retbleed" Vulnerability("retbleed") "The mitigation of Retbleed."
        [KernelEntry, KernelCode] "every crossing untrains predictors on AMD and writes IBRS on Intel";
    "mitigation.spec_rstack_overflow" Vulnerability("spec_rstack_overflow")
        "The mitigation of Inception on AMD."
        [KernelEntry, KernelCode]
        "every return in the kernel is a safe return, or every crossing flushes a predictor";
    "mitigation.spec_store_bypass" Vulnerability("spec_store_bypass")
        "The mitigation of speculative store bypass."
        [StoreForwarding]
        "loads wait for earlier stores where a process asks for it or runs under a filter that does";
    "mitigation.mds" Vulnerability("mds") "The mitigation of microarchitectural data sampling."
        [KernelEntry] "VERW clears buffers on each return to user mode";
    "mitigation.tsx_async_abort" Vulnerability("tsx_async_abort") "The mitigation of TSX asynchronous abort."
        [KernelEntry] "VERW clears buffers on each return to user mode";
    "mitigation.mmio_stale_data" Vulnerability("mmio_stale_data")
        "The mitigation of stale data of device memory."
        [KernelEntry, GuestEntry] "VERW clears buffers on each return to user mode or to a guest";
    "mitigation.reg_file_data_sampling" Vulnerability("reg_file_data_sampling")
        "The mitigation of register file data sampling."
        [KernelEntry] "VERW clears buffers on each return to user mode";
    "mitigation.tsa" Vulnerability("tsa") "The mitigation of transient scheduler attacks on AMD."
        [KernelEntry] "VERW clears buffers on each return to user mode";
    "mitigation.indirect_target_selection" Vulnerability("indirect_target_selection")
        "The mitigation of indirect target selection."
        [KernelEntry, KernelCode] "indirect calls and returns go through aligned thunks";
    "mitigation.l1tf" Vulnerability("l1tf") "The mitigation of L1 terminal fault."
        [GuestEntry] "the kernel flushes the first-level data cache first";
    "mitigation.vmscape" Vulnerability("vmscape") "The mitigation of VMScape."
        [GuestEntry] "the first return to user mode after a guest ran issues IBPB";
    "mitigation.srbds" Vulnerability("srbds") "The mitigation of special register buffer data sampling."
        [Random] "RDRAND and RDSEED lock the bus while they read";
    "mitigation.gather_data_sampling" Vulnerability("gather_data_sampling")
        "The mitigation of gather data sampling."
        [SpecialInstruction] "gather instructions no longer speculate";
    "process.store_bypass" Of(process::status, "Speculation_Store_Bypass") "Whether this process speculates past stores."
        [StoreForwarding, KernelCode]
        "where it is mitigated, loads wait for earlier stores, in the kernel as well";
    "process.indirect_branch" Of(process::status, "SpeculationIndirectBranch")
        "Whether this process speculates at indirect branches."
        [ContextSwitch] "where it is mitigated, switches issue IBPB and set STIBP";
    "mitigation.itlb_multihit" Vulnerability("itlb_multihit")
        "The mitigation of machine checks by pages of two sizes."
        [GuestEntry] "the kernel splits executable huge pages of its guests";
    "process.l1d_flush" Of(process::l1d_flush)
        "Whether the first-level data cache is flushed when this process is switched away from."
        [ContextSwitch] "each switch away flushes the first-level data cache";
    // On a kernel that does not know the named entries above, they are absent, not missing. This family lists all vulnerabilities,
    // including theirs.
    "mitigation.*" Family(mitigation::all) "The mitigation of a vulnerability that the kernel lists.";
}
