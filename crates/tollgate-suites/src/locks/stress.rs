//! A stress test of mutual exclusion: threads acquire one lock repeatedly and are preempted at arbitrary instructions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use tollgate_arch::call::sched_yield;

use super::forced::{self, Slot, Timer};
use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use crate::prelude::*;

pub(super) const WORKERS: usize = 4;

/// A signal frame with the widest registers fits into this stack.
const STACK: usize = 256 << 10;

/// Threads, and their locks.
///
/// It needs its own process, since its signal handler is process-wide. Between rounds the threads sleep.
pub(super) struct Team {
    reach: Reach,
    /// Assigned to the threads in turn.
    processors: Vec<usize>,
    locks: BTreeMap<Method, Lock>,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    quota: Quota,
}

struct Shared {
    board: Mutex<Board>,
    begun: Condvar,
    ended: Condvar,
    arena: Arena,
    slots: [Slot; WORKERS],
}

#[derive(Default)]
struct Board {
    round: u64,
    task: Option<Task>,
    busy: usize,
    outcome: Outcome,
    refusal: Option<Refusal>,
}

/// Acquire this lock until all threads together have made this many acquisitions.
#[derive(Clone)]
struct Task {
    lock: Lock,
    takes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub takes: u64,
    pub violations: u64,
    pub forced: u64,
    /// Forced switches that preempted a holder.
    pub preempted: u64,
    pub restarted: u64,
    /// Attempts that found the lock held.
    pub in_vain: u64,
}

/// The critical section, with loads and stores that are not atomic.
#[repr(C, align(128))]
#[derive(Default)]
struct Arena {
    /// The number of the thread inside, 0 for none.
    inside: AtomicU32,
    visits: AtomicU64,
}

impl Team {
    /// Makes a team for these processors, and locks of this reach. Does not start any threads yet.
    pub fn new(reach: Reach, processors: &[usize], quota: Quota) -> Result<Self> {
        if processors.is_empty() {
            return Err(fail!("threads need a processor"));
        }
        forced::install_handler()?;
        let numbers: [u32; WORKERS] = std::array::from_fn(|index| index as u32 + 1);
        let shared = Shared {
            board: Mutex::default(),
            begun: Condvar::new(),
            ended: Condvar::new(),
            arena: Arena::default(),
            slots: numbers.map(Slot::new),
        };
        Ok(Self {
            reach,
            processors: processors.to_vec(),
            locks: BTreeMap::new(),
            shared: Arc::new(shared),
            workers: Vec::new(),
            quota,
        })
    }

    /// Runs one batch of acquisitions. The time to wake the threads and collect their results is subtracted.
    ///
    /// # Errors
    /// [`Refusal::Fail`] on a violation of mutual exclusion; otherwise as [`Team::round`].
    pub fn batch(&mut self, clock: Clock, method: Method, takes: u64) -> Result<Batch> {
        self.round(method, (takes / 16).max(1))?;
        let mut round = |takes| {
            let mut outcome = Ok(Outcome::default());
            let span = clock.time(|| outcome = self.round(method, takes));
            outcome.map(|outcome| (span, outcome))
        };
        let (emptied, _) = round(0)?;
        // Waiting threads are always switched out, but on one processor unused time belongs to other processes.
        let cpu_share = cpu::CpuShare::begin();
        let (worked, outcome) = round(takes)?;
        let alone = cpu_share.was_full();
        let (emptied_again, _) = round(0)?;
        if outcome.violations > 0 {
            return Err(fail!(
                "mutual exclusion violated {} times in {} acquisitions",
                outcome.violations,
                outcome.takes
            ));
        }
        let counters = [outcome.forced, outcome.restarted, outcome.preempted, outcome.in_vain];
        Ok(Batch { counters, ..Batch::between([emptied, worked, emptied_again], alone) })
    }

