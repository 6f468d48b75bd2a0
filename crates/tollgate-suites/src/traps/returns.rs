//! The same page faults with and without calls around the store.
//!
//! If the kernel's returns are safe returns (SRSO), faults have two levels, like system calls (`entry/return`), and the upper one
//! takes a third longer. In C the upper level appeared with a call and a return around each store, and in a loop that was its own
//! function. The lower one appeared in a loop of a function that had called others, which had returned (docs/statistics.md has
//! the figures). So these are the cases. All other benchmarks that fault call each operation.

use super::handler::TRAP;
use super::touched::{SMALL, SMALL_AFTER_RETURN, SMALL_IN_LOOP};
use super::{cow_fault, minor_fault};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/return",
    operation: "A minor or copy-on-write fault: with a call and return around each store, in a loop that was called, or in one with neither.",
    avoid: "Fault less often: huge pages, MAP_POPULATE. Where the loop stands decides the level only on processors with safe returns.",
    source: "Linux Documentation/admin-guide/hw-vuln/srso.rst; arch/x86/lib/retpoline.S, srso_alias_return_thunk",
    crosses: &[Call, KernelEntry, Exception, KernelCode, PageFault, Tlb, KernelAllocation],
    crossed_in: |params, boundary| match boundary {
        Call => word(params, "calls") == "each",
        KernelAllocation => word(params, "fault") == "cow",
        _ => true,
    },
    timed: |params| Calls::try_from(params).map_or(NOT_TIMED, Calls::value),
    counts: Some("minor faults"),
    cases: |_| {
        let case = |(fault, calls): (&str, &str)| params(&[("fault", fault.into()), ("calls", calls.into())]);
        let of = |fault: &'static &str| Calls::WORDS.iter().map(move |calls| (*fault, *calls));
        Fault::WORDS.iter().flat_map(of).map(case).collect()
    },
    in_everything: |_, _| false,
    baseline: Baseline::Case(|case| {
        Some(params(&[("fault", case.get("fault")?.clone()), ("calls", "none".into())]))
    }),
    kind: Kind::Instance(|timed, params, _| match Fault::try_from(params)? {
        Fault::Cow => cow_fault::instance(timed),
        Fault::Minor => minor_fault::small(timed),
    }),
    ..TRAP
};

words! {
    enum Calls("calls"): Timed {
        None = "none" => SMALL_AFTER_RETURN, Loop = "loop" => SMALL_IN_LOOP, Each = "each" => SMALL
    }
}

words! {
    enum Fault("fault") { Minor = "minor", Cow = "cow" }
}
