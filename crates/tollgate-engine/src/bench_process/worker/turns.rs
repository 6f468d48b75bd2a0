//! Turns of a bench process: it waits for an order, runs a batch of each instance that the order names, and reports that it is
//! done. Meanwhile the bench processes of the session's other environments wait.
//!
//! Before its timed batch each instance runs one that is not recorded. The other environment has left its own lines in the caches
//! and its own branches in the predictors, and some kernels flush those between guests (IBPB). A batch of fewer than
//! [`WARM_UP_PART`] iterations has no such warm-up batch, only the loop's own first iteration, which is not timed either.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

use serde::{Deserialize, Serialize};

use super::{InstanceOrder, Ready, events_of, run_batch};
use crate::bench_process::frame::Inbox;
use crate::bench_process::shared::{MAX_ROUNDS, SharedResults, Slot};
use crate::loops::runner::Order;
use crate::machine::clock::Clock;
use crate::refusal::{Refusal, Result};
use tollgate_arch::mark;

/// The unrecorded batch has this fraction of the iterations of a timed one.
pub const WARM_UP_PART: u64 = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOrder {
    pub round: usize,
    /// The instances, in their order. Questions of one experiment are adjacent.
    pub due: Vec<usize>,
    /// Whether an unrecorded batch precedes each timed one.
    pub warms_up: bool,
}

pub(super) struct Pipes {
    orders: File,
    done: File,
}

impl Pipes {
    pub fn open(descriptors: [i32; 2]) -> io::Result<Self> {
        if descriptors.iter().any(|&descriptor| descriptor <= 2) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the parent left both open for this process, and nothing else of it uses them.
        let [orders, done] = descriptors.map(|descriptor| unsafe { File::from_raw_fd(descriptor) });
        for file in [&orders, &done] {
            rustix::io::fcntl_setfd(file, rustix::io::FdFlags::CLOEXEC)?;
        }
        Ok(Self { orders, done })
    }
}

pub(super) struct TurnRunner<'a> {
    pub shared: &'a SharedResults,
    pub clock: Clock,
    pub orders: &'a [InstanceOrder],
    /// Those that were prepared and have not failed.
    pub instances: Vec<Ready>,
    /// Whether a turn is a sample of instructions: two batches, the second with twice the iterations if possible.
    pub is_sample: bool,
}

impl TurnRunner<'_> {
    /// Makes turns until it is told to stop, or the pipe of orders closes.
    pub fn run(mut self, mut pipes: Pipes) -> io::Result<()> {
        self.shared.leave();
        let mut inbox = Inbox::default();
        let mut bytes = [0; 1 << 13];
        pipes.done.write_all(&[0])?;
        loop {
            if let Some(turn) = inbox.next::<Option<TurnOrder>>().map_err(io::Error::other)? {
                let Some(turn) = turn else { return Ok(()) };
                self.turn(&turn);
                pipes.done.write_all(&[0])?;
                continue;
            }
            match pipes.orders.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(read) => inbox.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn turn(&mut self, turn: &TurnOrder) {
        if turn.round >= MAX_ROUNDS {
            return;
        }
        self.shared.begin_round(turn.round);
        let mut due = turn.due.as_slice();
        while let Some(&first) = due.first() {
            let experiment = self.experiment(first);
            let is_other = |&index: &usize| experiment.is_none() || self.experiment(index) != experiment;
            let together = due[1..].iter().position(is_other).map_or(due.len(), |at| at + 1);
            let (unit, rest) = due.split_at(together);
            let has_part = |&&index: &&usize| self.orders[index].iterations >= WARM_UP_PART;
            if turn.warms_up && unit.iter().any(|index| has_part(&index)) {
                unit.iter().for_each(|&index| self.batch(index, None));
            }
            unit.iter().for_each(|&index| self.batch(index, Some(turn.round)));
            due = rest;
        }
        self.shared.leave();
    }

    fn experiment(&self, index: usize) -> Option<&str> {
        let ready = self.instances.iter().find(|ready| ready.index == index)?;
        ready.instance.ready.experiment.as_deref()
    }

    /// Runs one batch, recorded in this round. An instance that fails is removed.
    fn batch(&mut self, index: usize, round: Option<usize>) {
        let Some(position) = self.instances.iter().position(|ready| ready.index == index) else { return };
        self.shared.enter(index);
        if let Err(refusal) = self.try_batch(position, round) {
            self.shared.set_instance(index, &Err(refusal));
            self.instances.remove(position);
        }
    }

    fn try_batch(&mut self, position: usize, round: Option<usize>) -> Result<()> {
        if self.is_sample {
            return self.sample(position, round);
        }
        let Ready { index, benchmark, instance, slow_down } = &mut self.instances[position];
        let iterations = self.orders[*index].iterations;
        let order = match round {
            Some(_) => Order { iterations, extra: slow_down.extra },
            None => Order::new((iterations / WARM_UP_PART).max(1)),
        };
        let batch = run_batch(benchmark, instance, self.clock, order)?;
        let Some(round) = round else { return Ok(()) };
        if !batch.undisturbed {
            self.shared.set_slot(round, *index, Slot::Discarded);
            return Ok(());
        }
        let net = batch.work as i64 - batch.empty as i64;
        self.shared.set_slot(round, *index, Slot::Kept(slow_down.net(net)));
        self.shared.add_events(*index, events_of(&batch));
        Ok(())
    }

    /// Takes a sample as in counting, recorded in this round.
    fn sample(&mut self, position: usize, round: Option<usize>) -> Result<()> {
        let Ready { index, benchmark, instance, .. } = &mut self.instances[position];
        let iterations = self.orders[*index].iterations;
        let is_difference = iterations.saturating_mul(2) <= instance.ready.most;
        let mut net = |iterations| {
            let batch = run_batch(benchmark, instance, self.clock, Order::new(iterations))?;
            Ok::<_, Refusal>((batch.work as i64).wrapping_sub(batch.empty as i64))
        };
        mark::begin();
        let once = net(iterations)?;
        let net = if is_difference { net(iterations * 2)?.wrapping_sub(once) } else { once };
        mark::end();
        if let Some(round) = round {
            self.shared.set_slot(round, *index, Slot::Kept(net));
        }
        Ok(())
    }
}
