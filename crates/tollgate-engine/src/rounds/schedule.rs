//! The schedule of one suite: calibrates its chosen cases, orders their batches and collects their samples. Only cases of one
//! comparison and magnitude have the same operation count: in a batch of about 50 µs, a call of 1 ns and an interrupt of 4 µs cannot
//! share one.
//!
//! Instances whose batch takes more than a millisecond take part in every second, fourth, … round. Other rounds do not count as
//! discarded.
//!
//! A case with fewer than six processes has no interval and cannot be compared. So if a process has no time for all cases, it runs
//! some of them, those of the first screen and the short ones first. The others begin once these have six processes each. Time is
//! divided among processes, not benchmarks: more time means more processes for all.

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_model::ParamValue;
use tollgate_model::estimate::ENOUGH_PROCESSES;
use tollgate_model::measurement::{Case, Measurement, Params};
use tollgate_model::own::EMPTY_LOOP;

use crate::bench_process::own::OWN_BENCHMARKS;
use crate::bench_process::record::{InstanceRecord, ProcessRecord};
use crate::bench_process::worker::{InstanceOrder, WARM_UP_ROUNDS};
use crate::cases::benchmark::Benchmark;
use crate::cases::plan::{Ordinal, Plan, SLICE};
use crate::cases::run::Decided;
use crate::cases::selection::Group;
use crate::machine::clock::Clock;
use crate::machine::ending::Ending;
use crate::refusal::Refusal;
use crate::rounds::case_state::{CaseState, CaseStatus};

/// The time of a process is this multiple of the time that one batch of each of its instances needs.
const TIMES_NEED: u32 = 3;

#[derive(Default)]
pub(crate) struct Schedule {
    pub suite: &'static str,
    pub place: Ordinal,
    pub cases: Vec<CaseState>,
    pub processes: usize,
    /// The processes whose first round was whole.
    pub whole: usize,
    /// How often the time of a process was doubled because processors are short.
    doubled: u32,
    pub settled: bool,
    /// The processes that each case gets, if their number ends the run.
    pub wanted: Option<usize>,
    /// Its share of the time for rounds, and how much of that it has taken.
    pub share: Duration,
    pub taken: Duration,
    /// The time that it would have taken if no process had been lengthened or late.
    pub planned: Duration,
    start_up: Duration,
}

/// When a fixture has its turn in a process, the earliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// The engine's own cases, without which the others mean little.
    Own,
    /// It has begun, and has too few processes for an interval.
    Begun,
    /// It never ran, and is on the first screen or not.
    Headline,
    New,
    /// It has enough: this many processes.
    Enough(usize),
}

pub(crate) struct BatchOrder {
    /// Their indices among the cases.
    pub indices: Vec<usize>,
    pub orders: Vec<InstanceOrder>,
    names: Vec<String>,
}

impl BatchOrder {
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    pub fn name(&self, instance: Option<usize>) -> String {
        instance.and_then(|instance| self.names.get(instance)).cloned().unwrap_or_default()
    }

    fn index_now(&self, record: &ProcessRecord) -> Option<usize> {
        self.indices.get(record.current?).copied()
    }
}

impl Schedule {
    /// The chosen cases, the engine's own, and the A/A control if its baseline was chosen: that baseline's code again in the same
    /// rounds. Their difference is a lower bound of each verdict's threshold.
    pub fn new(group: &Group, place: Ordinal, control: Option<&'static Benchmark>) -> Self {
        let chosen = group.cases.iter().enumerate().map(|(at, (benchmark, params))| CaseState {
            headline: group.headline(at),
            ..CaseState::new(benchmark, params.clone())
        });
        let mut cases: Vec<CaseState> = chosen.collect();
        let chosen = |name: &str| group.cases.iter().any(|(benchmark, _)| benchmark.name == name);
        let control = control.filter(|control| control.baseline.benchmark().is_some_and(chosen));
        let own = OWN_BENCHMARKS.iter().copied().chain(control);
        // The engine's own benchmarks run in every group; the group's name distinguishes them.
        let tag = Params::from([("group".to_owned(), ParamValue::Word(group.name().to_owned()))]);
        cases.extend(own.map(|benchmark| CaseState::new(benchmark, tag.clone())));
        Self { suite: group.name(), place, cases, ..Self::default() }
    }

    /// The chosen cases, to be counted: an emulator has no detection limit, loop overhead or pace. `refused` says why a case is not counted.
    pub fn counted(group: &Group, place: Ordinal, refused: impl Fn(&Benchmark) -> Option<Refusal>) -> Self {
        let mut schedule = Self::new(group, place, None);
        schedule.cases.truncate(group.cases.len());
        for state in &mut schedule.cases {
            state.state = refused(state.benchmark).map_or(CaseStatus::Waiting, CaseStatus::Refused);
        }
        schedule
    }

