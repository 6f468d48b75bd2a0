//! The executions of benches, from the first to the last. A round executes each due bench once in each build; the benches, and the
//! builds of each, are in random order. First come the benches that can get the pairs of an interval in the time left, since too few
//! pairs of each would give no verdict at all. Then come undecided comparisons, then those with wide intervals.

use std::time::{Duration, Instant};

use tollgate_alternation::{Alternation, How, Outcome as Came, Places, SoFar, Trial, Turn};
use tollgate_model::measurement::{Measured, Outcome, Unit};
use tollgate_model::versus::BENCHES;
use tollgate_model::{Case, Fact, Measurement};

use super::builds::{Builds, Done};
use super::harness::Size;
use crate::cases::run::BenchError;
use crate::sides::versus::plan::patience;
use crate::sides::versus::rounds::{layouts_fact, schedule_facts};
use crate::sides::versus::{Compared, Doing, Found, NotCompared, Rounds};
use crate::sides::versus::{Executor, Halt};
use tollgate_model::stats::random::Random;

/// A comparison of the benches of builds.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The benches.
    pub benches: Vec<Bench>,
    /// Executions of each before the others, which are not kept.
    pub warmups: u32,
    /// How many executions of each are kept.
    pub rounds: Rounds,
    /// No bench begins after this time.
    pub time: Duration,
    /// See [`crate::sides::versus::Plan::precision`].
    pub precision: f64,
    /// Relative differences up to this do not count.
    pub asked: f64,
    /// An execution that takes longer has failed; `None` for twenty times the slowest so far, and 30 s.
    pub timeout: Option<Duration>,
    /// The seed of the random order.
    pub seed: u64,
}

/// A bench, and the builds that have it, the base first.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Its harness's name for it; [`is_nameable`](super::is_nameable).
    pub name: String,
    /// The numbers of the builds. With fewer than two, or without the base, it is not compared.
    pub builds: Vec<usize>,
}

impl Bench {
    /// Whether the base has it, and another build.
    pub fn is_compared(&self) -> bool {
        self.builds.first() == Some(&0) && self.builds.len() > 1
    }

    /// Why it is not compared: the predicate of a sentence.
    pub(super) fn alone(&self, builds: &Builds) -> Option<String> {
        let names: Vec<&str> = self.builds.iter().map(|build| builds.all()[*build].name.as_str()).collect();
        (!self.is_compared()).then(|| format!("is in {} only", tollgate_model::text::listed(&names)))
    }
}

/// Executes benches until their comparisons are decided and narrow, or the time is over. Returns the findings of each build.
///
/// # Errors
/// Those of the executor. A bench that fails is left out, and its measurement says why.
pub fn measure(
    builds: &Builds,
    executor: &mut dyn Executor,
    plan: &Plan,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Compared, NotCompared> {
    let number = builds.all().len();
    let state = |bench: &Bench| BenchState {
        size: Size::FIRST,
        slowest: vec![None; number],
        timed: vec![0; number],
        why: bench.alone(builds),
    };
    let benches: Vec<BenchState> = plan.benches.iter().map(state).collect();
    let lengths = tollgate_alternation::Plan {
        until_decided: true,
        asked: plan.asked,
        layouts: builds.layouts(),
        comparisons: Some(benches.iter().filter(|bench| bench.why.is_none()).count()),
        ..tollgate_alternation::Plan::new(plan.rounds, plan.time, plan.precision)
    };
    let sides: Vec<Vec<usize>> = plan.benches.iter().map(|bench| bench.builds.clone()).collect();
    let mut rounds = Alternation::new(lengths, Random::new(plan.seed), &sides, Places::in_turn(number, 1));
    let mut executions = Executions { builds, executor, plan, watch, benches, began: Instant::now() };
    match executions.whole(&mut rounds) {
        Ok(()) => Ok(executions.conclude(&rounds, None)),
        Err(Halt::Run(BenchError::Interrupted(signal))) => Ok(executions.conclude(&rounds, Some(signal))),
        Err(Halt::Run(error)) => Err(error.into()),
        Err(Halt::Lost(why)) => Err(BenchError::NoEnvironment(why).into()),
    }
}

/// The executions of benches. A case is a bench, and a side is a build.
struct Executions<'r> {
    builds: &'r Builds,
    executor: &'r mut dyn Executor,
    plan: &'r Plan,
    watch: &'r mut dyn FnMut(&Doing<'_>),
    benches: Vec<BenchState>,
    began: Instant,
}

struct BenchState {
    size: Size,
    slowest: Vec<Option<Duration>>,
    /// The executions of each build whose figures are kept.
    timed: Vec<u32>,
    /// Why it is left out: the predicate of a sentence.
    why: Option<String>,
}

