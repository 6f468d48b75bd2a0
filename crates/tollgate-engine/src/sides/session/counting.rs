//! Environments whose instructions are counted: guests under QEMU's translator with `-icount shift=0`.
//!
//! They have no times, so they take no turns and none of the session's time. As many as there are processors are counted at the
//! same time, and when one has ended the next one starts. All of them end before the timed environments start, because an idle
//! guest of that kind goes from timer to timer without a pause and would take a processor from the others. Each case has its own
//! bench process, so that its count depends on no other case, and one that dies or hangs costs only itself.

use std::time::{Duration, Instant};
use std::vec;

use super::agent_side::AgentSide;
use super::connection::{Gone, Stop, readable};
use super::teller::Teller;
use crate::bench_process::record::ProcessRecord;
use crate::cases::plan::Ordinal;
use crate::cases::selection::Group;
use crate::machine::ending::Ending;
use crate::refusal::Refusal;
use crate::rounds::schedule::{BatchOrder, Schedule};
use crate::sides::agent::Moment;
use crate::sides::agent::protocol::{Job, Request};
use crate::{machine::cpu, machine::memory, rounds::measure};

/// A process without progress for this long hangs, at a thousand million instructions per guest second. Tests allow a busy machine.
pub const STALL: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 1 });
/// A process ends after this long. On a busy machine the translator executes a hundred million instructions per second.
pub const MOST: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 4 });

/// A processor that waits for the host's disk executes other code meanwhile, which varies each time.
const OF_DISK: &str = "the guest's disk is a file on the host, whose timing varies; without cache=, or with on=brd, files are in the guest's memory";

/// Returns the cases of a suite that are counted, in a guest with or without such a disk.
pub fn schedule(group: &Group, place: Ordinal, has_disk: bool) -> Schedule {
    Schedule::counted(group, place, |benchmark| {
        let of_disk = || (has_disk && benchmark.uses_files).then_some(OF_DISK);
        let why = benchmark.uncounted.or_else(of_disk)?;
        Some(Refusal::NotMeasured(why.to_owned()))
    })
}

/// Counts everything that is to be counted. A side that is lost keeps its results. If `are_started`, the environments are
/// measured themselves, and those without other cases have their facts read then. Fails with the user's signal.
pub fn count(
    sides: &mut [AgentSide<'_, '_>],
    teller: &mut Teller<'_>,
    are_started: bool,
) -> Result<(), Stop> {
    let waiting = |side: &AgentSide<'_, '_>| -> usize { side.schedules.iter().map(Schedule::waits).sum() };
    let of: usize = sides.iter().filter(|side| side.side.is_counting).map(waiting).sum();
    teller.counted = (of > 0).then_some(Ordinal { number: 0, of });
    let is_counted =
        |side: &&mut AgentSide<'_, '_>| side.side.is_counting && !(are_started && side.schedules.is_empty());
    let waiting: Vec<_> = sides.iter_mut().filter(is_counted).collect();
    let counted =
        Together { most: at_once(), waiting: waiting.into_iter(), started: Vec::new() }.count(teller);
    teller.counted = None;
    counted
}

/// How many environments are counted at the same time. Each takes a processor and some memory. More environments than processors
/// took longer, because each waited for the others at each case: three on two processors took 192 s instead of 150 s.
fn at_once() -> usize {
    /// Including the translator's own memory.
    const MEMORY: u64 = 1 << 30;
    let memory = memory::available().map_or(usize::MAX, |available| (available / MEMORY) as usize);
    cpu::allowed().len().min(memory).max(1)
}

struct Together<'t, 's, 'a> {
    most: usize,
    waiting: vec::IntoIter<&'t mut AgentSide<'s, 'a>>,
    started: Vec<Started<'t, 's, 'a>>,
}

impl Together<'_, '_, '_> {
    fn count(mut self, teller: &mut Teller<'_>) -> Result<(), Stop> {
        loop {
            self.start(teller)?;
            if self.started.is_empty() {
                return Ok(());
            }
            let have_said = readable(self.started.iter().filter_map(|one| one.side.output()));
            for at in (0..self.started.len()).rev() {
                let one = &mut self.started[at];
                let went_on = one.go_on(have_said.get(at) == Some(&true), teller);
                if one.side.settled(went_on)? != Some(Course::GoesOn) {
                    one.side.close();
                    self.started.remove(at);
                }
            }
        }
    }

    fn start(&mut self, teller: &mut Teller<'_>) -> Result<(), Stop> {
        while self.started.len() < self.most
            && let Some(side) = self.waiting.next()
        {
            teller.say(format!("starting {}", side.side.name), Ordinal::default());
            let launched = side.launch();
            if side.settled(launched)?.is_some() {
                self.started.push(Started { heard: Instant::now(), awaits: Awaited::Greeting, side });
            }
        }
        Ok(())
    }
}

