//! A contest: the arms of one suite on their way from a choice to measurements.

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_model::measurement::{
    Case, Counted, Measured, Measurement, Outcome, Params, ProcessRounds, Provenance, Tally, Unit,
};
use tollgate_model::{ParamValue, price::Price};

use super::clock::Clock;
use super::ending::Ending;
use super::ledger::{ArmState, Cell, Events, Ledger, Readiness};
use super::own::OWN_PROBES;
use super::plan::Plan;
use super::worker::{ArmOrder, iterations_for};
use crate::probe::Probe;
use crate::selection::Group;

/// The arms of one suite: they share their rounds.
pub(super) struct Contest {
    suite: &'static str,
    entrants: Vec<Entrant>,
    pub processes: usize,
    pub settled: bool,
}

/// A case on its way from a choice to a measurement.
struct Entrant {
    probe: &'static Probe,
    params: Params,
    state: State,
    ready: Readiness,
    iterations: u64,
    events: Events,
    /// Net ticks of the kept blocks, process by process.
    blocks: Vec<i64>,
    processes: Vec<ProcessRounds>,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Waiting,
    Running,
    Skipped(String),
    Failed(String),
}

/// Some of a contest's arms, as one process gets them.
pub(super) struct Lineup {
    /// Their places among the entrants.
    places: Vec<usize>,
    pub orders: Vec<ArmOrder>,
    names: Vec<String>,
}

impl Lineup {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The name of the arm that runs.
    pub fn on_now(&self, ledger: &Ledger) -> String {
        ledger.current_arm().and_then(|arm| self.names.get(arm)).cloned().unwrap_or_default()
    }

    fn place_now(&self, ledger: &Ledger) -> Option<usize> {
        self.places.get(ledger.current_arm()?).copied()
    }
}

impl Contest {
    /// The chosen cases, the bench's own, and the suite's twin where its other half was chosen.
    pub fn new(group: &Group) -> Self {
        let mut entrants: Vec<Entrant> =
            group.cases.iter().map(|(probe, params)| Entrant::new(probe, params.clone())).collect();
        let chosen = |name: &str| group.cases.iter().any(|(probe, _)| probe.name == name);
        let twin = group.suite.twin.filter(|twin| twin.against.is_some_and(chosen));
        let own = OWN_PROBES.iter().copied().chain(twin);
        // The bench measures itself anew in every group: the name of the group tells them apart.
        let tag = Params::from([("group".to_owned(), ParamValue::Word(group.suite.name.to_owned()))]);
        entrants.extend(own.map(|probe| Entrant::new(probe, tag.clone())));
        Self { suite: group.suite.name, entrants, processes: 0, settled: false }
    }

    /// What is compared gets the same number of operations: as many as keep the dearest within a block. One
    /// that would then be over before it can be timed gets as many as fill a block of its own.
    pub fn count_operations(&mut self) {
        let comparisons: BTreeSet<&str> =
            self.entrants.iter().map(|entrant| entrant.probe.comparison()).collect();
        for comparison in comparisons {
            let compared = || self.entrants.iter().filter(|entrant| entrant.takes_part_in(comparison));
            // The largest batch must fit once; every smaller one divides it.
            let batch = compared().map(|entrant| entrant.ready.ops).max().unwrap_or(1);
            let fitting = compared().map(|entrant| entrant.iterations_alone() * entrant.ready.ops).min();
            let ops = fitting.unwrap_or(1).next_multiple_of(batch);
            for entrant in self.entrants.iter_mut().filter(|entrant| entrant.takes_part_in(comparison)) {
                entrant.iterations = entrant.iterations_for_operations(ops);
            }
        }
        // Those who ask one experiment must ask for the same, or it is done for each of them.
        for experiment in self.experiments(&self.places(&State::Running)) {
            let iterations =
                experiment.iter().map(|&place| self.entrants[place].iterations).min().unwrap_or(1);
            experiment.iter().for_each(|&place| self.entrants[place].iterations = iterations);
        }
    }

    /// The places divided into experiments: those that ask one are together, every other is alone.
    fn experiments(&self, places: &[usize]) -> Vec<Vec<usize>> {
        gather(places.iter().map(|&place| vec![place]).collect(), |place| {
            self.entrants[place].ready.experiment
        })
    }

