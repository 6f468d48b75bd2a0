//! The peer: a thread or process that holds the other end of a channel.
//!
//! It sleeps between batches, and ends with its instance. If it does not answer, a timer of the timed thread interrupts the call
//! that waits for it, so neither its death nor its silence stops the run.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate_os::process::{self, Child, own_pid};
use tollgate_os::rusage::Usage;
use tollgate_os::signals::{Disposition, Set};
use tollgate_os::timer::Timer;

use super::channel::{Numbers, Side};
use super::message::{Fault, Message, Outcome};
use crate::prelude::*;
use crate::processes::raw;

/// Longer than any single message takes.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Added for each message of a batch: longer than both ends wait for a processor on a loaded or emulated machine.
const FOR_A_MESSAGE: Duration = Duration::from_millis(10);
/// Longer than any batch takes.
pub const MOST: Duration = Duration::from_secs(60);
/// Interval between interrupts of a waiting call: the first one may arrive just before the call.
const AGAIN: Duration = Duration::from_millis(20);
/// Number of waits of [`AGAIN`] after which no answer is expected any more.
const LONG: u32 = 50;
/// Number of waits if the peer only has to notice that the other end has given up.
pub const SOON: u32 = 3;
/// The signal of the timer and of tgkill(2).
const SIGNAL: libc::c_int = libc::SIGALRM;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Answer,
    /// Takes messages, and reports when it has all.
    Take,
}

#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub part: Part,
    pub first: u64,
    /// Untimed messages before the timed ones; each is compared as a whole.
    pub warm_up: u64,
    /// Timed messages. One more follows, which is compared as a whole.
    pub timed: u64,
}

/// The memory that a peer shares with the timed thread: its job and the result.
#[repr(C)]
#[derive(Default)]
struct Board {
    /// Incremented with each job. The peer sleeps while it is unchanged.
    job: AtomicU32,
    done: AtomicU32,
    /// Nonzero tells the peer to end.
    leave: AtomicU32,
    /// Nonzero if the peer takes messages without answering.
    takes: AtomicU32,
    /// If the peer takes messages: incremented after those of the warm-up and after the timed ones; [`FAILED`] after a fault.
    progress: AtomicU32,
    /// The peer's thread ID; 0 until it has begun, a negated error number (`i32`) if that failed.
    thread: AtomicU32,
    first: AtomicU64,
    warm_up: AtomicU64,
    timed: AtomicU64,
    fault: AtomicU64,
    /// Used by the peer's thread while messages were timed.
    switches: AtomicU64,
    minor_faults: AtomicU64,
    major_faults: AtomicU64,
}

impl Board {
    fn used(&self, before: &Usage, after: &Usage) {
        self.switches.store(after.switches().saturating_sub(before.switches()), SeqCst);
        self.minor_faults.store(after.minflt.saturating_sub(before.minflt), SeqCst);
        self.major_faults.store(after.majflt.saturating_sub(before.majflt), SeqCst);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    pub switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
}

/// [`Board::progress`] of a job that a fault has ended.
const FAILED: u32 = u32::MAX;

struct Shared(Mapping);

impl std::ops::Deref for Shared {
    type Target = Board;

    fn deref(&self) -> &Board {
        // SAFETY: the mapping is page-aligned, longer than this, and holds atomic words only, for which zeros are valid.
        unsafe { &*self.0.address().cast::<Board>() }
    }
}

words! {
    pub enum PeerKind("between") { Process = "processes", Thread = "threads" }
}

/// A running peer. Dropping it ends it.
pub struct Peer {
    board: Arc<Shared>,
    process: libc::pid_t,
    thread: libc::pid_t,
    child: Option<Child>,
    joined: Option<JoinHandle<()>>,
    _taken: Taken,
}

impl Peer {
    /// Starts the peer with its end of a channel, on this processor or on the calling thread's.
    pub fn start(
        kind: PeerKind,
        mut side: Box<dyn Side>,
        mut message: Message,
        processor: Option<usize>,
        quota: &Quota,
    ) -> Result<Self> {
        install_handler()?;
        let taken = quota.take_processes(1)?;
        let board =
            Mapping::anonymous(size_of::<Board>(), libc::MAP_SHARED).or_refused("mmap(2) is refused")?;
        let board = Arc::new(Shared(board));
        let own = Arc::clone(&board);
        let mut life = move || live(&own, &mut *side, &mut message, processor);
        let mut peer =
            Self { board, process: own_pid(), thread: 0, child: None, joined: None, _taken: taken };
        match kind {
            PeerKind::Thread => {
                let thread = std::thread::Builder::new().name("tollgate-peer".to_owned()).stack_size(STACK);
                let thread = thread.spawn(life).map_err(|error| quota.refused("a thread", &error))?;
                peer.joined = Some(thread);
            }
            PeerKind::Process => {
                // If this process has threads, they sleep now and hold no lock.
                let child = process::fork_bound(|| {
                    life();
                    0
                });
                let child = child.map_err(|error| quota.refused("a process", &error))?;
                peer.process = child.pid();
                peer.child = Some(child);
            }
        }
        peer.wait_for_start()?;
        Ok(peer)
    }

