use std::thread;

use tollgate_engine::Architecture;

use super::traced::{Order, Stop, TracedProcess};
use crate::locks::lock::{Lock, Reach};
use crate::prelude::*;
use crate::{locks::method::Method, testing::ready};

/// Two processes that share a lock, both on one processor. Between schedules they rest and the lock is free.
pub(super) struct Pair {
    pub a: TracedProcess,
    pub b: TracedProcess,
    pub home: usize,
    _lock: Lock,
}

/// The outcome of two interleaved acquisitions. Arrays are for `a` and `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContendedBatch {
    /// Whether each was stopped at its point.
    pub stopped: [bool; 2],
    /// Whether `a` was also stopped at the second instruction.
    pub again: bool,
    pub waited: bool,
    /// Whether each holds the lock.
    pub got: [bool; 2],
}

/// The outcome of an operation of `a` that `b` preempted at one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passage {
    /// Whether `a` was stopped at the instruction.
    pub stopped: bool,
    /// Whether `b` held the lock there.
    pub had: bool,
    /// Whether `a` and `b` hold it at the end.
    pub got: [bool; 2],
    /// True if exactly one process can acquire a free lock, and none a held one.
    pub sound: bool,
}

/// Turns after which two processes count as deadlocked.
const TURNS: usize = 100;

impl Pair {
    /// Makes the pair on the processor to which the calling thread is pinned.
    pub fn new(method: Method) -> Result<Self> {
        let [home] = cpu::allowed()[..] else {
            return Err(fail!("the thread is not pinned to one processor"));
        };
        let lock = Lock::new(method, Reach::On(home), 2)?;
        // If an acquisition is refused, this returns the reason.
        lock.join(1)?.try_out()?;
        Ok(Self { a: TracedProcess::new(&lock, 1)?, b: TracedProcess::new(&lock, 2)?, home, _lock: lock })
    }

    /// Both run `take`. First `a` runs to `points[0]`, then `b` to `points[1]`, then `a` to `again`, then both
    /// alternate. A process without a point, or one that does not reach it, runs until `take` returns or waits.
    pub fn both_take(&mut self, points: [Option<usize>; 2], again: Option<usize>) -> Result<ContendedBatch> {
        self.a.tell(Order::Take)?;
        self.b.tell(Order::Take)?;
        let a = self.a.run_to(points[0])?;
        let b = self.b.run_to(points[1])?;
        let stopped = [a == Stop::Point, b == Stop::Point];
        let (outcome, _) = self.by_turns([a, b], again)?;
        Ok(ContendedBatch { stopped, ..outcome })
    }

    /// `a` runs `take`, and `b` runs its own when `a` is at `point`. There the word at `forgotten` in `a`'s rseq area
    /// is cleared, so that the kernel does not restart the sequence. Returns the holders, and releases the lock.
    pub fn both_take_forgetting(&mut self, point: usize, forgotten: usize) -> Result<[bool; 2]> {
        self.a.tell(Order::Take)?;
        let a = self.a.run_to(Some(point))?;
        self.a.write(forgotten, 0)?;
        let b = take(&mut self.b)?;
        let a = if let Stop::Rest(answer) = a { answer } else { finish(&mut self.a)? };
        self.clear([a == 0, b])?;
        Ok([a == 0, b])
    }

    /// `a` runs `take`, and is migrated to another processor at `point`. `b` runs `take` on the old processor before or
    /// after `a` continues. Returns the holders, and releases the lock.
    pub fn both_take_apart(&mut self, point: usize, away: usize, a_first: bool) -> Result<[bool; 2]> {
        self.a.tell(Order::Take)?;
        let a = self.a.run_to(Some(point))?;
        self.a.bind(away)?;
        let mut b = None;
        if !a_first {
            b = Some(take(&mut self.b)?);
        }
        let a = if let Stop::Rest(answer) = a { answer } else { finish(&mut self.a)? };
        let b = b.map_or_else(|| take(&mut self.b), Ok)?;
        self.a.bind(self.home)?;
        self.clear([a == 0, b])?;
        Ok([a == 0, b])
    }

