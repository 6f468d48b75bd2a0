//! A run, from the calibration of its instances to its measurements.

use std::time::{Duration, Instant};

use tollgate_model::text::{plainly, said_by};
use tollgate_model::{Fact, Measurement};
use tollgate_os::children::Inherited;

use super::clock::{self, Clock};
use super::cpu;
use super::ending::Ending;
use super::group;
use super::plan::{LEAST_SLICE, LONGEST_SLICE, Plan, SHORTEST_SLICE};
use super::random::Random;
use super::schedule::Schedule;
use super::shared::SharedResults;
use super::supervisor::{Guardian, Isolation, Worker};
use super::worker::{Find, Task, Until, Work, found_clock};
use crate::benchmark::Means;
use crate::selection::{Group, Selection};

/// What came out of a run.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// One for every case that was chosen, and the bench's own.
    pub measurements: Vec<Measurement>,
    /// What is to be known of the measuring itself: clock, processor, isolation, seed.
    pub facts: Vec<(String, Fact)>,
}

impl Findings {
    fn append(&mut self, other: Self) {
        self.measurements.extend(other.measurements);
        self.facts.extend(other.facts);
    }
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
    #[error("no bench process can be started: {}", said_by("process", .0))]
    NoProcess(#[from] std::io::Error),
    /// The user asked to stop.
    #[error("interrupted; nothing was kept")]
    Interrupted(i32),
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// What part of the time that is left the calibrates may take. They take a tenth of it, but where processors are
/// short or instances hang.
const AUDITIONS: f64 = 0.5;
/// What part of the budget is left to the rounds, whatever becomes of the calibrates.
const ROUNDS: f64 = 0.35;
/// What part of the budget is over when the last of it ends: the rest is for what comes after.
const BEFORE_THE_END: f64 = 0.97;

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
    let began = Instant::now();
    let inherited = Inherited::now();
    let (rounds, commands): (Vec<&Group>, Vec<&Group>) =
        selection.groups.iter().partition(|group| group.usual_time().is_none());
    let seed = Random::seed();
    let mut findings = Findings {
        measurements: Vec::new(),
        facts: vec![
            ("run.seed".to_owned(), Fact::known(format!("{seed:016x}"), "getrandom(2)")),
            ("run.budget_s".to_owned(), Fact::known(plan.budget.as_secs_f64(), "--time")),
        ],
    };
    // Commands take what the rounds leave: in proportion to what either gets where nobody says how much.
    let usual = selection.usual_time().as_secs_f64();
    let of_commands: Duration = commands.iter().filter_map(|group| group.usual_time()).sum();
    let of_commands = of_commands.as_secs_f64() / usual;
    if !rounds.is_empty() {
        let plan = Plan { budget: plan.budget.mul_f64(1.0 - of_commands), ..plan.clone() };
        findings.append(measure_rounds(&rounds, selection.find, &plan, seed, watch)?);
    }
    let last = began + plan.budget.mul_f64(BEFORE_THE_END);
    let _guardian = Guardian::begin();
    for (at, group) in commands.iter().enumerate() {
        let Means::Commands(means) = group.suite.means else { continue };
        let left = last.saturating_duration_since(Instant::now());
        let deadline = Instant::now() + left / (commands.len() - at) as u32;
        let measured = (means.measure)(&group.cases, &mut RunContext { plan, began, deadline, seed, watch });
        group::end_strays(&inherited);
        findings.append(measured?);
    }
    Ok(findings)
}

/// The cases that are measured in rounds.
fn measure_rounds(
    groups: &[&Group],
    find: Find,
    plan: &Plan,
    seed: u64,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Findings, BenchError> {
    let mut course = Course::begin(plan, find, seed, watch)?;
    course.find_clock()?;
    let mut groups: Vec<Schedule> = groups.iter().map(|group| Schedule::new(group)).collect();
    let number = groups.len();
    for (at, group) in groups.iter_mut().enumerate() {
        course.calibration(group, number - at)?;
        group.count_operations();
    }
    course.run_rounds(&mut groups)?;
    let measurements = groups.into_iter().flat_map(|group| group.conclude(course.clock)).collect();
    Ok(Findings { measurements, facts: course.facts })
}

/// What whole commands are measured with, see [`Means::Commands`].
pub struct RunContext<'a> {
    /// How long, where, and how often.
    pub plan: &'a Plan,
    /// When the whole run began.
    pub began: Instant,
    /// When the last command ends.
    pub deadline: Instant,
    /// Of the random order.
    pub seed: u64,
    /// Is told how far the run is.
    pub watch: &'a mut dyn FnMut(&Progress),
}

impl RunContext<'_> {
    /// Says what is done now.
    pub fn say(&mut self, what: &str) {
        let (elapsed, budget) = (self.began.elapsed(), self.plan.budget);
        (self.watch)(&Progress { what: what.to_owned(), elapsed, budget });
    }

