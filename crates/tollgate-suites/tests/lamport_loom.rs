//! Lamport's fast mutual exclusion under loom, which explores all interleavings of two threads, and all values that
//! store buffers allow a load to see.
//!
//! The test does not run the instructions of `lamport` in `locks/code.rs`, but the same statements, label by label: 30
//! is the entry; 34 and 36 handle `y` not 0; 35, 37 and 38 handle another thread's `x`; 31 is the test and the set; 32
//! is the exit. A `mov` is an acquire load or a release store, which are weaker than x86-64; `mfence` is
//! `fence(SeqCst)`, which loom models, unlike `SeqCst` accesses; sched_yield(2) is `yield_now`.

use std::sync::Mutex;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release, Ordering::SeqCst, fence};
use loom::thread;

/// Threads. Their numbers begin at 1.
const MEMBERS: usize = 2;

/// The words, and Lamport's variables.
struct Shared {
    lock: AtomicUsize,
    x: AtomicUsize,
    y: AtomicUsize,
    b: [AtomicUsize; MEMBERS + 1],
}

/// The fence that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The fence between the store to `x` and the load of `y`.
    FenceAfterX,
    /// The fence between the store to `y` and the load of `x`.
    FenceAfterY,
}

impl Shared {
    fn new() -> Self {
        let zero = || AtomicUsize::new(0);
        Self { lock: zero(), x: zero(), y: zero(), b: [zero(), zero(), zero()] }
    }

    /// Returns the word's old value: 0 means that the lock is now acquired.
    fn take(&self, i: usize, without: Without) -> usize {
        // 30
        loop {
            self.b[i].store(1, Release);
            self.x.store(i, Release);
            if without != Without::FenceAfterX {
                fence(SeqCst);
            }
            if self.y.load(Acquire) != 0 {
                // 34
                self.b[i].store(0, Release);
                self.wait_for_y();
                continue;
            }
            self.y.store(i, Release);
            if without != Without::FenceAfterY {
                fence(SeqCst);
            }
            if self.x.load(Acquire) != i {
                // 35
                self.b[i].store(0, Release);
                // 37 and 38
                for j in (1..=MEMBERS).rev() {
                    while self.b[j].load(Acquire) != 0 {
                        thread::yield_now();
                    }
                }
                if self.y.load(Acquire) != i {
                    self.wait_for_y();
                    continue;
                }
            }
            // 31
            let before = self.lock.load(Acquire);
            if before == 0 {
                self.lock.store(1, Release);
            }
            // 32
            self.y.store(0, Release);
            self.b[i].store(0, Release);
            return before;
        }
    }

    /// 36
    fn wait_for_y(&self) {
        loop {
            thread::yield_now();
            if self.y.load(Acquire) == 0 {
                return;
            }
        }
    }
}

/// Executions, and those in which not exactly one thread acquired the lock.
#[derive(Debug, Clone, Copy, Default)]
struct Tried {
    executions: usize,
    violations: usize,
}

/// Two threads try to acquire the lock `takes` times each and never release it: exactly one attempt may succeed.
/// `preemptions` limits the explored executions.
fn executions(without: Without, takes: usize, preemptions: Option<usize>) -> Tried {
    let tried = std::sync::Arc::new(Mutex::new(Tried::default()));
    let count = std::sync::Arc::clone(&tried);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let shared = Arc::new(Shared::new());
        let another = Arc::clone(&shared);
        let successes = move |shared: &Shared, i| (0..takes).filter(|_| shared.take(i, without) == 0).count();
        let other = thread::spawn(move || successes(&another, 2));
        let all = successes(&shared, 1) + other.join().expect("no panic");
        let mut tried = count.lock().expect("no panic");
        tried.executions += 1;
        tried.violations += usize::from(all != 1);
    });
    *tried.lock().expect("no panic")
}

#[test]
fn exactly_one_has_it_in_every_execution() {
    let tried = executions(Without::Nothing, 1, None);
    assert!(tried.executions > 100 && tried.violations == 0, "{tried:?}");
}

#[test]
fn a_second_acquisition_needs_no_third_fence() {
    let tried = executions(Without::Nothing, 2, Some(2));
    assert!(tried.executions > 100 && tried.violations == 0, "{tried:?}");
}

#[test]
fn each_of_the_two_fences_is_needed() {
    for without in [Without::FenceAfterX, Without::FenceAfterY] {
        let tried = executions(without, 1, None);
        assert!(tried.violations > 0, "{without:?}: {tried:?}");
    }
}
