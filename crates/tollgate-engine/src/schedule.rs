//! A schedule: the instances of one suite on their way from a choice to measurements.

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_model::measurement::{
    Case, Counted, Counter, Measured, Measurement, Outcome, Params, ProcessRounds, Provenance, Unit,
};
use tollgate_model::{ParamValue, estimate::Estimate};

use super::clock::Clock;
use super::ending::Ending;
use super::own::OWN_BENCHMARKS;
use super::plan::Plan;
use super::shared::{Cell, Events, InstanceState, Readiness, SharedResults};
use super::worker::{InstanceOrder, iterations_for};
use crate::benchmark::Benchmark;
use crate::selection::Group;

/// The instances of one suite: they share their rounds.
pub(super) struct Schedule {
    suite: &'static str,
    case_states: Vec<CaseState>,
    pub processes: usize,
    pub settled: bool,
}

/// A case on its way from a choice to a measurement.
struct CaseState {
    benchmark: &'static Benchmark,
    params: Params,
    state: State,
    ready: Readiness,
    iterations: u64,
    events: Events,
    /// Net ticks of the kept batches, process by process.
    batches: Vec<i64>,
    processes: Vec<ProcessRounds>,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Waiting,
    Running,
    Skipped(String),
    Failed(String),
}

/// Some of a schedule's instances, as one process gets them.
pub(super) struct BatchOrder {
    /// Their places among the case_states.
    places: Vec<usize>,
    pub orders: Vec<InstanceOrder>,
    names: Vec<String>,
}

impl BatchOrder {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The name of the instance that runs.
    pub fn on_now(&self, shared: &SharedResults) -> String {
        shared.current_instance().and_then(|instance| self.names.get(instance)).cloned().unwrap_or_default()
    }

    fn place_now(&self, shared: &SharedResults) -> Option<usize> {
        self.places.get(shared.current_instance()?).copied()
    }
}

impl Schedule {
    /// The chosen cases, the bench's own, and the suite's twin where its other half was chosen.
    pub fn new(group: &Group) -> Self {
        let mut case_states: Vec<CaseState> =
            group.cases.iter().map(|(benchmark, params)| CaseState::new(benchmark, params.clone())).collect();
        let chosen = |name: &str| group.cases.iter().any(|(benchmark, _)| benchmark.name == name);
        let control = group.suite.control.filter(|control| control.baseline.is_some_and(chosen));
        let own = OWN_BENCHMARKS.iter().copied().chain(control);
        // The bench measures itself anew in every group: the name of the group tells them apart.
        let tag = Params::from([("group".to_owned(), ParamValue::Word(group.suite.name.to_owned()))]);
        case_states.extend(own.map(|benchmark| CaseState::new(benchmark, tag.clone())));
        Self { suite: group.suite.name, case_states, processes: 0, settled: false }
    }

    /// What is compared gets the same number of operations: as many as keep the dearest within a batch. One
    /// that would then be over before it can be timed gets as many as fill a batch of its own.
    pub fn count_operations(&mut self) {
        let comparisons: BTreeSet<&str> =
            self.case_states.iter().map(|case_state| case_state.benchmark.comparison()).collect();
        for comparison in comparisons {
            let compared =
                || self.case_states.iter().filter(|case_state| case_state.takes_part_in(comparison));
            // The largest batch must fit once; every smaller one divides it.
            let batch = compared().map(|case_state| case_state.ready.ops).max().unwrap_or(1);
            let fitting =
                compared().map(|case_state| case_state.iterations_alone() * case_state.ready.ops).min();
            let ops = fitting.unwrap_or(1).next_multiple_of(batch);
            for case_state in
                self.case_states.iter_mut().filter(|case_state| case_state.takes_part_in(comparison))
            {
                case_state.iterations = case_state.iterations_for_operations(ops);
            }
        }
        // Those who ask one experiment must ask for the same, or it is done for each of them.
        for experiment in self.experiments(&self.places(&State::Running)) {
            let iterations =
                experiment.iter().map(|&place| self.case_states[place].iterations).min().unwrap_or(1);
            experiment.iter().for_each(|&place| self.case_states[place].iterations = iterations);
        }
    }

