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
use super::super::plan::Place;
use super::super::refusal::Refusal;
use super::super::schedule::Schedule;
use super::super::selection::Group;
use super::agent_side::AgentSide;
use super::connection::{Gone, Stop};
use super::teller::Teller;

/// A process without progress for so many instructions hangs, at a thousand million in each second of the guest. Tests count in seconds of a
/// machine that may be busy.
pub const STALL: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 1 });
/// A process ends after so many. On a busy machine the translator makes a hundred million in a second of the host.
pub const MOST: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 4 });

/// The cases of a suite that are counted.
pub fn schedule(group: &Group, place: Place) -> Schedule {
    Schedule::counted(group, place, uncounted)
}

/// Why this benchmark is not counted, where it is not.
fn uncounted(benchmark: &Benchmark) -> Option<Refusal> {
    benchmark.uncounted.map(|why| Refusal::NotMeasured(why.to_owned()))
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
    let counted = sides.iter_mut().filter(is_counted).try_for_each(|side| {
        let done = side.count(teller);
        side.settled(done)?;
        side.close();
        Ok(())
    });
    teller.counted = None;
    counted
}

impl AgentSide<'_, '_> {
    /// Starts the environment, and counts every case in it.
    fn count(&mut self, teller: &mut Teller<'_>) -> Result<(), Gone> {
        let name = self.side.name.clone();
        teller.say(format!("starting {name}"), Place::default());
        self.start()?;
        teller.say(format!("reading facts in {name}"), Place::default());
        self.read_facts(Moment::Before)?;
        self.settle(self.side.cpu.or(self.hello.usual))?;
        for group in 0..self.schedules.len() {
            let place = self.schedules[group].place;
            while self.schedules[group].waits() > 0 {
                if let Some(place) = &mut teller.counted {
                    place.number += 1;
                }
                self.count_one(group, &mut |what| teller.say(format!("{what} in {name}"), place))?;
            }
        }
        self.read_facts(Moment::After)
    }

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
