//! The executions of benches, from the first to the last.
//!
//! A round executes each bench that is due once in each build. The benches are in random order, and so are the builds of each. At first those
//! are due that the time brings to the pairs of an interval: all of too few pairs would be a row without a verdict for each. Then those whose
//! comparisons are undecided; and when there are none, those whose intervals are wide.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use tollgate_model::compare::{self, Neighbours, Verdict};
use tollgate_model::measurement::{Measured, Outcome, Unit};
use tollgate_model::sorting::Ordered as _;
use tollgate_model::versus::BENCHES;
use tollgate_model::{Case, Fact, Measurement};

use super::builds::{Builds, Done};
use super::harness::Size;
use crate::run::BenchError;
use crate::versus::executor::{Executor, Halt};
use crate::versus::plan::patience;
use crate::versus::rounds::schedule_facts;
use crate::versus::{Compared, Doing, Found, NotCompared, Rounds};
use tollgate_alternation::LEAST_PAIRS;
use tollgate_model::stats::random::Random;

/// A comparison of the benches of builds.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The benches.
    pub benches: Vec<Bench>,
    /// Executions of each that are not kept, before the others.
    pub warmups: u32,
    /// How many executions of each are kept.
    pub rounds: Rounds,
    /// No bench begins after this time.
    pub time: Duration,
    /// As [`crate::versus::Plan::precision`].
    pub precision: f64,
    /// No relative difference of up to this counts.
    pub asked: f64,
    /// An execution that takes longer has failed; None for twenty times the slowest so far, and 30 s.
    pub timeout: Option<Duration>,
    /// Of the random order.
    pub seed: u64,
}

/// A bench, and the builds that have it: the base is the first of them.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Its name, as its harness has it; [`is_nameable`](super::is_nameable).
    pub name: String,
    /// The numbers of the builds; fewer than two, or without the base: it is not compared.
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

/// Executes benches until their comparisons are decided and their intervals narrow, or the time is over. What was found is of each build.
///
/// # Errors
/// Those of the executor. A bench that fails is left out, and its measurement says why.
pub fn measure(
    builds: &Builds,
    executor: &mut dyn Executor,
    plan: &Plan,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Compared, NotCompared> {
    let benches: Vec<BenchState> = plan.benches.iter().map(|bench| BenchState::new(bench, builds)).collect();
    let rows = benches.iter().filter(|bench| bench.why.is_none()).count();
    let random = Random::new(plan.seed);
    let mut run = Run {
        builds,
        executor,
        plan,
        watch,
        benches,
        rows,
        random,
        began: Instant::now(),
        rounds: 0,
        so_far: None,
    };
    match run.whole() {
        Ok(()) => Ok(run.conclude(None)),
        Err(Halt::Run(BenchError::Interrupted(signal))) => Ok(run.conclude(Some(signal))),
        Err(Halt::Run(error)) => Err(error.into()),
        Err(Halt::Lost(why)) => Err(BenchError::NoEnvironment(why).into()),
    }
}

struct Run<'r> {
    builds: &'r Builds,
    executor: &'r mut dyn Executor,
    plan: &'r Plan,
    watch: &'r mut dyn FnMut(&Doing<'_>),
    benches: Vec<BenchState>,
    /// Benches that were to be compared.
    rows: usize,
    random: Random,
    began: Instant,
    rounds: u32,
    /// The last comparison so far, with the build's number.
    so_far: Option<(usize, Neighbours)>,
}

/// A bench in all builds.
struct BenchState {
    name: String,
    sides: Vec<Side>,
    size: Size,
    /// What its executions have taken, and how many there were.
    taken: Duration,
    executions: u32,
    state: State,
    /// The pairs after which it was looked at last.
    checked: usize,
    /// Why it is left out: the predicate of a sentence.
    why: Option<String>,
}

struct Side {
    build: usize,
    /// In ns.
    figures: Vec<f64>,
    slowest: Option<Duration>,
}

/// What is known of the comparisons of a bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// A verdict is inconclusive, or rests on too few executions.
    Undecided,
    /// An interval is wide.
    Wide,
    /// Nothing more is asked for.
    Narrow,
}

