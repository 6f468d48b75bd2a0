//! The schedule of workloads: each case once, then all of them again in random order, until the time is over.

use std::time::{Duration, Instant};

use tollgate_model::measurement::{Measured, Measurement, Outcome, ProcessRounds, Provenance, Unit};
use tollgate_model::{Traced, estimate::Estimate, traced::Backend};

use super::cache::{Cache, Pages};
use super::command::{Step, Stop};
use super::fixture::{Tree, go_on};
use super::{SUITE, WORKLOADS, size_of};
use super::{source::Size, work::Work};
use crate::prelude::*;

const MOST_REPETITIONS: usize = 64;

/// Measures some cases; one measurement for each, in their order.
pub(super) fn measure(cases: &[Chosen], context: &mut RunContext) -> Result<Findings, BenchError> {
    let mut states: Vec<CaseState> =
        cases.iter().map(|(benchmark, params)| CaseState::new(benchmark, params)).collect();
    let mut facts = Vec::new();
    let mut interrupted = None;
    let is_chosen = |size: &Size| states.iter().any(|state| state.size == *size);
    let sizes: Vec<Size> = Size::ALL.into_iter().filter(is_chosen).collect();
    let last = context.deadline;
    for (at, &size) in sizes.iter().enumerate() {
        // Each tree gets a part of the remaining time, in proportion to its default time.
        let all: Duration = sizes[at..].iter().map(|size| size.usual_time()).sum();
        let share = size.usual_time().as_secs_f64() / all.as_secs_f64();
        context.deadline = Instant::now() + last.saturating_duration_since(Instant::now()).mul_f64(share);
        let mut of_size: Vec<&mut CaseState> = states.iter_mut().filter(|state| state.size == size).collect();
        match measure_size(size, &mut of_size, context) {
            Ok(found) => facts.extend(found),
            Err(Stop::Run(BenchError::Interrupted(signal))) => {
                interrupted = Some(signal);
                break;
            }
            Err(Stop::Run(error)) => return Err(error),
            // Cases that did not run say so.
            Err(Stop::Time) => {}
            Err(Stop::Case(why)) => of_size.iter_mut().for_each(|state| state.refuse(why.clone())),
        }
    }
    let conclude = |state: CaseState| state.conclude(interrupted.is_some());
    let measurements = states.into_iter().map(conclude).collect();
    Ok(Findings { measurements, facts, interrupted })
}

/// Measures all cases of one size: prepares them, cases with shared files in sequence, then repeats them.
fn measure_size(
    size: Size,
    states: &mut [&mut CaseState],
    context: &mut RunContext,
) -> Step<Vec<(String, tollgate_model::Fact)>> {
    let storage = context.plan.storage.clone().map_err(Refusal::Skip)?;
    check_limit(size, &storage)?;
    let mut fixture = Tree::make(size, &storage.directory, context)?;
    let pages = Pages::of(&storage, &fixture.path_of("page"))?;
    for state in states.iter_mut() {
        match state.make_ready(&mut fixture, &pages, context) {
            Err(Stop::Case(why)) => state.refuse(why),
            other => other?,
        }
    }
    let mut random = Random::new(context.seed);
    while let Some(at) = next(states, context.left(), &mut random) {
        go_on(context)?;
        let waiting = states.iter().filter(|state| state.repetitions() == 0 && state.is_running());
        let others_wait = waiting.count() > 1;
        states[at].repeat(&fixture, &pages, others_wait, context)?;
        if settled(states, context) {
            break;
        }
    }
    Ok(std::mem::take(&mut fixture.facts))
}

fn check_limit(size: Size, storage: &Storage) -> Result<()> {
    let needed = size.bytes_at_most();
    if needed <= storage.limit {
        Ok(())
    } else {
        let (needed, by) = (needed >> 20, &storage.by);
        Err(skip!("{needed} MiB of files would be more than {by}"))
    }
}

/// The next case: a random one of those with the fewest repetitions that fit into the remaining time. In the first
/// round the probably fast ones come first, so that few are missing if the time is short.
fn next(states: &[&mut CaseState], left: Duration, random: &mut Random) -> Option<usize> {
    let fits = |state: &CaseState| state.is_running() && state.took.is_none_or(|took| took <= left);
    let mut due: Vec<usize> = (0..states.len()).filter(|&at| fits(states[at])).collect();
    let least = due.iter().map(|&at| states[at].repetitions()).min()?;
    due.retain(|&at| states[at].repetitions() == least);
    random.shuffle(&mut due);
    match least {
        0 => due.into_iter().min_by_key(|&at| states[at].guess()),
        MOST_REPETITIONS.. => None,
        _ => due.first().copied(),
    }
}

/// Whether every CI is as narrow as the plan requires.
fn settled(states: &[&mut CaseState], context: &RunContext) -> bool {
    let narrow = |state: &CaseState| {
        state.repetitions() >= context.plan.least_processes
            && state
                .measured()
                .and_then(|measured| Estimate::of(&measured))
                .and_then(|estimate| estimate.relative_half_width())
                .is_some_and(|width| width <= context.plan.precision)
    };
    states.iter().all(|state| !state.is_running() || narrow(state))
}