    pub fn without_results(&self) -> Self {
        let cases = self.cases.iter().map(|state| CaseState {
            headline: state.headline,
            ..CaseState::new(state.benchmark, state.params.clone())
        });
        Self { suite: self.suite, place: self.place, cases: cases.collect(), ..Self::default() }
    }

    /// Its part of the time beyond what each suite needs.
    fn weight(&self) -> u32 {
        /// From this many cases on, a group counts as a suite.
        const WHOLE: usize = 8;
        self.cases.iter().filter(|state| state.decides()).count().clamp(1, WHOLE) as u32
    }

    pub fn number(&self) -> usize {
        self.cases.len()
    }

    /// Gives the cases of a comparison that are of one magnitude the same number of operations: as many as keep the slowest
    /// within a batch's time. The state of caches and predictors, and the cost of a batch's ends, depend on the batch's length.
    /// If a slower case cut a batch far below its own length, its figure would differ from the one alone.
    pub fn count_operations(&mut self) {
        let comparisons: BTreeSet<&str> =
            self.cases.iter().map(|state| state.benchmark.comparison()).collect();
        for comparison in comparisons {
            let compared =
                (0..self.cases.len()).filter(|&index| self.cases[index].takes_part_in(comparison)).collect();
            for alike in self.magnitudes(compared) {
                let states = || alike.iter().map(|&index| &self.cases[index]);
                // The largest iteration must fit once; every smaller one divides it.
                let batch = states().map(|state| state.ready.ops).max().unwrap_or(1);
                let fitting = states().map(CaseState::operations_alone).min().unwrap_or(1);
                let ops = fitting.next_multiple_of(batch);
                for &index in &alike {
                    let state = &mut self.cases[index];
                    state.iterations = (ops / state.ready.ops).clamp(1, state.ready.most);
                }
            }
        }
        self.equalize_experiments();
    }

    /// Groups cases whose own batches have up to four times the operations of the shortest in the group.
    fn magnitudes(&self, mut cases: Vec<usize>) -> Vec<Vec<usize>> {
        const FAR: u64 = 4;
        let operations = |index: usize| self.cases[index].operations_alone();
        cases.sort_by_key(|&index| operations(index));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in cases {
            let fits = |group: &&mut Vec<usize>| {
                group.first().is_some_and(|&first| operations(index) <= operations(first).saturating_mul(FAR))
            };
            match groups.last_mut().filter(fits) {
                Some(group) => group.push(index),
                None => groups.push(vec![index]),
            }
        }
        groups
    }

    /// Questions of one experiment need the same order, or it would run once for each.
    pub fn equalize_experiments(&mut self) {
        for experiment in self.experiments(&self.indices(&CaseStatus::Running)) {
            let iterations = experiment.iter().map(|&index| self.cases[index].iterations).min().unwrap_or(1);
            experiment.iter().for_each(|&index| self.cases[index].iterations = iterations);
        }
        self.shorten_empty_loop();
    }

    /// The empty loop has no more iterations than any loop of its suite. Its apparent time is the error of such a batch, and that
    /// is smaller for single operations than for thousands of iterations.
    fn shorten_empty_loop(&mut self) {
        let runs = |state: &&CaseState| state.state == CaseStatus::Running && state.decides();
        let Some(longest) = self.cases.iter().filter(runs).map(|state| state.iterations).max() else {
            return;
        };
        let is_empty = |state: &&mut CaseState| state.benchmark.name == EMPTY_LOOP;
        for state in self.cases.iter_mut().filter(is_empty) {
            state.iterations = state.iterations_alone().min(longest);
        }
    }

    /// Groups the indices by experiment; a case without one is alone.
    pub fn experiments(&self, indices: &[usize]) -> Vec<Vec<usize>> {
        let alone = indices.iter().map(|&index| vec![index]).collect();
        gather(alone, |index| self.cases[index].ready.experiment.as_deref())
    }

    /// Groups the running cases' experiments by fixture: a process runs all of a fixture's or none. If the number of processes ends the
    /// run, fixtures whose cases have all theirs are left out.
    fn fixtures(&self) -> Vec<Vec<usize>> {
        let experiments = self.experiments(&self.indices(&CaseStatus::Running));
        let mut fixtures = gather(experiments, |index| self.cases[index].ready.fixture.as_deref());
        let is_open = |index: &usize| self.cases[*index].decides() && !self.has_its_processes(*index);
        let is_own = |index: &usize| !self.cases[*index].decides();
        fixtures.retain(|fixture| fixture.iter().any(is_open) || fixture.iter().all(is_own));
        fixtures
    }

    /// Whether a case has kept a batch in as many processes as it gets; never if the time ends the run.
    fn has_its_processes(&self, index: usize) -> bool {
        self.wanted.is_some_and(|number| self.cases[index].medians.len() >= number)
    }

