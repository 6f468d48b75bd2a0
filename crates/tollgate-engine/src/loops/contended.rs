//! Loops that are timed while other threads run loops on other processors.
//!
//! A contended batch counts only if both threads ran together. The other thread notes the time between its iterations. It must
//! begin before the batch, end after it, and never pause for longer than a time slice of other work. For one store in 509 the
//! timed loop checks which thread had the line before: often enough for a share, too rarely to change the latency. The timed
//! thread uses the same memory with and without contention, because two buffers at different addresses gave 25 and 43 ns a line.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{cell::RefCell, rc::Rc, thread::JoinHandle, time::Duration};

use tollgate_arch::frame::LOG;
pub use tollgate_arch::frame::{ContendingLoop, Side, WORDS};
use tollgate_os::affinity::Pinned;

use crate::loops::events::{Counting, Of};
use crate::loops::runner::{Batch, Order, Runner};
use crate::loops::timed::{LongLoop, LoopContext, run_empty};
use crate::machine::clock::{self, Clock};
use crate::machine::limits::{Quota, Taken};
use crate::refusal::{Refusal, Result};
use crate::{loops::context::Context, loops::heartbeat::Heartbeat, machine::cpu};

/// Another thread of a batch.
pub struct Partner {
    /// Its processor.
    pub cpu: usize,
    /// Its loop.
    pub code: ContendingLoop,
    /// The loop's data.
    pub side: Box<Side>,
}

/// A benchmark's control over its two loops.
pub trait Contender: Send {
    /// Prepares a contended batch of this many iterations of the timed loop, some of them untimed at first.
    fn before(&mut self, context: &mut LoopContext, partners: &mut [Partner], iterations: u64);

    /// Checks the batch. Returns the events that were counted in the timed part, if any.
    ///
    /// # Errors
    /// If an operation failed. If a partner did not respond, the result is [`Outcome::Incomplete`] instead.
    fn after(&mut self, context: &LoopContext, partners: &[Partner]) -> Result<Outcome>;

    /// Is called while the partners run, before the warm-up. `words` are the current ones of the first partner's side.
    fn begun(&mut self, _context: &mut LoopContext, _words: [u64; WORDS]) {}

    /// Resets counts after the warm-up, before the timed part.
    fn begin(&mut self, _context: &mut LoopContext) {}

    /// Returns the least number of warm-up iterations.
    fn warm_up(&self) -> u64 {
        1
    }
}

/// The outcome of a contended batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A valid batch, with its events if any are counted.
    Sound(Option<u64>),
    /// A partner did not respond.
    Incomplete,
}

/// A timed loop and its partners.
pub struct Contended {
    code: LongLoop,
    context: Box<LoopContext>,
    partners: Vec<Partner>,
    /// The timed loop's processor, if it is not the bench process's own.
    cpu: Option<usize>,
    contender: Box<dyn Contender>,
    pool: Rc<Pool>,
}

impl Contended {
    /// Combines `code` with the loops of `partners`, which run at the same time.
    ///
    /// # Safety
    /// Each loop must be sound to run any number of times with its data from `contender`, at the same time as the others.
    pub unsafe fn new(
        context: &mut Context,
        code: LongLoop,
        partners: Vec<Partner>,
        contender: impl Contender + 'static,
    ) -> Self {
        let pool = context.shared("partner threads", |context| Rc::new(Pool::new(context)));
        Self { code, context: Box::default(), partners, cpu: None, contender: Box::new(contender), pool }
    }

    /// Runs the timed loop on this processor, even if the calling thread is pinned to another one.
    pub fn on(mut self, cpu: usize) -> Self {
        self.cpu = (cpu::allowed() != [cpu]).then_some(cpu);
        self
    }