    fn wait_for_start(&mut self) -> Result<()> {
        let begun = || self.board.thread.load(SeqCst) != 0;
        wait_until(begun, &self.board.thread, LONG);
        match self.board.thread.load(SeqCst).cast_signed() {
            0 => Err(fail!("the peer did not start within a second")),
            error if error < 0 => Err(Refusal::new(
                "the peer's processor is refused (sched_setaffinity(2))",
                &io::Error::from_raw_os_error(-error),
            )),
            thread => {
                self.thread = thread;
                Ok(())
            }
        }
    }

    pub fn child(&self) -> &[Child] {
        self.child.as_slice()
    }

    pub fn begin(&self, job: Job) {
        let board = &self.board;
        board.first.store(job.first, SeqCst);
        board.warm_up.store(job.warm_up, SeqCst);
        board.timed.store(job.timed, SeqCst);
        board.takes.store(u32::from(job.part == Part::Take), SeqCst);
        board.progress.store(0, SeqCst);
        board.fault.store(0, SeqCst);
        board.job.fetch_add(1, SeqCst);
        wake(&board.job);
    }

    /// Waits until the peer has taken the messages of the warm-up (1), or the timed ones (2). Polls first if the peer has its own
    /// processor, because a wake-up would take as long as several messages.
    pub fn has_taken(&self, which: u32, polls: bool) -> Outcome {
        /// About a millisecond.
        const POLLS: u32 = 1 << 15;
        let progress = &self.board.progress;
        let mut left = if polls { POLLS } else { 0 };
        while left > 0 && progress.load(SeqCst) < which {
            std::hint::spin_loop();
            left -= 1;
        }
        match wait_until(|| progress.load(SeqCst) >= which, progress, LONG) {
            true if progress.load(SeqCst) == FAILED => Err(Fault::Closed),
            true => Ok(()),
            false => Err(Fault::Silent),
        }
    }

    /// Waits, for a limited time, until the peer has ended its job. Returns what it used while messages were timed.
    pub fn ended(&self) -> Result<Used, Fault> {
        self.ended_within(LONG)
    }

    /// Like [`Peer::ended`], with this number of waits.
    pub fn ended_within(&self, waits: u32) -> Result<Used, Fault> {
        let board = &self.board;
        if !wait_until(|| board.done.load(SeqCst) == board.job.load(SeqCst), &board.done, waits) {
            return Err(Fault::Silent);
        }
        let used = || Used {
            switches: board.switches.load(SeqCst),
            minor_faults: board.minor_faults.load(SeqCst),
            major_faults: board.major_faults.load(SeqCst),
        };
        Fault::unpacked(board.fault.load(SeqCst)).map_or_else(|| Ok(used()), Err)
    }