    /// The experiments of what is running, divided by what they need to be there: they are run in a process
    /// together, or not.
    fn stages(&self) -> Vec<Vec<usize>> {
        let experiments = self.experiments(&self.places(&State::Running));
        gather(experiments, |place| self.entrants[place].ready.stage)
    }

    /// Time of an experiment's block with all that it does untimed. Who asked first has seen what it takes.
    fn block(&self, experiment: &[usize]) -> Duration {
        experiment.iter().map(|&place| self.entrants[place].block()).max().unwrap_or_default()
    }

    /// Time that a process needs to set a stage and to do each of its experiments once.
    fn need_of(&self, stage: &[usize]) -> Duration {
        let setup: Duration = stage.iter().map(|&place| self.entrants[place].ready.setup).sum();
        setup + self.experiments(stage).iter().map(|experiment| self.block(experiment)).sum::<Duration>()
    }

    /// The arms that nobody has tried yet.
    pub fn waiting(&self) -> Lineup {
        self.lineup(self.places(&State::Waiting).into_iter().map(|place| (place, 1)).collect())
    }

    /// The arms of one process that takes about so long, and the time that it should get: everything where
    /// that fits; else those that had the fewest processes come first, and of them the cheapest.
    pub fn running(&self, slice: Duration) -> (Lineup, Duration) {
        let mut stages = self.stages();
        let turns = |stage: &[usize]| stage.iter().map(|&place| self.entrants[place].turns()).min();
        tollgate_model::sort::by_key(&mut stages, |stage| (turns(stage), self.need_of(stage)));
        let mut needed = Duration::ZERO;
        // The first is in, whatever it takes: it would never have its turn else.
        let room = stages.first().map_or(slice, |first| slice.max(self.need_of(first)));
        stages.retain(|stage| {
            let need = self.need_of(stage);
            let fits = needed + need <= room;
            needed += if fits { need } else { Duration::ZERO };
            fits
        });
        let mut due: Vec<(usize, usize)> = Vec::new();
        for experiment in stages.iter().flat_map(|stage| self.experiments(stage)) {
            let stride = stride(self.block(&experiment));
            due.extend(experiment.iter().map(|&place| (place, stride)));
        }
        due.sort_unstable();
        (self.lineup(due), room)
    }

    /// Time that one process needs to give every arm one block.
    pub fn need(&self) -> Duration {
        self.stages().iter().map(|stage| self.need_of(stage)).sum()
    }

    fn places(&self, state: &State) -> Vec<usize> {
        (0..self.entrants.len()).filter(|&place| self.entrants[place].state == *state).collect()
    }

    /// Some entrants, each with its stride.
    fn lineup(&self, due: Vec<(usize, usize)>) -> Lineup {
        let orders = due.iter().map(|&(place, stride)| self.entrants[place].order(stride)).collect();
        let names = due.iter().map(|&(place, _)| self.entrants[place].case().to_string()).collect();
        Lineup { places: due.into_iter().map(|(place, _)| place).collect(), orders, names }
    }

    /// Takes note of how an audition went. Afterwards at least one arm less is waiting.
    pub fn hear(&mut self, lineup: &Lineup, ledger: &Ledger, ending: Ending, stall: Duration) {
        for (arm, &place) in lineup.places.iter().enumerate() {
            self.entrants[place].hear(ledger.arm(arm));
        }
        let first_waiting =
            || lineup.places.iter().copied().find(|&place| self.entrants[place].state == State::Waiting);
        if ending != Ending::Finished {
            // Where no arm was on, the first that is left takes the blame, so that this comes to an end.
            if let Some(culprit) = lineup.place_now(ledger).or_else(first_waiting) {
                self.entrants[culprit].blame(ending, stall);
            }
        } else if let Some(place) = first_waiting() {
            self.entrants[place].state = State::Failed("its bench process did not reach it".to_owned());
        }
    }

    /// Takes over what one process of rounds recorded, however it ended.
    pub fn collect(&mut self, lineup: &Lineup, ledger: &Ledger, ending: Ending, stall: Duration) {
        for (place, entrant) in self.entrants.iter_mut().enumerate() {
            entrant.collect(ledger, lineup.places.iter().position(|&other| other == place));
        }
        self.processes += 1;
        // A process whose time is over is nobody's fault.
        if !matches!(ending, Ending::Finished | Ending::OutOfTime)
            && let Some(culprit) = lineup.place_now(ledger)
        {
            self.entrants[culprit].blame(ending, stall);
        }
    }

