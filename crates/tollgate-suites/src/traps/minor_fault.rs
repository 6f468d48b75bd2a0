use super::handler::TRAP;
use super::touched::{self, Counting, LARGE, SMALL, Touched};
use crate::prelude::*;

/// Limit for a batch: 4 MiB.
const MOST_SMALL: usize = 1024;
/// Limit for a batch: 8 MiB.
const MOST_HUGE: usize = 4;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/minor-fault",
    operation: "One store to an unpopulated page of anonymous memory, which the kernel allocates and zeroes.",
    avoid: "Use huge pages (madvise MADV_HUGEPAGE) or MAP_POPULATE, and keep memory for reuse instead of giving it back.",
    source: "Intel SDM vol. 3, Interrupt 14; madvise(2); Linux mm/memory.c, do_anonymous_page()",
    crosses: &[KernelEntry, Exception, KernelCode, PageFault, Tlb],
    beside: &[("traps/return", "the same where no call is around each store")],
    timed: |params| Page::try_from(params).map_or(NOT_TIMED, Page::value),
    counts: Some("minor faults"),
    cases: |_| each_word("page", Page::WORDS),
    headlines: &[Headline::of(Section::Faults, "minor page fault, 4 KiB", &[("page", "4k")])],
    kind: Kind::Instance(|timed, params, _| {
        if Page::try_from(params)? == Page::Small {
            return small(timed);
        }
        let touched =
            Touched::new(touched::huge(MOST_HUGE)?, huge_page(), huge_page() / page_size(), Counting::Faults);
        touched.instance(timed, 1, touched::aligned(huge_page()))
    }),
    ..TRAP
};

words! {
    enum Page("page"): Timed { Small = "4k" => SMALL, Huge = "thp" => LARGE }
}

pub(super) fn small(timed: Timed) -> Result<Instance> {
    // The kernel's fault count is enough; residency need not be checked.
    let touched = Touched::new(touched::small(MOST_SMALL)?, page_size(), 0, Counting::Faults);
    touched.instance(timed, 1, touched::aligned(page_size()))
}
