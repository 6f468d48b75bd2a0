//! A run, from the audition of its arms to its measurements.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tollgate_model::measurement::{
    Case, Measured, Measurement, Outcome, Params, ProcessRounds, Provenance, Unit,
};
use tollgate_model::{Fact, ParamValue, price::Price};

use super::clock::{self, Clock};
use super::cpu;
use super::ending::Ending;
use super::ledger::{ArmState, Cell, Ledger, MAX_ARMS};
use super::own::OWN_PROBES;
use super::plan::{LONGEST_SLICE, Plan, SHORTEST_SLICE};
use super::random::Random;
use super::supervisor::{Isolation, Worker};
use super::worker::{ArmOrder, Find, Task, Until, Work, found_clock, iterations_for};
use crate::probe::Probe;
use crate::selection::{Group, Selection};

/// What came out of a run.
#[derive(Debug, Clone)]
pub struct Findings {
    /// One for every case that was chosen, and the bench's own.
    pub measurements: Vec<Measurement>,
    /// What is to be known of the measuring itself: clock, processor, isolation, seed.
    pub facts: Vec<(String, Fact)>,
}

/// How far a run is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What is being measured.
    pub what: String,
    /// Time since the run began.
    pub elapsed: Duration,
    /// Time that the run may take.
    pub budget: Duration,
}

