//! The course of a run of workloads: each case once, then all of them again in another order, until the time is over.

use std::time::{Duration, Instant};

use tollgate_model::measurement::{Measured, Measurement, Outcome, ProcessRounds, Provenance, Unit};
use tollgate_model::price::Price;
use tollgate_model::traced::Backend;
use tollgate_model::{Params, Traced};

use crate::bench::{BenchError, Ending, Errand, Findings, Random, Refusal, Site};
use crate::probe::{Chosen, Probe, word};

use super::cache::{Cache, Pages};
use super::command::{Step, Stop};
use super::ground::{Ground, go_on};
use super::source::Size;
use super::work::Work;
use super::{READY, SUITE, size_of};

/// Nothing is repeated more often.
const MOST_REPETITIONS: usize = 64;

/// Measures some cases, one answer for each in their order.
///
/// # Errors
/// When no process can be started, or the user stops it.
pub(super) fn measure(cases: &[Chosen], errand: &mut Errand) -> Result<Findings, BenchError> {
    let mut entrants: Vec<Entrant> =
        cases.iter().map(|(probe, params)| Entrant::new(probe, params)).collect();
    let mut facts = Vec::new();
    let sizes: Vec<Size> =
        Size::ALL.into_iter().filter(|&size| entrants.iter().any(|entrant| entrant.size == size)).collect();
    let last = errand.deadline;
    for (at, &size) in sizes.iter().enumerate() {
        // Each tree gets its part of what is left, in proportion to what it usually gets.
        let all: Duration = sizes[at..].iter().map(|size| size.usual_time()).sum();
        let share = size.usual_time().as_secs_f64() / all.as_secs_f64();
        errand.deadline = Instant::now() + last.saturating_duration_since(Instant::now()).mul_f64(share);
        let mut of_size: Vec<&mut Entrant> =
            entrants.iter_mut().filter(|entrant| entrant.size == size).collect();
        match on_ground(size, &mut of_size, errand) {
            Ok(found) => facts.extend(found),
            Err(Stop::Run(error)) => return Err(error),
            // Those that were not tried say so.
            Err(Stop::Time) => {}
            Err(Stop::Case(why)) => of_size.iter_mut().for_each(|entrant| entrant.refuse(why.clone())),
        }
    }
    let measurements = entrants.into_iter().map(Entrant::conclude).collect();
    Ok(Findings { measurements, facts })
}

/// All cases of one size: first they are made ready, those that share something one after the other; then they are repeated.
fn on_ground(
    size: Size,
    entrants: &mut [&mut Entrant],
    errand: &mut Errand,
) -> Step<Vec<(String, tollgate_model::Fact)>> {
    let site = errand.plan.site.clone().map_err(Refusal::Skip)?;
    expect_room(size, &site)?;
    let mut ground = Ground::make(size, &site.directory, errand)?;
    let pages = Pages::of(&site, &ground.beside("page"))?;
    for entrant in entrants.iter_mut() {
        match entrant.make_ready(&mut ground, &pages, errand) {
            Err(Stop::Case(why)) => entrant.refuse(why),
            other => other?,
        }
    }
    let mut random = Random::new(errand.seed);
    while let Some(at) = next(entrants, errand.left(), &mut random) {
        go_on(errand)?;
        let others_wait =
            entrants.iter().filter(|entrant| entrant.turns() == 0 && entrant.is_running()).count() > 1;
        entrants[at].repeat(&ground, &pages, others_wait, errand)?;
        if settled(entrants, errand) {
            break;
        }
    }
    Ok(std::mem::take(&mut ground.facts))
}

fn expect_room(size: Size, site: &Site) -> Result<(), Refusal> {
    let needed = size.bytes_at_most();
    match needed <= site.room {
        true => Ok(()),
        false => {
            let (needed, by) = (needed >> 20, &site.by);
            Err(Refusal::Skip(format!("{needed} MiB of files would be more than {by}")))
        }
    }
}

/// Whose turn it is: of those that fit into the time that is left, one of those that had the fewest turns, whoever comes up.
/// In the first round those that seem cheap come first: where there is not time for all, few are missing.
fn next(entrants: &[&mut Entrant], left: Duration, random: &mut Random) -> Option<usize> {
    let fits = |entrant: &Entrant| entrant.is_running() && entrant.took.is_none_or(|took| took <= left);
    let mut due: Vec<usize> = (0..entrants.len()).filter(|&at| fits(entrants[at])).collect();
    let least = due.iter().map(|&at| entrants[at].turns()).min()?;
    due.retain(|&at| entrants[at].turns() == least);
    random.shuffle(&mut due);
    match least {
        0 => due.into_iter().min_by_key(|&at| entrants[at].guess()),
        MOST_REPETITIONS.. => None,
        _ => due.first().copied(),
    }
}

/// Whether every interval is as narrow as the plan asks for.
fn settled(entrants: &[&mut Entrant], errand: &Errand) -> bool {
    let narrow = |entrant: &Entrant| {
        entrant.turns() >= errand.plan.least_processes
            && entrant
                .measured()
                .and_then(|measured| Price::of(&measured))
                .is_some_and(|price| price.relative_half_width() <= errand.plan.precision)
    };
    entrants.iter().all(|entrant| !entrant.is_running() || narrow(entrant))
}

/// A case on its way from a choice to a measurement.
struct Entrant {
    probe: &'static Probe,
    params: Params,
    size: Size,
    cache: Cache,
    state: State,
    /// One for each repetition that was kept.
    traced: Vec<Traced>,
    /// For each repetition, whether it was kept.
    kept: Vec<bool>,
    /// The longest repetition, with all that is not timed.
    took: Option<Duration>,
    notes: Vec<String>,
}

