//! Mitigations of the processor's vulnerabilities. Those with an entry of their own are known to affect a boundary.

use tollgate_model::Boundary::{
    ContextSwitch, GuestEntry, KernelCode, KernelEntry, Random, SpecialInstruction, StoreForwarding, UserCopy,
};

use super::{FactSpec, family, one};
use crate::{kernel, mitigation, process, processor};

pub(super) const FACTS: &[FactSpec] = &[
    one(
        "mitigation.parameters",
        kernel::mitigation_parameters,
        "The mitigation parameters of the kernel's command line.",
    )
    .affects(&[KernelEntry, KernelCode, ContextSwitch], "the parameters choose what each crossing does"),
    one(
        "mitigation.pti",
        |m| processor::lists(m, "pti"),
        "Whether page tables are switched at every crossing, as the kernel's flags say.",
    )
    .affects(&[KernelEntry], "each crossing writes CR3 twice, and without PCID empties the TLB"),
    one("mitigation.meltdown", |m| mitigation::named(m, "meltdown"), "The mitigation of Meltdown.")
        .affects(&[KernelEntry], "PTI switches page tables at every crossing"),
    one(
        "mitigation.spectre_v1",
        |m| mitigation::named(m, "spectre_v1"),
        "The mitigation of Spectre variant 1.",
    )
    .affects(&[KernelEntry, UserCopy], "a fence follows SWAPGS, and user copies mask addresses"),
    one(
        "mitigation.spectre_v2",
        |m| mitigation::named(m, "spectre_v2"),
        "The mitigation of Spectre variant 2.",
    )
    .affects(
        &[KernelEntry, KernelCode, ContextSwitch],
        "entries write IBRS, indirect calls use retpolines, switches issue IBPB",
    ),
    one("mitigation.retbleed", |m| mitigation::named(m, "retbleed"), "The mitigation of Retbleed.").affects(
        &[KernelEntry, KernelCode],
        "every crossing untrains predictors on AMD and writes IBRS on Intel",
    ),
    one(
        "mitigation.spec_rstack_overflow",
        |m| mitigation::named(m, "spec_rstack_overflow"),
        "The mitigation of Inception on AMD.",
    )
    .affects(
        &[KernelEntry, KernelCode],
        "every return in the kernel is a safe return, or every crossing flushes a predictor",
    ),
    one(
        "mitigation.spec_store_bypass",
        |m| mitigation::named(m, "spec_store_bypass"),
        "The mitigation of speculative store bypass.",
    )
    .affects(
        &[StoreForwarding],
        "loads wait for earlier stores where a process asks for it or runs under a filter that does",
    ),
    one(
        "mitigation.mds",
        |m| mitigation::named(m, "mds"),
        "The mitigation of microarchitectural data sampling.",
    )
    .affects(&[KernelEntry], "VERW clears buffers on each return to user mode"),
    one(
        "mitigation.tsx_async_abort",
        |m| mitigation::named(m, "tsx_async_abort"),
        "The mitigation of TSX asynchronous abort.",
    )
    .affects(&[KernelEntry], "VERW clears buffers on each return to user mode"),
    one(
        "mitigation.mmio_stale_data",
        |m| mitigation::named(m, "mmio_stale_data"),
        "The mitigation of stale data of device memory.",
    )
    .affects(&[KernelEntry, GuestEntry], "VERW clears buffers on each return to user mode or to a guest"),
    one(
        "mitigation.reg_file_data_sampling",
        |m| mitigation::named(m, "reg_file_data_sampling"),
        "The mitigation of register file data sampling.",
    )
    .affects(&[KernelEntry], "VERW clears buffers on each return to user mode"),
    one(
        "mitigation.tsa",
        |m| mitigation::named(m, "tsa"),
        "The mitigation of transient scheduler attacks on AMD.",
    )
    .affects(&[KernelEntry], "VERW clears buffers on each return to user mode"),
    one(
        "mitigation.indirect_target_selection",
        |m| mitigation::named(m, "indirect_target_selection"),
        "The mitigation of indirect target selection.",
    )
    .affects(&[KernelEntry, KernelCode], "indirect calls and returns go through aligned thunks"),
    one("mitigation.l1tf", |m| mitigation::named(m, "l1tf"), "The mitigation of L1 terminal fault.")
        .affects(&[GuestEntry], "the kernel flushes the first-level data cache first"),
    one("mitigation.vmscape", |m| mitigation::named(m, "vmscape"), "The mitigation of VMScape.")
        .affects(&[GuestEntry], "the first return to user mode after a guest ran issues IBPB"),
    one(
        "mitigation.srbds",
        |m| mitigation::named(m, "srbds"),
        "The mitigation of special register buffer data sampling.",
    )
    .affects(&[Random], "RDRAND and RDSEED lock the bus while they read"),
    one(
        "mitigation.gather_data_sampling",
        |m| mitigation::named(m, "gather_data_sampling"),
        "The mitigation of gather data sampling.",
    )
    .affects(&[SpecialInstruction], "gather instructions no longer speculate"),
    one("process.store_bypass", process::store_bypass, "Whether this process speculates past stores.")
        .affects(
            &[StoreForwarding, KernelCode],
            "where it is mitigated, loads wait for earlier stores, in the kernel as well",
        ),
    one(
        "process.indirect_branch",
        process::indirect_branch,
        "Whether this process speculates at indirect branches.",
    )
    .affects(&[ContextSwitch], "where it is mitigated, switches issue IBPB and set STIBP"),
    one(
        "mitigation.itlb_multihit",
        |m| mitigation::named(m, "itlb_multihit"),
        "The mitigation of machine checks by pages of two sizes.",
    )
    .affects(&[GuestEntry], "the kernel splits executable huge pages of its guests"),
    one(
        "process.l1d_flush",
        process::l1d_flush,
        "Whether the first-level data cache is flushed when this process is switched away from.",
    )
    .affects(&[ContextSwitch], "each switch away flushes the first-level data cache"),
    // Those above are named because they affect a boundary: on a kernel that does not know them they
    // are absent, not missing. This one has the rest, and them once more.
    family("mitigation.*", mitigation::all, "The mitigation of a vulnerability that the kernel lists."),
];
