//! A batch of messages between the timed thread and its peer.

use std::time::Duration;

use tollgate_os::process::own_pid;

use super::cases::{SAME, THREADS};
use super::channel::{self, Ends, Numbers, Side};
use super::message::{Fault, Message, Outcome};
use super::peer::{Alarm, Job, Part, Peer, PeerKind, SOON};
use crate::memory;
use crate::prelude::*;
use crate::processes::raw;

/// The counts beside the time.
pub const COUNTERS: &[&str] = &["context switches"];

/// What the timed thread does with its end, and its peer with the other.
pub struct Talk {
    side: Box<dyn Side>,
    message: Message,
    peer: Peer,
    /// Whether the peer is on another processor.
    is_apart: bool,
    /// The number of the next message.
    next: u64,
    /// What its peer does with messages.
    part: Part,
    /// Messages in one iteration.
    messages: u64,
    /// Why no batch can follow: messages of the one that failed may still be on their way.
    failed: Option<Refusal>,
}

impl Talk {
    /// The channel and the peer of a case, and a note on their processors.
    pub fn of_case(
        params: &Params,
        part: Part,
        messages: u64,
        context: &mut Context,
    ) -> Result<(Self, Option<String>)> {
        let home = context.home()?;
        let (other, note) = match word(params, "cpus") {
            SAME => (None, None),
            relation => {
                let (other, note) = memory::related_to_home(relation, home, context)?;
                (Some(other), Some(note))
            }
        };
        let kind = if word(params, "between") == THREADS { PeerKind::Thread } else { PeerKind::Process };
        let bytes = number(params, "bytes") as usize;
        let means = channel::means(params).ok_or_else(|| fail!("the channel is unknown"))?;
        let ends =
            (means.ends)(&mut channel::Order { bytes, is_private: kind == PeerKind::Thread, context })?;
        Ok((Self::new(ends, kind, bytes, (part, messages), other, context)?, note))
    }

    /// With these ends of a channel, and a peer on this processor or where the calling thread is.
    pub fn new(
        (mut side, peers): Ends,
        kind: PeerKind,
        bytes: usize,
        (part, messages): (Part, u64),
        other: Option<usize>,
        context: &Context,
    ) -> Result<Self> {
        side.begin();
        let peer = Peer::start(kind, peers, Message::new(bytes)?, other, &context.quota)?;
        let message = Message::new(bytes)?;
        Ok(Self { side, message, peer, is_apart: other.is_some(), next: 1, part, messages, failed: None })
    }

    /// Its peer, where that is a process.
    #[cfg(test)]
    pub fn peers(&self) -> &[tollgate_os::process::Child] {
        self.peer.child()
    }

    fn run(&mut self, clock: Clock, times: u64) -> Result<Batch> {
        let job = Job { part: self.part, first: self.next, warm_up: warm_up(self.part, times), timed: times };
        let _alarm = Alarm::set(job.warm_up.saturating_add(times))?;
        let warm_up = Numbers { first: job.first, count: job.warm_up, whole: true };
        let timed = Numbers { first: job.first + job.warm_up, count: times, whole: false };
        let last = Numbers { first: timed.first + times, count: 1, whole: true };
        self.next = last.first + 1;
        self.peer.begin(job);
        self.exchange(warm_up, 1).map_err(|fault| self.refusal(fault))?;

        let mut counting = Counting::begin(Of::Process);
        let emptied = counting.empty(|| clock.time(|| ()));
        let queued = self.queued();
        let switches = cpu::switches();
        let cpu_share = cpu::CpuShare::begin_with(self.peer.child());
        let mut outcome: Outcome = Ok(());
        let worked = counting.work(|| clock.time(|| outcome = self.exchange(timed, 2)));
        let tally = counting.end();
        // Disturbance on one processor is time that neither thread used; on two, time that either was runnable and waited.
        let passed = Duration::from_nanos(clock.nanoseconds(worked.ticks as f64) as u64);
        let alone = if self.is_apart {
            cpu::were_free(self.queued().saturating_sub(queued), passed, times)
        } else {
            cpu_share.was_full()
        };
        let own = cpu::switches().saturating_sub(switches);
        outcome.map_err(|fault| self.refusal(fault))?;
        let emptied_again = clock.time(|| ());

        self.exchange(last, 0).map_err(|fault| self.refusal(fault))?;
        let theirs = self.peer.ended().map_err(|fault| fail!("at the peer: {}", fault.in_words()))?;
        let batch = Batch::between([emptied, worked, emptied_again], alone);
        let switches = own + theirs.switches;
        let tally = tally.with_switches(switches);
        // The process's own faults have those of its threads; those of a child that still runs are nowhere else.
        let tally = match self.peer.child() {
            [] => tally,
            _ => tally.with_faults(theirs.minor_faults, theirs.major_faults),
        };
        Ok(Batch { counters: [switches, 0, 0, 0], tally, ..batch })
    }

    /// Sends messages until all are answered or taken; `step` is what the peer says of those that it takes.
    fn exchange(&mut self, numbers: Numbers, step: u32) -> Outcome {
        match self.part {
            Part::Answer => self.side.ask(&mut self.message, numbers),
            Part::Take => {
                self.side.give(&mut self.message, numbers)?;
                self.peer.has_taken(step, self.is_apart)
            }
        }
    }

    /// The refusal for a fault at this end. What the peer saw before it fell silent says more.
    fn refusal(&self, fault: Fault) -> Refusal {
        match self.peer.ended_within(SOON) {
            Err(theirs) if matches!(fault, Fault::Silent | Fault::Closed) && theirs != Fault::Silent => {
                fail!("at the peer: {}", theirs.in_words())
            }
            _ => fail!("{}", fault.in_words()),
        }
    }

    /// How long both ends have waited for their processors, where these are two.
    fn queued(&self) -> Duration {
        let both = || raw::queued(own_pid(), cpu::own_thread()).unwrap_or(0) + self.peer.queued();
        Duration::from_nanos(if self.is_apart { both() } else { 0 })
    }
}

/// Messages before those that are timed. Where many are kept the memory of the first ones is cold, and a stream has no first ones.
fn warm_up(part: Part, times: u64) -> u64 {
    match part {
        Part::Answer => (times / 16).max(1),
        Part::Take => (times / 4).max(1),
    }
}

impl Runner for Talk {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        self.run(clock, order.all() * self.messages).inspect_err(|why| self.failed = Some(why.clone()))
    }
}
