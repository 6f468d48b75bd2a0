//! Environments whose instructions are counted: guests under QEMU's translator with `-icount shift=0`.
//!
//! Nothing of them is a time, so they take no turns, and the session's time is not theirs: as many as there are processors are counted at
//! the same time. All are started, counted and ended before the environments that are timed are started: an idle guest of that kind goes
//! from timer to timer without a pause and would take a processor from the others. Each case has a bench process of its own, so that its count depends on no other case, and one that dies
//! or hangs costs itself.

use std::time::Duration;

use super::super::agent::Moment;
use super::super::agent::protocol::{Job, Request};
use super::super::ending::Ending;
use super::super::plan::Place;
use super::super::refusal::Refusal;
use super::super::schedule::{BatchOrder, Schedule};
use super::super::selection::Group;
use super::super::storage::Storage;
use super::super::{cpu, measure, memory};
use super::agent_side::AgentSide;
use super::connection::{Gone, Stop};
use super::teller::Teller;

/// A process without progress for so many instructions hangs, at a thousand million in each second of the guest. Tests count in seconds of a
/// machine that may be busy.
pub const STALL: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 1 });
/// A process ends after so many. On a busy machine the translator makes a hundred million in a second of the host.
pub const MOST: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 4 });

/// A processor that waits for a disk of the host executes what there is meanwhile, and that is another number each time.
const OF_DISK: &str = "the guest's disk is a file of the host, which answers in its own time; without cache=, or with on=brd, files are in the guest's memory";

/// The cases of a suite that are counted, in a guest with such a disk or without one.
pub fn schedule(group: &Group, place: Place, has_disk: bool) -> Schedule {
    Schedule::counted(group, place, |benchmark| {
        let of_disk = || (has_disk && Storage::is_used_by(benchmark.name)).then_some(OF_DISK);
        let why = benchmark.uncounted.or_else(of_disk)?;
        Some(Refusal::NotMeasured(why.to_owned()))
    })
}

/// Counts all that is to be counted. A side that is lost keeps what it gave. Where `are_started`, the environments are started to be
/// measured themselves: one without other cases has its facts read then.
///
/// # Errors
/// The user's signal.
pub fn count(
    sides: &mut [AgentSide<'_, '_>],
    teller: &mut Teller<'_>,
    are_started: bool,
) -> Result<(), Stop> {
    let waiting = |side: &AgentSide<'_, '_>| -> usize { side.schedules.iter().map(Schedule::waits).sum() };
    let of: usize = sides.iter().filter(|side| side.side.is_counting).map(waiting).sum();
    teller.counted = (of > 0).then_some(Place { number: 0, of });
    let is_counted =
        |side: &&mut AgentSide<'_, '_>| side.side.is_counting && !(are_started && side.schedules.is_empty());
    let mut counted: Vec<_> = sides.iter_mut().filter(is_counted).collect();
    let counted = counted.chunks_mut(at_once()).try_for_each(|sides| Together(sides).count(teller));
    teller.counted = None;
    counted
}

/// So many environments are counted at the same time: each takes a processor and some memory, and none is timed. More than there are
/// processors take longer, three by two 192 s in place of 150: one that waits for the others goes on from timer to timer.
fn at_once() -> usize {
    /// With what the translator has for itself.
    const MEMORY: u64 = 1 << 30;
    let memory = memory::available().map_or(usize::MAX, |available| (available / MEMORY) as usize);
    cpu::allowed().len().min(memory).max(1)
}