    /// Time of an experiment's batch, untimed parts included: the case that ran first in the calibration has it.
    fn batch(&self, experiment: &[usize]) -> Duration {
        experiment.iter().map(|&index| self.cases[index].batch()).max().unwrap_or_default()
    }

    fn first_round(&self) -> Duration {
        self.start_up + self.fixtures().iter().map(|fixture| self.begin_of(fixture)).sum::<Duration>()
    }

    fn begin_of(&self, fixture: &[usize]) -> Duration {
        let batches = self.experiments(fixture).into_iter().map(|experiment| self.batch(&experiment));
        let warm: Duration = batches.filter(|batch| stride(*batch) == 1).sum();
        self.need_of(fixture) + warm * WARM_UP_ROUNDS as u32
    }

    /// Time that a process needs to prepare a fixture and run each of its experiments once.
    fn need_of(&self, fixture: &[usize]) -> Duration {
        let setup: Duration = fixture.iter().map(|&index| self.cases[index].ready.setup).sum();
        setup + self.experiments(fixture).iter().map(|experiment| self.batch(experiment)).sum::<Duration>()
    }

    /// The instances that are not calibrated yet. In case time is short, the engine's own come first, then the first screen's.
    pub fn waiting(&self) -> BatchOrder {
        let mut waiting = self.indices(&CaseStatus::Waiting);
        let is_later = |state: &CaseState| (state.decides(), state.headline.is_none());
        waiting.sort_by_key(|&index| is_later(&self.cases[index]));
        self.batch_order(waiting.into_iter().map(|index| (index, 1)).collect())
    }

    pub fn waits(&self) -> usize {
        self.indices(&CaseStatus::Waiting).len()
    }

    pub fn single(&self) -> Option<&CaseState> {
        match self.cases.as_slice() {
            [state] => Some(state),
            _ => None,
        }
    }

    pub fn first_waiting(&self) -> BatchOrder {
        self.batch_order(
            self.indices(&CaseStatus::Waiting).into_iter().take(1).map(|index| (index, 1)).collect(),
        )
    }

    /// The instances of a process of about this length, and its time. If not all fit, see [`Turn`]; the fastest come first.
    pub fn running(&self, slice: Duration) -> (BatchOrder, Duration) {
        let alike = |fixture: Vec<usize>| (self.turn(&fixture), self.begin_of(&fixture), fixture);
        let mut fixtures: Vec<(Turn, Duration, Vec<usize>)> =
            self.fixtures().into_iter().map(alike).collect();
        fixtures.sort_by_key(|(turn, begin, _)| (*turn, *begin));
        // No fixture begins while another one has begun and needs more processes: all would end with too few.
        if fixtures.iter().any(|(turn, ..)| *turn == Turn::Begun) {
            fixtures.retain(|(turn, ..)| !matches!(turn, Turn::Headline | Turn::New));
        }
        // The first fixture is always included, or it would never run.
        let own = fixtures.iter().filter(|(turn, ..)| *turn == Turn::Own).count();
        let mut needed = self.start_up;
        let limits =
            slice.max(needed + fixtures.iter().take(own + 1).map(|(_, begin, _)| *begin).sum::<Duration>());
        let mut due: Vec<(usize, usize)> = Vec::new();
        for (_, begin, fixture) in fixtures {
            if needed + begin > limits {
                continue;
            }
            needed += begin;
            for experiment in self.experiments(&fixture) {
                let stride = stride(self.batch(&experiment));
                due.extend(experiment.into_iter().map(|index| (index, stride)));
            }
        }
        due.sort_unstable();
        (self.batch_order(due), limits)
    }

    fn turn(&self, fixture: &[usize]) -> Turn {
        let states = || fixture.iter().map(|&index| &self.cases[index]).filter(|state| state.decides());
        match states().map(CaseState::processes_run).min() {
            None => Turn::Own,
            Some(0) if states().all(|state| state.headline.is_none()) => Turn::New,
            Some(0) => Turn::Headline,
            Some(_) if states().any(lacks_processes) => Turn::Begun,
            Some(number) => Turn::Enough(number),
        }
    }

    pub fn only(&self, indices: &[usize]) -> BatchOrder {
        let runs = |index: &&usize| self.cases[**index].state == CaseStatus::Running;
        self.batch_order(indices.iter().filter(runs).map(|&index| (index, 1)).collect())
    }

    /// Time that one process needs for one batch of every instance.
    pub fn need(&self) -> Duration {
        self.fixtures().iter().map(|fixture| self.need_of(fixture)).sum()
    }

    fn indices(&self, state: &CaseStatus) -> Vec<usize> {
        (0..self.cases.len()).filter(|&index| self.cases[index].state == *state).collect()
    }

