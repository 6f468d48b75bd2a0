use std::time::Duration;

use tollgate_os::process::own_pid;

use super::cases::SAME;
use super::channel::{self, Ends, Numbers, Side};
use super::message::{Fault, Message, Outcome};
use super::peer::{Alarm, Job, PATIENCE, Part, Peer, PeerKind, SOON};
use crate::memory;
use crate::prelude::*;
use crate::processes::raw;

pub const COUNTERS: &[&str] = &["context switches"];

pub struct Talk {
    side: Box<dyn Side>,
    message: Message,
    peer: Peer,
    /// True if the peer is on another processor.
    is_apart: bool,
    next: u64,
    part: Part,
    /// Messages in one iteration.
    messages: u64,
    /// How long a batch may take, besides the time for each message. Tests wait longer: a host may give a guest little of its processors.
    pub(super) patience: Duration,
    /// Why no batch can follow: messages of the failed one may still be on their way.
    failed: Option<Refusal>,
}

impl Talk {
    /// Makes the channel and the peer of a case. Also returns a note on their processors.
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
        let kind = PeerKind::try_from(params)?;
        let bytes = number(params, "bytes") as usize;
        let means = channel::means(params).ok_or_else(|| fail!("the channel is unknown"))?;
        let ends =
            (means.ends)(&mut channel::Order { bytes, is_private: kind == PeerKind::Thread, context })?;
        Ok((Self::new(ends, kind, bytes, (part, messages), other, context)?, note))
    }

    /// Uses these ends of a channel. The peer runs on processor `other`, or on the calling thread's.
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
        let (is_apart, patience) = (other.is_some(), PATIENCE);
        Ok(Self { side, message, peer, is_apart, next: 1, part, messages, patience, failed: None })
    }

    #[cfg(test)]
    pub fn peers(&self) -> &[tollgate_os::process::Child] {
        self.peer.child()
    }

    fn run(&mut self, clock: Clock, times: u64) -> Result<Batch> {
        let job = Job { part: self.part, first: self.next, warm_up: warm_up(self.part, times), timed: times };
        let _alarm = Alarm::set(self.patience, job.warm_up.saturating_add(times))?;
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
        // On one processor, time that neither thread used counts as disturbance; on two, time in which either was runnable and
        // waited.
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
        // The process's own faults include those of its threads. Those of a running child are counted nowhere else.
        let tally = match self.peer.child() {
            [] => tally,
            _ => tally.with_faults(theirs.minor_faults, theirs.major_faults),
        };
        Ok(Batch { counters: [switches, 0, 0, 0], tally, ..batch })
    }

    /// Sends messages until all are answered or taken. `step` is the peer's progress when it has taken them.
    fn exchange(&mut self, numbers: Numbers, step: u32) -> Outcome {
        match self.part {
            Part::Answer => self.side.ask(&mut self.message, numbers),
            Part::Take => {
                self.side.give(&mut self.message, numbers)?;
                self.peer.has_taken(step, self.is_apart)
            }
        }
    }

    /// Returns the refusal for a fault at this end. If the peer saw a fault before it fell silent, that one is more precise.
    fn refusal(&self, fault: Fault) -> Refusal {
        match self.peer.ended_within(SOON) {
            Err(theirs) if matches!(fault, Fault::Silent | Fault::Closed) && theirs != Fault::Silent => {
                fail!("at the peer: {}", theirs.in_words())
            }
            _ => fail!("{}", fault.in_words()),
        }
    }

    /// Time that both ends have waited for their processors, if these are two.
    fn queued(&self) -> Duration {
        let both = || raw::queued(own_pid(), cpu::own_thread()).unwrap_or(0) + self.peer.queued();
        Duration::from_nanos(if self.is_apart { both() } else { 0 })
    }
}

/// Messages before the timed ones. In a channel that keeps many messages, the memory of the first ones is cold; a steady stream
/// has no first ones.
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