    fn contended_batch(
        &mut self,
        clock: Clock,
        hz: u64,
        order: Order,
        partner_threads: &[Rc<PartnerThread>],
    ) -> Result<Batch> {
        let iterations = order.all();
        let warm_up = (iterations / 16).max(self.contender.warm_up());
        self.contender.before(&mut self.context, &mut self.partners, warm_up + iterations);
        let code = self.code;
        let mut running: Vec<Running> = Vec::new();
        for (partner, thread) in self.partners.iter_mut().zip(partner_threads) {
            // SAFETY: by `Contended::new`'s contract. The side lives as long as this, and `Running` waits for the thread before.
            running.push(unsafe { Running::start(thread, partner, hz) });
        }
        if !running.iter().all(Running::has_begun) {
            return stopped(running).map(|_| Batch::new(1, 0, false));
        }
        if let Some(first) = running.first() {
            self.contender.begun(&mut self.context, first.words());
        }
        let context: *mut LoopContext = &mut *self.context;
        // SAFETY: by `Contended::new`'s contract.
        unsafe { code.run(warm_up, context) };
        self.contender.begin(&mut self.context);
        let mut nothing = LoopContext::default();
        let mut empty = || clock.time(|| run_empty(order.iterations, &mut nothing));
        let mut counting = Counting::begin(Of::Thread);
        let emptied = counting.empty(&mut empty);
        let stamp = || if self.partners.is_empty() { 0 } else { clock::stamp() };
        let from = stamp();
        // SAFETY: by `Contended::new`'s contract.
        let worked = counting.work(|| clock.time(|| unsafe { code.run(iterations, context) }));
        let to = stamp();
        let emptied_again = empty();
        let tally = counting.end();
        let unswitched = tally.switches() == 0;
        let theirs = stopped(running)?;
        let contended = theirs.iter().all(|stamps| stamps.cover(from, to, hz));
        let (sound, counted) = match self.contender.after(&self.context, &self.partners)? {
            Outcome::Sound(counted) => (true, counted),
            Outcome::Incomplete => (false, None),
        };
        let spans = [emptied, worked, emptied_again];
        Ok(Batch { counted, tally, ..Batch::between(spans, unswitched && contended && sound) })
    }
}

impl Runner for Contended {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        /// On a busy machine the partners may not run at the same time.
        const TRIES: usize = 5;
        let hz = clock.hz();
        if !matches!(clock, Clock::Tsc { .. }) && !self.partners.is_empty() {
            let why = "the check that both threads ran at the same time needs the time stamp counter, which is not usable here";
            return Err(Refusal::Skip(why.to_owned()));
        }
        let _there =
            self.cpu.map(|cpu| Pinned::to(&[cpu]).map_err(|error| pin_refused(cpu, &error))).transpose()?;
        let partner_threads = self.pool.threads(self.partners.len())?;
        let mut batch = self.contended_batch(clock, hz, order, &partner_threads)?;
        for _ in 1..TRIES {
            if batch.undisturbed {
                break;
            }
            self.pool.heartbeat.beat();
            batch = self.contended_batch(clock, hz, order, &partner_threads)?;
        }
        Ok(batch)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamps {
    first: u64,
    last: u64,
    iterations: u64,
    long_iterations: u64,
    log: Vec<[u64; 2]>,
}

impl Stamps {
    fn of(side: &Side) -> Self {
        let [first, last] = side.stamps;
        let kept = (side.long_iterations as usize).min(LOG);
        Self {
            first,
            last,
            iterations: side.iterations(),
            long_iterations: side.long_iterations,
            log: side.log[..kept].to_vec(),
        }
    }