    /// The places divided into experiments: those that ask one are together, every other is alone.
    fn experiments(&self, places: &[usize]) -> Vec<Vec<usize>> {
        gather(places.iter().map(|&place| vec![place]).collect(), |place| {
            self.case_states[place].ready.experiment
        })
    }

    /// The experiments of what is running, divided by what they need to be there: they are run in a process
    /// together, or not.
    fn fixtures(&self) -> Vec<Vec<usize>> {
        let experiments = self.experiments(&self.places(&State::Running));
        gather(experiments, |place| self.case_states[place].ready.fixture)
    }

    /// Time of an experiment's batch with all that it does untimed. Who asked first has seen what it takes.
    fn batch(&self, experiment: &[usize]) -> Duration {
        experiment.iter().map(|&place| self.case_states[place].batch()).max().unwrap_or_default()
    }

    /// Time that a process needs to set a fixture and to do each of its experiments once.
    fn need_of(&self, fixture: &[usize]) -> Duration {
        let setup: Duration = fixture.iter().map(|&place| self.case_states[place].ready.setup).sum();
        setup + self.experiments(fixture).iter().map(|experiment| self.batch(experiment)).sum::<Duration>()
    }

    /// The instances that nobody has tried yet.
    pub fn waiting(&self) -> BatchOrder {
        self.batch_order(self.places(&State::Waiting).into_iter().map(|place| (place, 1)).collect())
    }

    /// The instances of one process that takes about so long, and the time that it should get: everything where
    /// that fits; else those that had the fewest processes come first, and of them the cheapest.
    pub fn running(&self, slice: Duration) -> (BatchOrder, Duration) {
        let mut fixtures = self.fixtures();
        let turns = |fixture: &[usize]| fixture.iter().map(|&place| self.case_states[place].turns()).min();
        tollgate_model::sort::by_key(&mut fixtures, |fixture| (turns(fixture), self.need_of(fixture)));
        let mut needed = Duration::ZERO;
        // The first is in, whatever it takes: it would never have its turn else.
        let limits = fixtures.first().map_or(slice, |first| slice.max(self.need_of(first)));
        fixtures.retain(|fixture| {
            let need = self.need_of(fixture);
            let fits = needed + need <= limits;
            needed += if fits { need } else { Duration::ZERO };
            fits
        });
        let mut due: Vec<(usize, usize)> = Vec::new();
        for experiment in fixtures.iter().flat_map(|fixture| self.experiments(fixture)) {
            let stride = stride(self.batch(&experiment));
            due.extend(experiment.iter().map(|&place| (place, stride)));
        }
        due.sort_unstable();
        (self.batch_order(due), limits)
    }

    /// Time that one process needs to give every instance one batch.
    pub fn need(&self) -> Duration {
        self.fixtures().iter().map(|fixture| self.need_of(fixture)).sum()
    }

    fn places(&self, state: &State) -> Vec<usize> {
        (0..self.case_states.len()).filter(|&place| self.case_states[place].state == *state).collect()
    }

    /// Some case_states, each with its stride.
    fn batch_order(&self, due: Vec<(usize, usize)>) -> BatchOrder {
        let orders = due.iter().map(|&(place, stride)| self.case_states[place].order(stride)).collect();
        let names = due.iter().map(|&(place, _)| self.case_states[place].case().to_string()).collect();
        BatchOrder { places: due.into_iter().map(|(place, _)| place).collect(), orders, names }
    }

    /// Takes note of how an calibration went. Afterwards at least one instance less is waiting.
    pub fn hear(
        &mut self,
        batch_order: &BatchOrder,
        shared: &SharedResults,
        ending: Ending,
        stall: Duration,
    ) {
        for (instance, &place) in batch_order.places.iter().enumerate() {
            self.case_states[place].hear(shared.instance(instance));
        }
        let first_waiting = || {
            batch_order.places.iter().copied().find(|&place| self.case_states[place].state == State::Waiting)
        };
        if ending != Ending::Finished {
            // Where no instance was on, the first that is left takes the blame, so that this comes to an end.
            if let Some(culprit) = batch_order.place_now(shared).or_else(first_waiting) {
                self.case_states[culprit].blame(ending, stall);
            }
        } else if let Some(place) = first_waiting() {
            self.case_states[place].state = State::Failed("its bench process did not reach it".to_owned());
        }
    }

