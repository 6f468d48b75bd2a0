use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/page-fault",
    operation: "The first store to a page of 4 KiB of private memory by each thread or process; after 256 of them madvise gives the pages back.",
    avoid: "Reuse memory, touch it before it is needed (MAP_POPULATE), and use huge pages.",
    source: "will-it-scale, page_fault1.c; Documentation/mm/process_addrs.rst",
    crosses: &[Exception, PageFault, KernelAllocation, Tlb, CacheLine, TlbShootdown],
    crossed_in: of_one_address_space,
    timed: |_| Timed::Whole("a store; madvise(2) MADV_DONTNEED"),
    in_everything: threads_at_both_ends,
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

/// Threads that discard pages cause shootdowns on the other processors.
fn of_one_address_space(params: &Params, boundary: Boundary) -> bool {
    match boundary {
        TlbShootdown => crossed_with_others(params, CacheLine) && word(params, "kind") == "threads",
        other => crossed_with_others(params, other),
    }
}

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    const PAGES: usize = 256;
    let page = page_size();
    let mapping = Mapping::anonymous(PAGES * page, libc::MAP_PRIVATE)?;
    // A kernel without huge pages refuses this advice.
    let _ = mapping.advise(libc::MADV_NOHUGEPAGE);
    let mut next = 0;
    calls(move || {
        if next == PAGES {
            next = 0;
            let address = mapping.address() as u64;
            // SAFETY: the range belongs to this mapping, to which nothing else refers.
            let given_back = unsafe {
                call(libc::SYS_madvise, [address, (PAGES * page) as u64, libc::MADV_DONTNEED as u64, 0])
            };
            if given_back < 0 {
                return given_back;
            }
        }
        // SAFETY: a byte of a page of the mapping.
        unsafe { mapping.address().add(next * page).write_volatile(1) };
        next += 1;
        0
    })
}
