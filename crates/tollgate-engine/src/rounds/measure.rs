use std::cmp::Ordering;
use std::time::{Duration, Instant};

use tollgate_arch::counter;
use tollgate_model::bounded::MAX_PROCESSES;
use tollgate_model::estimate::CLOCK_TICK;
use tollgate_model::text::plainly;
use tollgate_model::{Fact, Measurement, Outcome, own};
use tollgate_os::children::{Inherited, Subreaper};

use crate::bench_process::shared::{Report, SharedResults};
use crate::bench_process::supervisor::{Isolation, Worker};
use crate::bench_process::worker::{Find, Task, Work};
use crate::cases::benchmark::Chosen;
use crate::cases::plan::{Ordinal, Plan};
use crate::cases::run::{BenchError, Decided, Findings, Progress};
use crate::cases::selection::{Group, Selection};
use crate::machine::clock::{self, Clock};
use crate::machine::ending::{Ending, signal_name};
use crate::machine::other_cpus::OtherCpus;
use crate::rounds::commands::{self, Local, Terms};
use crate::rounds::schedule::{self, Schedule};
use crate::{loops::events, machine::cpu, machine::group, machine::topology};
use tollgate_model::stats::random::Random;

/// The calibration's share of the remaining time. It needs a tenth of that, unless processors are short or instances hang.
pub(crate) const CALIBRATION_SHARE: f64 = 0.5;
/// The share of the budget that the calibration must leave to the rounds.
pub(crate) const ROUNDS_SHARE: f64 = 0.35;
/// The share of the budget after which measuring ends; the rest is for evaluation.
pub(crate) const END_SHARE: f64 = 0.97;

/// The name of the fact of a run that the user stopped. Its value is the signal's name.
pub const INTERRUPTED: &str = "run.interrupted";