    /// Nanoseconds that the peer has waited for its processor, see [`raw::queued`]. 0 if the kernel does not report it.
    pub fn queued(&self) -> u64 {
        raw::queued(self.process, self.thread).unwrap_or(0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.board.leave.store(1, SeqCst);
        self.board.job.fetch_add(1, SeqCst);
        wake(&self.board.job);
        let Some(thread) = self.joined.take() else { return };
        // Interrupts a call that waits for a message that will not arrive.
        while !thread.is_finished() {
            if self.thread > 0 {
                let arguments = [own_pid() as u64, self.thread as u64, SIGNAL as u64, 0];
                // SAFETY: the call takes numbers, and the signal has a handler.
                unsafe { call(libc::SYS_tgkill, arguments) };
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = thread.join();
    }
}

/// Enough for a loop of two calls.
const STACK: usize = 64 << 10;

fn live(board: &Board, side: &mut dyn Side, message: &mut Message, processor: Option<usize>) {
    let pinned = processor.map_or(Ok(()), cpu::pin);
    side.begin();
    let error = pinned.as_ref().err().map(|error| error.raw_os_error().unwrap_or(libc::EINVAL));
    board.thread.store(error.map_or_else(cpu::own_thread, |error| -error).cast_unsigned(), SeqCst);
    wake(&board.thread);
    let mut seen = 0;
    while pinned.is_ok() && board.leave.load(SeqCst) == 0 {
        let number = board.job.load(SeqCst);
        if number == seen {
            sleep_while(&board.job, seen, &PATIENCE);
            continue;
        }
        seen = number;
        if let Err(fault) = serve(board, side, message) {
            board.fault.store(fault.packed(), SeqCst);
            board.progress.store(FAILED, SeqCst);
            wake(&board.progress);
        }
        board.done.store(number, SeqCst);
        wake(&board.done);
    }
}

fn serve(board: &Board, side: &mut dyn Side, message: &mut Message) -> Outcome {
    let (first, count) = (board.first.load(SeqCst), board.warm_up.load(SeqCst));
    let warm_up = Numbers { first, count, whole: true };
    let timed = Numbers { first: first + count, count: board.timed.load(SeqCst), whole: false };
    let last = Numbers { first: timed.first + timed.count, count: 1, whole: true };
    if board.takes.load(SeqCst) == 0 {
        answer(board, side, message, [warm_up, timed, last])
    } else {
        take(board, side, message, [warm_up, timed, last])
    }
}

/// Its usage counts from the answer before the first timed message, so that each sleep before a timed one is included.
fn answer(board: &Board, side: &mut dyn Side, message: &mut Message, numbers: [Numbers; 3]) -> Outcome {
    let [warm_up, timed, last] = numbers;
    let (mut before, mut after) = (Usage::default(), Usage::default());
    side.answer(message, warm_up, &mut || before = Usage::of_thread())?;
    side.answer(message, timed, &mut || after = Usage::of_thread())?;
    board.used(&before, &after);
    side.answer(message, last, &mut || ())
}

fn take(board: &Board, side: &mut dyn Side, message: &mut Message, numbers: [Numbers; 3]) -> Outcome {
    let [warm_up, timed, last] = numbers;
    let has_taken = || {
        board.progress.fetch_add(1, SeqCst);
        wake(&board.progress);
    };
    side.take(message, warm_up)?;
    let before = Usage::of_thread();
    has_taken();
    side.take(message, timed)?;
    board.used(&before, &Usage::of_thread());
    has_taken();
    side.take(message, last)
}

/// While this lives, a timer interrupts a call of this thread that still waits after `patience` and the time for its messages.
pub struct Alarm {
    _timer: Timer,
}

impl Alarm {
    pub fn set(patience: Duration, messages: u64) -> Result<Self> {
        let after = until(patience, messages);
        let timer = Timer::new(SIGNAL).and_then(|timer| timer.set(after, AGAIN).map(|()| timer));
        Ok(Self { _timer: timer.or_refused("no timer can be set (timer_create(2))")? })
    }
}

fn until(patience: Duration, messages: u64) -> Duration {
    let messages = u32::try_from(messages).unwrap_or(u32::MAX);
    patience.saturating_add(FOR_A_MESSAGE.saturating_mul(messages)).min(MOST)
}

/// Handles the signal from now on, in this process and in forked children. The handler does nothing but interrupt a waiting call.
fn install_handler() -> Result<()> {
    extern "C" fn handle(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    // SAFETY: the handler does nothing.
    let disposition = || unsafe { Disposition::handler(handle, 0) };
    let install = || disposition().set(SIGNAL).map(drop).map_err(|error| error.to_string());
    Set::of(&[SIGNAL]).unblock();
    INSTALLED.get_or_init(install).clone().map_err(|why| skip!("no handler can be installed: {why}"))
}

/// Waits until the condition holds, which a wake-up of `word` announces. Gives up after `waits` of [`AGAIN`], and returns false.
fn wait_until(is_so: impl Fn() -> bool, word: &AtomicU32, waits: u32) -> bool {
    let mut waited = 0;
    loop {
        let value = word.load(SeqCst);
        if is_so() {
            return true;
        }
        if waited >= waits {
            return false;
        }
        waited += u32::from(sleep_while(word, value, &AGAIN));
    }
}

/// Sleeps while `word` is `value`, until a wake-up or a timeout (futex(2), between processes too). Returns true on timeout.
fn sleep_while(word: &AtomicU32, value: u32, at_most: &Duration) -> bool {
    let time = libc::timespec {
        tv_sec: at_most.as_secs().cast_signed(),
        tv_nsec: i64::from(at_most.subsec_nanos()),
    };
    let arguments = [word.as_ptr() as u64, libc::FUTEX_WAIT as u64, u64::from(value), &raw const time as u64];
    // SAFETY: the kernel reads the word and the time.
    unsafe { call(libc::SYS_futex, arguments) == -i64::from(libc::ETIMEDOUT) }
}

fn wake(word: &AtomicU32) {
    let arguments = [word.as_ptr() as u64, libc::FUTEX_WAKE as u64, i32::MAX as u64, 0];
    // SAFETY: the kernel only takes the word's address.
    unsafe { call(libc::SYS_futex, arguments) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_many_messages_has_more_time_but_not_for_ever() {
        let after = |messages| until(PATIENCE, messages);
        assert!(after(1) > PATIENCE && after(100) > after(10));
        assert_eq!(after(u64::MAX), MOST);
    }
}