    /// Takes over what one process of rounds recorded, however it ended.
    pub fn collect(
        &mut self,
        batch_order: &BatchOrder,
        shared: &SharedResults,
        ending: Ending,
        stall: Duration,
    ) {
        for (place, case_state) in self.case_states.iter_mut().enumerate() {
            case_state.collect(shared, batch_order.places.iter().position(|&other| other == place));
        }
        self.processes += 1;
        // A process whose time is over is nobody's fault.
        if !matches!(ending, Ending::Finished | Ending::OutOfTime)
            && let Some(culprit) = batch_order.place_now(shared)
        {
            self.case_states[culprit].blame(ending, stall);
        }
    }

    /// Processes that ended without one whole round.
    pub fn fruitless(&self) -> usize {
        let fruitful =
            self.case_states.iter().map(|case_state| case_state.processes.len()).max().unwrap_or(0);
        self.processes.saturating_sub(fruitful)
    }

    /// Settled when every interval is narrow, or when there were enough processes.
    pub fn settle(&mut self, plan: &Plan, clock: Clock) {
        if self.processes < plan.least_processes {
            return;
        }
        let narrow = |case_state: &CaseState| {
            case_state.state != State::Running
                || !case_state.decides()
                || case_state
                    .measured(self.suite, clock)
                    .and_then(|measured| Estimate::of(&measured))
                    .is_some_and(|estimate| estimate.relative_half_width() <= plan.precision)
        };
        self.settled = self.processes >= plan.most_processes || self.case_states.iter().all(narrow);
    }

    pub fn conclude(self, clock: Clock) -> Vec<Measurement> {
        let suite = self.suite;
        self.case_states.into_iter().map(|case_state| case_state.conclude(suite, clock)).collect()
    }
}

impl CaseState {
    fn new(benchmark: &'static Benchmark, params: Params) -> Self {
        Self {
            benchmark,
            params,
            state: State::Waiting,
            ready: Readiness { ops: 1, most: 1, ..Readiness::default() },
            iterations: 1,
            events: Events::default(),
            batches: Vec::new(),
            processes: Vec::new(),
        }
    }

    fn case(&self) -> Case {
        self.benchmark.case(self.params.clone())
    }

    fn takes_part_in(&self, comparison: &str) -> bool {
        self.state == State::Running && self.benchmark.comparison() == comparison
    }

    /// Whether its interval counts when it is decided that the rounds have been enough: prices do, the
    /// bench's own measurements do not.
    fn decides(&self) -> bool {
        self.benchmark.suite() != "bench"
    }

    /// Iterations that fill a batch.
    fn iterations_alone(&self) -> u64 {
        iterations_for(self.ready.cost).min(self.ready.most)
    }

    fn iterations_for_operations(&self, ops: u64) -> u64 {
        /// A batch that is so many times shorter than it should be is mostly the clock.
        const TOO_SHORT: u64 = 32;
        let shared = (ops / self.ready.ops).max(1);
        if shared * TOO_SHORT < self.iterations_alone() {
            self.iterations_alone()
        } else {
            shared.min(self.ready.most)
        }
    }

    /// Time of one batch with all that it does untimed.
    fn batch(&self) -> Duration {
        self.ready.whole.saturating_mul(u32::try_from(self.iterations).unwrap_or(u32::MAX))
    }

    /// Processes in which it had a batch, kept or not.
    fn turns(&self) -> usize {
        self.processes.iter().filter(|process| process.ran.as_ref().is_none_or(|ran| !ran.is_empty())).count()
    }

    fn order(&self, stride: usize) -> InstanceOrder {
        InstanceOrder {
            benchmark: self.benchmark.name.to_owned(),
            params: self.params.clone(),
            ops: self.ready.ops,
            iterations: self.iterations,
            extra: slow_down::extra(self.benchmark, self.iterations),
            decides: self.decides(),
            stride,
        }
    }

