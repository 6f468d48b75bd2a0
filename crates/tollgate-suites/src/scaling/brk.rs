use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/brk",
    operation: "brk to a page more and back by each process: the break of threads is that of this program's own heap.",
    avoid: "Use an allocator that keeps freed memory (M_TRIM_THRESHOLD).",
    source: "brk(2); will-it-scale, brk1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, CacheLine],
    timed: |_| Timed::Whole("brk(2)"),
    cases: |machine| processes_only(&numbers(machine).0),
    thorough_cases: |machine| processes_only(&numbers(machine).1),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    Ok(Box::new(Breaks))
}

/// Between two windows this process's allocator may move the break, so each window begins where it is.
struct Breaks;

impl Work for Breaks {
    fn make(&mut self, times: u64) -> Result<(), i32> {
        let now = brk(0);
        let more = now + page_size() as i64;
        for _ in 0..times {
            if !there_and_back(now, more) {
                return Err(libc::ENOMEM);
            }
        }
        Ok(())
    }
}

/// Moves the break up by a page and back, in its own function as in `Calls`. brk returns the break even if it did not move.
#[inline(never)]
fn there_and_back(now: i64, more: i64) -> bool {
    [brk(more), brk(now)] == [more, now]
}

#[inline(always)]
fn brk(to: i64) -> i64 {
    // SAFETY: the call takes an address; it takes nothing from the allocator, since the break ends where it was.
    unsafe { call(libc::SYS_brk, [to as u64, 0, 0, 0]) }
}
