//! Two processes and the order in which they run.

use std::thread;

use super::party::{Order, Party, Stop};
use crate::locks::lock::{Lock, Reach};
use crate::locks::method::Method;
use tollgate_engine::{Refusal, cpu};

/// Two processes that share a lock, both on one processor. They are at rest, and nobody has the lock.
pub(super) struct Pair {
    pub a: Party,
    pub b: Party,
    /// The processor.
    pub home: usize,
    _lock: Lock,
}

/// What came of two takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContendedBatch {
    /// Whether `a` was stopped where it was to be, and `b`.
    pub stopped: [bool; 2],
    /// Whether `a` was stopped at the second instruction as well.
    pub again: bool,
    /// Whether one of them waited for the other.
    pub waited: bool,
    /// Whether `a` has the lock, and `b`.
    pub got: [bool; 2],
}

/// What came of an operation of `a`, at one instruction of which `b` had the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passage {
    /// Whether `a` was stopped at the instruction.
    pub stopped: bool,
    /// Whether `b` had the lock there.
    pub had: bool,
    /// Whether `a` has it in the end, and `b`.
    pub got: [bool; 2],
    /// Whether a lock that nobody has any more can be taken by exactly one, and one that somebody has by nobody.
    pub sound: bool,
}

/// How often two processes take turns before they are taken to wait for each other.
const TURNS: usize = 100;

impl Pair {
    /// On the processor to which the calling thread is bound.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the lock cannot be had, or nobody traced.
    pub fn new(method: Method) -> Result<Self, Refusal> {
        let [home] = cpu::allowed()[..] else {
            return Err(Refusal::Fail("the thread is not bound to one processor".to_owned()));
        };
        let lock = Lock::new(method, Reach::On(home), 2)?;
        // Where a take is refused, this says by what.
        lock.join(1)?.try_out()?;
        Ok(Self { a: Party::new(&lock, 1)?, b: Party::new(&lock, 2)?, home, _lock: lock })
    }

    /// Both take. First `a` runs to `points[0]`, then `b` to `points[1]`, then `a` to `again`, then both by turns.
    /// Who was not told where to stop, or does not come there, runs until it has done with its take or waits.
    pub fn both_take(
        &mut self,
        points: [Option<usize>; 2],
        again: Option<usize>,
    ) -> Result<ContendedBatch, Refusal> {
        self.a.tell(Order::Take)?;
        self.b.tell(Order::Take)?;
        let a = self.a.run_to(points[0])?;
        let b = self.b.run_to(points[1])?;
        let stopped = [a == Stop::Point, b == Stop::Point];
        let (meeting, _) = self.by_turns([a, b], again)?;
        Ok(ContendedBatch { stopped, ..meeting })
    }

    /// `a` takes, and at `point` of it `b`. What the word at `forgotten` says of `a`'s restartable sequence is cleared there, so
    /// that nobody restarts it. Who has the lock; nobody has it after that.
    pub fn both_take_forgetting(&mut self, point: usize, forgotten: usize) -> Result<[bool; 2], Refusal> {
        self.a.tell(Order::Take)?;
        let a = self.a.run_to(Some(point))?;
        self.a.write(forgotten, 0)?;
        let b = take(&mut self.b)?;
        let a = if let Stop::Rest(answer) = a { answer } else { finish(&mut self.a)? };
        self.clear([a == 0, b])?;
        Ok([a == 0, b])
    }

    /// `a` takes, and is moved to another processor at `point` of it. `b`, at home, takes before `a` goes on there, or after that. Who
    /// has the lock; nobody has it in the end.
    pub fn both_take_apart(
        &mut self,
        point: usize,
        away: usize,
        a_first: bool,
    ) -> Result<[bool; 2], Refusal> {
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

    /// `a` takes. At `point` of it `b`, that had the lock already or takes it there, gives it back.
    pub fn given_back_at(&mut self, point: usize, had_before: bool) -> Result<Passage, Refusal> {
        if had_before && !take(&mut self.b)? {
            return Err(Refusal::Fail("nobody has the lock, and it cannot be taken".to_owned()));
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

    /// `a`, which has the lock, gives it back. At `point` of that `b` tries to take it.
    pub fn released_at(&mut self, point: usize) -> Result<Passage, Refusal> {
        if !take(&mut self.a)? {
            return Err(Refusal::Fail("nobody has the lock, and it cannot be taken".to_owned()));
        }
        self.a.tell(Order::Release)?;
        let stop = self.a.run_to(Some(point))?;
        let had = take(&mut self.b)?;
        if stop == Stop::Point {
            finish(&mut self.a)?;
        }
        self.passage(stop == Stop::Point, had, [false, had])
    }

    /// Both run by turns until they rest, `a` once to `again`. What they answer.
    fn by_turns(
        &mut self,
        stops: [Stop; 2],
        again: Option<usize>,
    ) -> Result<(ContendedBatch, [u64; 2]), Refusal> {
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
        Err(Refusal::Fail(format!("they wait for each other: {a:?}, {b:?}")))
    }

    /// Looks whether all is as it should be, where these have the lock. Nobody has it after that.
    fn passage(&mut self, stopped: bool, had: bool, got: [bool; 2]) -> Result<Passage, Refusal> {
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

    /// Who has the lock gives it back.
    pub fn clear(&mut self, got: [bool; 2]) -> Result<(), Refusal> {
        for (party, got) in [(&mut self.a, got[0]), (&mut self.b, got[1])] {
            if got {
                release(party)?;
            }
        }
        Ok(())
    }
}

/// A whole take, where nobody is on the way.
fn take(party: &mut Party) -> Result<bool, Refusal> {
    party.tell(Order::Take)?;
    finish(party).map(|answer| answer == 0)
}

/// A whole release.
fn release(party: &mut Party) -> Result<(), Refusal> {
    party.tell(Order::Release)?;
    finish(party).map(|_| ())
}

/// How often its restartable sequence was restarted.
pub(super) fn aborts(party: &mut Party) -> Result<u64, Refusal> {
    party.tell(Order::Aborts)?;
    finish(party)
}

/// Runs it until it rests. What it answers.
fn finish(party: &mut Party) -> Result<u64, Refusal> {
    match party.run_to(None)? {
        Stop::Rest(answer) => Ok(answer),
        other => Err(Refusal::Fail(format!("it did not come to rest: {other:?}"))),
    }
}

/// Does something with a pair for each of these locks, in a thread on one processor. Says of which locks it cannot be
/// done here, and panics where something goes wrong.
pub(super) fn with_each(methods: &[Method], each: impl Fn(Method, &mut Pair) -> Result<(), Refusal> + Sync) {
    let outcome = thread::scope(|scope| {
        let work = || {
            let home = cpu::usual(&cpu::allowed()).unwrap_or_default();
            if let Err(error) = cpu::pin(home) {
                return eprintln!("skipped: a thread cannot be bound to one processor: {error}");
            }
            for &method in methods {
                match Pair::new(method).and_then(|mut pair| each(method, &mut pair)) {
                    Ok(()) => {}
                    Err(Refusal::Skip(why)) => eprintln!("skipped: {}: {why}", method.name()),
                    Err(Refusal::Fail(why)) => panic!("{}: {why}", method.name()),
                }
            }
        };
        scope.spawn(work).join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}