    /// Time until the last command ends.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// What the whole run has in common.
struct Course<'a> {
    plan: &'a Plan,
    watch: &'a mut dyn FnMut(&Progress),
    began: Instant,
    cpu: Option<usize>,
    isolation: Isolation,
    find: Find,
    clock: Clock,
    /// Time that a process takes until it can do anything, at the most.
    start_up: Duration,
    random: Random,
    facts: Vec<(String, Fact)>,
    /// The parent keeps off the processor that is measured, and goes back where it was.
    elsewhere: Elsewhere,
    _guardian: Guardian,
}

impl<'a> Course<'a> {
    fn begin(
        plan: &'a Plan,
        find: Find,
        seed: u64,
        watch: &'a mut dyn FnMut(&Progress),
    ) -> Result<Self, BenchError> {
        let began = Instant::now();
        let allowed = cpu::allowed();
        let cpu = match plan.cpu {
            Some(asked) if !allowed.contains(&asked) => return Err(refuse_cpu(asked, allowed)),
            chosen => chosen.or_else(|| cpu::usual(&allowed)),
        };
        let isolation = Isolation::here();
        let facts =
            vec![("run.isolation".to_owned(), Fact::known(isolation.describe(), "fork(2), execveat(2)"))];
        Ok(Self {
            plan,
            watch,
            began,
            cpu,
            isolation,
            find,
            clock: Clock::Kernel,
            start_up: Duration::ZERO,
            random: Random::new(seed),
            facts,
            elsewhere: Elsewhere::than(cpu, allowed),
            _guardian: Guardian::begin(),
        })
    }

    /// Which clock there is, found out in a child: reading the counter may kill.
    fn find_clock(&mut self) -> Result<(), BenchError> {
        let began = Instant::now();
        let mut found = self.run(Work::Clock, self.deadline(), &|_| "the clock".to_owned())?;
        // On a machine short of processors it may have had no turn: it gets a second chance.
        if found.0 == Ending::Stalled {
            found = self.run(Work::Clock, self.deadline(), &|_| "the clock".to_owned())?;
        }
        let (ending, worker) = found;
        self.start_up = began.elapsed();
        let refused =
            |why: String| (Clock::Kernel, Fact::known("CLOCK_MONOTONIC_RAW", format!("TSC not used: {why}")));
        let (clock, fact) = match (ending, found_clock(&worker.shared)) {
            (Ending::Finished, Some((clock @ Clock::Tsc { .. }, Some(source), _))) => {
                (clock, Fact::known("tsc", source.describe()))
            }
            (Ending::Finished, Some((_, _, why))) => refused(why),
            (ending, _) => refused(ending.describe(self.plan.stall)),
        };
        self.clock = clock;
        let pinned = match (self.cpu, worker.shared.pinned()) {
            (Some(cpu), 0) => Fact::known(cpu as i64, "sched_setaffinity(2)"),
            (Some(_), error) => {
                let error = std::io::Error::from_raw_os_error(error);
                Fact::refused(format!("not pinned: sched_setaffinity(2): {}", plainly(&error)))
            }
            (None, _) => Fact::unreadable("not pinned: sched_getaffinity(2) failed"),
        };
        self.facts.push(("run.cpu".to_owned(), pinned));
        self.facts.push(("run.clock".to_owned(), fact));
        self.facts.push(("run.clock_hz".to_owned(), Fact::known(clock.hz() as i64, "run.clock")));
        Ok(())
    }

    /// Tries each instance by itself. One that dies, hangs or takes too long is written down, and the next process
    /// goes on with the one after it, in a part of what time is left then: instances that hang may not take what the
    /// others need. `groups` are still to be tried, this one included.
    fn calibration(&mut self, group: &mut Schedule, groups: usize) -> Result<(), BenchError> {
        let enough_for_rounds = self.plan.budget.mul_f64(ROUNDS);
        loop {
            let batch_order = group.waiting();
            if batch_order.is_empty() || self.left() < enough_for_rounds {
                return Ok(());
            }
            let share = self.left().mul_f64(AUDITIONS) / groups as u32;
            let deadline = clock::monotonic() + share.as_nanos() as u64;
            let work =
                Work::Calibration { clock: self.clock, instances: batch_order.orders.clone(), deadline };
            let last = Instant::now() + share;
            let (ending, worker) = self.run(work, last, &|shared| batch_order.on_now(shared))?;
            group.hear(&batch_order, &worker.shared, ending, self.plan.stall);
        }
    }

