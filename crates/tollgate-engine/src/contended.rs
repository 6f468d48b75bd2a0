//! What is timed while other threads do something on other processors: the loops of those threads, the proof that
//! they ran meanwhile, and the runner for both.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::{self, Clock};
use super::cpu;
use super::limits::{self, Taken};
use super::runner::{Batch, Order, Refusal, Runner};
use super::timed::{Context, EMPTY_LONG, LongLoop};
use super::worker::alive;

/// What the loop of another thread finds behind `r13`, and what it leaves there. Lines of its own, two by two: a
/// processor may fetch them in pairs.
#[repr(C, align(128))]
pub struct Side {
    /// The loop's own use.
    pub words: [u64; 12],
    /// Its first time stamp and its last.
    stamps: [u64; 2],
    /// Turns that took more ticks than this are written down.
    long: u64,
    /// How many were.
    long_turns: u64,
    /// How many turns it has made.
    progress: Isolated,
    /// Not 0: it is to stop.
    stop: Isolated,
    /// When the last of the long turns ended, and how many ticks each took; the oldest gives way.
    log: [[u64; 2]; LOG],
}

/// Long turns that are known at a time: a power of two.
const LOG: usize = 64;

impl Default for Side {
    fn default() -> Self {
        Self {
            words: [0; 12],
            stamps: [0; 2],
            long: 0,
            long_turns: 0,
            progress: Isolated::default(),
            stop: Isolated::default(),
            log: [[0; 2]; LOG],
        }
    }
}

impl Side {
    /// How many turns its loop has made.
    pub fn turns(&self) -> u64 {
        self.progress.0.load(SeqCst)
    }
}

/// A pair of lines for one number.
#[repr(C, align(128))]
#[derive(Default)]
struct Isolated(AtomicU64);

/// The loop of another thread, written with `contending_loop!`: it goes on until it is told to stop.
pub type ContendingLoop = unsafe extern "C" fn(*mut Side);

/// Writes the loop of another thread: `contending_loop! { /// doc … name: "instruction", … }`. In the body, which is one
/// turn, `r13` is the [`Side`]; `rbp` and `r12` must be left alone. A turn must end by itself, in a microsecond
/// or so: between turns it takes the time and looks whether it is to stop.
#[macro_export]
macro_rules! contending_loop {
    ($(#[$doc:meta])* $name:ident: $($body:literal),*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(side: *mut $crate::contended::Side) {
            core::arch::naked_asm!(
                "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
                "mov r13, rdi",
                "rdtsc", "shl rdx, 32", "or rax, rdx",
                "mov [r13 + 96], rax",
                // The last stamp.
                "mov rbp, rax",
                ".p2align 6",
                "2:",
                $($body,)*
                "rdtsc", "shl rdx, 32", "or rax, rdx",
                "mov rcx, rax", "sub rcx, rbp", "mov rbp, rax",
                "cmp rcx, [r13 + 112]", "jbe 8f",
                "mov rdx, [r13 + 120]", "and edx, 63", "shl edx, 4",
                "mov [r13 + rdx + 384], rax", "mov [r13 + rdx + 392], rcx",
                "inc qword ptr [r13 + 120]",
                "8:",
                "inc qword ptr [r13 + 128]",
                "cmp qword ptr [r13 + 256], 0",
                "je 2b",
                "mov [r13 + 104], rbp",
                "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
                "ret",
            )
        }
    };
}
pub use crate::contending_loop;

/// Another thread of a batch: where it runs, and what.
pub struct Partner {
    /// The processor.
    pub cpu: usize,
    /// The loop.
    pub code: ContendingLoop,
    /// What it finds.
    pub side: Box<Side>,
}

/// What a benchmark knows of its two loops.
pub trait Contender: Send {
    /// Before a meeting, in which the timed loop goes round so many times, the first of them untimed.
    fn before(&mut self, context: &mut Context, partners: &mut [Partner], iterations: u64);

    /// After it. The events that were counted in the timed part, where any are.
    ///
    /// # Errors
    /// What went wrong; None where a partner was waited for in vain.
    fn after(&mut self, context: &Context, partners: &[Partner]) -> Result<Outcome, Refusal>;