    /// All threads together acquire the lock this many times.
    pub fn round(&mut self, method: Method, takes: u64) -> Result<Outcome> {
        // The lock comes first: a semaphore may be in a namespace of this thread and of its later children.
        let lock = self.lock(method)?;
        self.start_workers()?;
        let mut board = self.shared.board();
        board.round += 1;
        board.task = Some(Task { lock, takes });
        board.busy = WORKERS;
        board.outcome = Outcome::default();
        self.shared.arena.visits.store(0, Ordering::Relaxed);
        self.shared.begun.notify_all();
        while board.busy > 0 {
            board = self.shared.ended.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        match board.refusal.take() {
            Some(refusal) => Err(refusal),
            None => {
                let lost = board.outcome.takes.saturating_sub(takes);
                let violations = board.outcome.violations.max(lost);
                Ok(Outcome { violations, ..board.outcome })
            }
        }
    }

    fn lock(&mut self, method: Method) -> Result<Lock> {
        if let Some(lock) = self.locks.get(&method) {
            return Ok(lock.clone());
        }
        // No safety check: this tests the safety.
        let lock = Lock::unsafe_anywhere(method, self.reach, WORKERS)?;
        lock.join(1)?.try_out()?;
        self.locks.insert(method, lock.clone());
        Ok(lock)
    }

    fn start_workers(&mut self) -> Result<()> {
        for index in self.workers.len()..WORKERS {
            let (ready, placed) = mpsc::channel();
            let shared = Arc::clone(&self.shared);
            let processor = self.processors[index % self.processors.len()];
            let worker = thread::Builder::new()
                .stack_size(STACK)
                .spawn(move || shared.work(index, processor, &ready))
                .map_err(|error| self.quota.refused("a thread", &error))?;
            let outcome = placed.recv();
            if let Ok(Ok(())) = outcome {
                self.workers.push(worker);
                continue;
            }
            let _ = worker.join();
            outcome.unwrap_or_else(|_| Err(fail!("a thread of the team ended early")))?;
        }
        Ok(())
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let mut board = self.shared.board();
        board.round += 1;
        board.task = None;
        drop(board);
        self.shared.begun.notify_all();
        for worker in self.workers.drain(..) {
            // The thread ends by itself; a panic shows in the results.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// No thread panics while it holds the mutex, and the data is always consistent.
    fn board(&self) -> MutexGuard<'_, Board> {
        locked(&self.board)
    }

    fn work(&self, index: usize, processor: usize, ready: &mpsc::Sender<Result<()>>) {
        let Some(slot) = self.slots.get(index) else { return };
        let timer = cpu::pin(processor)
            .or_refused("the processor is refused (sched_setaffinity)")
            .and_then(|()| Timer::new(slot));
        let timer = match timer {
            Ok(timer) => timer,
            Err(refusal) => {
                let _ = ready.send(Err(refusal));
                return;
            }
        };
        let mut seen = self.board().round;
        if ready.send(Ok(())).is_err() {
            return;
        }
        let mut handles = BTreeMap::new();
        while let Some(Task { lock, takes }) = self.next_task(&mut seen) {
            let method = lock.method();
            let handle = match handles.remove(&method) {
                Some(handle) => Ok(handle),
                None => lock.join(index + 1),
            };
            let done = handle.map(|mut handle| {
                timer.start();
                let outcome = self.arena.take_turns(slot, &mut handle, takes);
                timer.stop();
                handles.insert(method, handle);
                outcome
            });
            self.through_with_it(done);
        }
    }

    /// Sleeps until there is a task. Returns `None` at the end.
    fn next_task(&self, seen: &mut u64) -> Option<Task> {
        let mut board = self.board();
        while board.round == *seen {
            board = self.begun.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        *seen = board.round;
        board.task.clone()
    }

    fn through_with_it(&self, done: Result<Outcome>) {
        let mut board = self.board();
        match done {
            Ok(outcome) => board.outcome.add(&outcome),
            Err(refusal) => board.refusal = Some(refusal),
        }
        board.busy -= 1;
        if board.busy == 0 {
            self.ended.notify_one();
        }
    }
}

impl Arena {
    /// Acquires the lock repeatedly until all threads have made `takes` entries.
    fn take_turns(&self, slot: &Slot, handle: &mut Handle, takes: u64) -> Outcome {
        let (mut came_upon, mut was_come_upon) = (0, 0);
        let mut outcome = Outcome::default();
        let (forced, preempted) = slot.counts();
        let restarted = handle.aborts();
        loop {
            slot.runs();
            if !handle.take() {
                // A thread on the wrong processor must notice that as well.
                if self.visits.load(Ordering::Acquire) >= takes {
                    break;
                }
                outcome.in_vain += 1;
                sched_yield();
                continue;
            }
            slot.set_holds(true);
            let first = self.inside.load(Ordering::Acquire) == 0;
            self.inside.store(slot.number(), Ordering::Release);
            let visits = self.visits.load(Ordering::Acquire);
            if visits < takes {
                self.visits.store(visits + 1, Ordering::Release);
            }
            let alone = self.inside.load(Ordering::Acquire) == slot.number();
            self.inside.store(0, Ordering::Release);
            slot.set_holds(false);
            handle.release();
            came_upon += u64::from(!first);
            was_come_upon += u64::from(!alone);
            if visits >= takes {
                break;
            }
            outcome.takes += 1;
        }
        // Both threads may have noticed one violation.
        outcome.violations = came_upon.max(was_come_upon);
        let (forced_now, preempted_now) = slot.counts();
        outcome.forced = forced_now - forced;
        outcome.preempted = preempted_now - preempted;
        outcome.restarted = handle.aborts() - restarted;
        outcome
    }
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.takes += other.takes;
        self.violations += other.violations;
        self.forced += other.forced;
        self.preempted += other.preempted;
        self.restarted += other.restarted;
        self.in_vain += other.in_vain;
    }
}

#[cfg(test)]
mod tests;
