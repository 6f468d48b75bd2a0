//! Threads or processes that make the same operation at the same time, each on its own processor. Both are called tasks.
//!
//! All wait at a barrier, begin together, and work until the same moment; each counts its operations. A window counts only if each
//! task worked through nearly all of it and kept its processor. The latency of an operation is that of one task: the number of
//! tasks times the window, divided by the operations of all. Their throughput is the number of tasks divided by that latency.

mod board;
mod operation;
mod participant;
mod pool;

use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use board::{ABANDONED, Board, sleep_while, wake_all};
use pool::Pool;

use crate::loops::events::Tally;
use crate::loops::runner::{Batch, Order, Runner};
use crate::machine::clock::{self, Clock};
use crate::refusal::Result;
use crate::{loops::context::Context, loops::heartbeat::Heartbeat, loops::instance::Instance};

pub use operation::{Operation, Seat, Words, Work};
pub use pool::TaskKind;

/// Operations that a sample states, enough to make a tick small in comparison. A window may have another number.
const STATED: u64 = 64;

/// The work of a number of tasks.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The number of tasks.
    pub tasks: usize,
    /// Their operation.
    pub operation: &'static Operation,
    /// Numbers for its preparation.
    pub words: Words,
}

/// Returns the instance of a case. All cases in this process share one pool of threads and one of processes.
///
/// # Errors
/// [`Refusal::Skip`](crate::Refusal::Skip) if there are fewer processors, or a limit allows fewer tasks.
pub fn instance(context: &mut Context, kind: TaskKind, case: Case) -> Result<Instance> {
    let key = format!("parallel {kind:?}");
    let make = |context: &mut Context| Pool::new(context, kind).map(Rc::new);
    let pool = context.shared_while(&key, |_: &Rc<Pool>| true, make)?;
    pool.have(case.tasks)?;
    let crowd = Crowd { pool, case, heartbeat: context.heartbeat.clone(), latency: None };
    Ok(Instance::new(crowd).with_ops(STATED).with_most(1))
}

struct Crowd {
    pool: Rc<Pool>,
    case: Case,
    heartbeat: Heartbeat,
    /// Ticks of an operation, by the latest batch.
    latency: Option<f64>,
}

/// The result of one window: ticks of one participant's operation, and whether it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WindowTime {
    latency: f64,
    is_sound: bool,
    /// Operations of all, and their context switches, minor and major faults.
    operations: u64,
    usage: [u64; 3],
}

impl Crowd {
    /// Runs one window. `None` if the tasks did not come together.
    fn window(&self, clock: Clock) -> Result<Option<WindowTime>> {
        let board = &*self.pool.board;
        self.announce(board, clock);
        self.wait_for(board);
        let slots = board.slots(self.case.tasks);
        let failed =
            slots.iter().map(|slot| slot.error.load(SeqCst)).enumerate().find(|(_, error)| *error != 0);
        if let Some((number, error)) = failed {
            let error = tollgate_model::text::plainly(&std::io::Error::from_raw_os_error(error));
            return Err(fail!("{} {number} of {}: {error}", self.pool.kind.one(), self.case.tasks));
        }
        let is_whole = board.window().from.load(SeqCst) != ABANDONED;
        Ok(is_whole.then(|| self.found(board)).filter(|found| found.latency.is_finite()))
    }

    fn announce(&self, board: &Board, clock: Clock) {
        /// Nanoseconds between two clock reads, each of which takes about 20 ns.
        const STEP: f64 = 4e3;
        /// The shortest window: a hundred times as long as the tasks take to begin.
        const LEAST: f64 = 300e3;
        /// Clock reads in a window of slow operations.
        const STEPS: f64 = 8.0;
        let ns = self.latency.map(|ticks| clock.nanoseconds(ticks));
        let step = ns.map_or(1.0, |ns| (STEP / ns).clamp(1.0, 4096.0)).floor();
        let length = ns.map_or(LEAST, |ns| LEAST.max(STEPS * step * ns));
        board.set_operation(self.case.operation, self.case.words);
        let job = board.job();
        job.hz.store(if matches!(clock, Clock::Tsc { .. }) { clock.hz() } else { 0 }, SeqCst);
        job.step.store(step as u64, SeqCst);
        job.length.store((length / clock.nanoseconds(1.0)) as u64, SeqCst);
        job.tasks.store(self.case.tasks as u32, SeqCst);
        for slot in board.slots(self.case.tasks) {
            slot.error.store(0, SeqCst);
            slot.made.store(0, SeqCst);
        }
        board.arrived().store(0, SeqCst);
        board.done().store(0, SeqCst);
        board.window().from.store(0, SeqCst);
        job.number.fetch_add(1, SeqCst);
        wake_all(&job.number);
    }

    /// Waits until all are done. If they do not come together in time, the window is abandoned.
    fn wait_for(&self, board: &Board) {
        const BEAT: Duration = Duration::from_millis(50);
        /// Nanoseconds to wake up, and in addition for each task.
        const PATIENCE: u64 = 40_000_000;
        const EACH: u64 = 200_000;
        /// The limit for all of it. After that, the run's own limit for a process without progress applies.
        const LONGEST: u64 = 5_000_000_000;
        let began = clock::monotonic();
        loop {
            let done = board.done().load(SeqCst);
            if done as usize >= self.case.tasks {
                return;
            }
            let waited = clock::monotonic() - began;
            if waited > PATIENCE + EACH * self.case.tasks as u64 {
                let _ = board.window().from.compare_exchange(0, ABANDONED, SeqCst, SeqCst);
            }
            if waited < LONGEST {
                self.heartbeat.beat();
            }
            sleep_while(board.done(), done, Some(BEAT));
        }
    }

