//! Threads that take one lock again and again and are switched out wherever they are: whether two ever have it at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use super::forced::{self, Slot, Timer};
use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use crate::bench::clock::{Clock, Span};
use crate::bench::{Block, Refusal, cpu, room};

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

    /// One block: the lock is taken so often, less what it takes to wake the threads and to hear from them.
    ///
    /// # Errors
    /// [`Refusal::Fail`] where two had it at once; otherwise as [`Team::round`].
    pub fn block(&mut self, clock: Clock, method: Method, takes: u64) -> Result<Block, Refusal> {
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
        Ok(Block {
            work: worked.ticks,
            empty: emptied.ticks.min(emptied_again.ticks),
            undisturbed: stayed && alone,
            counted: None,
            tallies: [outcome.forced, outcome.restarted, outcome.preempted, outcome.in_vain],
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
                .map_err(|error| room::refused("a thread", &error))?;
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
                outcome.in_vain += 1;
                forced::sched_yield();
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
mod tests {
    use std::mem;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::bench::Random;
    use crate::processes::raw::tests::in_a_process_of_its_own;

    /// On the last of the processors that are allowed, as this process is from then on.
    fn together() -> Team {
        let home = *cpu::allowed().last().expect("a processor");
        cpu::pin(home).expect("an allowed processor");
        Team::new(Reach::On(home), &[home]).expect("a team")
    }

    /// Rounds for so long, or until two had it at once. None where the place has not what it needs.
    fn stress(team: &mut Team, method: Method, time: Duration) -> Option<Outcome> {
        let takes = if matches!(method, Method::Semop | Method::Eventfd) { 1 << 12 } else { 1 << 14 };
        let (began, mut all) = (Instant::now(), Outcome::default());
        while began.elapsed() < time && all.violations == 0 {
            match team.round(method, takes) {
                Ok(outcome) => all.add(&outcome),
                Err(Refusal::Skip(why)) => {
                    eprintln!("skipped: {}: {why}", method.name());
                    return None;
                }
                Err(Refusal::Fail(why)) => panic!("{}: {why}", method.name()),
            }
        }
        Some(all)
    }

    #[test]
    fn a_load_and_a_store_let_two_in() {
        in_a_process_of_its_own(|| {
            let Some(all) = stress(&mut together(), Method::Plain, Duration::from_secs(30)) else { return };
            assert!(all.violations > 0, "{all:?}");
        });
    }

    #[test]
    fn no_lock_lets_two_in_however_often_its_users_are_switched_out() {
        // One lock a process: a semaphore is in a namespace of its own.
        for method in Method::LOCKS {
            in_a_process_of_its_own(|| {
                let time = Duration::from_millis(400);
                let Some(all) = stress(&mut together(), method, time) else { return };
                assert_eq!(all.violations, 0, "{}: {all:?}", method.name());
                assert!(all.forced > 0, "{}: {all:?}", method.name());
                assert!(all.preempted <= all.forced && all.takes >= 1 << 12, "{}: {all:?}", method.name());
                let restarts = matches!(method, Method::Rseq | Method::RseqCpu);
                assert!(all.restarted == 0 || restarts, "{}: {all:?}", method.name());
            });
        }
    }

    #[test]
    fn restartable_sequences_are_restarted() {
        in_a_process_of_its_own(|| {
            let mut team = together();
            for _ in 0..60 {
                let Some(all) = stress(&mut team, Method::Rseq, Duration::from_millis(500)) else { return };
                if all.restarted > 0 {
                    return;
                }
            }
            panic!("none in half a minute");
        });
    }

    /// Every processor that is allowed; None where that is one. This process then is on the first.
    fn processors() -> Option<Vec<usize>> {
        let all = cpu::allowed();
        if all.len() < 2 {
            eprintln!("skipped: one processor only");
            return None;
        }
        cpu::pin(all[0]).expect("an allowed processor");
        Some(all)
    }

    #[test]
    fn a_sequence_that_does_not_look_where_it_runs_lets_two_in_from_two_processors() {
        in_a_process_of_its_own(|| {
            let Some(all) = processors() else { return };
            let mut team = Team::new(Reach::Anywhere, &all[..2]).expect("a team");
            let time = Duration::from_secs(30);
            let Some(all) = stress(&mut team, Method::Rseq, time) else { return };
            assert!(all.violations > 0, "{all:?}");
        });
    }

    #[test]
    fn what_may_be_taken_anywhere_lets_one_in_however_threads_move() {
        for method in [Method::RseqCpu, Method::Xchg, Method::Cmpxchg, Method::Lamport] {
            in_a_process_of_its_own(|| {
                let Some(all) = processors() else { return };
                let mut team = Team::new(Reach::Anywhere, &all[..2]).expect("a team");
                let main = cpu::own_thread();
                let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
                let mover = {
                    let over = Arc::clone(&over);
                    thread::spawn(move || move_others(main, &all[..2], &over))
                };
                let outcome = stress(&mut team, method, Duration::from_millis(600));
                over.store(true, Ordering::SeqCst);
                let moves = mover.join().expect("no panic");
                let Some(outcome) = outcome else { return };
                assert_eq!(outcome.violations, 0, "{}: {outcome:?}", method.name());
                assert!(moves > 0 && outcome.takes > 0, "{}: {outcome:?}, {moves} moves", method.name());
            });
        }
    }

    /// Sends each thread of this process but `main` and itself to this processor and that. How often.
    fn move_others(main: libc::pid_t, to: &[usize], over: &std::sync::atomic::AtomicBool) -> u64 {
        let mut random = Random::new(1);
        let mut moves = 0;
        while !over.load(Ordering::SeqCst) {
            let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return moves };
            let threads = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            for thread in threads.filter(|&thread| thread != main && thread != cpu::own_thread()) {
                // SAFETY: an all-zero set is empty, and each processor is one that there is.
                unsafe {
                    let mut set: libc::cpu_set_t = mem::zeroed();
                    libc::CPU_SET(to[random.next() as usize % to.len()], &mut set);
                    let outcome = libc::sched_setaffinity(thread, size_of_val(&set), &set);
                    moves += u64::from(outcome == 0);
                }
                thread::sleep(Duration::from_micros(50));
            }
        }
        moves
    }

    #[test]
    fn what_is_safe_on_one_processor_only_is_refused_elsewhere() {
        in_a_process_of_its_own(|| {
            for method in [Method::Plain, Method::Rseq, Method::LamportUp] {
                let refused = Lock::new(method, Reach::Anywhere, 2).err();
                let Some(Refusal::Skip(why)) = refused else { panic!("{refused:?}") };
                assert!(why.starts_with("it is safe on one processor only: "), "{why}");
            }
            let all = cpu::allowed();
            let home = *all.last().expect("a processor");
            let lock = Lock::new(Method::Rseq, Reach::On(home), 2).expect("a lock");
            if all.len() > 1 {
                let refused = lock.join(1).err();
                let Some(Refusal::Skip(why)) = refused else { panic!("{refused:?}") };
                assert!(why.contains("not bound to one"), "{why}");
                cpu::pin(all[0]).expect("an allowed processor");
                assert!(lock.join(1).is_err(), "bound to another");
            }
            cpu::pin(home).expect("an allowed processor");
            if let Err(why) = lock.join(1) {
                eprintln!("skipped: {why:?}");
            }
        });
    }

    #[test]
    fn threads_sleep_between_rounds_and_go_with_their_team() {
        in_a_process_of_its_own(|| {
            let threads = || std::fs::read_dir("/proc/self/task").map(Iterator::count).ok();
            let Some(before) = threads() else { return eprintln!("skipped: no /proc") };
            let mut team = together();
            team.round(Method::Xchg, 1 << 14).expect("a round");
            assert_eq!(threads(), Some(before + WORKERS));
            let used = || {
                // SAFETY: an all-zero rusage is valid, and valid for writing.
                unsafe {
                    let mut usage: libc::rusage = mem::zeroed();
                    libc::getrusage(libc::RUSAGE_SELF, &mut usage);
                    usage.ru_nvcsw + usage.ru_nivcsw
                }
            };
            // A thread may be on its way to sleep.
            thread::sleep(Duration::from_millis(50));
            let switches = used();
            thread::sleep(Duration::from_millis(200));
            // This one slept once or twice; four timers would have switched thousands of times.
            assert!(used() - switches < 20, "{} switches", used() - switches);
            drop(team);
            assert_eq!(threads(), Some(before));
        });
    }

    #[test]
    fn a_violation_fails_the_block_and_a_lock_has_a_price() {
        in_a_process_of_its_own(|| {
            let mut team = together();
            let block = team.block(Clock::Kernel, Method::Xchg, 1 << 15).expect("a block");
            assert!(block.work > block.empty, "{block:?}");
            let until = Instant::now() + Duration::from_secs(30);
            while Instant::now() < until {
                if let Err(why) = team.block(Clock::Kernel, Method::Plain, 1 << 15) {
                    let Refusal::Fail(why) = why else { panic!("{why:?}") };
                    assert!(why.starts_with("two threads had it at once, "), "{why}");
                    return;
                }
            }
            panic!("no block failed in half a minute");
        });
    }

    #[test]
    #[ignore = "takes two minutes; to be run by hand: --ignored --nocapture a_table"]
    fn a_table_of_ten_seconds_each() {
        println!(
            "{:<17} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "by", "takes", "violations", "switches", "preempted", "restarted", "in vain"
        );
        for method in [Method::Plain].into_iter().chain(Method::LOCKS) {
            in_a_process_of_its_own(|| {
                let mut team = together();
                let (began, mut all) = (Instant::now(), Outcome::default());
                while began.elapsed() < Duration::from_secs(10) {
                    all.add(&team.round(method, 1 << 14).expect("a round"));
                }
                let Outcome { takes, violations, forced, preempted, restarted, in_vain } = all;
                println!(
                    "{:<17} {takes:>12} {violations:>10} {forced:>10} {preempted:>10} {restarted:>10} {in_vain:>10}",
                    method.name()
                );
                assert!(violations == 0 || method == Method::Plain, "{}", method.name());
            });
        }
    }
}