    fn batch_order(&self, due: Vec<(usize, usize)>) -> BatchOrder {
        let orders = due.iter().map(|&(index, stride)| self.cases[index].order(stride)).collect();
        let names = due.iter().map(|&(index, _)| self.cases[index].case().to_string()).collect();
        BatchOrder { indices: due.into_iter().map(|(index, _)| index).collect(), orders, names }
    }

    /// Records the results of a calibration process. Afterwards at least one instance less is waiting.
    pub fn record_calibration(
        &mut self,
        batch_order: &BatchOrder,
        record: &ProcessRecord,
        ending: Ending,
        stall: Duration,
    ) {
        for (instance, &index) in record.instances.iter().zip(&batch_order.indices) {
            self.cases[index].record_calibration(instance.state.clone());
        }
        let first_waiting = || {
            batch_order.indices.iter().copied().find(|&index| self.cases[index].state == CaseStatus::Waiting)
        };
        if ending != Ending::Finished {
            // If no instance ran, the first waiting one fails, so that the calibration terminates.
            if let Some(failed) = batch_order.index_now(record).or_else(first_waiting) {
                self.cases[failed].fail_with(ending, stall);
            }
        } else if let Some(index) = first_waiting() {
            self.cases[index].state = CaseStatus::Refused(fail!("its bench process did not reach it"));
        }
    }

    /// Records the results of a process that counted. Afterwards at least one instance less is waiting.
    pub fn record_counts(
        &mut self,
        batch_order: &BatchOrder,
        record: &ProcessRecord,
        ending: Ending,
        stall: Duration,
    ) {
        for (instance, &index) in record.instances.iter().zip(&batch_order.indices) {
            self.cases[index].record_count(instance, record.rounds);
        }
        self.processes += 1;
        let waiting =
            batch_order.indices.iter().copied().find(|&index| self.cases[index].state == CaseStatus::Waiting);
        match (waiting, ending) {
            (None, _) => {}
            (Some(index), Ending::Finished) => {
                self.cases[index].state = CaseStatus::Refused(fail!("its bench process did not reach it"));
            }
            (Some(index), _) => self.cases[index].fail_with(ending, stall),
        }
    }

    pub fn collect(
        &mut self,
        batch_order: &BatchOrder,
        record: &ProcessRecord,
        ending: Ending,
        stall: Duration,
    ) {
        for (index, state) in self.cases.iter_mut().enumerate() {
            let instance = batch_order.indices.iter().position(|&other| other == index);
            state.collect(instance.and_then(|instance| record.instances.get(instance)), record.rounds);
        }
        self.count_process(record.rounds > 0 && record.instances.iter().all(InstanceRecord::has_run));
        // An instance is not at fault if its process ran out of time.
        if !matches!(ending, Ending::Finished | Ending::OutOfTime)
            && let Some(failed) = batch_order.index_now(record)
        {
            self.cases[failed].fail_with(ending, stall);
        }
    }

    /// Counts a process. If its first round was not whole, processors are short, and the next one gets twice the time.
    pub fn count_process(&mut self, is_whole: bool) {
        const MOST: u32 = 10;
        self.processes += 1;
        self.whole += usize::from(is_whole);
        self.doubled = if is_whole { self.doubled.saturating_sub(1) } else { (self.doubled + 1).min(MOST) };
    }

    /// Time of a process: a few times what it needs for its preparation and one batch of each instance. If the time ends the run, a
    /// small share of the suite shortens it to some of the instances, and a large share lengthens it.
    pub fn slice(&self, plan: &Plan) -> Duration {
        let wanted = (self.need() * TIMES_NEED).max(self.first_round());
        if plan.processes.is_some() {
            return wanted.max(SLICE);
        }
        let wanted = wanted.max(self.share / plan.most_processes as u32);
        let missing = plan.least_processes.saturating_sub(self.processes).max(1);
        let fitting = if self.processes < plan.least_processes {
            // The first process may have taken more than its part.
            self.share.saturating_sub(self.taken) / missing as u32
        } else {
            self.share / plan.least_processes as u32
        };
        wanted.min(fitting).max(SLICE)
    }

    /// The time of the next process: its slice, or more if processes ended without a whole round.
    pub fn length(&self, plan: &Plan) -> Duration {
        self.slice(plan).max(self.least_slice())
    }

    fn least_slice(&self) -> Duration {
        SLICE * (1 << self.doubled)
    }

    /// The average time of a process with a whole round so far.
    fn each(&self) -> Duration {
        (self.taken / self.whole.max(1) as u32).max(self.least_slice())
    }

    /// Time until it has the processes of an interval. Zero if it had no process, since no case of it runs.
    fn needed(&self) -> Duration {
        match self.processes {
            0 => Duration::ZERO,
            _ => self.each() * ENOUGH_PROCESSES.saturating_sub(self.whole) as u32,
        }
    }

    /// Whether it had no process, or a case that has begun lacks processes for an interval.
    pub fn lacks_processes(&self) -> bool {
        self.processes == 0
            || self.deciding().any(|state| state.processes_run() > 0 && lacks_processes(state))
    }

