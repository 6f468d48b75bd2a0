//! A batch of messages between the timed thread and its peer.

use tollgate_os::process::own_pid;

use super::channel::{Ends, Numbers, Side};
use super::message::{Fault, Message, Outcome};
use super::peer::{self, Alarm, Job, Kind, PATIENCE, Peer};
use crate::memory;
use crate::prelude::*;

/// The counts beside the time.
pub const COUNTERS: &[&str] = &["context switches"];

/// Nanoseconds of a message that threads on two processors may wait for a processor: an idle one is free at once.
const MOST_QUEUED: u64 = 2_000;

/// What the timed thread does with its end, and its peer with the other.
pub struct Talk {
    side: Box<dyn Side>,
    message: Message,
    peer: Peer,
    /// Whether the peer is on another processor.
    is_apart: bool,
    /// The number of the next message.
    next: u64,
    /// Messages in one iteration.
    messages: u64,
    /// Why no batch can follow: messages of the one that failed may still be on their way.
    failed: Option<Refusal>,
}

/// The value of `cpus` where both ends are on one processor.
pub const SAME: &str = "same";

/// The values of `cpus` on this machine: one processor, and two by what they share.
pub fn processors() -> Vec<ParamValue> {
    let mut words = vec![SAME.into()];
    // With one processor there is no other.
    if cpu::allowed().len() > 1 {
        words.extend(memory::relations());
    }
    words
}

impl Talk {
    /// A peer of a case, and its first messages.
    pub fn new(
        ends: Ends,
        params: &Params,
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
        let kind = if word(params, "between") == "threads" { Kind::Thread } else { Kind::Process };
        let bytes = number(params, "bytes") as usize;
        let (side, peers) = ends;
        let peer = Peer::start(kind, peers, Message::new(bytes)?, other, &context.quota)?;
        let message = Message::new(bytes)?;
        let talk = Self { side, message, peer, is_apart: other.is_some(), next: 0, messages, failed: None };
        Ok((talk, note))
    }

    fn run(&mut self, clock: Clock, times: u64) -> Result<Batch> {
        let _alarm = Alarm::set()?;
        let job = Job { first: self.next, warm_up: (times / 16).max(1), timed: times };
        self.next += job.warm_up + job.timed + 1;
        self.peer.begin(job);
        self.ask(Numbers { first: job.first, count: job.warm_up, whole: true })?;

        let mut nothing = LoopContext::default();
        let mut empty = || clock.time(|| run_empty(times, &mut nothing));
        let emptied = empty();
        let queued = self.queued();
        let switches = cpu::switches();
        let cpu_share = cpu::CpuShare::begin_with(self.peer.child());
        let numbers = Numbers { first: job.first + job.warm_up, count: times, whole: false };
        let mut outcome: Outcome = Ok(());
        let worked = clock.time(|| outcome = self.side.ask(&mut self.message, numbers));
        // Disturbance on one processor is time that neither thread used; on two, time that either was runnable and waited.
        let alone =
            if self.is_apart { self.queued() <= queued + MOST_QUEUED * times } else { cpu_share.was_full() };
        let own = cpu::switches().saturating_sub(switches);
        outcome.map_err(|fault| self.fault(fault))?;
        let emptied_again = empty();

        self.ask(Numbers { first: numbers.first + times, count: 1, whole: true })?;
        let theirs = self.peer.ended(PATIENCE).map_err(|fault| fail!("at the peer: {}", fault.in_words()))?;
        let batch = Batch::between([emptied, worked, emptied_again], alone);
        Ok(Batch { counters: [own + theirs, 0, 0, 0], ..batch })
    }

    /// Untimed messages.
    fn ask(&mut self, numbers: Numbers) -> Result<()> {
        self.side.ask(&mut self.message, numbers).map_err(|fault| self.fault(fault))
    }

    /// The refusal for a fault at this end. What the peer saw before it fell silent says more.
    fn fault(&self, fault: Fault) -> Refusal {
        const SOON: std::time::Duration = std::time::Duration::from_millis(50);
        match self.peer.ended(SOON) {
            Err(theirs) if matches!(fault, Fault::Silent | Fault::Closed) && theirs != Fault::Silent => {
                fail!("at the peer: {}", theirs.in_words())
            }
            _ => fail!("{}", fault.in_words()),
        }
    }

    /// Nanoseconds that both ends have waited for their processors, where these are two.
    fn queued(&self) -> u64 {
        if self.is_apart { peer::queued(own_pid(), cpu::own_thread()) + self.peer.queued() } else { 0 }
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