    /// Whether it ran throughout the time between two time stamps. It must begin before the first and not end before the second.
    /// In between it may be away for a fifth of the time or for 5 µs, which is less than another thread's time slice. Under
    /// contention for a line each iteration is long, and it may be away for four of them.
    fn cover(&self, from: u64, to: u64, hz: u64) -> bool {
        const MANY: u64 = 16;
        let iteration = match self.iterations {
            MANY.. => self.last.saturating_sub(self.first) / self.iterations,
            _ => 0,
        };
        let may_be_away = (to.saturating_sub(from) / 5).max(long(hz)).max(4 * iteration);
        let within = |begin: u64, end: u64| end.min(to).saturating_sub(begin.max(from));
        // The last stamp may be a moment older than the stop.
        let away = self.log.iter().map(|&[end, took]| within(end.saturating_sub(took), end)).sum::<u64>()
            + within(self.last, u64::MAX);
        let log_reaches_back =
            self.long_iterations <= LOG as u64 || self.log.iter().any(|&[end, _]| end <= from);
        self.first > 0 && self.first <= from && log_reaches_back && away <= may_be_away
    }
}

fn long(hz: u64) -> u64 {
    hz / 200_000
}

fn stopped(running: Vec<Running>) -> Result<Vec<Stamps>> {
    running.iter().for_each(Running::stop);
    running.into_iter().map(Running::ended).collect()
}

/// A partner's running loop. Dropping it stops the loop and waits for it.
struct Running {
    thread: Rc<PartnerThread>,
    side: *mut Side,
    ended: bool,
}

impl Running {
    /// # Safety
    /// The partner's loop must be sound to run, and its side must outlive this.
    unsafe fn start(thread: &Rc<PartnerThread>, partner: &mut Partner, hz: u64) -> Self {
        partner.side.progress.0.store(0, SeqCst);
        partner.side.stop.0.store(0, SeqCst);
        (partner.side.stamps, partner.side.long, partner.side.long_iterations) = ([0; 2], long(hz), 0);
        let side: *mut Side = &mut *partner.side;
        thread.mailbox.put(Job::Work { cpu: partner.cpu, code: partner.code, side: Address(side) });
        Self { thread: Rc::clone(thread), side, ended: false }
    }

    /// Waits briefly until it iterates. On a busy machine this thread sleeps, which keeps its time slice until the partner runs.
    fn has_begun(&self) -> bool {
        self.is_looping() || (self.thread.mailbox.is_at_work() && self.is_looping())
    }