impl Run<'_> {
    fn whole(&mut self) -> Result<(), Halt> {
        for at in 0..self.benches.len() {
            self.find_size(at)?;
        }
        for _ in 0..self.plan.warmups {
            for at in 0..self.benches.len() {
                self.execute(at, false)?;
            }
        }
        // What was done until here is not what the time is for.
        self.began = Instant::now();
        while self.rounds < self.plan.rounds.most {
            let due = self.due();
            if due.is_empty() {
                return Ok(());
            }
            for at in due {
                if self.is_time_over() {
                    return Ok(());
                }
                self.execute(at, true)?;
            }
            self.rounds += 1;
        }
        Ok(())
    }

    fn is_time_over(&self) -> bool {
        self.rounds >= self.plan.rounds.least && self.began.elapsed() >= self.plan.time
    }

    /// The benches of the next round, in random order.
    fn due(&mut self) -> Vec<usize> {
        for at in 0..self.benches.len() {
            self.look_at(at);
        }
        let is_fixed = self.plan.rounds.least == self.plan.rounds.most;
        let mut due = match is_fixed || self.rounds < self.plan.rounds.least {
            true => (0..self.benches.len()).filter(|at| self.benches[*at].why.is_none()).collect(),
            false => chosen(&self.benches, self.plan.time.saturating_sub(self.began.elapsed())),
        };
        // What they took, by which they were chosen, is no part of their order.
        due.sort_unstable();
        self.random.shuffle(&mut due);
        due
    }

    /// Looks at the comparisons of a bench, where it has enough new executions. Its intervals hold at all looks together.
    fn look_at(&mut self, at: usize) {
        let Self { benches, plan, rows, so_far, .. } = self;
        let bench = &mut benches[at];
        let pairs = bench.pairs();
        if bench.why.is_some() || pairs < LEAST_PAIRS || pairs < bench.checked + bench.checked / 20 {
            return;
        }
        bench.checked = pairs;
        let Some((base, others)) = bench.sides.split_first() else { return };
        let state = |found: Neighbours| match found.verdict {
            Verdict::Inconclusive => State::Undecided,
            _ if !found.is_precise(f64::INFINITY) => State::Undecided,
            _ if !found.is_precise(plan.precision) => State::Wide,
            _ => State::Narrow,
        };
        let mut least = State::Narrow;
        for side in others {
            let found = compare::neighbours(&base.figures, &side.figures, *rows, plan.asked, false);
            *so_far = found.map(|found| (side.build, found)).or(*so_far);
            least = least.min(found.map_or(State::Undecided, state));
        }
        bench.state = least;
    }

    /// Finds how much is to be executed at a time, by the base: as much in all builds.
    fn find_size(&mut self, at: usize) -> Result<(), Halt> {
        // The first figure has the steps of a clock, and what a first iteration takes more.
        for _ in 0..2 {
            if !self.builds.harness().has_size() || self.benches[at].why.is_some() {
                return Ok(());
            }
            if let Some(figure) = self.execute_side(at, 0)? {
                self.benches[at].size = self.builds.harness().size(figure);
            }
        }
        Ok(())
    }

    /// Executes a bench once in each build; with `is_kept` its figures are kept. One that fails is left out from then on.
    fn execute(&mut self, at: usize, is_kept: bool) -> Result<(), Halt> {
        if self.benches[at].why.is_some() {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..self.benches[at].sides.len()).collect();
        self.random.shuffle(&mut order);
        let mut figures = vec![0.0; order.len()];
        for &side in &order {
            match self.execute_side(at, side)? {
                Some(figure) => figures[side] = figure,
                None => return Ok(()),
            }
        }
        let bench = &mut self.benches[at];
        if is_kept {
            bench.sides.iter_mut().zip(figures).for_each(|(side, figure)| side.figures.push(figure));
        }
        Ok(())
    }

    /// The figure of one execution. None where it failed, which is kept.
    fn execute_side(&mut self, at: usize, side: usize) -> Result<Option<f64>, Halt> {
        let Self { builds, executor, plan, watch, benches, began, rounds, so_far, .. } = self;
        let bench = &mut benches[at];
        let build = bench.sides[side].build;
        let within = patience(plan.timeout, bench.sides[side].slowest);
        let name = &builds.all()[build].name;
        let what = format!("{} in {name}", bench.name);
        let mut tick =
            || watch(&Doing { what: &what, elapsed: began.elapsed(), rounds: *rounds, so_far: *so_far });
        tick();
        let Done { figure, took } =
            builds.one(build, &bench.name, bench.size, within, &mut **executor, &mut tick)?;
        bench.taken += took;
        bench.executions += 1;
        let slowest = &mut bench.sides[side].slowest;
        *slowest = (*slowest).max(Some(took));
        match figure {
            Ok(figure) => Ok(Some(figure)),
            Err(why) => {
                bench.why = Some(format!("{why} (in {name})"));
                Ok(None)
            }
        }
    }

    fn conclude(self, interrupted: Option<i32>) -> Compared {
        let Self { builds, plan, benches, rounds, .. } = self;
        let mut facts = schedule_facts(plan.seed, rounds, false, plan.time, interrupted);
        let harness = builds.harness();
        facts.push(("run.statistic".to_owned(), Fact::known(harness.statistic(), harness.name())));
        let of_build = |number: usize| {
            let measurements =
                benches.iter().map(|bench| bench.measurement(harness.name(), number, interrupted));
            Found { measurements: measurements.collect(), ..Found::default() }
        };
        let found = (0..builds.all().len()).map(of_build).collect();
        Compared { found, facts, lost: vec![None], interrupted }
    }
}

