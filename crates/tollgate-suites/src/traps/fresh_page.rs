//! Three ways to populate fresh memory, to compare with a fault for each page.

use super::handler::TRAP;
use super::memory::Region;
use super::touched::{self, Counting, Exact, LARGE, SMALL, Touched};
use crate::prelude::*;

/// Small pages that one call populates.
const BATCH: usize = 64;
/// Limit of calls in a batch: 2 MiB.
const MOST_CALLS: usize = 8;
/// Limit of touches of small pages in a batch: 2 MiB.
const MOST_SMALL: usize = 512;
/// Limit of touches of huge pages in a batch: 8 MiB.
const MOST_HUGE: usize = 4;

timed_loop! {
    /// mmap(2), number 9: 64 private anonymous pages at this address, populated (MAP_PRIVATE | MAP_ANONYMOUS |
    /// MAP_FIXED | MAP_POPULATE, for reading and writing); then advances. Word 0: the address; word 1: bytes of 64 pages.
    populate: called
        "mov rdi, [r13]", "mov esi, 0x40000", "mov edx, 3", "mov r10d, 0x8032", "mov r8, -1",
        "xor r9d, r9d", "mov eax, 9",
        "syscall",
        "add qword ptr [r13], 0x40000";
    aarch64
        "ldr x0, [x20]", "ldr x1, [x20, #8]", "mov x2, 3", "mov x3, 0x8032", "mov x4, -1", "mov x5, 0", "mov x8, 222",
        "svc 0",
        "ldr x9, [x20]", "add x9, x9, x1", "str x9, [x20]"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/fresh-page",
    operation: "One 4 KiB page of fresh memory: touched, populated by mmap(2) with 64 at a time, or within a huge page.",
    avoid: "Use huge pages (madvise MADV_HUGEPAGE) or MAP_POPULATE for many pages at once.",
    source: "mmap(2), MAP_POPULATE; madvise(2); Linux Documentation/admin-guide/mm/transhuge.rst",
    crosses: &[KernelEntry, Exception, SystemCall, KernelCode, PageFault, Tlb],
    crossed_in: |params, boundary| match boundary {
        SystemCall => word(params, "by") == "populate",
        Exception | Tlb => word(params, "by") != "populate",
        _ => true,
    },
    timed: |params| By::try_from(params).map_or(NOT_TIMED, By::value),
    counts: Some("pages"),
    cases: |_| each_word("by", By::WORDS),
    headlines: &[Headline::of(Section::Faults, "fresh page in a huge page", &[("by", "huge")])],
    kind: Kind::Instance(|timed, params, _| {
        match By::try_from(params)? {
            By::Populate => {
                let populated = Populated::new()?;
                let inside = populated.region.start()
                    ..populated.region.start() + (MOST_CALLS * BATCH * page_size()) as u64;
                let check = move |result: u64| {
                    if inside.contains(&result) {
                        Ok(())
                    } else {
                        Err(format!("mmap returned {}", result as i64))
                    }
                };
                // SAFETY: before each batch the hooks set word 0 to the start of their region, in which all calls fit.
                let timed = unsafe { Loop::new(timed, [0; 7], None, check) }?.with_hooks(populated);
                Exact::tried(timed, MOST_CALLS as u64, BATCH as u64)
            }
            By::Huge => {
                let pages = huge_page() / page_size();
                let touched = Touched::new(touched::huge(MOST_HUGE)?, huge_page(), pages, Counting::Pages);
                touched.instance(timed, pages as u64, touched::aligned(huge_page()))
            }
            By::Touch => {
                let touched = Touched::new(touched::small(MOST_SMALL)?, page_size(), 1, Counting::Pages);
                touched.instance(timed, 1, touched::aligned(page_size()))
            }
        }
    }),
    ..TRAP
};

words! {
    enum By("by"): Timed {
        Touch = "touch" => SMALL,
        Populate = "populate" => Timed::once("syscall/svc", TimedLoop::Long(populate)),
        Huge = "huge" => LARGE,
    }
}

/// Hooks around a batch of calls, for an unmapped region.
struct Populated {
    region: Region,
}

impl Populated {
    fn new() -> Result<Self> {
        let region = Region::anonymous(MOST_CALLS * BATCH * page_size(), libc::PROT_NONE)?;
        touched::mincore_tells(&region)?;
        Ok(Self { region })
    }
}

impl BatchHooks for Populated {
    fn before(&mut self, context: &mut LoopContext, iterations: u64) -> Result<()> {
        if iterations > MOST_CALLS as u64 {
            return Err(fail!("{iterations} calls were requested, at most {MOST_CALLS} fit"));
        }
        self.region.clear()?;
        context.words[..2].copy_from_slice(&[self.region.start(), (BATCH * page_size()) as u64]);
        Ok(())
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        let resident = self.region.resident(usize::MAX)?;
        self.region.clear()?;
        Ok(Some(resident as u64))
    }
}