/// A case, from the choice to its measurement.
struct CaseState {
    benchmark: &'static Benchmark,
    params: Params,
    size: Size,
    cache: Cache,
    state: State,
    /// One for each kept repetition.
    traced: Vec<Traced>,
    /// For each repetition, whether it was kept.
    kept: Vec<bool>,
    /// The longest repetition, untimed parts included.
    took: Option<Duration>,
    notes: Vec<String>,
}

enum State {
    Waiting,
    Running(Box<dyn Work>),
    Refused(Refusal),
}

impl CaseState {
    fn new(benchmark: &'static Benchmark, params: &Params) -> Self {
        Self {
            benchmark,
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

    fn repetitions(&self) -> usize {
        self.kept.len()
    }

    fn refuse(&mut self, why: Refusal) {
        self.state = State::Refused(why);
    }

    /// The expected rank of its time among the benchmarks.
    fn guess(&self) -> (usize, usize) {
        const FAST_FIRST: [&str; 5] = ["grep", "unpack", "checkout", "tags", "build"];
        let is_it = |name: &&str| self.benchmark.name.ends_with(*name);
        let serial = self.params.get("jobs").is_some_and(|jobs| *jobs == 1.into());
        (FAST_FIRST.iter().position(is_it).unwrap_or(FAST_FIRST.len()), usize::from(serial))
    }

    fn make_ready(&mut self, fixture: &mut Tree, pages: &Pages, context: &mut RunContext) -> Step<()> {
        pages.can_be(self.cache)?;
        let workload = WORKLOADS.iter().find(|workload| workload.benchmark.name == self.benchmark.name);
        let workload = workload.ok_or_else(|| fail!("the benchmark has no preparation"))?;
        self.state = State::Running((workload.ready)(fixture, &self.params, context)?);
        Ok(())
    }

    /// Runs one repetition. Records a refusal of this case.
    fn repeat(
        &mut self,
        fixture: &Tree,
        pages: &Pages,
        others_wait: bool,
        context: &mut RunContext,
    ) -> Step<()> {
        let began = Instant::now();
        // A hanging one must leave time for the others.
        let patience = if others_wait { context.left() / 2 } else { context.left() };
        match self.try_repeat(fixture, pages, began + patience, context) {
            Ok(traced) => {
                self.kept.push(traced.is_some());
                self.traced.extend(traced);
            }
            Err(Stop::Run(error)) => return Err(Stop::Run(error)),
            Err(Stop::Case(why)) => self.refuse(why),
            Err(Stop::Time) if self.repetitions() == 0 => {
                self.refuse(Refusal::NotMeasured(Ending::OutOfTime.describe(patience)));
            }
            // Earlier repetitions stay; the case will not fit again.
            Err(Stop::Time) => {}
        }
        self.took = self.took.max(Some(began.elapsed()));
        Ok(())
    }

    /// The result of one run; None if its input was not in the right cache state.
    fn try_repeat(
        &mut self,
        fixture: &Tree,
        pages: &Pages,
        until: Instant,
        context: &mut RunContext,
    ) -> Step<Option<Traced>> {
        let State::Running(work) = &self.state else { return Ok(None) };
        work.reset(fixture, context)?;
        let certified = pages.bring(self.cache, &work.reads(fixture))?;
        let traced = fixture.home.follow(&work.command(fixture), until, context)?;
        let checked = work.check(fixture, context)?;
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
            discarded: self.kept.iter().filter(|&&kept| !kept).count() as u64,
            processes: self.kept.iter().map(|&kept| repetition(kept)).collect(),
            counted: None,
            counters: Vec::new(),
            bytes_per_op: None,
            group: SUITE.name.to_owned(),
            baseline: self.benchmark.baseline_of(&self.params),
            notes: self.notes.clone(),
            span_ns: None,
            traced: self.traced.clone(),
        })
    }

    fn conclude(self, interrupted: bool) -> Measurement {
        let measured = self.measured();
        let outcome = match (self.state, measured) {
            (State::Refused(refusal), _) => refusal.outcome(),
            (State::Running(_), Some(measured)) => Outcome::Measured(Box::new(measured)),
            _ if interrupted => Outcome::NotMeasured { why: "interrupted".to_owned() },
            (State::Running(_), None) if !self.kept.is_empty() => Outcome::Failed {
                error: "each repetition was discarded: some input was not in the required cache state"
                    .to_owned(),
            },
            (State::Running(_) | State::Waiting, _) => {
                Outcome::NotMeasured { why: "the run's time was over before its first repetition".to_owned() }
            }
        };
        Measurement { case: self.benchmark.case(self.params), outcome }
    }
}

/// Each repetition counts as a process of its own: fresh programs, and a freshly set page cache.
fn repetition(kept: bool) -> ProcessRounds {
    ProcessRounds { rounds: 1, ran: None, discarded: if kept { Vec::new() } else { vec![0] } }
}

/// A note on the tracer's overhead, if it is large.
fn of_backend(backend: Backend) -> Option<String> {
    match backend {
        Backend::Bpf => None,
        Backend::Ptrace => {
            Some("traced with ptrace(2), whose two stops per call the latency includes".to_owned())
        }
        Backend::Rusage => Some("not traced (rusage only)".to_owned()),
    }
}