    /// The share of its time that it has taken, or of its processes.
    pub fn progress(&self) -> f64 {
        match self.wanted {
            Some(number) => self.processes as f64 / number as f64,
            None => self.taken.as_secs_f64() / self.share.as_secs_f64().max(f64::MIN_POSITIVE),
        }
    }

    /// Settles the schedule when every CI is narrow, every case has its processes, or there were enough processes.
    pub fn settle(&mut self, plan: &Plan) {
        /// Computing autocorrelations takes time, so it happens once per this many processes.
        const EVERY: usize = 8;
        let is_done = match self.wanted {
            Some(number) => self.has_kept(number),
            None if self.processes < plan.least_processes || !self.processes.is_multiple_of(EVERY) => return,
            None => self.deciding().all(|state| state.is_narrow(plan.precision)),
        };
        self.settled = is_done || self.processes >= plan.most_processes;
    }

    pub fn has_kept(&self, number: usize) -> bool {
        self.deciding().all(|state| state.medians.len() >= number)
    }

    /// The first chosen case of which no batch was kept for lack of time.
    pub fn out_of_time(&self) -> Option<Case> {
        self.cases.iter().find(|state| state.decides() && state.lacks_time()).map(CaseState::case)
    }

    fn deciding(&self) -> impl Iterator<Item = &CaseState> {
        self.cases.iter().filter(|state| state.state == CaseStatus::Running && state.decides())
    }

    pub fn newly_decided(&mut self, clock: Clock) -> impl Iterator<Item = Decided> {
        self.cases.iter_mut().filter_map(move |state| state.newly_decided(clock, ENOUGH_PROCESSES))
    }

    pub fn conclude(self, clock: Clock, cut: Option<&str>) -> Vec<Measurement> {
        let suite = self.suite;
        self.cases.into_iter().map(|state| state.conclude(suite, clock, cut)).collect()
    }
}

/// Whether these groups leave enough time to calibrate another one and give it the processes of an interval.
pub(crate) fn leave_time(groups: &[Schedule], left: Duration) -> bool {
    /// Its calibration takes as long as this many processes.
    const CALIBRATION: usize = 2;
    let began = || groups.iter().filter(|group| group.processes > 0);
    // The factor by which other work lengthens a process.
    let each: Duration = began().map(Schedule::each).sum();
    let planned: Duration = began().map(|group| group.planned / group.processes as u32).sum();
    let busy = each.as_secs_f64() / planned.as_secs_f64();
    let next = SLICE.mul_f64(if busy.is_finite() { busy.max(1.0) } else { 1.0 });
    let needed: Duration = groups.iter().map(Schedule::needed).sum();
    groups.is_empty() || needed + next * (ENOUGH_PROCESSES + CALIBRATION) as u32 <= left
}

/// How many of these groups, from the first, can get the processes of an interval in this time.
pub(crate) fn carried(groups: &[Schedule], mut left: Duration) -> usize {
    let is_carried = |group: &&Schedule| match left.checked_sub(group.needed()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    groups.iter().take_while(is_carried).count()
}

/// Divides the time for rounds among the suites. Each gets the least number of its processes, the small ones first if the time
/// does not suffice for all, and an equal part of the rest. A group of few cases gets less of the rest, because a benchmark with
/// its own processes is not a suite. If the number of processes ends the run, each suite gets the time that its processes take.
pub(crate) fn share(groups: &mut [Schedule], time: Duration, plan: &Plan, start_up: Duration) {
    for group in &mut *groups {
        group.start_up = start_up;
    }
    let floor = |group: &Schedule| group.first_round().max(SLICE) * plan.least_processes as u32;
    if plan.processes.is_some() {
        for group in groups {
            group.share = floor(group) * TIMES_NEED;
            group.wanted = plan.processes;
        }
        return;
    }
    let mut order: Vec<(Duration, usize)> = groups.iter().map(floor).zip(0..).collect();
    order.sort_unstable();
    let number = order.len() as u32;
    let mut rest = time;
    for (waiting, (floor, at)) in (1..=number).rev().zip(order) {
        groups[at].share = floor.min(rest / waiting);
        rest -= groups[at].share;
    }
    let all: u32 = groups.iter().map(Schedule::weight).sum();
    groups.iter_mut().for_each(|group| group.share += rest * group.weight() / all);
}

/// Whether a case has too few processes for an interval. After too many failures it does not count, so that it delays no others.
fn lacks_processes(state: &CaseState) -> bool {
    state.medians.len() < ENOUGH_PROCESSES && state.processes_run() < 2 * ENOUGH_PROCESSES
}

/// Joins the groups whose members have the same name; those without a name stay alone.
fn gather<'a>(groups: Vec<Vec<usize>>, name: impl Fn(usize) -> Option<&'a str>) -> Vec<Vec<usize>> {
    let mut gathered: Vec<Vec<usize>> = Vec::new();
    for group in groups {
        let own = name(group[0]);
        match gathered.iter_mut().find(|other| own.is_some() && name(other[0]) == own) {
            Some(others) => others.extend(group),
            None => gathered.push(group),
        }
    }
    gathered
}