    /// Takes note of how the calibration went.
    fn hear(&mut self, state: InstanceState) {
        match state {
            InstanceState::Untried => {}
            InstanceState::Ready(ready) => {
                self.ready = *ready;
                self.state = State::Running;
            }
            InstanceState::Skipped(why) => self.state = State::Skipped(why),
            InstanceState::Failed(error) => self.state = State::Failed(error),
        }
    }

    /// Its process ended while this instance was on.
    fn blame(&mut self, ending: Ending, stall: Duration) {
        let absence = match ending {
            Ending::Killed(signal) => (self.benchmark.absence)(signal),
            _ => None,
        };
        self.state = match absence {
            Some(why) => State::Skipped(why.to_owned()),
            None => State::Failed(ending.describe(stall)),
        };
    }

    /// Takes over what one process recorded of this instance, if it was one of those that ran there.
    fn collect(&mut self, shared: &SharedResults, instance: Option<usize>) {
        match instance.map(|instance| shared.instance(instance)) {
            // Tried alone it had what it needs; beside the others there is not enough of it.
            Some(InstanceState::Skipped(why)) if self.batches.is_empty() => self.state = State::Skipped(why),
            Some(InstanceState::Skipped(why) | InstanceState::Failed(why)) => self.state = State::Failed(why),
            Some(InstanceState::Untried | InstanceState::Ready(_)) | None => {}
        }
        let rounds = shared.rounds_recorded();
        let (mut ran, mut discarded) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            match instance.map_or(Cell::Empty, |instance| shared.cell(round, instance)) {
                Cell::Empty => continue,
                Cell::Kept(ticks) => self.batches.push(ticks),
                Cell::Dropped => discarded.push(round as u32),
            }
            ran.push(round as u32);
        }
        let events = instance.map_or(Events::default(), |instance| shared.events(instance));
        for (sum, number) in self.events.iter_mut().zip(events) {
            *sum = sum.saturating_add(number);
        }
        if rounds > 0 {
            let ran = (ran.len() < rounds).then_some(ran);
            self.processes.push(ProcessRounds { rounds: rounds as u32, ran, discarded });
        }
    }

    fn measured(&self, suite: &str, clock: Clock) -> Option<Measured> {
        let ops_per_sample = self.iterations * self.ready.ops;
        // What one tick of a batch is in the benchmark's unit; an amount is in that unit already.
        let unit = self.benchmark.unit;
        let tick = match unit {
            Unit::Nanoseconds | Unit::NanosecondsPerLine => clock.nanoseconds(1.0),
            Unit::Cycles | Unit::Bytes | Unit::Instructions => 1.0,
        };
        let digits = digits_of(tick / ops_per_sample as f64);
        let per_op = |work: &i64| (*work as f64 * tick / ops_per_sample as f64 * digits).round() / digits;
        let measured = Measured {
            unit,
            provenance: Provenance::Hardware,
            ops_per_sample,
            clock_hz: clock.hz(),
            samples: self.batches.iter().map(per_op).collect(),
            discarded: self.processes.iter().map(|process| process.discarded.len() as u64).sum(),
            processes: self.processes.clone(),
            counted: self.counted(ops_per_sample),
            counters: self.counters(),
            bytes_per_op: (self.benchmark.bytes)(&self.params),
            group: suite.to_owned(),
            baseline: self.benchmark.baseline_of(&self.params),
            notes: self.ready.notes.lines().map(str::to_owned).collect(),
            traced: Vec::new(),
        };
        (!measured.samples.is_empty()).then_some(measured)
    }

    fn counted(&self, ops_per_sample: u64) -> Option<Counted> {
        let operations = self.batches.len() as u64 * ops_per_sample;
        let events = self.events[0];
        match (self.benchmark.counts, self.benchmark.share) {
            (Some(what), _) => Some(Counted { what: what.to_owned(), events, operations, is_share: false }),
            (None, Some(share)) => {
                let operations = self.batches.len() as u64 * (ops_per_sample / share.one_of.max(1));
                Some(Counted { what: share.what.to_owned(), events, operations, is_share: true })
            }
            (None, None) => None,
        }
    }

    fn counters(&self) -> Vec<Counter> {
        let numbers = self.benchmark.counters.iter().zip(&self.events[1..]);
        numbers.map(|(what, &number)| Counter { what: (*what).to_owned(), number }).collect()
    }

    fn conclude(self, suite: &str, clock: Clock) -> Measurement {
        let outcome = match &self.state {
            State::Skipped(why) => Outcome::Skipped { why: why.clone() },
            State::Failed(error) => Outcome::Failed { error: error.clone() },
            State::Waiting => {
                Outcome::Failed { error: "the run's time was over before it was tried".to_owned() }
            }
            State::Running => match self.measured(suite, clock) {
                Some(measured) => Outcome::Measured(Box::new(measured)),
                None => Outcome::Failed { error: self.why_no_samples() },
            },
        };
        Measurement { case: self.case(), outcome }
    }

    fn why_no_samples(&self) -> String {
        let discarded: usize = self.processes.iter().map(|process| process.discarded.len()).sum();
        match discarded {
            0 => "the run's time was over before it had a round".to_owned(),
            batches => {
                format!("each of {batches} batches was disturbed: other work had the processor meanwhile")
            }
        }
    }
}