    fn found(&self, board: &Board) -> WindowTime {
        let window = board.window();
        let (from, until) = (window.from.load(SeqCst), window.until.load(SeqCst));
        let switches = self.case.operation.switches;
        let all: Vec<Made> = board.slots(self.case.tasks).iter().map(Made::of).collect();
        let rate: f64 = all.iter().map(Made::rate).sum();
        let is_sound = all.iter().all(|made| made.covers(from, until) && (switches || !made.preempted));
        let operations = all.iter().fold(0_u64, |sum, made| sum.saturating_add(made.operations));
        let of = |which: usize| all.iter().fold(0_u64, |sum, made| sum.saturating_add(made.usage[which]));
        let usage = [of(0), of(1), of(2)];
        WindowTime { latency: self.case.tasks as f64 / rate, is_sound, operations, usage }
    }
}

impl Runner for Crowd {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        /// On a busy machine, not all may have their processor at the same time.
        const TRIES: usize = 5;
        let mut latest = None;
        for _ in 0..TRIES {
            if let Some(found) = self.window(clock)? {
                // The first window has no estimate, and reads the clock after each operation.
                let was_known = self.latency.replace(found.latency).is_some();
                latest = Some(found);
                if found.is_sound && was_known {
                    break;
                }
            }
            self.heartbeat.beat();
        }
        let nothing = WindowTime { latency: 1.0, is_sound: false, operations: 0, usage: [0; 3] };
        let found = latest.unwrap_or(nothing);
        let stated = order.all() * STATED;
        let tally = Tally::of_operations(found.usage, found.operations, stated);
        let ticks = stated as f64 * found.latency;
        Ok(Batch { tally, ..Batch::new(ticks.round() as u64, 0, found.is_sound) })
    }
}

/// A participant's part of a window.
#[derive(Debug, Clone, Copy)]
struct Made {
    operations: u64,
    first: u64,
    last: u64,
    preempted: bool,
    usage: [u64; 3],
}

impl Made {
    fn of(slot: &board::Slot) -> Self {
        Self {
            operations: slot.made.load(SeqCst),
            first: slot.first.load(SeqCst),
            last: slot.last.load(SeqCst),
            preempted: slot.preempted.load(SeqCst) > 0,
            usage: std::array::from_fn(|which| slot.usage[which].load(SeqCst)),
        }
    }

    fn rate(&self) -> f64 {
        self.operations as f64 / self.last.saturating_sub(self.first).max(1) as f64
    }

    /// Whether it worked throughout: it began within the first tenth of the window, and ended at most half a window after its end.
    fn covers(&self, from: u64, until: u64) -> bool {
        let length = until.saturating_sub(from);
        self.operations > 0
            && self.first >= from
            && self.first <= from + length / 10
            && (until..=until + length / 2).contains(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::machine::cpu;

    /// Counts in the window's own words, and fails if told to.
    struct Counting(u64, u64);

    impl Work for Counting {
        fn make(&mut self, times: u64) -> Result<(), i32> {
            (0..times).for_each(|_| self.0 = std::hint::black_box(self.0 + 1));
            if self.1 == 0 { Ok(()) } else { Err(self.1 as i32) }
        }
    }

    fn counting(seat: Seat) -> io::Result<Box<dyn Work>> {
        let fails = if seat.number == seat.words[1] as usize { seat.words[0] } else { 0 };
        Ok(Box::new(Counting(0, fails)))
    }

    static COUNTS: Operation = Operation { prepare: counting, switches: false };

    fn made(operations: u64, first: u64, last: u64) -> Made {
        Made { operations, first, last, preempted: false, usage: [0; 3] }
    }

    #[test]
    fn a_participant_that_came_late_or_left_early_did_not_cover_the_window() {
        let covers = |made: Made| made.covers(1000, 2000);
        assert!(covers(made(1, 1000, 2000)) && covers(made(1, 1100, 2500)));
        assert!(!covers(made(1, 1101, 2000)), "late");
        assert!(!covers(made(1, 1000, 1999)), "early");
        assert!(!covers(made(1, 1000, 2501)), "far behind");
        assert!(!covers(made(0, 1000, 2000)), "nothing made");
    }

    #[test]
    fn threads_and_processes_work_at_the_same_time_and_one_that_fails_is_named() {
        let all = cpu::allowed();
        let Some(&home) = all.last() else { panic!("no processor allowed") };
        let mut context = Context::here();
        cpu::pin(home).expect("an allowed processor");
        for kind in [TaskKind::Threads, TaskKind::Processes] {
            for tasks in 1..=all.len().min(2) {
                let case = |words| Case { tasks, operation: &COUNTS, words };
                let mut instance = |words| instance(&mut context, kind, case(words)).expect("participants");
                let batch = instance([0, 9, 0, 0]).batch(Clock::Kernel, Order::new(1)).expect("a batch");
                assert!(batch.work > 0, "{kind:?} {tasks}");
                let last = tasks as u64 - 1;
                let failed = instance([libc::ENOSPC as u64, last, 0, 0]).batch(Clock::Kernel, Order::new(1));
                let why = failed.expect_err("one fails");
                assert!(why.why().starts_with(&format!("{} {last} of {tasks}: ", kind.one())), "{why:?}");
            }
        }
        let too_many = Case { tasks: all.len() + 1, operation: &COUNTS, words: [0; 4] };
        assert!(instance(&mut context, TaskKind::Threads, too_many).is_err());
        cpu::allow(&all);
    }
}
