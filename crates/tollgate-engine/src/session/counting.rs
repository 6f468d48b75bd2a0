//! Environments whose instructions are counted: guests under QEMU's translator with `-icount shift=0`.
//!
//! Nothing of them is a time, so they take no turns, and the session's time is not theirs. Each is started, counted and ended before
//! the environments that are timed are started: an idle guest of that kind goes from timer to timer without a pause and would take a
//! processor from the others. Each case has a bench process of its own, so that its count depends on no other case, and one that dies
//! or hangs costs itself.

use std::time::Duration;

use super::super::agent::Moment;
use super::super::agent::protocol::Job;
use super::super::benchmark::Benchmark;
use super::super::ending::Ending;
use super::super::measure;
use super::super::refusal::Refusal;
use super::super::run::Place;
use super::super::schedule::Schedule;
use super::super::selection::Group;
use super::agent_side::AgentSide;
use super::connection::{Gone, Stop};
use super::measure::Session;

/// A process without progress for so many instructions hangs, at a thousand million in each second of the guest.
pub const STALL: Duration = Duration::from_secs(1);
/// A process ends after so many. On a busy machine the translator makes a hundred million in a second of the host.
pub const MOST: Duration = Duration::from_secs(4);

/// The cases of a suite that are counted.
pub fn schedule(group: &Group, place: Place) -> Schedule {
    Schedule::counted(group, place, uncounted)
}

/// Why this benchmark is not counted, where it is not.
fn uncounted(benchmark: &Benchmark) -> Option<Refusal> {
    benchmark.uncounted.map(|why| Refusal::NotMeasured(why.to_owned()))
}

impl Session<'_, '_, '_> {
    /// Counts all that is to be counted. A side that is lost keeps what it gave.
    ///
    /// # Errors
    /// The user's signal.
    pub fn count(&mut self) -> Result<(), Stop> {
        let waiting =
            |side: &AgentSide<'_, '_>| -> usize { side.schedules.iter().map(Schedule::waits).sum() };
        let counting = self.sides.iter().filter(|side| side.side.is_counting);
        let of: usize = counting.map(waiting).sum();
        self.teller.counted = (of > 0).then_some(Place { number: 0, of });
        let counted = self.count_all();
        self.teller.counted = None;
        counted
    }

    fn count_all(&mut self) -> Result<(), Stop> {
        for at in 0..self.sides.len() {
            // Where only its start is measured, its facts are read then.
            let is_counted = self.starts.is_empty() || !self.sides[at].schedules.is_empty();
            if self.sides[at].side.is_counting && is_counted {
                let done = self.count_in(at);
                self.settled(at, done)?;
                self.sides[at].close();
            }
        }
        Ok(())
    }

    fn count_in(&mut self, at: usize) -> Result<(), Gone> {
        let Self { sides, teller, .. } = self;
        let side = &mut sides[at];
        let name = side.side.name.clone();
        teller.say(format!("starting {name}"), Place::default());
        side.start()?;
        teller.say(format!("reading facts in {name}"), Place::default());
        side.read_facts(Moment::Before)?;
        side.settle(side.side.cpu.or(side.hello.usual))?;
        for group in 0..side.schedules.len() {
            let place = side.schedules[group].place;
            while side.schedules[group].waits() > 0 {
                if let Some(place) = &mut teller.counted {
                    place.number += 1;
                }
                side.count_one(group, &mut |what| teller.say(format!("{what} in {name}"), place))?;
            }
        }
        side.read_facts(Moment::After)
    }
}

impl AgentSide<'_, '_> {
    /// Counts the next case of a suite. False where all are counted.
    pub fn count_one(&mut self, group: usize, say: &mut dyn FnMut(String)) -> Result<bool, Gone> {
        let batch_order = self.schedules[group].first_waiting();
        if batch_order.is_empty() {
            return Ok(false);
        }
        say(batch_order.name(Some(0)));
        let job = Job::Count { instances: batch_order.orders.clone() };
        let mut tick = |instance: Option<usize>| {
            if instance.is_some() {
                say(batch_order.name(instance));
            }
        };
        let (ending, record) = self.run(job, STALL, MOST, &mut tick)?;
        if ending == Ending::Finished {
            let (clock, _, facts) = measure::clock_found(ending, &record.report, self.cpu, STALL);
            self.clock = clock;
            facts.into_iter().for_each(|(name, fact)| self.note(&name, fact));
        }
        self.schedules[group].record_counts(&batch_order, &record, ending, STALL);
        Ok(true)
    }
}