/// Measures the chosen cases within the plan's budget. A case that cannot be measured is skipped or failed with its reason. If the
/// user stops the run, the findings are those until then.
///
/// # Errors
/// See [`BenchError`]: if nothing can be measured, or the time is over or the user stops the run before anything is.
pub fn measure(
    selection: &Selection,
    plan: &Plan,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Findings, BenchError> {
    let began = Instant::now();
    let inherited = Inherited::now();
    let (rounds, others): (Vec<&Group>, Vec<&Group>) =
        selection.groups.iter().partition(|group| group.usual_time().is_none());
    let (of_environments, whole): (Vec<&Group>, Vec<&Group>) =
        others.into_iter().partition(|group| group.is_of_environments());
    let seed = Random::seed();
    let mut findings = Findings {
        facts: vec![
            ("run.seed".to_owned(), Fact::known(format!("{seed:016x}"), "getrandom(2)")),
            plan.fact(),
        ],
        ..Findings::default()
    };
    // Rounds and commands share the budget in proportion to their default times.
    let usual = selection.usual_time().as_secs_f64();
    let of_commands: Duration = whole.iter().filter_map(|group| group.usual_time()).sum();
    let of_commands = of_commands.as_secs_f64() / usual;
    if !rounds.is_empty() {
        let plan = Plan { budget: plan.budget.mul_f64(1.0 - of_commands), ..plan.clone() };
        findings.append(measure_rounds(&rounds, selection, &plan, seed, watch)?);
    }
    let last = began + plan.budget.mul_f64(END_SHARE);
    let _subreaper = Subreaper::begin();
    for (at, group) in whole.iter().enumerate() {
        if findings.interrupted.is_some() {
            findings.measurements.extend(group.cases.iter().map(interrupted));
            continue;
        }
        let left = last.saturating_duration_since(Instant::now());
        let deadline = Instant::now() + left / (whole.len() - at) as u32;
        let suite = Ordinal { number: rounds.len() + at + 1, of: selection.groups.len() };
        let mut here = Local::new(plan, began, suite, watch);
        let found = commands::measure(group, &mut [&mut here], &Terms::new(plan, deadline, seed));
        if here.has_prepared() {
            group::end_strays(&inherited);
        }
        found?.into_iter().for_each(|side| findings.append(side.findings));
    }
    let elsewhere = of_environments.iter().flat_map(|group| &group.cases);
    findings.measurements.extend(elsewhere.map(of_an_environment));
    let is_measured = findings.has_figures();
    let Some(signal) = findings.interrupted else {
        let no_time = findings.no_time(plan).filter(|_| !is_measured);
        return no_time.map_or(Ok(findings), Err);
    };
    if !is_measured {
        return Err(BenchError::Interrupted(signal));
    }
    findings.facts.push((INTERRUPTED.to_owned(), Fact::known(signal_name(signal), "signal(7)")));
    Ok(findings)
}

/// The row of a case that this process cannot measure, because it starts no environment.
fn of_an_environment((benchmark, params): &Chosen) -> Measurement {
    let why = "it belongs to environments: `tollgate run environments` measures it, in those that --in names or in all that work here";
    let outcome = Outcome::NotMeasured { why: why.to_owned() };
    Measurement { case: benchmark.case(params.clone()), outcome }
}

fn interrupted((benchmark, params): &Chosen) -> Measurement {
    let outcome = Outcome::NotMeasured { why: "interrupted".to_owned() };
    Measurement { case: benchmark.case(params.clone()), outcome }
}

fn measure_rounds(
    groups: &[&Group],
    selection: &Selection,
    plan: &Plan,
    seed: u64,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Findings, BenchError> {
    let place = |number| Ordinal { number, of: selection.groups.len() };
    let control = (selection.find)(own::CONTROL);
    let schedule = |(group, number): (&&Group, usize)| Schedule::new(group, place(number), control);
    let mut groups: Vec<Schedule> = groups.iter().zip(1..).map(schedule).collect();
    // Readers of the document refuse more processes.
    let most = MAX_PROCESSES as usize / groups.iter().map(Schedule::number).sum::<usize>().max(1);
    let plan = &Plan { most_processes: plan.most_processes.min(most), ..plan.clone() };
    let mut run = RoundsRun::begin(plan, selection.find, seed, watch)?;
    let interrupted = match run.whole(&mut groups) {
        Err(BenchError::Interrupted(signal)) => Some(signal),
        ended => ended.map(|()| None)?,
    };
    let out_of_time = groups.iter().find_map(Schedule::out_of_time);
    let conclude = |group: Schedule| group.conclude(run.clock, interrupted.map(|_| "interrupted"));
    let measurements = groups.into_iter().flat_map(conclude).collect();
    Ok(Findings { measurements, facts: run.facts, interrupted, out_of_time })
}

struct RoundsRun<'a> {
    plan: &'a Plan,
    watch: &'a mut dyn FnMut(&Progress),
    began: Instant,
    cpu: Option<usize>,
    /// Whether pinning to it binds, or why not.
    affinity: Result<(), String>,
    isolation: Isolation,
    find: Find,
    clock: Clock,
    start_up: Duration,
    random: Random,
    facts: Vec<(String, Fact)>,
    /// Processes of rounds that the current suite has had.
    done: usize,
    decided: Vec<Decided>,
    /// Keeps this process off the measured processor.
    other_cpus: OtherCpus,
    _subreaper: Subreaper,
}

impl<'a> RoundsRun<'a> {
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
            chosen => chosen.or_else(|| topology::usual(&allowed)),
        };
        let isolation = Isolation::here(plan.executes);
        let facts =
            vec![("run.isolation".to_owned(), Fact::known(isolation.describe(), "fork(2), execveat(2)"))];
        Ok(Self {
            plan,
            watch,
            began,
            cpu,
            affinity: Ok(()),
            isolation,
            find,
            clock: Clock::Kernel,
            start_up: Duration::ZERO,
            random: Random::new(seed),
            facts,
            done: 0,
            decided: Vec::new(),
            other_cpus: OtherCpus::except(cpu, allowed),
            _subreaper: Subreaper::begin(),
        })
    }

    fn whole(&mut self, groups: &mut [Schedule]) -> Result<(), BenchError> {
        self.find_clock()?;
        self.find_start_up()?;
        self.run_rounds(groups)
    }

    /// Finds the clock in a child, since reading the TSC may kill it.
    fn find_clock(&mut self) -> Result<(), BenchError> {
        let mut found =
            self.run(Work::Clock, self.deadline(), Ordinal::default(), &|_| "the clock".to_owned())?;
        // On a busy machine the child may not have run, so it gets a second try.
        if found.0 == Ending::Stalled {
            found =
                self.run(Work::Clock, self.deadline(), Ordinal::default(), &|_| "the clock".to_owned())?;
        }
        let (ending, worker) = found;
        let (clock, affinity, facts) =
            clock_found(ending, &worker.shared.report(), self.cpu, self.plan.stall, counter::NAME);
        (self.clock, self.affinity) = (clock, affinity);
        self.facts.extend(facts);
        Ok(())
    }

    /// Measures how long a process takes to start, by running one without instances.
    fn find_start_up(&mut self) -> Result<(), BenchError> {
        let began = Instant::now();
        let work = Work::Calibration { clock: self.clock, instances: Vec::new(), deadline: 0 };
        self.run(work, self.deadline(), Ordinal::default(), &|_| "the start of a process".to_owned())?;
        self.start_up = began.elapsed();
        Ok(())
    }

    /// Calibrates each instance. If one dies, hangs or takes too long, that is recorded, and the next process continues with the next
    /// one, in half of the group's remaining time, so that hanging instances leave time for the others. A group that is slow
    /// throughout leaves out the rest of its cases, because rounds of them would take several times as long. `groups` includes this
    /// one.
    fn calibration(&mut self, group: &mut Schedule, groups: usize) -> Result<(), BenchError> {
        /// After this many successive processes that hung, so little is left.
        const HANGING: u32 = 6;
        let enough_for_rounds = self.plan.budget.mul_f64(ROUNDS_SHARE);
        let most = self.left().mul_f64(CALIBRATION_SHARE) / groups as u32 * 2;
        let began = Instant::now();
        loop {
            let batch_order = group.waiting();
            let share = most.saturating_sub(began.elapsed()) / 2;
            if batch_order.is_empty() || share < most / (1 << HANGING) || self.left() < enough_for_rounds {
                return Ok(());
            }
            let deadline = clock::monotonic() + share.as_nanos() as u64;
            let work =
                Work::Calibration { clock: self.clock, instances: batch_order.orders.clone(), deadline };
            let last = Instant::now() + share;
            let (ending, worker) =
                self.run(work, last, group.place, &|shared| batch_order.name(shared.current_instance()))?;
            let record = worker.record(batch_order.orders.len());
            group.record_calibration(&batch_order, &record, ending, self.plan.stall);
        }
    }

    /// Runs processes until every group is settled or the time is over. First come groups with a case that has too few processes for
    /// an interval, if there is time for them, and among these the group with the fewest; then the group that has taken the least of its
    /// share. So a group's processes are spread over the whole run. A group begins if those before it leave it time.
    fn run_rounds(&mut self, groups: &mut [Schedule]) -> Result<(), BenchError> {
        const TOO_SHORT: Duration = Duration::from_millis(20);
        let mut begun = 0;
        while self.left() >= TOO_SHORT {
            if begun < groups.len() && schedule::leave_time(&groups[..begun], self.left()) {
                self.begin_group(&mut groups[begun..])?;
                begun += 1;
                let taken: Duration = groups[..begun].iter().map(|group| group.taken).sum();
                schedule::share(&mut groups[..begun], self.left() + taken, self.plan, self.start_up);
                continue;
            }
            let carried = schedule::carried(&groups[..begun], self.left());
            let open = groups[..begun].iter_mut().enumerate().filter(|(_, group)| !group.settled);
            let turn = |(at, group): &(usize, &mut Schedule)| {
                if group.lacks_processes() {
                    (*at >= carried, false, group.whole as f64)
                } else {
                    (*at >= carried, true, group.progress())
                }
            };
            let next =
                open.min_by(|one, other| turn(one).partial_cmp(&turn(other)).unwrap_or(Ordering::Equal));
            let Some((_, group)) = next else { break };
            self.run_process(group)?;
        }
        Ok(())
    }

    /// Calibrates the first of these groups, and runs one process of it, which shows how much of the machine it gets.
    fn begin_group(&mut self, groups: &mut [Schedule]) -> Result<(), BenchError> {
        let number = groups.len();
        let group = &mut groups[0];
        self.calibration(group, number)?;
        group.count_operations();
        schedule::share(std::slice::from_mut(group), self.left() / number as u32, self.plan, self.start_up);
        self.run_process(group)
    }

    fn run_process(&mut self, group: &mut Schedule) -> Result<(), BenchError> {
        let (began, planned) = (Instant::now(), group.slice(self.plan));
        let (batch_order, slice) = group.running(group.length(self.plan).min(self.left()));
        if batch_order.is_empty() {
            group.settled = true;
            return Ok(());
        }
        self.done = group.processes;
        // A fixture's first process may exceed its share, but not the remaining time.
        let slice = slice.min(self.left());
        let deadline = clock::monotonic() + slice.as_nanos() as u64;
        let work = Work::Rounds {
            clock: self.clock,
            instances: batch_order.orders.clone(),
            seed: self.random.next_u64(),
            deadline,
        };
        // The process ends by itself; the margin allows for a long last batch.
        let patience = Instant::now() + slice + self.plan.stall.max(Duration::from_millis(200));
        let last = self.deadline() + self.plan.budget / 20;
        let (ending, worker) = self.run(work, patience.min(last), group.place, &|shared| {
            batch_order.name(shared.current_instance())
        })?;
        let record = worker.record(batch_order.orders.len());
        group.collect(&batch_order, &record, ending, self.plan.stall);
        group.taken += began.elapsed();
        group.planned += planned;
        group.settle(self.plan);
        self.decided.extend(group.newly_decided(self.clock));
        Ok(())
    }

    fn run(
        &mut self,
        work: Work,
        deadline: Instant,
        suite: Ordinal,
        what: &dyn Fn(&SharedResults) -> String,
    ) -> Result<(Ending, Worker), BenchError> {
        let task = Task {
            cpu: self.cpu,
            allowed: self.other_cpus.before.clone(),
            affinity: self.affinity.clone(),
            limits: self.plan.limits.clone(),
            storage: self.plan.storage.clone(),
            work,
        };
        let mut worker = Worker::start(&task, &self.isolation, self.find)?;
        let (began, length) = (self.began, self.plan.length(self.done));
        let ending = worker.watch(self.plan.stall, deadline, |shared| {
            let decided = std::mem::take(&mut self.decided);
            (self.watch)(&Progress { what: what(shared), elapsed: began.elapsed(), length, suite, decided });
        });
        match crate::machine::interrupt::requested() {
            Some(signal) => Err(BenchError::Interrupted(signal)),
            None => Ok((ending, worker)),
        }
    }

    fn left(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// The deadline of the last rounds, a little before the end of the budget.
    fn deadline(&self) -> Instant {
        self.began + self.plan.budget.mul_f64(END_SHARE)
    }
}