    /// What the timed loop counts until its timed part begins.
    fn begin(&mut self, _context: &mut Context) {}

    /// Iterations before the timed ones, at least.
    fn warm_up(&self) -> u64 {
        1
    }
}

/// What became of a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was what is asked for; events, where any are counted.
    Sound(Option<u64>),
    /// A partner was waited for in vain.
    Vain,
}

/// A timed loop beside others.
pub struct Contended {
    code: LongLoop,
    context: Box<Context>,
    partners: Vec<Partner>,
    /// Where the timed loop runs, where that is not the bench's own processor.
    cpu: Option<usize>,
    contender: Box<dyn Contender>,
}

impl Contended {
    /// `code` beside the loops of `partners`.
    ///
    /// # Safety
    /// Each loop must be sound to run any number of times with what `contender` puts into its context or side, at the
    /// same time as the others.
    pub unsafe fn new(code: LongLoop, partners: Vec<Partner>, contender: impl Contender + 'static) -> Self {
        Self { code, context: Box::default(), partners, cpu: None, contender: Box::new(contender) }
    }

    /// With the timed loop on this processor.
    pub fn on(mut self, cpu: usize) -> Self {
        self.cpu = Some(cpu);
        self
    }
}

impl Runner for Contended {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch, Refusal> {
        /// Where others have the processors, the partners may not have run meanwhile.
        const TRIES: usize = 5;
        let hz = clock.hz();
        if !matches!(clock, Clock::Tsc { .. }) && !self.partners.is_empty() {
            let why = "whether both threads ran at the same time is told by the time stamp counter, which cannot be used";
            return Err(Refusal::Skip(why.to_owned()));
        }
        let _there = self.cpu.map(Visit::to).transpose()?;
        let crew = crew(self.partners.len())?;
        let mut batch = self.meeting(clock, hz, order, &crew)?;
        for _ in 1..TRIES {
            if batch.undisturbed {
                break;
            }
            alive();
            batch = self.meeting(clock, hz, order, &crew)?;
        }
        Ok(batch)
    }
}

impl Contended {
    fn meeting(&mut self, clock: Clock, hz: u64, order: Order, crew: &[Rc<Peer>]) -> Result<Batch, Refusal> {
        let iterations = order.iterations + order.extra;
        let warm_up = (iterations / 16).max(self.contender.warm_up());
        self.contender.before(&mut self.context, &mut self.partners, warm_up + iterations);
        let (code, context): (LongLoop, *mut Context) = (self.code, &mut *self.context);
        let mut running: Vec<Running> = Vec::new();
        for (partner, peer) in self.partners.iter_mut().zip(crew) {
            // SAFETY: by `Contended::new`'s contract; the side lives as long as this instance, and `Running` waits for the
            // thread before it goes.
            running.push(unsafe { Running::start(peer, partner, hz) });
        }
        if !running.iter().all(Running::has_begun) {
            return stopped(running).map(|_| Batch {
                work: 1,
                empty: 0,
                undisturbed: false,
                counted: None,
                counters: Default::default(),
            });
        }
        // SAFETY: by `Contended::new`'s contract.
        unsafe { code(warm_up, context) };
        self.contender.begin(&mut self.context);
        let mut nothing = Context::default();
        // SAFETY: the empty loop only writes its context's result.
        let mut empty = || clock.time(|| unsafe { EMPTY_LONG(order.iterations, &mut nothing) });
        let switches = cpu::switches();
        let emptied = empty();
        let stamp = || if self.partners.is_empty() { 0 } else { clock::stamp() };
        let from = stamp();
        // SAFETY: by `Contended::new`'s contract.
        let worked = clock.time(|| unsafe { code(iterations, context) });
        let to = stamp();
        let emptied_again = empty();
        let unswitched = switches == cpu::switches();
        let theirs = stopped(running)?;
        let stayed = [emptied, worked, emptied_again].iter().all(|span| span.same_processor);
        let contended = theirs.iter().all(|stamps| stamps.cover(from, to, hz));
        let (sound, counted) = match self.contender.after(&self.context, &self.partners)? {
            Outcome::Sound(counted) => (true, counted),
            Outcome::Vain => (false, None),
        };
        Ok(Batch {
            work: worked.ticks,
            empty: emptied.ticks.min(emptied_again.ticks),
            undisturbed: stayed && unswitched && contended && sound,
            counted,
            counters: Default::default(),
        })
    }
}