/// Joins the groups whose members have the same number; 0 is nobody's.
fn gather(groups: Vec<Vec<usize>>, number: impl Fn(usize) -> u64) -> Vec<Vec<usize>> {
    let mut gathered: Vec<Vec<usize>> = Vec::new();
    for group in groups {
        let own = number(group[0]);
        match gathered.iter_mut().find(|other| own != 0 && number(other[0]) == own) {
            Some(others) => others.extend(group),
            None => gathered.push(group),
        }
    }
    gathered
}

/// In every how manyth round a batch of such a length is due: a round of all instances should not last so long that the
/// machine is another one at its end.
fn stride(batch: Duration) -> usize {
    const DUE_IN_EACH: Duration = Duration::from_millis(1);
    const MOST: u128 = 1 << 10;
    let times = batch.as_nanos().div_ceil(DUE_IN_EACH.as_nanos()).clamp(1, MOST);
    (times as usize).next_power_of_two()
}

/// A power of ten that keeps every tick apart from the next: digits beyond it would be none of the
/// clock's, and twice the length of a document.
fn digits_of(tick: f64) -> f64 {
    10_f64.powi((1.0 - tick.log10()).ceil().clamp(0.0, 15.0) as i32)
}

/// Tests slow a benchmark down to see whether the verdict finds it; a release cannot.
#[cfg(feature = "test-hooks")]
mod slow_down {
    use crate::benchmark::Benchmark;

    /// `TOLLGATE_TEST_SLOW=benchmark=factor[,benchmark=factor]`: iterations beyond those that are counted. A twin
    /// is as slow as its other half, or it would be no twin.
    pub(super) fn extra(benchmark: &Benchmark, iterations: u64) -> u64 {
        let Ok(orders) = std::env::var("TOLLGATE_TEST_SLOW") else { return 0 };
        let slowed = if benchmark.suite() == "bench" { benchmark.comparison() } else { benchmark.name };
        let factor =
            orders.split(',').filter_map(|order| order.split_once('=')).find(|(name, _)| *name == slowed);
        let factor: f64 = factor.and_then(|(_, factor)| factor.parse().ok()).unwrap_or(1.0);
        (iterations as f64 * (factor - 1.0)).round().max(0.0) as u64
    }
}

#[cfg(not(feature = "test-hooks"))]
mod slow_down {
    use crate::benchmark::Benchmark;

    pub(super) fn extra(_benchmark: &Benchmark, _iterations: u64) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::PLAIN;

    static CHEAP: Benchmark = Benchmark { name: "some/cheap", ..PLAIN };
    static DEAR: Benchmark = Benchmark { name: "some/dear", baseline: Some("some/cheap"), ..PLAIN };