/// Returns the clock that a bench process found with this counter, whether an affinity binds there or why not, and the facts of both.
pub(crate) fn clock_found(
    ending: Ending,
    report: &Report,
    cpu: Option<usize>,
    stall: Duration,
    counter: &str,
) -> (Clock, Result<(), String>, Vec<(String, Fact)>) {
    let refused =
        |why: String| (Clock::Kernel, Fact::known("CLOCK_MONOTONIC_RAW", format!("TSC not used: {why}")));
    let (clock, fact) = match (ending, &report.clock) {
        (Ending::Finished, Some(Ok((clock, source)))) => (*clock, Fact::known(counter, source.describe())),
        (Ending::Finished, Some(Err(why))) => refused(why.clone()),
        (ending, _) => refused(ending.describe(stall)),
    };
    let pinned = match (cpu, report.pin_error) {
        (Some(cpu), None) => Fact::known(cpu as i64, "sched_setaffinity(2)"),
        (Some(_), Some(error)) => {
            let error = std::io::Error::from_raw_os_error(error);
            Fact::refused(format!("not pinned: sched_setaffinity(2): {}", plainly(&error)))
        }
        (None, _) => Fact::unreadable("not pinned: sched_getaffinity(2) failed"),
    };
    let mut facts = vec![("run.cpu".to_owned(), pinned)];
    let mut affinity = Ok(());
    if let Some(observed) = &report.affinity {
        affinity = observed.binds();
        let word = if affinity.is_ok() { "binds" } else { "does not bind" };
        facts.push(("run.affinity".to_owned(), Fact::known(word, observed.describe())));
    }
    facts.push(("run.clock".to_owned(), fact));
    facts.extend(report.pmu.as_ref().map(|found| ("run.counters".to_owned(), events::fact(found))));
    facts.push(("run.clock_hz".to_owned(), Fact::known(clock.hz() as i64, "run.clock")));
    // The rate differs a little from calibration to calibration.
    let rounded = |tick: f64| format!("{tick:.2e}").parse().unwrap_or(tick);
    let tick = report.step.map(|step| rounded(clock.nanoseconds(step as f64)));
    facts.extend(tick.map(|tick| (CLOCK_TICK.to_owned(), Fact::known(tick, "many readings of run.clock"))));
    (clock, affinity, facts)
}

pub(crate) fn refuse_cpu(asked: usize, allowed: Vec<usize>) -> BenchError {
    // SAFETY: sysconf(3) takes a constant.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    let count = usize::try_from(configured).unwrap_or(0).max(allowed.len());
    if asked >= count {
        BenchError::NoSuchCpu { asked, count }
    } else {
        BenchError::CpuNotAllowed { asked, allowed }
    }
}