struct Started<'t, 's, 'a> {
    side: &'t mut AgentSide<'s, 'a>,
    awaits: Awaited,
    /// When it was asked, or last spoke.
    heard: Instant,
}

enum Awaited {
    Greeting,
    Facts,
    Case(Asked),
    LastFacts,
}

/// A case of a suite, to be counted by `by`.
struct Asked {
    group: usize,
    order: BatchOrder,
    by: Instant,
}

#[derive(PartialEq, Eq)]
enum Course {
    GoesOn,
    Ends,
}

impl Started<'_, '_, '_> {
    /// Takes its messages, and sends the next request. Does not wait for an answer.
    fn go_on(&mut self, has_said: bool, teller: &mut Teller<'_>) -> Result<Course, Gone> {
        if !has_said {
            let is_late = self.heard.elapsed() > self.side.patience();
            return if is_late { Err(self.side.silent()) } else { Ok(Course::GoesOn) };
        }
        self.heard = Instant::now();
        match &self.awaits {
            Awaited::Greeting => {
                self.side.greet()?;
                teller.say(format!("reading facts in {}", self.side.side.name), Ordinal::default());
                self.side.ask_for_facts(Moment::Before)?;
                self.awaits = Awaited::Facts;
            }
            Awaited::Facts => {
                self.side.receive_facts()?;
                self.side.settle(self.side.side.cpu.or(self.side.hello.usual))?;
                self.ask_on(teller)?;
            }
            Awaited::Case(asked) => {
                let (name, place) = (&self.side.side.name, self.side.schedules[asked.group].place);
                let name = name.clone();
                let mut say = |what| teller.say(format!("{what} in {name}"), place);
                if self.side.received_by_now(asked, &mut say)? {
                    self.ask_on(teller)?;
                }
            }
            Awaited::LastFacts => {
                self.side.receive_facts()?;
                return Ok(Course::Ends);
            }
        }
        Ok(Course::GoesOn)
    }

    fn ask_on(&mut self, teller: &mut Teller<'_>) -> Result<(), Gone> {
        for group in 0..self.side.schedules.len() {
            if let Some(asked) = self.side.ask_for_one(group)? {
                if let Some(place) = &mut teller.counted {
                    place.number += 1;
                }
                self.awaits = Awaited::Case(asked);
                return Ok(());
            }
        }
        self.side.ask_for_facts(Moment::After)?;
        self.awaits = Awaited::LastFacts;
        Ok(())
    }
}

impl AgentSide<'_, '_> {
    /// Counts the next case of a suite. False if all are counted.
    pub fn count_one(&mut self, group: usize, say: &mut dyn FnMut(String)) -> Result<bool, Gone> {
        let Some(asked) = self.ask_for_one(group)? else { return Ok(false) };
        let (ending, record) = self.wait(MOST, asked.order.orders.len(), &mut ticks(&asked, say))?;
        self.note_count(&asked, ending, &record);
        Ok(true)
    }

    fn ask_for_one(&mut self, group: usize) -> Result<Option<Asked>, Gone> {
        let order = self.schedules[group].first_waiting();
        if order.is_empty() {
            return Ok(None);
        }
        let job = Job::Count { instances: order.orders.clone() };
        self.send(&Request::Start { job, stall: STALL, most: MOST }, self.patience())?;
        Ok(Some(Asked { group, order, by: self.end_of(MOST) }))
    }

    /// Receives what there is of the requested count. Returns whether it is complete.
    fn received_by_now(&mut self, asked: &Asked, say: &mut dyn FnMut(String)) -> Result<bool, Gone> {
        let instances = asked.order.orders.len();
        let ended = self.answered_by_now(asked.by, instances, &mut ticks(asked, say))?;
        let Some((ending, record)) = ended else { return Ok(false) };
        self.note_count(asked, ending, &record);
        Ok(true)
    }

    fn note_count(&mut self, asked: &Asked, ending: Ending, record: &ProcessRecord) {
        if ending == Ending::Finished {
            let (clock, _, facts) =
                measure::clock_found(ending, &record.report, self.cpu, STALL, self.counter());
            self.clock = clock;
            facts.into_iter().for_each(|(name, fact)| self.note(&name, fact));
        }
        self.schedules[asked.group].record_counts(&asked.order, record, ending, STALL);
    }
}

/// Reports the case, and each of its instances as it runs.
fn ticks<'s>(asked: &'s Asked, say: &'s mut dyn FnMut(String)) -> impl FnMut(Option<usize>) + 's {
    say(asked.order.name(Some(0)));
    move |instance| {
        if instance.is_some() {
            say(asked.order.name(instance));
        }
    }
}