/// When a partner ran.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamps {
    first: u64,
    last: u64,
    turns: u64,
    long_turns: u64,
    log: Vec<[u64; 2]>,
}

impl Stamps {
    fn of(side: &Side) -> Self {
        let [first, last] = side.stamps;
        let kept = (side.long_turns as usize).min(LOG);
        Self { first, last, turns: side.turns(), long_turns: side.long_turns, log: side.log[..kept].to_vec() }
    }

    /// Whether it ran all the time between two time stamps: it had begun before and did not end before, and of that
    /// time it was away for no more than a fifth or 5 µs, which is less than any other thread's turn; or, where many
    /// want a line and each turn of its own takes long, for no more than four turns.
    fn cover(&self, from: u64, to: u64, hz: u64) -> bool {
        const MANY: u64 = 16;
        let turn = match self.turns {
            MANY.. => self.last.saturating_sub(self.first) / self.turns,
            _ => 0,
        };
        let may_be_away = (to.saturating_sub(from) / 5).max(long(hz)).max(4 * turn);
        let within = |begin: u64, end: u64| end.min(to).saturating_sub(begin.max(from));
        // Its last stamp may have been taken a moment before it saw that it is to stop.
        let away = self.log.iter().map(|&[end, took]| within(end.saturating_sub(took), end)).sum::<u64>()
            + within(self.last, u64::MAX);
        let log_reaches_back = self.long_turns <= LOG as u64 || self.log.iter().any(|&[end, _]| end <= from);
        self.first > 0 && self.first <= from && log_reaches_back && away <= may_be_away
    }
}

/// Ticks of 5 µs.
fn long(hz: u64) -> u64 {
    hz / 200_000
}

/// Ends the partners' loops and waits for them.
fn stopped(running: Vec<Running>) -> Result<Vec<Stamps>, Refusal> {
    running.iter().for_each(Running::stop);
    running.into_iter().map(Running::ended).collect()
}

/// A partner's loop that runs. It is waited for, whatever happens.
struct Running {
    peer: Rc<Peer>,
    side: *mut Side,
    ended: bool,
}

impl Running {
    /// # Safety
    /// The partner's loop must be sound to run, and its side must outlive this.
    unsafe fn start(peer: &Rc<Peer>, partner: &mut Partner, hz: u64) -> Self {
        partner.side.progress.0.store(0, SeqCst);
        partner.side.stop.0.store(0, SeqCst);
        (partner.side.stamps, partner.side.long, partner.side.long_turns) = ([0; 2], long(hz), 0);
        let side: *mut Side = &mut *partner.side;
        peer.desk.put(Job::Work { cpu: partner.cpu, code: partner.code, side: Address(side) });
        Self { peer: Rc::clone(peer), side, ended: false }
    }

    /// Waits until it goes round; not for ever. Where others have the processors, waiting asleep keeps the right to run
    /// at once when the partner does.
    fn has_begun(&self) -> bool {
        self.goes_round() || (self.peer.desk.is_at_work() && self.goes_round())
    }

