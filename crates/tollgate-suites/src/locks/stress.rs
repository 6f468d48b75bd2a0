//! Threads that take one lock again and again and are switched out wherever they are: whether two ever have it at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use super::forced::{self, Slot, Timer};
use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use crate::syscall::sched_yield;
use tollgate_engine::clock::{Clock, Span};
use tollgate_engine::{Batch, Refusal, cpu, limits};

/// Threads that take the lock.
pub(super) const WORKERS: usize = 4;

/// Enough for a signal frame with the widest registers, and for little else.
const STACK: usize = 256 << 10;

/// Threads, and the locks that they take.
///
/// To be made in a process of its own: it answers signals for all of it. Between two rounds the threads sleep.
pub(super) struct Team {
    reach: Reach,
    /// Where the threads are bound to, in turn.
    processors: Vec<usize>,
    locks: BTreeMap<Method, Lock>,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    board: Mutex<Board>,
    begun: Condvar,
    ended: Condvar,
    arena: Arena,
    slots: [Slot; WORKERS],
}

/// What the threads are told, and what they answer.
#[derive(Default)]
struct Board {
    round: u64,
    task: Option<Task>,
    /// Threads that are not through with it.
    busy: usize,
    outcome: Outcome,
    refusal: Option<Refusal>,
}

/// To take this lock until all of them together have taken it so often.
#[derive(Clone)]
struct Task {
    lock: Lock,
    takes: u64,
}

/// What came of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// How often the lock was taken.
    pub takes: u64,
    /// How often one found another where it should have been alone.
    pub violations: u64,
    /// Switches that a timer has forced.
    pub forced: u64,
    /// Those of them that came while the thread had the lock.
    pub preempted: u64,
    /// Restartable sequences that were restarted.
    pub restarted: u64,
    /// Takes that found the lock taken.
    pub in_vain: u64,
}

/// Where only one may be at a time, written to by loads and stores that do not lock anything.
#[repr(C, align(128))]
#[derive(Default)]
struct Arena {
    /// The number of who is inside, 0 for nobody.
    inside: AtomicU32,
    /// How many have been.
    visits: AtomicU64,
}

impl Team {
    /// Threads that are bound to these processors in turn, and locks of such a reach. Nothing is started yet.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the place has not what it needs.
    pub fn new(reach: Reach, processors: &[usize]) -> Result<Self, Refusal> {
        if processors.is_empty() {
            return Err(Refusal::Fail("threads need a processor".to_owned()));
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
        })
    }

    /// One batch: the lock is taken so often, less what it takes to wake the threads and to hear from them.
    ///
    /// # Errors
    /// [`Refusal::Fail`] where two had it at once; otherwise as [`Team::round`].
    pub fn batch(&mut self, clock: Clock, method: Method, takes: u64) -> Result<Batch, Refusal> {
        self.round(method, (takes / 16).max(1))?;
        let mut round = |takes| {
            let mut outcome = Ok(Outcome::default());
            let span = clock.time(|| outcome = self.round(method, takes));
            outcome.map(|outcome| (span, outcome))
        };
        let (emptied, _) = round(0)?;
        // Who waits is switched out by nature, but on one processor the time that no thread used was somebody else's.
        let attendance = cpu::Attendance::begin();
        let (worked, outcome) = round(takes)?;
        let alone = attendance.was_whole();
        let (emptied_again, _) = round(0)?;
        if outcome.violations > 0 {
            return Err(Refusal::Fail(format!(
                "two threads had it at once, {} times in {} takes",
                outcome.violations, outcome.takes
            )));
        }
        let stayed = |span: &Span| span.same_processor;
        let stayed = [emptied, worked, emptied_again].iter().all(stayed);
        Ok(Batch {
            work: worked.ticks,
            empty: emptied.ticks.min(emptied_again.ticks),
            undisturbed: stayed && alone,
            counted: None,
            counters: [outcome.forced, outcome.restarted, outcome.preempted, outcome.in_vain],
        })
    }

    /// Has the lock taken so often, by whichever threads.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the place has not what the lock or the threads need.
    pub fn round(&mut self, method: Method, takes: u64) -> Result<Outcome, Refusal> {
        // A semaphore may be in a namespace of this thread's and of those that it makes from then on: so the lock comes first.
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

    fn lock(&mut self, method: Method) -> Result<Lock, Refusal> {
        if let Some(lock) = self.locks.get(&method) {
            return Ok(lock.clone());
        }
        // Whether it is safe is what is asked.
        let lock = Lock::unsafe_anywhere(method, self.reach, WORKERS)?;
        lock.join(1)?.try_out()?;
        self.locks.insert(method, lock.clone());
        Ok(lock)
    }

    fn start_workers(&mut self) -> Result<(), Refusal> {
        for index in self.workers.len()..WORKERS {
            let (ready, placed) = mpsc::channel();
            let shared = Arc::clone(&self.shared);
            let processor = self.processors[index % self.processors.len()];
            let worker = thread::Builder::new()
                .stack_size(STACK)
                .spawn(move || shared.work(index, processor, &ready))
                .map_err(|error| limits::refused("a thread", &error))?;
            let outcome = placed.recv();
            if let Ok(Ok(())) = outcome {
                self.workers.push(worker);
                continue;
            }
            let _ = worker.join();
            outcome.unwrap_or_else(|_| Err(Refusal::Fail("a thread of the team ended early".to_owned())))?;
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
            // It ends by itself; that it panicked would have been said.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// Nobody panics while they have it, and what it holds is whole at any time.
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's whole life.
    fn work(&self, index: usize, processor: usize, ready: &mpsc::Sender<Result<(), Refusal>>) {
        let Some(slot) = self.slots.get(index) else { return };
        let timer = cpu::pin(processor)
            .map_err(|error| Refusal::of("the processor is refused (sched_setaffinity)", &error))
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

    /// Sleeps until there is one. None at the end.
    fn next_task(&self, seen: &mut u64) -> Option<Task> {
        let mut board = self.board();
        while board.round == *seen {
            board = self.begun.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        *seen = board.round;
        board.task.clone()
    }

    fn through_with_it(&self, done: Result<Outcome, Refusal>) {
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
    /// Takes the lock again and again until so many have been inside.
    fn take_turns(&self, slot: &Slot, handle: &mut Handle, takes: u64) -> Outcome {
        let (mut came_upon, mut was_come_upon) = (0, 0);
        let mut outcome = Outcome::default();
        let (forced, preempted) = slot.counts();
        let restarted = handle.aborts();
        loop {
            slot.runs();
            if !handle.take() {
                // One that cannot have it where it runs must find out as well.
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
        // Each of the two may have noticed.
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