enum State {
    Waiting,
    Running(Box<dyn Work>),
    Refused(Refusal),
}

impl Entrant {
    fn new(probe: &'static Probe, params: &Params) -> Self {
        Self {
            probe,
            params: params.clone(),
            size: size_of(params).unwrap_or_default(),
            cache: if word(params, "cache") == "cold" { Cache::Cold } else { Cache::Warm },
            state: State::Waiting,
            traced: Vec::new(),
            kept: Vec::new(),
            took: None,
            notes: Vec::new(),
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    fn turns(&self) -> usize {
        self.kept.len()
    }

    fn refuse(&mut self, why: Refusal) {
        self.state = State::Refused(why);
    }

    /// What it will take, compared with others, before anybody has seen it.
    fn guess(&self) -> (usize, usize) {
        const CHEAP_FIRST: [&str; 5] = ["grep", "unpack", "checkout", "tags", "build"];
        let is_it = |name: &&str| self.probe.name.ends_with(*name);
        let serial = self.params.get("jobs").is_some_and(|jobs| *jobs == 1.into());
        (CHEAP_FIRST.iter().position(is_it).unwrap_or(CHEAP_FIRST.len()), usize::from(serial))
    }

    fn make_ready(&mut self, ground: &mut Ground, pages: &Pages, errand: &mut Errand) -> Step<()> {
        pages.can_be(self.cache)?;
        let ready = READY.iter().find(|(probe, _)| probe.name == self.probe.name).map(|(_, ready)| ready);
        let ready = ready.ok_or_else(|| Refusal::Fail("nobody knows how it is made ready".to_owned()))?;
        self.state = State::Running(ready(ground, &self.params, errand)?);
        Ok(())
    }

    /// One repetition. What ends it for this case only is noted here.
    fn repeat(&mut self, ground: &Ground, pages: &Pages, others_wait: bool, errand: &mut Errand) -> Step<()> {
        let began = Instant::now();
        // One that hangs may not take what the others need.
        let patience = if others_wait { errand.left() / 2 } else { errand.left() };
        match self.try_repeat(ground, pages, began + patience, errand) {
            Ok(traced) => {
                self.kept.push(traced.is_some());
                self.traced.extend(traced);
            }
            Err(Stop::Run(error)) => return Err(Stop::Run(error)),
            Err(Stop::Case(why)) => self.refuse(why),
            Err(Stop::Time) if self.turns() == 0 => {
                self.refuse(Refusal::Fail(Ending::OutOfTime.describe(patience)));
            }
            // What it had before stays; it will not fit again.
            Err(Stop::Time) => {}
        }
        self.took = self.took.max(Some(began.elapsed()));
        Ok(())
    }

    /// What became of one run; None where what it reads was not where it should have been.
    fn try_repeat(
        &mut self,
        ground: &Ground,
        pages: &Pages,
        until: Instant,
        errand: &mut Errand,
    ) -> Step<Option<Traced>> {
        let State::Running(work) = &self.state else { return Ok(None) };
        work.reset(ground, errand)?;
        let certified = pages.bring(self.cache, &work.reads(ground))?;
        let traced = ground.home.follow(&work.command(ground), until, errand)?;
        let checked = work.check(ground, errand)?;
        self.notes = vec![pages.note(self.cache), format!("checked after each run: {checked}")];
        self.notes.extend(of_backend(traced.backend));
        Ok((certified || !pages.certify()).then_some(traced))
    }

    fn measured(&self) -> Option<Measured> {
        (!self.traced.is_empty()).then(|| Measured {
            unit: Unit::Nanoseconds,
            provenance: Provenance::Hardware,
            ops_per_sample: 1,
            // CLOCK_MONOTONIC counts nanoseconds.
            clock_hz: 1_000_000_000,
            samples: self.traced.iter().map(|traced| traced.wall_ns as f64).collect(),
            dropped: self.kept.iter().filter(|&&kept| !kept).count() as u64,
            processes: self.kept.iter().map(|&kept| repetition(kept)).collect(),
            counted: None,
            tallies: Vec::new(),
            bytes_per_op: None,
            group: SUITE.name.to_owned(),
            against: self.probe.held_against(&self.params),
            notes: self.notes.clone(),
            traced: self.traced.clone(),
        })
    }

    fn conclude(self) -> Measurement {
        let measured = self.measured();
        let outcome = match (self.state, measured) {
            (State::Refused(Refusal::Skip(why)), _) => Outcome::Skipped { why },
            (State::Refused(Refusal::Fail(error)), _) => Outcome::Failed { error },
            (State::Running(_), Some(measured)) => Outcome::Measured(Box::new(measured)),
            (State::Running(_), None) if !self.kept.is_empty() => Outcome::Failed {
                error: "each time some of what it reads was not where it should have been, in memory or out of it"
                    .to_owned(),
            },
            (State::Running(_) | State::Waiting, _) => {
                Outcome::Failed { error: "the run's time was over before it was tried".to_owned() }
            }
        };
        Measurement { case: self.probe.case(self.params), outcome }
    }
}

/// Each repetition is a process of its own: fresh programs, and a page cache that was made anew.
fn repetition(kept: bool) -> ProcessRounds {
    ProcessRounds { rounds: 1, ran: None, dropped: if kept { Vec::new() } else { vec![0] } }
}

/// What following has to do with the price, where it is much.
fn of_backend(backend: Backend) -> Option<String> {
    match backend {
        Backend::Bpf => None,
        Backend::Ptrace => {
            Some("followed by ptrace(2), which stops each call twice: that is part of the price".to_owned())
        }
        Backend::Rusage => Some("nobody could follow it: of its calls nothing is known".to_owned()),
    }
}
