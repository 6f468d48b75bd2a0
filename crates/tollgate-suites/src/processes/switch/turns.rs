//! No token: both threads are always ready to run, and give up the processor by sched_yield(2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use tollgate_engine::timed::timed_loop;
use tollgate_engine::{Context, Refusal, TimedLoop};

use super::super::raw;
use super::{Means, Side};

timed_loop! {
    /// Number 24.
    yield_once: "mov eax, 24", "syscall"
}

/// The loop of the thread that is timed.
pub(super) const LOOP: TimedLoop = TimedLoop::Long(yield_once);

/// What the partner is to do.
const SLEEP: u32 = 0;
const YIELD: u32 = 1;
const END: u32 = 2;

/// What it is told, and what it does.
#[derive(Default)]
struct State {
    told: AtomicU32,
    does: AtomicU32,
}

struct Turns(Arc<State>);

/// Turns.
pub(super) fn turns() -> Means {
    let state = Arc::new(State::default());
    let shared = Arc::clone(&state);
    let partner = move || {
        loop {
            match shared.told.load(SeqCst) {
                SLEEP => {
                    shared.does.store(SLEEP, SeqCst);
                    raw::futex_wait(&shared.told, SLEEP);
                }
                YIELD => {
                    shared.does.store(YIELD, SeqCst);
                    while shared.told.load(SeqCst) == YIELD {
                        raw::sched_yield();
                    }
                }
                _ => break,
            }
        }
    };
    Means { code: LOOP, side: Box::new(Turns(state)), partner: Box::new(partner) }
}

impl Turns {
    /// Tells the partner and lets it run until it does so, or for as long as it should take by far.
    fn tell(&self, what: u32) {
        const MOST: usize = 64;
        self.0.told.store(what, SeqCst);
        raw::futex_wake(&self.0.told);
        for _ in 0..MOST {
            if self.0.does.load(SeqCst) == what {
                break;
            }
            raw::sched_yield();
        }
    }
}

impl Side for Turns {
    fn words(&self) -> [u64; 7] {
        [0; 7]
    }

    fn begin(&mut self, _: &mut Context) {
        self.tell(YIELD);
    }

    fn check(&self, context: &Context, _: u64) -> Result<(), Refusal> {
        match context.result as i32 {
            0 => Ok(()),
            other => Err(Refusal::Fail(format!("sched_yield returned {other} instead of 0"))),
        }
    }

    fn end(&mut self) {
        self.tell(SLEEP);
        // It has said so just before it sleeps.
        raw::sched_yield();
    }

    fn part(&mut self) {
        self.0.told.store(END, SeqCst);
        raw::futex_wake(&self.0.told);
    }
}