    /// Whether it goes round just now: it may have begun and be away again.
    fn goes_round(&self) -> bool {
        /// Longer than a thread takes to wake up on a processor that is free.
        const PATIENCE: u64 = 200_000; // nanoseconds
        const LOOK: u32 = 1 << 6;
        let until = clock::monotonic() + PATIENCE;
        let before = self.progress();
        while clock::monotonic() < until {
            for _ in 0..LOOK {
                // The second turn: the first may have waited for its code.
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

    fn stop(&self) {
        // SAFETY: as above.
        unsafe { (*self.side).stop.0.store(1, SeqCst) };
    }

    fn ended(mut self) -> Result<Stamps, Refusal> {
        self.ended = true;
        self.peer.desk.done()?;
        // SAFETY: the loop has ended; nobody else refers to the side now.
        Ok(Stamps::of(unsafe { &*self.side }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.stop();
            let _ = self.peer.desk.done();
        }
    }
}

/// A thread for the loops of partners. Between two batches it sleeps.
struct Peer {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
    _taken: Taken,
}

thread_local! {
    static CREW: RefCell<Vec<Rc<Peer>>> = const { RefCell::new(Vec::new()) };
}

/// So many threads, started where there are not so many yet.
fn crew(number: usize) -> Result<Vec<Rc<Peer>>, Refusal> {
    CREW.with_borrow_mut(|crew| {
        while crew.len() < number {
            crew.push(Rc::new(Peer::start()?));
        }
        Ok(crew[..number].to_vec())
    })
}

impl Peer {
    fn start() -> Result<Self, Refusal> {
        let taken = limits::take_processes(1)?;
        let desk = Arc::new(Desk::default());
        let own = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("tollgate-beside".to_owned())
            .spawn(move || own.work())
            .map_err(|error| limits::refused("a second thread", &error))?;
        Ok(Self { desk, thread: Some(thread), _taken: taken })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.desk.put(Job::Leave);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where a peer finds its work, and leaves that it is done.
#[derive(Default)]
struct Desk {
    job: Mutex<Job>,
    bell: Condvar,
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
    /// It is being done.
    AtWork,
    Done(Result<(), Refusal>),
    Leave,
}

/// Of a side.
#[derive(Clone, Copy)]
struct Address(*mut Side);

// SAFETY: only an address; who uses it says why that is sound.
unsafe impl Send for Address {}

impl Desk {
    fn put(&self, job: Job) {
        *self.lock() = job;
        self.bell.notify_all();
    }

    /// Waits until the work is done.
    fn done(&self) -> Result<(), Refusal> {
        /// A partner without a processor does not hang: it waits for its turn to see that it is to stop.
        const BEAT: Duration = Duration::from_millis(50);
        let mut job = self.lock();
        loop {
            if let Job::Done(outcome) = &*job {
                return outcome.clone();
            }
            job = self.bell.wait_timeout(job, BEAT).unwrap_or_else(PoisonError::into_inner).0;
            alive();
        }
    }

    /// Waits until the peer has a processor for its work; not for ever.
    fn is_at_work(&self) -> bool {
        /// Longer than a few turns of other threads on its processor.
        const PATIENCE: Duration = Duration::from_millis(20);
        let waiting = |job: &mut Job| matches!(job, Job::Work { .. });
        let woken = self.bell.wait_timeout_while(self.lock(), PATIENCE, waiting);
        alive();
        matches!(*woken.unwrap_or_else(PoisonError::into_inner).0, Job::AtWork)
    }

    /// The peer's whole life.
    fn work(&self) {
        let mut on = None;
        loop {
            let mut job = self.lock();
            let (cpu, code, side) = loop {
                match *job {
                    Job::Work { cpu, code, side } => break (cpu, code, side),
                    Job::Leave => return,
                    Job::None | Job::AtWork | Job::Done(_) => {
                        job = self.bell.wait(job).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(job);
            let outcome = match on == Some(cpu) {
                true => Ok(()),
                false => cpu::pin(cpu).map_err(|error| not_there(cpu, &error)),
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

fn not_there(cpu: usize, error: &std::io::Error) -> Refusal {
    Refusal::Skip(format!(
        "a thread cannot be put on processor {cpu}: sched_setaffinity(2): {}",
        tollgate_model::text::plainly(error)
    ))
}

/// While it lives, this thread is on another processor than the bench's own.
struct Visit {
    /// Where it may be otherwise; nothing where it is there already.
    before: Vec<usize>,
}

impl Visit {
    fn to(cpu: usize) -> Result<Self, Refusal> {
        let before = cpu::allowed();
        if before == [cpu] {
            return Ok(Self { before: Vec::new() });
        }
        cpu::pin(cpu).map_err(|error| not_there(cpu, &error))?;
        Ok(Self { before })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.before.is_empty() {
            cpu::allow(&self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timed::timed_loop;

    #[test]
    fn a_partner_was_there_if_it_began_before_ended_after_and_was_never_long_away() {
        let hz = 1_000_000_000;
        let stamps = |first, last, log: &[[u64; 2]]| Stamps {
            first,
            last,
            turns: 3,
            long_turns: log.len() as u64,
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
        assert!(covered(stamps(10, 99_000, &[])), "saw late that it was to stop");
        assert!(!covered(stamps(0, 0, &[])), "never ran");
        let slow = Stamps { turns: 20, ..stamps(10, 200_000, &[[60_000, 39_000]]) };
        assert!(covered(slow), "each of its turns takes 10 µs");
        let overflown = Stamps { long_turns: 1000, ..stamps(10, 200_000, &[[60_000, 10], [70_000, 10]]) };
        assert!(!covered(overflown), "what was before is not known");
    }

    #[test]
    fn what_the_loops_write_lies_where_they_write_it() {
        assert_eq!(std::mem::offset_of!(Side, stamps), 96);
        assert_eq!(std::mem::offset_of!(Side, long), 112);
        assert_eq!(std::mem::offset_of!(Side, long_turns), 120);
        assert_eq!((std::mem::offset_of!(Side, log), LOG), (384, 64));
        assert_eq!(std::mem::offset_of!(Side, progress), 128);
        assert_eq!(std::mem::offset_of!(Side, stop), 256);
    }

    contending_loop! {
        /// Adds to a word.
        count: "mov rcx, [r13]", "lock add qword ptr [rcx], 1"
    }

    timed_loop! {
        /// Adds to the same word. Word 0: its address.
        count_too: "mov rcx, [r13]", "lock add qword ptr [rcx], 1"
    }

    struct Counted {
        word: Arc<AtomicU64>,
        iterations: u64,
    }

    impl Contender for Counted {
        fn before(&mut self, context: &mut Context, partners: &mut [Partner], iterations: u64) {
            self.word.store(0, SeqCst);
            self.iterations = iterations;
            context.words[0] = self.word.as_ptr() as u64;
            partners.iter_mut().for_each(|partner| partner.side.words[0] = self.word.as_ptr() as u64);
        }

        fn after(&mut self, _: &Context, partners: &[Partner]) -> Result<Outcome, Refusal> {
            let theirs: u64 = partners.iter().map(|partner| partner.side.turns()).sum();
            Ok(Outcome::Sound(Some(self.word.load(SeqCst) - theirs - self.iterations)))
        }
    }

    #[test]
    fn both_do_what_they_are_told_and_the_partner_sleeps_in_between() {
        let all = cpu::allowed();
        let [.., other, home] = all[..] else { return eprintln!("skipped: one processor only") };
        cpu::pin(home).expect("an allowed processor");
        let Ok((clock @ Clock::Tsc { .. }, _)) = Clock::tsc() else {
            cpu::allow(&all);
            return eprintln!("skipped: no time stamp counter");
        };
        let partner = Partner { cpu: other, code: count, side: Box::default() };
        let contender = Counted { word: Arc::new(AtomicU64::new(0)), iterations: 0 };
        // SAFETY: both loops only add to a word that lives as long as the instance.
        let mut contended = unsafe { Contended::new(count_too, vec![partner], contender) };
        let order = Order { iterations: 500, extra: 0 };
        let batches: Vec<Batch> = (0..20).map(|_| contended.batch(clock, order).expect("a batch")).collect();
        // Every addition of either side is there, none is there twice.
        assert!(batches.iter().all(|batch| matches!(batch.counted, None | Some(0))), "{batches:?}");
        assert!(batches.iter().any(|batch| batch.undisturbed), "{batches:?}");
        assert_eq!(cpu::allowed(), [home]);
        cpu::allow(&all);
    }
}