    /// Instances that are ready: of a benchmark, with a cost of so many nanoseconds an iteration, 10 operations in each.
    fn schedule(instances: &[(&'static Benchmark, u64)]) -> Schedule {
        let case_state = |&(benchmark, cost): &(&'static Benchmark, u64)| {
            let cost = Duration::from_nanos(cost);
            let ready = Readiness { cost, whole: cost, ops: 10, most: u64::MAX, ..Readiness::default() };
            CaseState { state: State::Running, ready, ..CaseState::new(benchmark, Params::new()) }
        };
        let case_states = instances.iter().map(case_state).collect();
        Schedule { suite: "some", case_states, processes: 0, settled: false }
    }

    const MS: u64 = 1_000_000;

    fn places(schedule: &Schedule, slice: u64) -> (Vec<usize>, Duration) {
        let (batch_order, time) = schedule.running(Duration::from_millis(slice));
        (batch_order.places, time)
    }

    #[test]
    fn what_does_not_fit_waits_for_its_turn_and_then_has_it() {
        let mut schedule = schedule(&[(&CHEAP, 1000 * MS), (&CHEAP, 10 * MS), (&CHEAP, 100 * MS)]);
        assert_eq!(schedule.need(), Duration::from_millis(1110));
        assert_eq!(places(&schedule, 2000).0, [0, 1, 2]);
        assert_eq!(places(&schedule, 150), (vec![1, 2], Duration::from_millis(150)));
        for place in [1, 2] {
            schedule.case_states[place].processes.push(ProcessRounds {
                rounds: 3,
                ran: None,
                discarded: vec![],
            });
        }
        schedule.case_states[0].processes.push(ProcessRounds {
            rounds: 3,
            ran: Some(vec![]),
            discarded: vec![],
        });
        // It gets the time that it takes, and nobody else fits beside it.
        assert_eq!(places(&schedule, 150), (vec![0], Duration::from_millis(1000)));
    }

    #[test]
    fn a_fixture_is_set_whole_or_not_at_all() {
        let mut schedule = schedule(&[(&CHEAP, 10 * MS), (&CHEAP, MS), (&CHEAP, 30 * MS)]);
        for place in [0, 2] {
            schedule.case_states[place].ready.fixture = 7;
        }
        schedule.case_states[0].ready.setup = Duration::from_millis(50);
        assert_eq!(schedule.need(), Duration::from_millis(91));
        assert_eq!(places(&schedule, 60).0, [1]);
        assert_eq!(places(&schedule, 91).0, [0, 1, 2]);
    }

    #[test]
    fn questions_of_one_experiment_are_due_together_and_cost_once() {
        let mut schedule = schedule(&[(&CHEAP, 5 * MS), (&CHEAP, 1), (&CHEAP, 1)]);
        for place in [0, 1] {
            schedule.case_states[place].ready.experiment = 9;
        }
        schedule.count_operations();
        assert_eq!(schedule.need().as_millis(), 5);
        let strides: Vec<usize> =
            schedule.running(Duration::from_secs(1)).0.orders.iter().map(|order| order.stride).collect();
        assert_eq!(strides, [8, 8, 1]);
        let iterations: Vec<u64> =
            schedule.case_states.iter().map(|case_state| case_state.iterations).collect();
        assert_eq!((iterations[0], iterations[1]), (1, 1));
    }

    #[test]
    fn what_is_compared_has_as_many_operations_unless_a_block_of_them_would_be_too_short() {
        let iterations = |costs: [u64; 2]| {
            let mut schedule = schedule(&[(&CHEAP, costs[0]), (&DEAR, costs[1])]);
            schedule.count_operations();
            [schedule.case_states[0].iterations, schedule.case_states[1].iterations]
        };
        // 50 µs are a batch.
        assert_eq!(iterations([1_000, 5_000]), [10, 10]);
        assert_eq!(iterations([1_000, 25_000]), [2, 2]);
        assert_eq!(iterations([5, 25_000]), [10_000, 2]);
    }

    #[test]
    fn a_block_is_due_so_seldom_that_it_takes_a_millisecond_of_each_round() {
        let strides = [0, 999, 1_000, 1_001, 48_000, 10_000_000].map(|us| stride(Duration::from_micros(us)));
        assert_eq!(strides, [1, 1, 1, 2, 64, 1024]);
    }
}