    /// One process of each group after the other, until every group is settled or the time is over: so
    /// the processes of a group are spread over the whole run.
    fn run_rounds(&mut self, groups: &mut [Schedule]) -> Result<(), BenchError> {
        loop {
            for at in 0..groups.len() {
                if !groups[at].settled {
                    let slice = self.slice(groups, at);
                    self.run_process(&mut groups[at], slice)?;
                    groups[at].settle(self.plan, self.clock);
                }
            }
            let left = self.left();
            if groups.iter().all(|group| group.settled) || left < Duration::from_millis(20) {
                return Ok(());
            }
        }
    }

    /// What is left of the time, divided among the processes that are still wanted: to each what it needs to give
    /// every instance one batch, and of the rest the same. Where there is less than is needed each gets less; but a
    /// group's first process gets what it needs as far as the others' first ones are left as much.
    fn slice(&self, groups: &[Schedule], at: usize) -> Duration {
        let left = self.left();
        let wanted = |group: &Schedule| match group.settled {
            true => 0,
            false => self.plan.least_processes.saturating_sub(group.processes),
        };
        let need = |group: &Schedule| group.need().max(LEAST_SLICE);
        let own = need(&groups[at]);
        let mine = wanted(&groups[at]).max(1);
        let others = || (0..groups.len()).filter(|&other| other != at).map(|other| &groups[other]);
        let processes = mine + others().map(wanted).sum::<usize>();
        let needs =
            own * mine as u32 + others().map(|group| need(group) * wanted(group) as u32).sum::<Duration>();
        let mut share = match left.checked_sub(needs) {
            Some(rest) => own + rest / processes as u32,
            None => own.mul_f64(left.as_secs_f64() / needs.as_secs_f64()),
        };
        let has_nothing = |group: &Schedule| !group.settled && group.processes == group.fruitless();
        if has_nothing(&groups[at]) {
            let first_ones = groups.iter().filter(|group| has_nothing(group)).count();
            share = share.max((own + self.start_up).min(left / (first_ones + 1) as u32));
        }
        // Where processors are so short that whole processes passed without one round, fewer must do.
        let needed = LEAST_SLICE * (1 << groups[at].fruitless().min(10));
        // Where one round takes long, many of them take longer.
        let longest = LONGEST_SLICE.max(own * 8);
        share.max(needed).min(longest).min(left)
    }

    fn run_process(&mut self, group: &mut Schedule, slice: Duration) -> Result<(), BenchError> {
        let (batch_order, slice) = group.running(slice);
        if batch_order.is_empty() {
            group.settled = true;
            return Ok(());
        }
        // One that must have its turn may take longer than its share, but not longer than there is.
        let slice = slice.min(self.left());
        let now = clock::monotonic();
        let until = Until {
            deadline: now + slice.as_nanos() as u64,
            precision: self.plan.precision,
            not_before: now + slice.min(SHORTEST_SLICE).as_nanos() as u64,
        };
        let work = Work::Rounds {
            clock: self.clock,
            instances: batch_order.orders.clone(),
            seed: self.random.next(),
            until,
        };
        // The process ends by itself; the margin is for one whose last batch is long.
        let patience = Instant::now() + slice + self.plan.stall.max(Duration::from_millis(200));
        let last = self.deadline() + self.plan.budget / 20;
        let (ending, worker) = self.run(work, patience.min(last), &|shared| batch_order.on_now(shared))?;
        group.collect(&batch_order, &worker.shared, ending, self.plan.stall);
        Ok(())
    }

    /// Runs a bench process to its end.
    fn run(
        &mut self,
        work: Work,
        deadline: Instant,
        what: &dyn Fn(&SharedResults) -> String,
    ) -> Result<(Ending, Worker), BenchError> {
        let task = Task {
            cpu: self.cpu,
            allowed: self.elsewhere.before.clone(),
            limits: self.plan.limits.clone(),
            storage: self.plan.storage.clone(),
            work,
        };
        let mut worker = self.start(&task)?;
        let (began, budget) = (self.began, self.plan.budget);
        let ending = worker.watch(self.plan.stall, deadline, |shared| {
            (self.watch)(&Progress { what: what(shared), elapsed: began.elapsed(), budget });
        });
        match super::interrupt::requested() {
            Some(signal) => Err(BenchError::Interrupted(signal)),
            None => Ok((ending, worker)),
        }
    }

    /// Starts a bench process. Memory and process numbers may be short for a moment.
    fn start(&self, task: &Task) -> std::io::Result<Worker> {
        const TRIES: u32 = 5;
        let mut tried = 1;
        loop {
            match Worker::start(task, &self.isolation, self.find) {
                Err(error)
                    if tried < TRIES && matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)) =>
                {
                    std::thread::sleep(Duration::from_millis(20) * tried);
                    tried += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Time until the last rounds end.
    fn left(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// When the last rounds end: a little before the budget, for what comes after them.
    fn deadline(&self) -> Instant {
        self.began + self.plan.budget.mul_f64(BEFORE_THE_END)
    }
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