impl Trial for Executions<'_> {
    type Stop = BenchError;

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// A bench that fails is left out from then on.
    fn execute(&mut self, turn: &Turn, so_far: &SoFar) -> Result<Came, Halt> {
        let figure = self.figure(turn.case, turn.side, so_far)?;
        if turn.how == How::Timed {
            self.benches[turn.case].timed[turn.side] += 1;
        }
        Ok(figure.map_or(Came::LeaveCase, Came::Figure))
    }
}

impl Executions<'_> {
    fn whole(&mut self, rounds: &mut Alternation) -> Result<(), Halt> {
        for at in 0..self.benches.len() {
            self.find_size(at)?;
            if self.benches[at].why.is_some() {
                rounds.leave(at);
            }
        }
        for number in 0..self.plan.warmups {
            rounds.pass(self, How::Warm, number)?;
        }
        // The time does not include the preparation.
        self.began = Instant::now();
        rounds.run(self)
    }

    /// Finds the amount to execute at a time, by the base; it is the same in all builds.
    fn find_size(&mut self, at: usize) -> Result<(), Halt> {
        // The first figure includes the steps of a clock, and the extra time of a first iteration.
        for _ in 0..2 {
            if !self.builds.harness().has_size() || self.benches[at].why.is_some() {
                return Ok(());
            }
            if let Some(figure) = self.figure(at, 0, &SoFar::default())? {
                self.benches[at].size = self.builds.harness().size(figure);
            }
        }
        Ok(())
    }

    /// The figure of one execution. `None` if it failed; the reason is kept.
    fn figure(&mut self, at: usize, build: usize, so_far: &SoFar) -> Result<Option<f64>, Halt> {
        let Self { builds, executor, plan, watch, benches, began } = self;
        let (name, state) = (&plan.benches[at].name, &mut benches[at]);
        let within = patience(plan.timeout, state.slowest[build]);
        let of_build = &builds.all()[build].name;
        let what = format!("{name} in {of_build}");
        let (rounds, so_far) = (so_far.rounds, so_far.compared.map(|(_, build, found)| (build, found)));
        let mut tick = || watch(&Doing { what: &what, elapsed: began.elapsed(), rounds, so_far });
        tick();
        let Done { figure, took } =
            builds.one((build, state.timed[build]), name, state.size, within, &mut **executor, &mut tick)?;
        state.slowest[build] = state.slowest[build].max(Some(took));
        match figure {
            Ok(figure) => Ok(Some(figure)),
            Err(why) => {
                state.why = Some(format!("{why} (in {of_build})"));
                Ok(None)
            }
        }
    }

    fn conclude(&self, rounds: &Alternation, interrupted: Option<i32>) -> Compared {
        let Self { builds, plan, .. } = self;
        let mut facts = schedule_facts(plan.seed, rounds.so_far().rounds, false, plan.time, interrupted);
        let harness = builds.harness();
        facts.extend(layouts_fact(builds.layouts()));
        facts.push(("run.statistic".to_owned(), Fact::known(harness.statistic(), harness.name())));
        let of_build = |number: usize| {
            let measurement = |at: usize| Measurement {
                case: Case::plain(format!("{}/{}", harness.name(), plan.benches[at].name)),
                outcome: self.outcome(at, number, rounds.figures(at, number), interrupted),
            };
            Found { measurements: (0..self.benches.len()).map(measurement).collect(), ..Found::default() }
        };
        let found = (0..builds.all().len()).map(of_build).collect();
        Compared { found, facts, lost: vec![None], interrupted }
    }

    fn outcome(&self, at: usize, build: usize, figures: &[f64], interrupted: Option<i32>) -> Outcome {
        let state = &self.benches[at];
        let is_there = self.plan.benches[at].builds.contains(&build);
        let was_executed = state.slowest.iter().any(Option::is_some);
        let why = match (&state.why, interrupted) {
            (Some(why), _) if is_there && was_executed => return Outcome::Failed { error: why.clone() },
            (Some(why), _) => why,
            (None, _) if !is_there => "is not in this build",
            (None, _) if !figures.is_empty() => {
                let measured = Measured::of_executions(BENCHES, Unit::Nanoseconds, figures.to_vec());
                return Outcome::Measured(Box::new(measured));
            }
            (None, Some(_)) => "was interrupted",
            (None, None) => {
                "had no time left after the others; give more with --time, or select benches with a pattern"
            }
        };
        Outcome::NotMeasured { why: why.to_owned() }
    }
}