    /// Whether it iterates now: it may have begun and been switched out again.
    fn is_looping(&self) -> bool {
        /// Longer than a thread takes to wake up on an idle processor.
        const PATIENCE: u64 = 200_000; // nanoseconds
        const LOOK: u32 = 1 << 6;
        let until = clock::monotonic() + PATIENCE;
        let before = self.progress();
        while clock::monotonic() < until {
            for _ in 0..LOOK {
                // The second iteration counts, because the first may have waited for its code.
                if self.progress() >= before + 2 {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
    }

    fn progress(&self) -> u64 {
        // SAFETY: the side outlives this; the loop changes it as a whole word.
        unsafe { (*self.side).progress.0.load(SeqCst) }
    }

    fn words(&self) -> [u64; WORDS] {
        // SAFETY: the side outlives this; the loop changes each word as a whole.
        std::array::from_fn(|at| unsafe { AtomicU64::from_ptr(&raw mut (*self.side).words[at]).load(SeqCst) })
    }

    fn stop(&self) {
        // SAFETY: as above.
        unsafe { (*self.side).stop.0.store(1, SeqCst) };
    }

    fn ended(mut self) -> Result<Stamps> {
        self.ended = true;
        self.thread.mailbox.done()?;
        // SAFETY: the loop has ended, so this is the only reference to the side.
        Ok(Stamps::of(unsafe { &*self.side }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.stop();
            let _ = self.thread.mailbox.done();
        }
    }
}

/// A thread that runs partners' loops. It sleeps between batches.
struct PartnerThread {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
    _taken: Taken,
}

/// The partner threads of a bench process, shared by its instances.
struct Pool {
    quota: Quota,
    heartbeat: Heartbeat,
    threads: RefCell<Vec<Rc<PartnerThread>>>,
}

impl Pool {
    fn new(context: &Context) -> Self {
        let (quota, heartbeat) = (context.quota.clone(), context.heartbeat.clone());
        Self { quota, heartbeat, threads: RefCell::default() }
    }

    fn threads(&self, number: usize) -> Result<Vec<Rc<PartnerThread>>> {
        let mut threads = self.threads.borrow_mut();
        while threads.len() < number {
            threads.push(Rc::new(PartnerThread::start(&self.quota, self.heartbeat.clone())?));
        }
        Ok(threads[..number].to_vec())
    }
}

impl PartnerThread {
    fn start(quota: &Quota, heartbeat: Heartbeat) -> Result<Self> {
        let taken = quota.take_processes(1)?;
        let mailbox = Arc::new(Mailbox { heartbeat, ..Mailbox::default() });
        let own = Arc::clone(&mailbox);
        let thread = std::thread::Builder::new()
            .name("tollgate-contend".to_owned())
            .spawn(move || own.work())
            .map_err(|error| quota.refused("a second thread", &error))?;
        Ok(Self { mailbox, thread: Some(thread), _taken: taken })
    }
}

impl Drop for PartnerThread {
    fn drop(&mut self) {
        self.mailbox.put(Job::Leave);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Default)]
struct Mailbox {
    heartbeat: Heartbeat,
    job: Mutex<Job>,
    changed: Condvar,
}

#[derive(Default)]
enum Job {
    #[default]
    None,
    Work {
        cpu: usize,
        code: ContendingLoop,
        side: Address,
    },
    AtWork,
    Done(Result<()>),
    Leave,
}

#[derive(Clone, Copy)]
struct Address(*mut Side);

// SAFETY: only an address; each use states why it is sound.
unsafe impl Send for Address {}

impl Mailbox {
    fn put(&self, job: Job) {
        *self.lock() = job;
        self.changed.notify_all();
    }

    fn done(&self) -> Result<()> {
        /// A partner that is switched out does not hang: it sees the stop word when it runs again.
        const BEAT: Duration = Duration::from_millis(50);
        let mut job = self.lock();
        loop {
            if let Job::Done(outcome) = &*job {
                return outcome.clone();
            }
            job = self.changed.wait_timeout(job, BEAT).unwrap_or_else(PoisonError::into_inner).0;
            self.heartbeat.beat();
        }
    }

    /// Waits briefly until the thread runs its job.
    fn is_at_work(&self) -> bool {
        /// Longer than a few time slices of other threads on its processor.
        const PATIENCE: Duration = Duration::from_millis(20);
        let waiting = |job: &mut Job| matches!(job, Job::Work { .. });
        let woken = self.changed.wait_timeout_while(self.lock(), PATIENCE, waiting);
        self.heartbeat.beat();
        matches!(*woken.unwrap_or_else(PoisonError::into_inner).0, Job::AtWork)
    }

    fn work(&self) {
        // SAFETY: a partner's loop works only on memory. With a shared table, this thread would only slow file operations of others.
        let _ = unsafe { tollgate_os::descriptors::own_table() };
        let mut on = None;
        loop {
            let mut job = self.lock();
            let (cpu, code, side) = loop {
                match *job {
                    Job::Work { cpu, code, side } => break (cpu, code, side),
                    Job::Leave => return,
                    Job::None | Job::AtWork | Job::Done(_) => {
                        job = self.changed.wait(job).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(job);
            let outcome = if on == Some(cpu) {
                Ok(())
            } else {
                cpu::pin(cpu).map_err(|error| pin_refused(cpu, &error))
            };
            if outcome.is_ok() {
                on = Some(cpu);
                self.put(Job::AtWork);
                // SAFETY: by `Running::start`'s contract.
                unsafe { code(side.0) };
            }
            self.put(Job::Done(outcome));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pin_refused(cpu: usize, error: &std::io::Error) -> Refusal {
    skip!(
        "a thread cannot be pinned to processor {cpu}: sched_setaffinity(2): {}",
        tollgate_model::text::plainly(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contending_loop, timed_loop};

    #[test]
    fn a_partner_covers_a_batch_if_it_runs_before_during_and_after_it() {
        let hz = 1_000_000_000;
        let stamps = |first, last, log: &[[u64; 2]]| Stamps {
            first,
            last,
            iterations: 3,
            long_iterations: log.len() as u64,
            log: log.to_vec(),
        };
        let batch = (100, 100_000);
        let covered = |stamps: Stamps| stamps.cover(batch.0, batch.1, hz);
        assert!(covered(stamps(10, 200_000, &[])));
        assert!(covered(stamps(10, 200_000, &[[60_000, 19_000]])));
        assert!(!covered(stamps(10, 200_000, &[[60_000, 21_000]])), "away for more than a fifth");
        assert!(!covered(stamps(10, 200_000, &[[30_000, 11_000], [60_000, 11_000]])), "twice");
        assert!(covered(stamps(10, 200_000, &[[90, 80], [180_000, 79_000]])), "before and after");
        assert!(!covered(stamps(101, 200_000, &[])), "came late");
        assert!(!covered(stamps(10, 70_000, &[])), "left early");
        assert!(covered(stamps(10, 99_000, &[])), "saw the stop late");
        assert!(!covered(stamps(0, 0, &[])), "never ran");
        let slow = Stamps { iterations: 20, ..stamps(10, 200_000, &[[60_000, 39_000]]) };
        assert!(covered(slow), "each of its iterations takes 10 µs");
        let overflown =
            Stamps { long_iterations: 1000, ..stamps(10, 200_000, &[[60_000, 10], [70_000, 10]]) };
        assert!(!covered(overflown), "the log lost its beginning");
    }

    contending_loop! {
        /// Adds to a word.
        count: "mov rcx, [r13]", "lock add qword ptr [rcx], 1";
        aarch64 "ldr x9, [x20]", "4:", "ldaxr x0, [x9]", "add x0, x0, 1", "stlxr w10, x0, [x9]", "cbnz w10, 4b"
    }

    timed_loop! {
        /// Adds to the same word. Word 0: its address.
        count_too: "mov rcx, [r13]", "lock add qword ptr [rcx], 1";
        aarch64 "ldr x9, [x20]", "4:", "ldaxr x0, [x9]", "add x0, x0, 1", "stlxr w10, x0, [x9]", "cbnz w10, 4b"
    }

    struct Counted {
        word: Arc<AtomicU64>,
        iterations: u64,
        /// The first word of its partner while that ran.
        seen: Arc<AtomicU64>,
    }

    impl Contender for Counted {
        fn before(&mut self, context: &mut LoopContext, partners: &mut [Partner], iterations: u64) {
            self.word.store(0, SeqCst);
            self.iterations = iterations;
            context.words[0] = self.word.as_ptr() as u64;
            partners.iter_mut().for_each(|partner| partner.side.words[0] = self.word.as_ptr() as u64);
        }

        fn begun(&mut self, _: &mut LoopContext, words: [u64; WORDS]) {
            self.seen.store(words[0], SeqCst);
        }

        fn after(&mut self, _: &LoopContext, partners: &[Partner]) -> Result<Outcome> {
            let theirs: u64 = partners.iter().map(|partner| partner.side.iterations()).sum();
            Ok(Outcome::Sound(Some(self.word.load(SeqCst) - theirs - self.iterations)))
        }
    }

    #[test]
    fn both_loops_add_all_their_iterations() {
        let all = cpu::allowed();
        let [.., other, home] = all[..] else { return eprintln!("skipped: one processor only") };
        cpu::pin(home).expect("an allowed processor");
        let Ok((clock @ Clock::Tsc { .. }, _)) = Clock::tsc() else {
            cpu::allow(&all);
            return eprintln!("skipped: no time stamp counter");
        };
        let partner = Partner { cpu: other, code: count, side: Box::default() };
        let (word, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let contender = Counted { word: Arc::clone(&word), iterations: 0, seen: Arc::clone(&seen) };
        // SAFETY: both loops only add to a word that lives as long as the instance.
        let mut contended =
            unsafe { Contended::new(&mut Context::here(), count_too, vec![partner], contender) };
        let order = Order::new(500);
        let batches: Vec<Batch> = (0..20).map(|_| contended.batch(clock, order).expect("a batch")).collect();
        // The sum has every addition of both threads exactly once.
        assert!(batches.iter().all(|batch| matches!(batch.counted, None | Some(0))), "{batches:?}");
        assert!(batches.iter().any(|batch| batch.undisturbed), "{batches:?}");
        assert_eq!(seen.load(SeqCst), word.as_ptr() as u64, "a partner's words are seen while it runs");
        assert_eq!(cpu::allowed(), [home]);
        cpu::allow(&all);
    }
}
