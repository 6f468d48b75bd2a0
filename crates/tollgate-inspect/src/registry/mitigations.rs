//! What is done about the processor's vulnerabilities. Those with an entry of their own are known to move
//! prices.

use super::{FactSpec, family, one};
use crate::{kernel, mitigation, process, processor};

pub(super) const FACTS: &[FactSpec] = &[
    one(
        "mitigation.parameters",
        kernel::mitigation_parameters,
        "What the kernel's command line says of mitigations.",
    )
    .moves("kernel entry and exit: what is asked for here is what each crossing does"),
    one(
        "mitigation.pti",
        |m| processor::lists(m, "pti"),
        "Whether page tables are switched at every crossing, as the kernel's flags say.",
    )
    .moves("kernel entry: two writes of CR3 on each crossing, and without PCID an empty TLB"),
    one("mitigation.meltdown", |m| mitigation::named(m, "meltdown"), "What is done about Meltdown.")
        .moves("kernel entry: PTI switches page tables at every crossing"),
    one(
        "mitigation.spectre_v1",
        |m| mitigation::named(m, "spectre_v1"),
        "What is done about Spectre variant 1.",
    )
    .moves("kernel entry: fences after SWAPGS and masks at user copies"),
    one(
        "mitigation.spectre_v2",
        |m| mitigation::named(m, "spectre_v2"),
        "What is done about Spectre variant 2.",
    )
    .moves(
        "kernel entry, context switches and every indirect call: retpolines, IBRS written on \
         entry, IBPB on switches",
    ),
    one("mitigation.retbleed", |m| mitigation::named(m, "retbleed"), "What is done about Retbleed.")
        .moves("kernel entry: predictors untrained on AMD, IBRS written on Intel, at every crossing"),
    one(
        "mitigation.spec_rstack_overflow",
        |m| mitigation::named(m, "spec_rstack_overflow"),
        "What is done about Inception on AMD.",
    )
    .moves(
        "kernel entry and every return in the kernel: safe returns, or a predictor flush at \
         each crossing",
    ),
    one(
        "mitigation.spec_store_bypass",
        |m| mitigation::named(m, "spec_store_bypass"),
        "What is done about speculative store bypass.",
    )
    .moves("loads after stores, where a process asks for it or runs under a filter that does"),
    one(
        "mitigation.mds",
        |m| mitigation::named(m, "mds"),
        "What is done about microarchitectural data sampling.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.tsx_async_abort",
        |m| mitigation::named(m, "tsx_async_abort"),
        "What is done about TSX asynchronous abort.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.mmio_stale_data",
        |m| mitigation::named(m, "mmio_stale_data"),
        "What is done about stale data of device memory.",
    )
    .moves("kernel exit or guest entry: VERW clears buffers"),
    one(
        "mitigation.reg_file_data_sampling",
        |m| mitigation::named(m, "reg_file_data_sampling"),
        "What is done about register file data sampling.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.tsa",
        |m| mitigation::named(m, "tsa"),
        "What is done about transient scheduler attacks on AMD.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.indirect_target_selection",
        |m| mitigation::named(m, "indirect_target_selection"),
        "What is done about indirect target selection.",
    )
    .moves("indirect calls and returns in the kernel: they go through aligned thunks"),
    one("mitigation.l1tf", |m| mitigation::named(m, "l1tf"), "What is done about L1 terminal fault.")
        .moves("guest entry: the first-level data cache is flushed"),
    one("mitigation.vmscape", |m| mitigation::named(m, "vmscape"), "What is done about VMScape.")
        .moves("returning to user mode after a guest exit: IBPB first"),
    one(
        "mitigation.srbds",
        |m| mitigation::named(m, "srbds"),
        "What is done about special register buffer data sampling.",
    )
    .moves("RDRAND and RDSEED: each locks the bus while it reads"),
    one(
        "mitigation.gather_data_sampling",
        |m| mitigation::named(m, "gather_data_sampling"),
        "What is done about gather data sampling.",
    )
    .moves("gather instructions: they no longer speculate"),
    one("process.store_bypass", process::store_bypass, "Whether this process speculates past stores.")
        .moves("loads after stores: where it is mitigated each waits"),
    one(
        "process.indirect_branch",
        process::indirect_branch,
        "Whether this process speculates at indirect branches.",
    )
    .moves("context switches and indirect calls: IBPB and STIBP where it is mitigated"),
    one(
        "mitigation.itlb_multihit",
        |m| mitigation::named(m, "itlb_multihit"),
        "What is done about machine checks by pages of two sizes.",
    )
    .moves("guests of this kernel: executable huge pages are split"),
    one(
        "process.l1d_flush",
        process::l1d_flush,
        "Whether the first-level data cache is flushed when this process is switched away from.",
    )
    .moves("context switches: the cache is flushed on each"),
    // Those above are named because they are known to move prices: on a kernel that does not know them they
    // are absent, not missing. This one has the rest, and them once more.
    family("mitigation.*", mitigation::all, "What is done about a vulnerability that the kernel names."),
];
