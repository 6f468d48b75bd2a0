//! Lamport's fast mutual exclusion under loom, which runs two threads in one order after another and lets each load see every
//! store that a machine with store buffers might show it.
//!
//! What is run is not the instructions of `locks/code.rs`, `lamport`, but the same statements, label by label: 30 is the entry; 34 and
//! 36 are for when `y` is somebody's; 35, 37 and 38 for when `x` is another's; 31 is the test and the set; 32 is the exit. A
//! `mov` is an acquire load or a release store, which promise less than x86-64 does; `mfence` is `fence(SeqCst)`, which loom takes for
//! what it is, as it does not take accesses that are `SeqCst`; sched_yield(2) is `yield_now`.

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

/// What is left out of it.
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

    /// What the word held before: 0 means that it is taken now.
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

/// How many executions there were, and in how many of them nobody or more than one had the lock.
#[derive(Debug, Clone, Copy, Default)]
struct Tried {
    executions: usize,
    violations: usize,
}

/// Two threads that take it so many times each, and never give it back: exactly one of all takes may succeed. Where `preemptions` is
/// given, only executions with no more of them are tried.
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
fn whoever_comes_a_second_time_needs_no_third_fence() {
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