    /// Processes that ended without one whole round.
    pub fn fruitless(&self) -> usize {
        let fruitful = self.entrants.iter().map(|entrant| entrant.processes.len()).max().unwrap_or(0);
        self.processes.saturating_sub(fruitful)
    }

    /// Settled when every interval is narrow, or when there were enough processes.
    pub fn settle(&mut self, plan: &Plan, clock: Clock) {
        if self.processes < plan.least_processes {
            return;
        }
        let narrow = |entrant: &Entrant| {
            entrant.state != State::Running
                || !entrant.decides()
                || entrant
                    .measured(self.suite, clock)
                    .and_then(|measured| Price::of(&measured))
                    .is_some_and(|price| price.relative_half_width() <= plan.precision)
        };
        self.settled = self.processes >= plan.most_processes || self.entrants.iter().all(narrow);
    }

    pub fn conclude(self, clock: Clock) -> Vec<Measurement> {
        let suite = self.suite;
        self.entrants.into_iter().map(|entrant| entrant.conclude(suite, clock)).collect()
    }
}

impl Entrant {
    fn new(probe: &'static Probe, params: Params) -> Self {
        Self {
            probe,
            params,
            state: State::Waiting,
            ready: Readiness { ops: 1, most: 1, ..Readiness::default() },
            iterations: 1,
            events: Events::default(),
            blocks: Vec::new(),
            processes: Vec::new(),
        }
    }

    fn case(&self) -> Case {
        self.probe.case(self.params.clone())
    }

    fn takes_part_in(&self, comparison: &str) -> bool {
        self.state == State::Running && self.probe.comparison() == comparison
    }

    /// Whether its interval counts when it is decided that the rounds have been enough: prices do, the
    /// bench's own measurements do not.
    fn decides(&self) -> bool {
        self.probe.suite() != "bench"
    }

    /// Iterations that fill a block.
    fn iterations_alone(&self) -> u64 {
        iterations_for(self.ready.cost).min(self.ready.most)
    }

    fn iterations_for_operations(&self, ops: u64) -> u64 {
        /// A block that is so many times shorter than it should be is mostly the clock.
        const TOO_SHORT: u64 = 32;
        let shared = (ops / self.ready.ops).max(1);
        if shared * TOO_SHORT < self.iterations_alone() {
            self.iterations_alone()
        } else {
            shared.min(self.ready.most)
        }
    }

    /// Time of one block with all that it does untimed.
    fn block(&self) -> Duration {
        self.ready.whole.saturating_mul(u32::try_from(self.iterations).unwrap_or(u32::MAX))
    }

    /// Processes in which it had a block, kept or not.
    fn turns(&self) -> usize {
        self.processes.iter().filter(|process| process.ran.as_ref().is_none_or(|ran| !ran.is_empty())).count()
    }

    fn order(&self, stride: usize) -> ArmOrder {
        ArmOrder {
            probe: self.probe.name.to_owned(),
            params: self.params.clone(),
            ops: self.ready.ops,
            iterations: self.iterations,
            extra: slow_down::extra(self.probe, self.iterations),
            decides: self.decides(),
            stride,
        }
    }

    /// Takes note of how the audition went.
    fn hear(&mut self, state: ArmState) {
        match state {
            ArmState::Untried => {}
            ArmState::Ready(ready) => {
                self.ready = *ready;
                self.state = State::Running;
            }
            ArmState::Skipped(why) => self.state = State::Skipped(why),
            ArmState::Failed(error) => self.state = State::Failed(error),
        }
    }

    /// Its process ended while this arm was on.
    fn blame(&mut self, ending: Ending, stall: Duration) {
        let absence = match ending {
            Ending::Killed(signal) => (self.probe.absence)(signal),
            _ => None,
        };
        self.state = match absence {
            Some(why) => State::Skipped(why.to_owned()),
            None => State::Failed(ending.describe(stall)),
        };
    }

