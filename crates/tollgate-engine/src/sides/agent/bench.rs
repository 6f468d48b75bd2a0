use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::protocol::{Answer, Job, SIGN};
use crate::bench_process::frame;
use crate::bench_process::record::ProcessRecord;
use crate::bench_process::supervisor::{Isolation, Worker};
use crate::bench_process::worker::{Find, Task, TurnOrder, Work};
use crate::machine::ending::Ending;
use crate::{machine::clock, machine::group};

pub struct Bench {
    worker: Worker,
    instances: usize,
    turns: Option<Pipes>,
    ended: Option<OwnedFd>,
    /// Whether it works on a request; otherwise it waits for a turn.
    is_busy: bool,
    stall: Duration,
    most: Duration,
    since: Instant,
    beats: u64,
    last_beat: Instant,
    last_sign: Instant,
}

struct Pipes {
    orders: PipeWriter,
    done: PipeReader,
    is_ready: bool,
}

impl Pipes {
    /// Also returns the descriptors of the other ends, which stay open in `theirs`.
    fn new(theirs: &mut Option<(PipeReader, PipeWriter)>) -> io::Result<(Self, [i32; 2])> {
        let ((to_read, orders), (done, to_write)) = (io::pipe()?, io::pipe()?);
        let descriptors = [to_read.as_raw_fd(), to_write.as_raw_fd()];
        *theirs = Some((to_read, to_write));
        Ok((Self { orders, done, is_ready: false }, descriptors))
    }
}

impl Bench {
    pub fn start(
        job: Job,
        task: impl FnOnce(Work) -> Task,
        (stall, most): (Duration, Duration),
        isolation: &Isolation,
        find: Find,
    ) -> io::Result<Self> {
        let instances = job.instances();
        let until = |within: Duration| {
            clock::monotonic().saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX))
        };
        // The ends of the bench process close here when it is started.
        let mut theirs = None;
        let mut turns = None;
        let work = match job {
            Job::Clock => Work::Clock,
            Job::Calibration { clock, instances, within } => {
                Work::Calibration { clock, instances, deadline: until(within) }
            }
            Job::Rounds { clock, instances, seed, within } => {
                Work::Rounds { clock, instances, seed, deadline: until(within) }
            }
            Job::Count { instances } => Work::Count { instances },
            Job::Turns { clock, instances } => {
                let (own, pipes) = Pipes::new(&mut theirs)?;
                turns = Some(own);
                Work::Turns { clock, instances, pipes }
            }
            Job::Watched { instances } => {
                let (own, pipes) = Pipes::new(&mut theirs)?;
                turns = Some(own);
                Work::Watched { instances, pipes }
            }
        };
        let worker = Worker::start(&task(work), isolation, find)?;
        drop(theirs);
        let ended = worker.descriptor_of_end();
        let now = Instant::now();
        Ok(Self {
            worker,
            instances,
            turns,
            ended,
            is_busy: true,
            stall,
            most,
            since: now,
            beats: 0,
            last_beat: now,
            last_sign: now,
        })
    }

    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        // If the process ends while it waits, that is found when it gets its next turn.
        let of_end = self.ended.iter().map(AsFd::as_fd);
        of_end.chain(self.turns.iter().map(|turns| turns.done.as_fd())).filter(|_| self.is_busy)
    }

    /// The index of the pipe that reports the end of a turn, among [`Self::descriptors`].
    pub fn place_of_done(&self) -> Option<usize> {
        self.turns.as_ref().filter(|_| self.is_busy).map(|_| usize::from(self.ended.is_some()))
    }

    pub fn look(&self) -> Duration {
        match (self.is_busy, &self.ended) {
            (true, Some(_)) => group::LOOK,
            // Without a descriptor, its end must be polled.
            (true, None) => group::LOOK / 4,
            (false, _) => SIGN,
        }
    }

    /// Hands out a turn. Fails if the process does not wait for one. If it has ended, a failed write is ignored: `news` reports the end.
    pub fn turn(&mut self, order: &TurnOrder) -> Result<(), String> {
        let Some(turns) = self.turns.as_mut().filter(|turns| turns.is_ready) else {
            return Err("no bench process is waiting for a turn".to_owned());
        };
        if order.due.len() > self.instances || self.is_busy {
            return Err("this turn cannot be run".to_owned());
        }
        let now = Instant::now();
        (self.is_busy, self.since, self.last_beat, self.last_sign) = (true, now, now, now);
        let _ = frame::write(&mut turns.orders, &Some(order));
        Ok(())
    }

    /// The next news, if any. `done` is whether the pipe of ended turns is readable.
    pub fn news(&mut self, done: bool) -> Option<Answer> {
        if !self.is_busy {
            return None;
        }
        if done && let Some(turns) = &mut self.turns {
            // If there is nothing to read, the process has ended.
            if let Ok(1) = turns.done.read(&mut [0]) {
                let was_ready = std::mem::replace(&mut turns.is_ready, true);
                self.is_busy = false;
                return Some(if was_ready { Answer::Done } else { Answer::Ready });
            }
        }
        if let Some(ending) = self.worker.ended() {
            return Some(self.answer(ending));
        }
        let now = Instant::now();
        let beats = self.worker.shared.beats();
        if beats != self.beats {
            (self.beats, self.last_beat) = (beats, now);
        }
        let cut = match self.is_busy {
            true if now - self.since >= self.most => Some(Ending::OutOfTime),
            true if now - self.last_beat >= self.stall => Some(Ending::Stalled),
            _ => None,
        };
        if let Some(ending) = cut {
            self.worker.kill();
            return Some(self.answer(ending));
        }
        if self.is_busy && now - self.last_sign >= SIGN {
            self.last_sign = now;
            return Some(Answer::Running(self.worker.shared.current_instance()));
        }
        None
    }

    fn answer(&self, ending: Ending) -> Answer {
        Answer::Ended { ending, record: self.worker.record(self.instances) }
    }

    /// Its record after its turns are over. It must not be busy.
    pub fn left(&self) -> ProcessRecord {
        self.worker.record(self.instances)
    }

    pub fn end(mut self) {
        /// It only has to release what it prepared.
        const PATIENCE: Duration = Duration::from_secs(1);
        if let Some(turns) = &mut self.turns {
            let _ = frame::write(&mut turns.orders, &None::<TurnOrder>);
        }
        self.worker.let_end(PATIENCE);
    }
}