/// Environments that are counted at the same time: each does what it was asked for while this side waits for the answer of another.
struct Together<'t, 's, 'a>(&'t mut [&'t mut AgentSide<'s, 'a>]);

impl<'s, 'a> Together<'_, 's, 'a> {
    /// Starts them, counts every case in each, and ends them.
    fn count(mut self, teller: &mut Teller<'_>) -> Result<(), Stop> {
        self.each(|side| {
            teller.say(format!("starting {}", side.side.name), Place::default());
            side.launch()
        })?;
        self.each(AgentSide::greet)?;
        self.each(|side| {
            teller.say(format!("reading facts in {}", side.side.name), Place::default());
            side.ask_for_facts(Moment::Before)
        })?;
        self.each(AgentSide::receive_facts)?;
        self.each(|side| side.settle(side.side.cpu.or(side.hello.usual)))?;
        let groups = self.0.iter().map(|side| side.schedules.len()).max().unwrap_or(0);
        for group in 0..groups {
            while self.waits(group) {
                self.count_one(group, teller)?;
            }
        }
        self.each(|side| side.ask_for_facts(Moment::After))?;
        self.each(AgentSide::receive_facts)?;
        self.0.iter_mut().for_each(|side| side.close());
        Ok(())
    }

    /// Does something in each that is not lost. One that fails is.
    fn each(&mut self, mut step: impl FnMut(&mut AgentSide<'s, 'a>) -> Result<(), Gone>) -> Result<(), Stop> {
        self.0.iter_mut().filter(|side| side.lost.is_none()).try_for_each(|side| {
            let done = step(side);
            side.settled(done).map(|_| ())
        })
    }

    /// Whether a case of this suite is not counted yet.
    fn waits(&self, group: usize) -> bool {
        self.0.iter().any(|side| side.lost.is_none() && side.schedules[group].waits() > 0)
    }

    /// Counts the next case of a suite in each.
    fn count_one(&mut self, group: usize, teller: &mut Teller<'_>) -> Result<(), Stop> {
        let mut asked: Vec<Option<BatchOrder>> = Vec::new();
        self.each(|side| {
            let batch_order = side.ask_for_one(group)?;
            if let (Some(_), Some(place)) = (&batch_order, &mut teller.counted) {
                place.number += 1;
            }
            asked.push(batch_order);
            Ok(())
        })?;
        let mut asked = asked.into_iter();
        self.each(|side| {
            let Some(batch_order) = asked.next().flatten() else { return Ok(()) };
            let (name, place) = (side.side.name.clone(), side.schedules[group].place);
            side.receive_one(group, &batch_order, &mut |what| teller.say(format!("{what} in {name}"), place))
        })
    }
}

impl AgentSide<'_, '_> {
    /// Counts the next case of a suite. False where all are counted.
    pub fn count_one(&mut self, group: usize, say: &mut dyn FnMut(String)) -> Result<bool, Gone> {
        match self.ask_for_one(group)? {
            Some(batch_order) => self.receive_one(group, &batch_order, say).map(|()| true),
            None => Ok(false),
        }
    }

    /// Asks for the next case of a suite; None where all are counted.
    fn ask_for_one(&mut self, group: usize) -> Result<Option<BatchOrder>, Gone> {
        let batch_order = self.schedules[group].first_waiting();
        if batch_order.is_empty() {
            return Ok(None);
        }
        let job = Job::Count { instances: batch_order.orders.clone() };
        self.send(&Request::Start { job, stall: STALL, most: MOST }, self.patience())?;
        Ok(Some(batch_order))
    }

    /// Receives the count that was asked for.
    fn receive_one(
        &mut self,
        group: usize,
        batch_order: &BatchOrder,
        say: &mut dyn FnMut(String),
    ) -> Result<(), Gone> {
        say(batch_order.name(Some(0)));
        let mut tick = |instance: Option<usize>| {
            if instance.is_some() {
                say(batch_order.name(instance));
            }
        };
        let (ending, record) = self.wait(MOST, batch_order.orders.len(), &mut tick)?;
        if ending == Ending::Finished {
            let (clock, _, facts) = measure::clock_found(ending, &record.report, self.cpu, STALL);
            self.clock = clock;
            facts.into_iter().for_each(|(name, fact)| self.note(&name, fact));
        }
        self.schedules[group].record_counts(batch_order, &record, ending, STALL);
        Ok(())
    }
}