/// The benches that are to be executed next, where so much time is left.
fn chosen(benches: &[BenchState], mut left: Duration) -> Vec<usize> {
    let open = || benches.iter().enumerate().filter(|(_, bench)| bench.why.is_none());
    let mut lacking: Vec<(usize, &BenchState)> =
        open().filter(|(_, bench)| bench.pairs() < LEAST_PAIRS).collect();
    lacking.order_by_key(|(_, bench)| (Reverse(bench.pairs()), bench.pair()));
    let is_carried = |(_, bench): &&(usize, &BenchState)| {
        let rest = left.checked_sub(bench.pair() * (LEAST_PAIRS - bench.pairs()) as u32);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let carried: Vec<usize> = lacking.iter().take_while(is_carried).map(|(at, _)| *at).collect();
    let has_pairs = || open().filter(|(_, bench)| bench.pairs() >= LEAST_PAIRS);
    let least = has_pairs().map(|(_, bench)| bench.state).min().filter(|state| *state != State::Narrow);
    match (carried.is_empty(), least) {
        (false, _) => carried,
        (true, Some(least)) => {
            has_pairs().filter(|(_, bench)| bench.state == least).map(|(at, _)| at).collect()
        }
        // The time is for no other.
        (true, None) => lacking.into_iter().map(|(at, _)| at).collect(),
    }
}

impl BenchState {
    fn new(bench: &Bench, builds: &Builds) -> Self {
        let side = |build: &usize| Side { build: *build, figures: Vec::new(), slowest: None };
        Self {
            name: bench.name.clone(),
            sides: bench.builds.iter().map(side).collect(),
            size: Size::FIRST,
            taken: Duration::ZERO,
            executions: 0,
            state: State::Undecided,
            checked: 0,
            why: bench.alone(builds),
        }
    }

    /// The executions of each build that were kept.
    fn pairs(&self) -> usize {
        self.sides.first().map_or(0, |side| side.figures.len())
    }

    /// What an execution in each build takes.
    fn pair(&self) -> Duration {
        self.taken * self.sides.len() as u32 / self.executions.max(1)
    }

    /// What a build's run has of it.
    fn measurement(&self, suite: &str, build: usize, interrupted: Option<i32>) -> Measurement {
        let side = self.sides.iter().find(|side| side.build == build);
        let figures = side.map(|side| side.figures.clone()).unwrap_or_default();
        let outcome = match (&self.why, side) {
            (Some(why), Some(_)) if self.is_failure() => Outcome::Failed { error: why.clone() },
            (Some(why), _) => Outcome::NotMeasured { why: why.clone() },
            (None, None) => Outcome::NotMeasured { why: "is not in this build".to_owned() },
            (None, Some(_)) if figures.is_empty() => {
                let why = match interrupted {
                    Some(_) => "was interrupted",
                    None => {
                        "had no time beside the others; --time gives it more, and a pattern chooses benches"
                    }
                };
                Outcome::NotMeasured { why: why.to_owned() }
            }
            (None, Some(_)) => {
                Outcome::Measured(Box::new(Measured::of_executions(BENCHES, Unit::Nanoseconds, figures)))
            }
        };
        Measurement { case: Case::plain(format!("{suite}/{}", self.name)), outcome }
    }

    /// Whether it was executed and failed.
    fn is_failure(&self) -> bool {
        self.sides.iter().any(|side| side.slowest.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bench with so many pairs, each of which took so many ms.
    fn bench(pairs: usize, pair: u64, state: State) -> BenchState {
        let side = |build| Side { build, figures: vec![1.0; pairs], slowest: None };
        BenchState {
            name: "a".to_owned(),
            sides: vec![side(0), side(1)],
            size: Size::FIRST,
            taken: Duration::from_millis(pair * 8),
            executions: 16,
            state,
            checked: 0,
            why: None,
        }
    }

    #[test]
    fn benches_begin_that_the_time_brings_to_an_interval_and_the_decided_leave_theirs_to_others() {
        use State::{Narrow, Undecided, Wide};
        let chosen = |benches: &[BenchState], ms| chosen(benches, Duration::from_millis(ms));
        let new = [300, 100, 200].map(|pair| bench(0, pair, Undecided));
        // Sixteen pairs of each.
        assert_eq!(chosen(&new, 9600), [1, 2, 0]);
        assert_eq!(chosen(&new, 9599), [1, 2]);
        assert_eq!(chosen(&new, 4799), [1]);
        // For none of them: they share it.
        assert_eq!(chosen(&new, 1599), [1, 2, 0]);
        // One that has begun comes first, although it is slow.
        let mut begun = [bench(1, 300, Undecided), bench(0, 100, Undecided), bench(16, 100, Undecided)];
        assert_eq!(chosen(&begun, 6099), [0]);
        assert_eq!(chosen(&begun, 6100), [0, 1]);
        // It will not be brought there any more, nor will the new one.
        assert_eq!(chosen(&begun, 1599), [2]);
        begun[2].state = Wide;
        assert_eq!(chosen(&begun, 1599), [2]);
        begun[2].state = Narrow;
        assert_eq!(chosen(&begun, 1599), [0, 1]);
        let settled = [bench(16, 100, Narrow), bench(20, 100, Undecided), bench(20, 100, Wide)];
        assert_eq!(chosen(&settled, 10_000), [1]);
        assert_eq!(chosen(&settled[..1], 10_000), [0_usize; 0]);
        let failed = BenchState { why: Some("failed".to_owned()), ..bench(0, 100, Undecided) };
        assert_eq!(chosen(&[failed], 10_000), [0_usize; 0]);
    }
}