/// The stride of a batch of this length: it is due in every n-th round. The machine's state changes little in a short round.
fn stride(batch: Duration) -> usize {
    const DUE_IN_EACH: Duration = Duration::from_millis(1);
    const MOST: u128 = 1 << 10;
    let times = batch.as_nanos().div_ceil(DUE_IN_EACH.as_nanos()).clamp(1, MOST);
    (times as usize).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::benchmark::{Benchmark, PLAIN};
    use crate::cases::headline::{Headline, Section};
    use crate::loops::instance::Readiness;
    use tollgate_model::measurement::ProcessRounds;

    static BASE: Benchmark = Benchmark { name: "some/base", ..PLAIN };
    static OTHER: Benchmark =
        Benchmark { name: "some/other", baseline: crate::Baseline::Benchmark("some/base"), ..PLAIN };

    /// Calibrated instances: benchmark and nanoseconds of an iteration of 10 operations.
    fn schedule(instances: &[(&'static Benchmark, u64)]) -> Schedule {
        let state = |&(benchmark, cost): &(&'static Benchmark, u64)| {
            let cost = Duration::from_nanos(cost);
            let ready = Readiness { cost, whole: cost, ops: 10, most: u64::MAX, ..Readiness::default() };
            CaseState { state: CaseStatus::Running, ready, ..CaseState::new(benchmark, Params::new()) }
        };
        let cases = instances.iter().map(state).collect();
        Schedule { suite: "some", cases, ..Schedule::default() }
    }

    const MS: u64 = 1_000_000;

    fn indices(schedule: &Schedule, slice: u64) -> (Vec<usize>, Duration) {
        let (batch_order, time) = schedule.running(Duration::from_millis(slice));
        (batch_order.indices, time)
    }

    #[test]
    fn a_fixture_that_does_not_fit_runs_in_a_later_process() {
        let mut schedule = schedule(&[(&BASE, 1000 * MS), (&BASE, 10 * MS), (&BASE, 100 * MS)]);
        assert_eq!(schedule.need(), Duration::from_millis(1110));
        assert_eq!(indices(&schedule, 2000).0, [0, 1, 2]);
        for _ in 0..ENOUGH_PROCESSES {
            assert_eq!(indices(&schedule, 150), (vec![1, 2], Duration::from_millis(150)));
            run(&mut schedule, &[1, 2]);
        }
        // It gets the time that it needs, and no other fits.
        assert_eq!(indices(&schedule, 150), (vec![0], Duration::from_millis(1000)));
    }

    /// A process of these, which kept a batch of each.
    fn run(schedule: &mut Schedule, indices: &[usize]) {
        for (index, state) in schedule.cases.iter_mut().enumerate() {
            let ran = if indices.contains(&index) { None } else { Some(vec![]) };
            state.medians.extend(ran.is_none().then_some(1.0));
            state.processes.push(ProcessRounds { rounds: 3, ran, discarded: vec![] });
        }
        schedule.count_process(true);
    }

    #[test]
    fn each_case_has_six_processes_before_another_begins_and_before_any_has_twelve() {
        const HEADLINE: Headline = Headline::of(Section::Memory, "a row", &[]);
        // Their batches are long, so no round warms them up; all of them take 2.1 s.
        let costs: Vec<(&'static Benchmark, u64)> = (1..=20).map(|n| (&BASE, n * 10 * MS)).collect();
        for seconds in [1, 2, 4, 8, 16, 32] {
            let mut schedule = schedule(&costs);
            schedule.cases[17].headline = Some(&HEADLINE);
            let plan = Plan::within(Duration::from_secs(seconds));
            share(std::slice::from_mut(&mut schedule), plan.budget, &plan, Duration::ZERO);
            while schedule.taken < plan.budget {
                let (batch_order, time) = schedule.running(schedule.length(&plan));
                run(&mut schedule, &batch_order.indices);
                schedule.taken += time;
                let of = |state: &CaseState| state.medians.len();
                let begun =
                    schedule.cases.iter().map(of).filter(|number| (1..ENOUGH_PROCESSES).contains(number));
                assert!(begun.clone().all(|number| Some(number) == begun.clone().next()), "{seconds} s");
                let fewest = schedule.cases.iter().map(of).min().unwrap_or(0);
                let most = schedule.cases.iter().map(of).max().unwrap_or(0);
                assert!(
                    fewest >= ENOUGH_PROCESSES || most < 2 * ENOUGH_PROCESSES,
                    "{seconds} s: {fewest}, {most}"
                );
            }
            let enough: Vec<usize> =
                (0..20).filter(|&at| schedule.cases[at].medians.len() >= ENOUGH_PROCESSES).collect();
            assert!(enough.contains(&17), "{seconds} s: the first screen has no interval: {enough:?}");
            assert!(seconds < 32 || enough.len() == 20, "{enough:?}");
        }
    }

    #[test]
    fn a_group_begins_where_those_that_began_leave_time_for_six_processes_of_it() {
        let begun = |processes: usize, each: u64| Schedule {
            processes,
            whole: processes,
            taken: Duration::from_millis(each) * processes as u32,
            planned: SLICE * processes as u32,
            ..Schedule::default()
        };
        let leave = |groups: &[Schedule], ms| leave_time(groups, Duration::from_millis(ms));
        // The first begins in any time; another takes eight processes of 60 ms with its calibration.
        assert!(leave(&[], 0) && leave(&[begun(6, 60)], 480) && !leave(&[begun(6, 60)], 479));
        // Five more of the one that began.
        assert!(leave(&[begun(1, 60)], 780) && !leave(&[begun(1, 60)], 779));
        // Other work has most of the processor. Processes take six times as long, and so would those of another group.
        assert!(leave(&[begun(1, 360)], 4680) && !leave(&[begun(1, 360)], 4679));
        // Half of its processes ended without a round, and so will half of those to come.
        let poor = Schedule { whole: 2, ..begun(4, 60) };
        assert!(leave(std::slice::from_ref(&poor), 1440) && !leave(&[poor], 1439));
        // A group without a running case took nothing.
        assert!(leave(&[Schedule::default()], 480));
        // The machine became busier: the last waits, because otherwise all would end with too few.
        let groups = [begun(4, 60), begun(3, 360), begun(2, 360)];
        let carried = [119, 120, 1199, 1200, 2640].map(|ms| carried(&groups, Duration::from_millis(ms)));
        assert_eq!(carried, [0, 1, 1, 2, 3]);
    }

    #[test]
    fn a_case_that_keeps_nothing_does_not_hold_the_others_up() {
        let mut schedule = schedule(&[(&BASE, 10 * MS), (&OTHER, 1000 * MS)]);
        for _ in 0..2 * ENOUGH_PROCESSES {
            assert_eq!(indices(&schedule, 60).0, [0]);
            run(&mut schedule, &[0]);
            schedule.cases[0].medians.clear();
        }
        assert_eq!(indices(&schedule, 60).0, [1]);
    }

    #[test]
    fn a_fixture_runs_whole_or_not_at_all() {
        let mut schedule = schedule(&[(&BASE, 10 * MS), (&BASE, MS), (&BASE, 30 * MS)]);
        for index in [0, 2] {
            schedule.cases[index].ready.fixture = Some("memory".to_owned());
        }
        schedule.cases[0].ready.setup = Duration::from_millis(50);
        assert_eq!(schedule.need(), Duration::from_millis(91));
        assert_eq!(indices(&schedule, 60).0, [1]);
        // Three batches warm the short one up.
        assert_eq!(indices(&schedule, 93).0, [1]);
        assert_eq!(indices(&schedule, 94).0, [0, 1, 2]);
    }

    #[test]
    fn questions_of_one_experiment_share_a_stride_and_count_once() {
        let mut schedule = schedule(&[(&BASE, 5 * MS), (&BASE, 1), (&BASE, 1)]);
        for index in [0, 1] {
            schedule.cases[index].ready.experiment = Some("fork".to_owned());
        }
        schedule.count_operations();
        assert_eq!(schedule.need().as_millis(), 5);
        let strides: Vec<usize> =
            schedule.running(Duration::from_secs(1)).0.orders.iter().map(|order| order.stride).collect();
        assert_eq!(strides, [8, 8, 1]);
        let iterations: Vec<u64> = schedule.cases.iter().map(|state| state.iterations).collect();
        assert_eq!((iterations[0], iterations[1]), (1, 1));
    }

    #[test]
    fn compared_cases_of_one_magnitude_have_equal_operations_and_no_batch_is_cut_below_a_quarter() {
        let iterations = |costs: [u64; 2]| {
            let mut schedule = schedule(&[(&BASE, costs[0]), (&OTHER, costs[1])]);
            schedule.count_operations();
            [schedule.cases[0].iterations, schedule.cases[1].iterations]
        };
        // A batch is 50 µs.
        assert_eq!(iterations([1_000, 2_500]), [20, 20]);
        assert_eq!(iterations([1_000, 25_000]), [50, 2]);
        assert_eq!(iterations([5, 25_000]), [10_000, 2]);
        // The costs of a handover between two threads: the sleeping lock cut the spinning one's batch from 708 operations to 22.
        let mut handovers = schedule(&[(&BASE, 2_272), (&BASE, 71), (&BASE, 90), (&OTHER, 30)]);
        for (index, most) in [(0, u64::MAX), (1, u64::MAX), (2, u64::MAX), (3, u64::MAX)] {
            (handovers.cases[index].ready.ops, handovers.cases[index].ready.most) = (1, most);
        }
        handovers.count_operations();
        let of_each: Vec<u64> = handovers.cases.iter().map(|state| state.iterations).collect();
        assert_eq!(of_each, [22, 555, 555, 555]);
    }

    #[test]
    fn the_empty_loop_is_no_longer_than_the_longest_loop_of_its_suite() {
        let iterations_beside = |most| {
            let mut schedule = schedule(&[(&BASE, 500), (OWN_BENCHMARKS[0], 1)]);
            schedule.cases[0].ready.most = most;
            schedule.count_operations();
            schedule.cases[1].iterations
        };
        assert_eq!(OWN_BENCHMARKS[0].name, EMPTY_LOOP);
        // Single operations, and batches of 50 µs.
        assert_eq!((iterations_beside(1), iterations_beside(u64::MAX)), (1, 100));
    }

    #[test]
    fn a_long_batch_takes_a_millisecond_of_a_round_on_average() {
        let strides = [0, 999, 1_000, 1_001, 48_000, 10_000_000].map(|us| stride(Duration::from_micros(us)));
        assert_eq!(strides, [1, 1, 1, 2, 64, 1024]);
    }

    #[test]
    fn a_process_without_a_whole_round_is_followed_by_a_longer_one() {
        let mut schedule = schedule(&[(&BASE, MS), (&OTHER, MS)]);
        let plan = Plan::of_processes(3);
        share(std::slice::from_mut(&mut schedule), Duration::MAX, &plan, Duration::ZERO);
        let instance = |ran: Option<Vec<u32>>| InstanceRecord { ran, ..InstanceRecord::default() };
        let lengths = [(0, None), (1, Some(vec![])), (3, Some(vec![0])), (3, None)].map(|(rounds, ran)| {
            let order = schedule.only(&[0, 1]);
            let instances = vec![instance(None), instance(ran)];
            let record = ProcessRecord { rounds, instances, ..ProcessRecord::default() };
            schedule.collect(&order, &record, Ending::Finished, Duration::ZERO);
            schedule.length(&plan).as_millis()
        });
        assert_eq!(lengths, [120, 240, 120, 60]);
    }

    #[test]
    fn a_case_that_has_its_processes_runs_in_no_other() {
        let mut schedule = schedule(&[(&BASE, 10 * MS), (&OTHER, 20 * MS)]);
        let plan = Plan::of_processes(2);
        share(std::slice::from_mut(&mut schedule), Duration::MAX, &plan, Duration::ZERO);
        assert_eq!((schedule.slice(&plan).as_millis(), schedule.progress()), (90, 0.0));
        assert_eq!(indices(&schedule, 90).0, [0, 1]);
        // The other was discarded in one of the two.
        (schedule.cases[0].medians, schedule.cases[1].medians) = (vec![1.0; 2], vec![1.0]);
        schedule.processes = 2;
        schedule.settle(&plan);
        assert!(!schedule.settled);
        assert_eq!(indices(&schedule, 90).0, [1]);
        schedule.cases[1].medians.push(1.0);
        schedule.settle(&plan);
        assert!(schedule.settled);
        // The wait for it is bounded.
        schedule.cases[1].medians.clear();
        schedule.processes = plan.most_processes;
        schedule.settle(&plan);
        assert!(schedule.settled);
    }

    #[test]
    fn short_time_goes_to_the_suites_that_need_little_first() {
        let plan = Plan { least_processes: 8, most_processes: 100, ..Plan::within(Duration::from_secs(10)) };
        let shares = |seconds: u64| {
            let mut groups = [schedule(&[(&BASE, 500 * MS)]), schedule(&[(&BASE, MS)])];
            share(&mut groups, Duration::from_secs(seconds), &plan, Duration::ZERO);
            groups.map(|group| (group.share.as_millis(), group.slice(&plan).as_millis()))
        };
        // Eight processes of 60 ms, and what is left; half of a batch's need, so that cases take turns.
        assert_eq!(shares(2), [(1520, 190), (480, 60)]);
        // Equal parts of the rest, in processes of about three times the need.
        assert_eq!(shares(40), [(21_760, 1500), (18_240, 182)]);
        // A lone benchmark takes its own part, not that of a suite.
        let mut groups = [schedule(&[(&BASE, MS)]), schedule(&[(&BASE, MS); 20])];
        share(&mut groups, Duration::from_secs(90), &plan, Duration::ZERO);
        let [alone, suite] = groups.map(|group| group.share.as_millis());
        assert!(alone * 7 < suite && alone * 9 > suite, "{alone} {suite}");
    }
}
