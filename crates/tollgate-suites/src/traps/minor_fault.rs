//! The first touch of fresh memory.

use tollgate_model::Boundary::{Exception, KernelCode, KernelEntry, PageFault, Tlb};

use crate::mapping::HUGE;
use tollgate_engine::benchmark::{Benchmark, PLAIN, each_word, word};

use super::handler;
use super::memory::PAGE;
use super::touched::{self, Counting, LARGE, SMALL, Touched};

/// In a batch at the most: 4 MiB.
const MOST_SMALL: usize = 1024;
/// In a batch at the most: 8 MiB.
const MOST_HUGE: usize = 4;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/minor-fault",
    operation: "One store to a page of anonymous memory that is not there yet, which the kernel finds and fills with zeros.",
    crosses: &[KernelEntry, Exception, KernelCode, PageFault, Tlb],
    timed: |params| if word(params, "page") == "thp" { LARGE } else { SMALL },
    counts: Some("minor faults"),
    cases: || each_word("page", &["4k", "thp"]),
    instance: |benchmark, params| {
        let timed = (benchmark.timed)(params);
        if word(params, "page") == "thp" {
            let region = touched::huge(MOST_HUGE)?;
            let touched = Touched::new(region, HUGE, HUGE / PAGE, Counting::Faults);
            return touched.instance(timed, 1, touched::aligned(HUGE));
        }
        // Where the kernel counts the faults nobody need ask which pages are there.
        let touched = Touched::new(touched::small(MOST_SMALL)?, PAGE, 0, Counting::Faults);
        touched.instance(timed, 1, touched::aligned(PAGE))
    },
    absence: handler::absence,
    ..PLAIN
};
