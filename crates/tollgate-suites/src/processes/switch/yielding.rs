//! Switches by sched_yield(2): there is no token, and both threads are always runnable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::super::raw;
use super::{Means, Side, follow};
use crate::prelude::*;

timed_loop! {
    yield_once: called call SYS_sched_yield()
}

timed_loop! {
    /// The partner's loop, as long as its order is to yield (1). Word 0: the order's address.
    yield_as_told: called
        "mov eax, 24",
        "syscall",
        "mov rcx, [r13]", "cmp dword ptr [rcx], 1", "je 8f", "mov r12d, 1",
        "8:";
    aarch64
        "mov x8, 124",
        "svc 0",
        "ldr x9, [x20]", "ldar w9, [x9]", "cmp w9, 1", "b.eq 8f", "mov x19, 1",
        "8:"
}

pub(super) const LOOP: TimedLoop = TimedLoop::Long(yield_once);

const SLEEP: u32 = 0;
const YIELD: u32 = 1;
const END: u32 = 2;

#[derive(Default)]
struct Partner {
    order: AtomicU32,
    does: AtomicU32,
}

struct Yielding(Arc<Partner>);

pub(super) fn yielding() -> Means {
    let state = Arc::new(Partner::default());
    let shared = Arc::clone(&state);
    let partner = move || {
        loop {
            match shared.order.load(SeqCst) {
                SLEEP => {
                    shared.does.store(SLEEP, SeqCst);
                    raw::futex_wait(&shared.order, SLEEP);
                }
                YIELD => {
                    shared.does.store(YIELD, SeqCst);
                    // SAFETY: the order lives until the end of this thread.
                    unsafe { follow(yield_as_told, [shared.order.as_ptr() as u64, 0, 0, 0, 0, 0, 0]) };
                }
                _ => break,
            }
        }
    };
    Means { code: LOOP, side: Box::new(Yielding(state)), partner: Box::new(partner) }
}

impl Yielding {
    /// Gives the partner an order and yields until it obeys, up to a limit.
    fn tell(&self, what: u32) {
        const MOST: usize = 64;
        self.0.order.store(what, SeqCst);
        raw::futex_wake(&self.0.order);
        for _ in 0..MOST {
            if self.0.does.load(SeqCst) == what {
                break;
            }
            raw::sched_yield();
        }
    }
}

impl Side for Yielding {
    fn words(&self) -> [u64; 7] {
        [0; 7]
    }

    fn begin(&mut self, _: &mut LoopContext) {
        self.tell(YIELD);
    }

    fn check(&self, context: &LoopContext, _: u64) -> Result<()> {
        match context.result as i32 {
            0 => Ok(()),
            other => Err(fail!("sched_yield returned {other} instead of 0")),
        }
    }

    fn end(&mut self) {
        self.tell(SLEEP);
        // The partner sets the state just before it sleeps.
        raw::sched_yield();
    }

    fn part(&mut self) {
        self.0.order.store(END, SeqCst);
        raw::futex_wake(&self.0.order);
    }
}