/// Why there are no findings at all.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// There is no such processor.
    #[error("processor {asked} does not exist here; there are {count}, numbered from 0")]
    NoSuchCpu {
        /// As asked for.
        asked: usize,
        /// Configured processors.
        count: usize,
    },
    /// The processor exists and this process may not use it.
    #[error("processor {asked} is not allowed for this process; allowed are {}", list(.allowed))]
    CpuNotAllowed {
        /// As asked for.
        asked: usize,
        /// What the affinity mask or the cpuset holds.
        allowed: Vec<usize>,
    },
    /// No bench process could be started.
    #[error("no bench process can be started: {0}")]
    NoProcess(#[from] std::io::Error),
    /// The user asked to stop.
    #[error("interrupted; nothing was kept")]
    Interrupted(i32),
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Measures the chosen cases within the plan's budget.
///
/// A case that cannot be measured is skipped or failed with its reason, never missing; the run goes on
/// without it.
///
/// # Errors
/// See [`BenchError`]: only where nothing at all can be measured, or the user stops it.
pub fn measure(
    selection: &Selection,
    plan: &Plan,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Findings, BenchError> {
    let mut session = Session::begin(plan, selection.find, watch)?;
    session.find_clock()?;
    let mut groups: Vec<Contest> = selection.groups.iter().map(Contest::new).collect();
    for group in &mut groups {
        session.audition(group)?;
        group.count_operations();
    }
    session.run_rounds(&mut groups)?;
    let measurements = groups.into_iter().flat_map(|group| group.conclude(session.clock)).collect();
    Ok(Findings { measurements, facts: session.facts })
}

/// What the whole run has in common.
struct Session<'a> {
    plan: &'a Plan,
    watch: &'a mut dyn FnMut(&Progress),
    began: Instant,
    cpu: Option<usize>,
    isolation: Isolation,
    find: Find,
    clock: Clock,
    random: Random,
    facts: Vec<(String, Fact)>,
    /// The parent keeps off the processor that is measured, and goes back where it was.
    elsewhere: Elsewhere,
}

/// The arms of one suite: they share their rounds.
struct Contest {
    suite: &'static str,
    entrants: Vec<Entrant>,
    processes: usize,
    settled: bool,
}

/// A case on its way from a choice to a measurement.
struct Entrant {
    probe: &'static Probe,
    params: Params,
    state: State,
    cost: Duration,
    ops_per_iteration: u64,
    iterations: u64,
    notes: Vec<String>,
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

impl<'a> Session<'a> {
    fn begin(plan: &'a Plan, find: Find, watch: &'a mut dyn FnMut(&Progress)) -> Result<Self, BenchError> {
        let began = Instant::now();
        let allowed = cpu::allowed();
        let cpu = match plan.cpu {
            Some(asked) if !allowed.contains(&asked) => return Err(refuse_cpu(asked, allowed)),
            // Processor 0 serves most interrupts.
            chosen => chosen.or(allowed.last().copied()),
        };
        let seed = Random::seed();
        let isolation = Isolation::here();
        let facts = vec![
            ("run.isolation".to_owned(), Fact::known(isolation.describe(), "fork(2), execveat(2)")),
            ("run.seed".to_owned(), Fact::known(format!("{seed:016x}"), "getrandom(2)")),
            ("run.budget_s".to_owned(), Fact::known(plan.budget.as_secs_f64(), "--time")),
        ];
        Ok(Self {
            plan,
            watch,
            began,
            cpu,
            isolation,
            find,
            clock: Clock::Kernel,
            random: Random::new(seed),
            facts,
            elsewhere: Elsewhere::than(cpu, allowed),
        })
    }

    /// Which clock there is, found out in a child: reading the counter may kill.
    fn find_clock(&mut self) -> Result<(), BenchError> {
        let (ending, worker) = self.run(Work::Clock, self.deadline(), &|_| "the clock".to_owned())?;
        let refused =
            |why: String| (Clock::Kernel, Fact::known("CLOCK_MONOTONIC_RAW", format!("TSC not used: {why}")));
        let (clock, fact) = match (ending, found_clock(&worker.ledger)) {
            (Ending::Finished, Some((clock @ Clock::Tsc { .. }, Some(source), _))) => {
                (clock, Fact::known("tsc", source.describe()))
            }
            (Ending::Finished, Some((_, _, why))) => refused(why),
            (ending, _) => refused(ending.describe(self.plan.stall)),
        };
        self.clock = clock;
        let pinned = match (self.cpu, worker.ledger.pinned()) {
            (Some(cpu), 0) => Fact::known(cpu as i64, "sched_setaffinity(2)"),
            (Some(_), error) => {
                let error = std::io::Error::from_raw_os_error(error);
                Fact::refused(format!("not pinned: sched_setaffinity(2): {error}"))
            }
            (None, _) => Fact::unreadable("not pinned: sched_getaffinity(2) failed"),
        };
        self.facts.push(("run.cpu".to_owned(), pinned));
        self.facts.push(("run.clock".to_owned(), fact));
        self.facts.push(("run.clock_hz".to_owned(), Fact::known(clock.hz() as i64, "run.clock")));
        Ok(())
    }

    /// Tries each arm by itself. One that dies or hangs is written down, and the next process goes on
    /// with the one after it.
    fn audition(&mut self, group: &mut Contest) -> Result<(), BenchError> {
        while group.entrants.iter().any(|entrant| entrant.state == State::Waiting) {
            if self.deadline() <= Instant::now() {
                return Ok(());
            }
            let (which, arms) = group.orders(|entrant| entrant.state == State::Waiting);
            let names: Vec<String> =
                which.iter().map(|&index| group.entrants[index].case().to_string()).collect();
            let what = |ledger: &Ledger| current(ledger, &names);
            let work = Work::Audition { clock: self.clock, arms };
            let (ending, worker) = self.run(work, self.deadline(), &what)?;
            for (arm, &index) in which.iter().enumerate() {
                group.entrants[index].hear(worker.ledger.arm(arm));
            }
            if ending != Ending::Finished {
                // The arm that was on; where none was, the first that is left, so that this ends.
                let culprit =
                    worker.ledger.current_arm().and_then(|arm| which.get(arm)).copied().or_else(|| {
                        which.iter().copied().find(|&index| group.entrants[index].state == State::Waiting)
                    });
                if let Some(index) = culprit {
                    group.entrants[index].blame(ending, self.plan.stall);
                }
            } else if let Some(&index) =
                which.iter().find(|&&index| group.entrants[index].state == State::Waiting)
            {
                group.entrants[index].state = State::Failed("its bench process did not reach it".to_owned());
            }
        }
        Ok(())
    }

    /// One process of each group after the other, until every group is settled or the time is over: so
    /// the processes of a group are spread over the whole run.
    fn run_rounds(&mut self, groups: &mut [Contest]) -> Result<(), BenchError> {
        loop {
            for at in 0..groups.len() {
                if !groups[at].settled {
                    let slice = self.slice(groups, at);
                    self.run_process(&mut groups[at], slice)?;
                    groups[at].settle(self.plan, self.clock);
                }
            }
            let left = self.deadline().saturating_duration_since(Instant::now());
            if groups.iter().all(|group| group.settled) || left < Duration::from_millis(20) {
                return Ok(());
            }
        }
    }

    /// What is left of the time, divided among the processes that are still wanted.
    fn slice(&self, groups: &[Contest], at: usize) -> Duration {
        let left = self.deadline().saturating_duration_since(Instant::now());
        let wanted = |group: &Contest| match group.settled {
            true => 0,
            false => self.plan.least_processes.saturating_sub(group.processes),
        };
        let mine = wanted(&groups[at]).max(1);
        let all: usize = groups.iter().map(wanted).sum::<usize>().max(mine);
        (left / all as u32).min(LONGEST_SLICE)
    }

    fn run_process(&mut self, group: &mut Contest, slice: Duration) -> Result<(), BenchError> {
        let (which, arms) = group.orders(|entrant| entrant.state == State::Running);
        if which.is_empty() {
            group.settled = true;
            return Ok(());
        }
        let names: Vec<String> =
            which.iter().map(|&index| group.entrants[index].case().to_string()).collect();
        let now = clock::monotonic();
        let until = Until {
            deadline: now + slice.as_nanos() as u64,
            precision: self.plan.precision,
            not_before: now + slice.min(SHORTEST_SLICE).as_nanos() as u64,
        };
        let work = Work::Rounds { clock: self.clock, arms, seed: self.random.next(), until };
        // The process ends by itself; the margin is for one whose last block is long.
        let patience = Instant::now() + slice + self.plan.stall.max(Duration::from_millis(200));
        let last = self.deadline() + self.plan.budget / 20;
        let (ending, worker) = self.run(work, patience.min(last), &|ledger| current(ledger, &names))?;
        let ledger = &worker.ledger;
        for (arm, &index) in which.iter().enumerate() {
            group.entrants[index].collect(ledger, arm);
        }
        group.processes += 1;
        if !matches!(ending, Ending::Finished | Ending::OutOfTime)
            && let Some(&index) = ledger.current_arm().and_then(|arm| which.get(arm))
        {
            group.entrants[index].blame(ending, self.plan.stall);
        }
        Ok(())
    }

    /// Runs a bench process to its end.
    fn run(
        &mut self,
        work: Work,
        deadline: Instant,
        what: &dyn Fn(&Ledger) -> String,
    ) -> Result<(Ending, Worker), BenchError> {
        let task = Task { cpu: self.cpu, allowed: self.elsewhere.before.clone(), work };
        let mut worker = Worker::start(&task, &self.isolation, self.find)?;
        let (began, budget) = (self.began, self.plan.budget);
        let ending = worker.watch(self.plan.stall, deadline, |ledger| {
            (self.watch)(&Progress { what: what(ledger), elapsed: began.elapsed(), budget });
        });
        match super::interrupt::requested() {
            Some(signal) => Err(BenchError::Interrupted(signal)),
            None => Ok((ending, worker)),
        }
    }

    /// When the last rounds end: a little before the budget, for what comes after them.
    fn deadline(&self) -> Instant {
        self.began + self.plan.budget.mul_f64(0.97)
    }
}

/// The name of the arm that runs.
fn current(ledger: &Ledger, names: &[String]) -> String {
    ledger.current_arm().and_then(|arm| names.get(arm)).cloned().unwrap_or_default()
}

fn refuse_cpu(asked: usize, allowed: Vec<usize>) -> BenchError {
    // SAFETY: sysconf(3) takes a constant.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    let count = usize::try_from(configured).unwrap_or(0).max(allowed.len());
    if asked >= count {
        BenchError::NoSuchCpu { asked, count }
    } else {
        BenchError::CpuNotAllowed { asked, allowed }
    }
}

/// While it lives, this thread stays off a processor.
struct Elsewhere {
    before: Vec<usize>,
}

impl Elsewhere {
    fn than(cpu: Option<usize>, allowed: Vec<usize>) -> Self {
        let others: Vec<usize> = allowed.iter().copied().filter(|&other| Some(other) != cpu).collect();
        if !others.is_empty() {
            cpu::allow(&others);
        }
        Self { before: allowed }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        cpu::allow(&self.before);
    }
}

impl Contest {
    /// The chosen cases, the bench's own, and the suite's twin where its other half was chosen.
    fn new(group: &Group) -> Self {
        let mut entrants: Vec<Entrant> =
            group.cases.iter().map(|(probe, params)| Entrant::new(probe, params.clone())).collect();
        let chosen = |name: &str| group.cases.iter().any(|(probe, _)| probe.name == name);
        let twin = group.suite.twin.filter(|twin| twin.against.is_some_and(chosen));
        let own = OWN_PROBES.iter().copied().chain(twin);
        // The bench measures itself anew in every group: the name of the group tells them apart.
        let tag = Params::from([("group".to_owned(), ParamValue::Word(group.suite.name.to_owned()))]);
        entrants.extend(own.map(|probe| Entrant::new(probe, tag.clone())));
        entrants.truncate(MAX_ARMS);
        Self { suite: group.suite.name, entrants, processes: 0, settled: false }
    }

    /// What is compared gets the same number of operations: as many as keep the dearest within a block.
    fn count_operations(&mut self) {
        let comparisons: BTreeSet<&str> =
            self.entrants.iter().map(|entrant| entrant.probe.comparison()).collect();
        for comparison in comparisons {
            let compared = || self.entrants.iter().filter(|entrant| entrant.takes_part_in(comparison));
            // The largest batch must fit once; every smaller one divides it.
            let batch = compared().map(|entrant| entrant.ops_per_iteration).max().unwrap_or(1);
            let fitting =
                compared().map(|entrant| iterations_for(entrant.cost) * entrant.ops_per_iteration).min();
            let ops = fitting.unwrap_or(1).next_multiple_of(batch);
            for entrant in self.entrants.iter_mut().filter(|entrant| entrant.takes_part_in(comparison)) {
                entrant.iterations = (ops / entrant.ops_per_iteration).max(1);
            }
        }
    }

    /// The arms of the entrants that `pick` takes, with their places among the entrants.
    fn orders(&self, pick: impl Fn(&Entrant) -> bool) -> (Vec<usize>, Vec<ArmOrder>) {
        let picked = self.entrants.iter().enumerate().filter(|(_, entrant)| pick(entrant));
        picked.map(|(index, entrant)| (index, entrant.order())).unzip()
    }

    /// Settled when every interval is narrow, or when there were enough processes.
    fn settle(&mut self, plan: &Plan, clock: Clock) {
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

    fn conclude(self, clock: Clock) -> Vec<Measurement> {
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
            cost: Duration::ZERO,
            ops_per_iteration: 1,
            iterations: 1,
            notes: Vec::new(),
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

    fn order(&self) -> ArmOrder {
        ArmOrder {
            probe: self.probe.name.to_owned(),
            params: self.params.clone(),
            iterations: self.iterations,
            extra: slow_down::extra(self.probe.name, self.iterations),
            decides: self.decides(),
        }
    }

    /// Takes note of how the audition went.
    fn hear(&mut self, state: ArmState) {
        match state {
            ArmState::Untried => {}
            ArmState::Ready { cost, ops, notes } => {
                self.cost = cost;
                self.ops_per_iteration = ops;
                self.notes = notes.lines().map(str::to_owned).collect();
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

    /// Takes over what one process recorded of this arm.
    fn collect(&mut self, ledger: &Ledger, arm: usize) {
        match ledger.arm(arm) {
            ArmState::Skipped(why) | ArmState::Failed(why) => self.state = State::Failed(why),
            ArmState::Untried | ArmState::Ready { .. } => {}
        }
        let rounds = ledger.rounds();
        let mut dropped = Vec::new();
        for round in 0..rounds {
            match ledger.cell(round, arm) {
                Cell::Kept(ticks) => self.blocks.push(ticks),
                Cell::Dropped | Cell::Empty => dropped.push(round as u32),
            }
        }
        if rounds > 0 {
            self.processes.push(ProcessRounds { rounds: rounds as u32, dropped });
        }
    }

    fn measured(&self, suite: &str, clock: Clock) -> Option<Measured> {
        let ops_per_sample = self.iterations * self.ops_per_iteration;
        let per_op = |ticks: &i64| clock.nanoseconds(*ticks as f64) / ops_per_sample as f64;
        let measured = Measured {
            unit: Unit::Nanoseconds,
            provenance: Provenance::Hardware,
            ops_per_sample,
            clock_hz: clock.hz(),
            samples: self.blocks.iter().map(per_op).collect(),
            dropped: self.processes.iter().map(|process| process.dropped.len() as u64).sum(),
            processes: self.processes.clone(),
            group: suite.to_owned(),
            against: self.probe.against.map(Case::plain),
            notes: self.notes.clone(),
        };
        (!measured.samples.is_empty()).then_some(measured)
    }

    fn conclude(self, suite: &str, clock: Clock) -> Measurement {
        let outcome = match &self.state {
            State::Skipped(why) => Outcome::Skipped { why: why.clone() },
            State::Failed(error) => Outcome::Failed { error: error.clone() },
            State::Waiting => {
                Outcome::Failed { error: "the run's time was over before it was tried".to_owned() }
            }
            State::Running => match self.measured(suite, clock) {
                Some(measured) => Outcome::Measured(measured),
                None => Outcome::Failed { error: self.why_no_samples() },
            },
        };
        Measurement { case: self.case(), outcome }
    }

    fn why_no_samples(&self) -> String {
        let rounds: u64 = self.processes.iter().map(|process| u64::from(process.rounds)).sum();
        match rounds {
            0 => "the run's time was over before one whole round".to_owned(),
            rounds => format!("in each of {rounds} rounds the thread was switched out or moved"),
        }
    }
}

/// Tests slow a probe down to see whether the verdict finds it; a release cannot.
#[cfg(feature = "test-hooks")]
mod slow_down {
    /// `TOLLGATE_TEST_SLOW=probe=factor[,probe=factor]`: iterations beyond those that are counted.
    pub(super) fn extra(probe: &str, iterations: u64) -> u64 {
        let Ok(orders) = std::env::var("TOLLGATE_TEST_SLOW") else { return 0 };
        let factor =
            orders.split(',').filter_map(|order| order.split_once('=')).find(|(name, _)| *name == probe);
        let factor: f64 = factor.and_then(|(_, factor)| factor.parse().ok()).unwrap_or(1.0);
        (iterations as f64 * (factor - 1.0)).round().max(0.0) as u64
    }
}

#[cfg(not(feature = "test-hooks"))]
mod slow_down {
    pub(super) fn extra(_probe: &str, _iterations: u64) -> u64 {
        0
    }
}