    /// Takes over what one process recorded of this arm, if it was one of those that ran there.
    fn collect(&mut self, ledger: &Ledger, arm: Option<usize>) {
        match arm.map(|arm| ledger.arm(arm)) {
            // Tried alone it had what it needs; beside the others there is not enough of it.
            Some(ArmState::Skipped(why)) if self.blocks.is_empty() => self.state = State::Skipped(why),
            Some(ArmState::Skipped(why) | ArmState::Failed(why)) => self.state = State::Failed(why),
            Some(ArmState::Untried | ArmState::Ready(_)) | None => {}
        }
        let rounds = ledger.rounds_recorded();
        let (mut ran, mut dropped) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            match arm.map_or(Cell::Empty, |arm| ledger.cell(round, arm)) {
                Cell::Empty => continue,
                Cell::Kept(ticks) => self.blocks.push(ticks),
                Cell::Dropped => dropped.push(round as u32),
            }
            ran.push(round as u32);
        }
        let events = arm.map_or(Events::default(), |arm| ledger.events(arm));
        for (sum, number) in self.events.iter_mut().zip(events) {
            *sum = sum.saturating_add(number);
        }
        if rounds > 0 {
            let ran = (ran.len() < rounds).then_some(ran);
            self.processes.push(ProcessRounds { rounds: rounds as u32, ran, dropped });
        }
    }

    fn measured(&self, suite: &str, clock: Clock) -> Option<Measured> {
        let ops_per_sample = self.iterations * self.ready.ops;
        // What one tick of a block is in the probe's unit; an amount is in that unit already.
        let unit = self.probe.unit;
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
            samples: self.blocks.iter().map(per_op).collect(),
            dropped: self.processes.iter().map(|process| process.dropped.len() as u64).sum(),
            processes: self.processes.clone(),
            counted: self.counted(ops_per_sample),
            tallies: self.tallies(),
            bytes_per_op: (self.probe.bytes)(&self.params),
            group: suite.to_owned(),
            against: self.probe.held_against(&self.params),
            notes: self.ready.notes.lines().map(str::to_owned).collect(),
            traced: Vec::new(),
        };
        (!measured.samples.is_empty()).then_some(measured)
    }

    fn counted(&self, ops_per_sample: u64) -> Option<Counted> {
        let operations = self.blocks.len() as u64 * ops_per_sample;
        let events = self.events[0];
        match (self.probe.counts, self.probe.share) {
            (Some(what), _) => Some(Counted { what: what.to_owned(), events, operations, is_share: false }),
            (None, Some(share)) => {
                let operations = self.blocks.len() as u64 * (ops_per_sample / share.one_of.max(1));
                Some(Counted { what: share.what.to_owned(), events, operations, is_share: true })
            }
            (None, None) => None,
        }
    }

    fn tallies(&self) -> Vec<Tally> {
        let numbers = self.probe.tallies.iter().zip(&self.events[1..]);
        numbers.map(|(what, &number)| Tally { what: (*what).to_owned(), number }).collect()
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
        let dropped: usize = self.processes.iter().map(|process| process.dropped.len()).sum();
        match dropped {
            0 => "the run's time was over before it had a round".to_owned(),
            blocks => {
                format!("each of {blocks} blocks was disturbed: other work had the processor meanwhile")
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

/// In every how manyth round a block of such a length is due: a round of all arms should not last so long that the
/// machine is another one at its end.
fn stride(block: Duration) -> usize {
    const DUE_IN_EACH: Duration = Duration::from_millis(1);
    const MOST: u128 = 1 << 10;
    let times = block.as_nanos().div_ceil(DUE_IN_EACH.as_nanos()).clamp(1, MOST);
    (times as usize).next_power_of_two()
}

/// A power of ten that keeps every tick apart from the next: digits beyond it would be none of the
/// clock's, and twice the length of a document.
fn digits_of(tick: f64) -> f64 {
    10_f64.powi((1.0 - tick.log10()).ceil().clamp(0.0, 15.0) as i32)
}

/// Tests slow a probe down to see whether the verdict finds it; a release cannot.
#[cfg(feature = "test-hooks")]
mod slow_down {
    use crate::probe::Probe;

    /// `TOLLGATE_TEST_SLOW=probe=factor[,probe=factor]`: iterations beyond those that are counted. A twin
    /// is as slow as its other half, or it would be no twin.
    pub(super) fn extra(probe: &Probe, iterations: u64) -> u64 {
        let Ok(orders) = std::env::var("TOLLGATE_TEST_SLOW") else { return 0 };
        let slowed = if probe.suite() == "bench" { probe.comparison() } else { probe.name };
        let factor =
            orders.split(',').filter_map(|order| order.split_once('=')).find(|(name, _)| *name == slowed);
        let factor: f64 = factor.and_then(|(_, factor)| factor.parse().ok()).unwrap_or(1.0);
        (iterations as f64 * (factor - 1.0)).round().max(0.0) as u64
    }
}

#[cfg(not(feature = "test-hooks"))]
mod slow_down {
    use crate::probe::Probe;

    pub(super) fn extra(_probe: &Probe, _iterations: u64) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::PLAIN;

    static CHEAP: Probe = Probe { name: "some/cheap", ..PLAIN };
    static DEAR: Probe = Probe { name: "some/dear", against: Some("some/cheap"), ..PLAIN };

    /// Arms that are ready: of a probe, with a cost of so many nanoseconds an iteration, 10 operations in each.
    fn contest(arms: &[(&'static Probe, u64)]) -> Contest {
        let entrant = |&(probe, cost): &(&'static Probe, u64)| {
            let cost = Duration::from_nanos(cost);
            let ready = Readiness { cost, whole: cost, ops: 10, most: u64::MAX, ..Readiness::default() };
            Entrant { state: State::Running, ready, ..Entrant::new(probe, Params::new()) }
        };
        let entrants = arms.iter().map(entrant).collect();
        Contest { suite: "some", entrants, processes: 0, settled: false }
    }

    const MS: u64 = 1_000_000;

    fn places(contest: &Contest, slice: u64) -> (Vec<usize>, Duration) {
        let (lineup, time) = contest.running(Duration::from_millis(slice));
        (lineup.places, time)
    }

    #[test]
    fn what_does_not_fit_waits_for_its_turn_and_then_has_it() {
        let mut contest = contest(&[(&CHEAP, 1000 * MS), (&CHEAP, 10 * MS), (&CHEAP, 100 * MS)]);
        assert_eq!(contest.need(), Duration::from_millis(1110));
        assert_eq!(places(&contest, 2000).0, [0, 1, 2]);
        assert_eq!(places(&contest, 150), (vec![1, 2], Duration::from_millis(150)));
        for place in [1, 2] {
            contest.entrants[place].processes.push(ProcessRounds { rounds: 3, ran: None, dropped: vec![] });
        }
        contest.entrants[0].processes.push(ProcessRounds { rounds: 3, ran: Some(vec![]), dropped: vec![] });
        // It gets the time that it takes, and nobody else fits beside it.
        assert_eq!(places(&contest, 150), (vec![0], Duration::from_millis(1000)));
    }

    #[test]
    fn a_stage_is_set_whole_or_not_at_all() {
        let mut contest = contest(&[(&CHEAP, 10 * MS), (&CHEAP, MS), (&CHEAP, 30 * MS)]);
        for place in [0, 2] {
            contest.entrants[place].ready.stage = 7;
        }
        contest.entrants[0].ready.setup = Duration::from_millis(50);
        assert_eq!(contest.need(), Duration::from_millis(91));
        assert_eq!(places(&contest, 60).0, [1]);
        assert_eq!(places(&contest, 91).0, [0, 1, 2]);
    }

    #[test]
    fn questions_of_one_experiment_are_due_together_and_cost_once() {
        let mut contest = contest(&[(&CHEAP, 5 * MS), (&CHEAP, 1), (&CHEAP, 1)]);
        for place in [0, 1] {
            contest.entrants[place].ready.experiment = 9;
        }
        contest.count_operations();
        assert_eq!(contest.need().as_millis(), 5);
        let strides: Vec<usize> =
            contest.running(Duration::from_secs(1)).0.orders.iter().map(|order| order.stride).collect();
        assert_eq!(strides, [8, 8, 1]);
        let iterations: Vec<u64> = contest.entrants.iter().map(|entrant| entrant.iterations).collect();
        assert_eq!((iterations[0], iterations[1]), (1, 1));
    }

    #[test]
    fn what_is_compared_has_as_many_operations_unless_a_block_of_them_would_be_too_short() {
        let iterations = |costs: [u64; 2]| {
            let mut contest = contest(&[(&CHEAP, costs[0]), (&DEAR, costs[1])]);
            contest.count_operations();
            [contest.entrants[0].iterations, contest.entrants[1].iterations]
        };
        // 50 µs are a block.
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