    /// `a` runs `take`. At `point` of it, `b` releases the lock, which it held before or acquires there.
    pub fn given_back_at(&mut self, point: usize, had_before: bool) -> Result<Passage> {
        if had_before && !take(&mut self.b)? {
            return Err(fail!("a free lock could not be acquired"));
        }
        self.a.tell(Order::Take)?;
        let a = self.a.run_to(Some(point))?;
        if had_before {
            release(&mut self.b)?;
            let answer = if let Stop::Rest(answer) = a { answer } else { finish(&mut self.a)? };
            return self.passage(a == Stop::Point, true, [answer == 0, false]);
        }
        self.b.tell(Order::Take)?;
        let b = self.b.run_to(None)?;
        let had = b == Stop::Rest(0);
        if had {
            release(&mut self.b)?;
        }
        let (_, [in_a, in_b]) = self.by_turns([a, b], None)?;
        self.passage(a == Stop::Point, had, [in_a == 0, in_b == 0 && !had])
    }

    /// `a`, which holds the lock, releases it. At `point` of the release `b` tries to acquire it.
    pub fn released_at(&mut self, point: usize) -> Result<Passage> {
        if !take(&mut self.a)? {
            return Err(fail!("a free lock could not be acquired"));
        }
        self.a.tell(Order::Release)?;
        let stop = self.a.run_to(Some(point))?;
        let had = take(&mut self.b)?;
        if stop == Stop::Point {
            finish(&mut self.a)?;
        }
        self.passage(stop == Stop::Point, had, [false, had])
    }

    /// Runs both alternately until they rest, `a` once to `again`. Returns their answers.
    fn by_turns(&mut self, stops: [Stop; 2], again: Option<usize>) -> Result<(ContendedBatch, [u64; 2])> {
        let ([mut a, mut b], mut next) = (stops, again);
        let mut waited = false;
        for _ in 0..TURNS {
            waited |= a == Stop::Waits || b == Stop::Waits;
            if let (Stop::Rest(in_a), Stop::Rest(in_b)) = (a, b) {
                let got = [in_a == 0, in_b == 0];
                let came_again = again.is_some() && next.is_none();
                return Ok((
                    ContendedBatch { stopped: [false; 2], again: came_again, waited, got },
                    [in_a, in_b],
                ));
            }
            if !matches!(a, Stop::Rest(_)) {
                a = self.a.run_to(next)?;
                if a == Stop::Point {
                    next = None;
                }
            }
            if !matches!(b, Stop::Rest(_)) {
                b = self.b.run_to(None)?;
            }
        }
        Err(fail!("deadlock: {a:?}, {b:?}"))
    }

    /// Checks the lock's state with these holders, and releases it.
    fn passage(&mut self, stopped: bool, had: bool, got: [bool; 2]) -> Result<Passage> {
        let sound = match got {
            [true, true] => false,
            [true, false] => !take(&mut self.b)?,
            [false, true] => !take(&mut self.a)?,
            [false, false] => true,
        };
        self.clear(got)?;
        let free = [take(&mut self.b)?, take(&mut self.a)?];
        self.clear([free[1], free[0]])?;
        Ok(Passage { stopped, had, got, sound: sound && free == [true, false] })
    }

    pub fn clear(&mut self, got: [bool; 2]) -> Result<()> {
        for (process, got) in [(&mut self.a, got[0]), (&mut self.b, got[1])] {
            if got {
                release(process)?;
            }
        }
        Ok(())
    }
}

fn take(process: &mut TracedProcess) -> Result<bool> {
    process.tell(Order::Take)?;
    finish(process).map(|answer| answer == 0)
}

fn release(process: &mut TracedProcess) -> Result<()> {
    process.tell(Order::Release)?;
    finish(process).map(|_| ())
}

pub(super) fn aborts(process: &mut TracedProcess) -> Result<u64> {
    process.tell(Order::Aborts)?;
    finish(process)
}

fn finish(process: &mut TracedProcess) -> Result<u64> {
    match process.run_to(None)? {
        Stop::Rest(answer) => Ok(answer),
        other => Err(fail!("it did not come to rest: {other:?}")),
    }
}

/// Runs `each` with a pair for each of these locks, in a thread on one processor. Prints skipped locks, and panics on
/// failures.
pub(super) fn with_each(methods: &[Method], each: impl Fn(Method, &mut Pair) -> Result<()> + Sync) {
    if !Architecture::X86_64.is_here() {
        return eprintln!("skipped: the breakpoint and the decoder of instructions are those of x86-64");
    }
    let outcome = thread::scope(|scope| {
        let work = || {
            let home = tollgate_engine::topology::usual(&cpu::allowed()).unwrap_or_default();
            if let Err(error) = cpu::pin(home) {
                return eprintln!("skipped: a thread cannot be pinned to one processor: {error}");
            }
            for &method in methods {
                ready(method, Pair::new(method).and_then(|mut pair| each(method, &mut pair)));
            }
        };
        scope.spawn(work).join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}
