//! The child's side: one process that makes instances ready, tries them, or runs rounds of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::{Params, stats};

use super::clock::{self, Clock, FrequencySource};
use super::cpu;
use super::instance::Instance;
use super::limits::{self, Limits};
use super::own::BLOCK;
use super::random::Random;
use super::runner::{Batch, Order, Refusal};
use super::shared::{Cell, Events, InstanceState, MAX_ROUNDS, Readiness, SharedResults};
use super::storage::{self, Storage};
use crate::benchmark::Benchmark;

/// What a bench process is called among the processes of the machine, and how it knows itself.
pub(super) const NAME: &str = "tollgate-bench";

/// What a process is told, through the shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Task {
    /// The processor to stay on.
    pub cpu: Option<usize>,
    /// The processors that the program may use; its parent may have moved aside.
    pub allowed: Vec<usize>,
    /// What may be taken.
    pub limits: Limits,
    /// Where files are measured, or why they cannot be.
    pub storage: Result<Storage, String>,
    pub work: Work,
}

impl Task {
    /// How many instances it is about.
    pub fn instances(&self) -> usize {
        self.orders().len()
    }

    fn orders(&self) -> &[InstanceOrder] {
        match &self.work {
            Work::Clock => &[],
            Work::Calibration { instances, .. } | Work::Rounds { instances, .. } => instances,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Work {
    /// Find out which clock can be used.
    Clock,
    /// Make each instance ready by itself and find out what one iteration costs, in about so much time
    /// (CLOCK_MONOTONIC, nanoseconds) for all of them.
    Calibration { clock: Clock, instances: Vec<InstanceOrder>, deadline: u64 },
    /// Run rounds of all instances.
    Rounds { clock: Clock, instances: Vec<InstanceOrder>, seed: u64, until: Until },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct InstanceOrder {
    pub benchmark: String,
    pub params: Params,
    /// Operations that an iteration was found to make; 0 where nobody knows yet.
    pub ops: u64,
    /// Iterations of the loop in a batch.
    pub iterations: u64,
    /// More of them than are counted: a test that slows an instance on purpose.
    pub extra: u64,
    /// Whether rounds go on until this instance's interval is narrow.
    pub decides: bool,
    /// It takes part in every so-many-th round, from the first on: a batch that takes long is not due in each.
    pub stride: usize,
}

/// When rounds end: at the deadline, or when every interval is narrow, but not before so many.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Until {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub deadline: u64,
    /// Half of an interval's width over the median.
    pub precision: f64,
    /// CLOCK_MONOTONIC, nanoseconds: levels that last need time to show.
    pub not_before: u64,
}

/// Rounds that are run and not recorded: first uses of caches, pages and predictors.
const WARM_UP_ROUNDS: usize = 3;
/// Looking whether intervals are narrow costs a sort: only every so many rounds.
const LOOK_EVERY: usize = 64;
/// Confidence of those intervals.
const CONFIDENCE: f64 = 0.95;

/// By which a bench process knows the benchmarks that it is told of.
pub(super) type Find = fn(&str) -> Option<&'static Benchmark>;

static SERVES: AtomicBool = AtomicBool::new(false);

/// Where the bench process says that something happened.
static HEART: OnceLock<&AtomicU64> = OnceLock::new();

/// Says that an instance whose batch takes long does not hang. In a process that an instance forked as well.
pub fn alive() {
    if let Some(heart) = HEART.get() {
        heart.fetch_add(1, Relaxed);
    }
}

/// Whether this program, started anew, would serve: a test's would do something else.
pub(super) fn serves() -> bool {
    SERVES.load(Relaxed)
}

/// To be called first in `main`, with the registry's `find`: where this process was started as a bench
/// process it does its work and never returns.
pub fn enter_if_told(find: fn(&str) -> Option<&'static Benchmark>) {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != NAME) {
        return SERVES.store(true, Relaxed);
    }
    let number = |text: Option<std::ffi::OsString>| text?.into_string().ok()?.parse::<i32>().ok();
    let (Some(descriptor), Some(parent)) = (number(arguments.next()), number(arguments.next())) else {
        std::process::exit(2)
    };
    die_with_parent(parent);
    if descriptor <= 2 {
        std::process::exit(2);
    }
    // SAFETY: the parent left this descriptor open for us and nothing else here uses it.
    let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
    match SharedResults::open(file) {
        Ok(shared) => std::process::exit(serve(&shared, find)),
        Err(_) => std::process::exit(2),
    }
}

/// The kernel kills this process when `parent` goes away, however it goes.
pub fn die_with_parent(parent: i32) {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number (prctl(2)).
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // It may have gone before we asked.
    // SAFETY: getppid(2) has no preconditions.
    if unsafe { libc::getppid() } != parent {
        // SAFETY: ends this process at once; nothing of it is worth running down.
        unsafe { libc::_exit(2) };
    }
}

/// Does what the shared says. Returns the exit status.
pub(super) fn serve(shared: &SharedResults, find: Find) -> i32 {
    let Ok(task) = serde_json::from_str::<Task>(&shared.order()) else { return 2 };
    // SAFETY: getppid(2) has no preconditions.
    let parent = unsafe { libc::getppid() };
    // The shared stays for as long as this process does.
    let _ = HEART.set(shared.heart());
    cpu::allow(&task.allowed);
    cpu::remember(&task.allowed);
    let uses_storage = task.orders().iter().any(|order| Storage::is_used_by(&order.benchmark));
    limits::set(task.limits);
    if uses_storage {
        storage::set(task.storage);
        // Another identity clears the signal for a moment, in which the parent may have gone.
        die_with_parent(parent);
    } else {
        storage::set_unused();
    }
    if task.work == Work::Clock {
        find_clock(shared);
    }
    // Where pinning is refused the run goes on and says so; the rounds themselves notice every move.
    if let Some(Err(error)) = task.cpu.map(cpu::pin) {
        shared.set_pinned(error.raw_os_error().unwrap_or(libc::EIO));
    }
    match task.work {
        Work::Clock => {}
        Work::Calibration { clock, instances, deadline } => {
            calibration(shared, find, clock, &instances, deadline)
        }
        Work::Rounds { clock, instances, seed, until } => {
            rounds(shared, find, clock, &instances, seed, until)
        }
    }
    0
}

fn find_clock(shared: &SharedResults) {
    match Clock::tsc() {
        Ok((clock, source)) => shared.set_clock([1, clock.hz(), source_code(source)], ""),
        Err(fault) => shared.set_clock([2, 0, 0], &fault.to_string()),
    }
}

fn source_code(source: FrequencySource) -> u64 {
    match source {
        FrequencySource::Cpuid15 => 1,
        FrequencySource::Hypervisor => 2,
        FrequencySource::Calibrated => 3,
    }
}

/// The clock that a child found, how its frequency is known, and the reason against the TSC.
pub(super) fn found_clock(shared: &SharedResults) -> Option<(Clock, Option<FrequencySource>, String)> {
    let ([kind, hz, source], why) = shared.clock();
    let source = match source {
        1 => Some(FrequencySource::Cpuid15),
        2 => Some(FrequencySource::Hypervisor),
        3 => Some(FrequencySource::Calibrated),
        _ => None,
    };
    match kind {
        1 if hz > 0 => Some((Clock::Tsc { hz }, source, why)),
        2 => Some((Clock::Kernel, None, why)),
        _ => None,
    }
}

fn prepare(find: Find, order: &InstanceOrder) -> Result<Instance, Refusal> {
    match find(&order.benchmark) {
        Some(benchmark) => (benchmark.instance)(benchmark, &order.params),
        None => Err(Refusal::Fail("no such benchmark".to_owned())),
    }
}

fn refusal_state(refusal: Refusal) -> InstanceState {
    match refusal {
        Refusal::Skip(why) => InstanceState::Skipped(why),
        Refusal::Fail(error) => InstanceState::Failed(error),
    }
}

fn calibration(shared: &SharedResults, find: Find, clock: Clock, instances: &[InstanceOrder], deadline: u64) {
    for (index, order) in instances.iter().enumerate() {
        shared.enter(index);
        let began = clock::monotonic();
        let share = deadline.saturating_sub(began) / (instances.len() - index) as u64;
        let state = prepare(find, order).map_err(refusal_state).and_then(|instance| {
            let setup = Duration::from_nanos(clock::monotonic() - began).saturating_sub(instance.spent_once);
            try_out(shared, clock, find(&order.benchmark), instance, setup, began + share)
        });
        shared.set_instance(index, &state.unwrap_or_else(|refused| refused));
        shared.leave();
    }
}

/// Raises the iterations until a batch is long enough to be timed, then takes the shortest of a few.
/// Where processors are short each batch may wait its turn: after `until` what is known must do.
fn try_out(
    shared: &SharedResults,
    clock: Clock,
    benchmark: Option<&Benchmark>,
    mut instance: Instance,
    setup: Duration,
    until: u64,
) -> Result<InstanceState, InstanceState> {
    const LONG_ENOUGH: u64 = 20_000; // nanoseconds
    const TRIES: usize = 4;
    /// What the tries may take together: a batch of milliseconds is known well enough after one.
    const ENOUGH: u64 = 2_000_000; // nanoseconds
    const MOST: u64 = 1 << 16;
    let most = instance.most_iterations.min(MOST);
    // Nanoseconds of the timed part, and of everything.
    let mut takes = |iterations: u64| {
        shared.beat();
        let began = clock::monotonic();
        let batch = run_batch(benchmark, &mut instance, clock, Order { iterations, extra: 0 })
            .map_err(refusal_state)?;
        let timed = clock.nanoseconds(batch.work as f64) as u64;
        Ok((timed, clock::monotonic() - began))
    };
    let mut iterations = 1;
    let mut shortest: (u64, u64) = takes(iterations)?;
    while shortest.0 < LONG_ENOUGH && shortest.1 < ENOUGH && iterations < most && clock::monotonic() < until {
        iterations = (iterations * 4).min(most);
        shortest = takes(iterations)?;
    }
    let tried = clock::monotonic();
    for _ in 0..TRIES {
        if clock::monotonic() < until.min(tried + ENOUGH) && shortest.1 < ENOUGH {
            let (timed, whole) = takes(iterations)?;
            shortest = (shortest.0.min(timed), shortest.1.min(whole));
        }
    }
    // Ceiling: an iteration that costs less than a nanosecond must not seem to cost nothing.
    let per_iteration = |time: u64| Duration::from_nanos(time.div_ceil(iterations).max(1));
    let (cost, whole) = (per_iteration(shortest.0), per_iteration(shortest.1));
    Ok(ready(&instance, Readiness { cost, whole, setup, ..Readiness::default() }))
}

fn ready(instance: &Instance, known: Readiness) -> InstanceState {
    let (ops, most) = (instance.ops_per_iteration, instance.most_iterations);
    let [experiment, fixture] =
        [&instance.experiment, &instance.fixture].map(|name| name.as_deref().map_or(0, number_of));
    InstanceState::Ready(Box::new(Readiness {
        ops,
        most,
        experiment,
        fixture,
        notes: instance.notes.join("\n"),
        ..known
    }))
}

/// A number for a name, the same in every process, and not 0.
fn number_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish().max(1)
}

/// One batch. What was counted in it must be what was asked for, or what was timed is something else.
fn run_batch(
    benchmark: Option<&Benchmark>,
    instance: &mut Instance,
    clock: Clock,
    order: Order,
) -> Result<Batch, Refusal> {
    let batch = instance.runner.batch(clock, order)?;
    let operations = (order.iterations + order.extra) * instance.ops_per_iteration;
    if let Some(share) = benchmark.and_then(|benchmark| benchmark.share) {
        let looked_at = operations / share.one_of.max(1);
        return match batch.counted {
            Some(events) if events > looked_at => {
                Err(Refusal::Fail(format!("{events} of {looked_at} {}", share.what)))
            }
            _ => Ok(batch),
        };
    }
    let Some(what) = benchmark.and_then(|benchmark| benchmark.counts) else { return Ok(batch) };
    match batch.counted {
        Some(events) if events == operations || !batch.undisturbed => Ok(batch),
        Some(events) => {
            Err(Refusal::Fail(format!("{events} {what} were counted in {operations} operations")))
        }
        None => Err(Refusal::Fail(format!("{what} were not counted"))),
    }
}

fn events_of(batch: &Batch) -> Events {
    let mut events = Events::default();
    events[0] = batch.counted.unwrap_or(0);
    events[1..].copy_from_slice(&batch.counters);
    events
}

/// Iterations whose batch takes about [`BLOCK`].
pub(super) fn iterations_for(cost: Duration) -> u64 {
    const MOST: u64 = 1 << 14;
    (BLOCK.as_nanos() / cost.as_nanos().max(1)).clamp(1, u128::from(MOST)) as u64
}

fn rounds(
    shared: &SharedResults,
    find: Find,
    clock: Clock,
    orders: &[InstanceOrder],
    seed: u64,
    until: Until,
) {
    let mut field =
        Field { shared, clock, orders, instances: Vec::new(), kept: vec![Vec::new(); orders.len()] };
    field.make_ready(find);
    let mut random = Random::new(seed);
    for _ in 0..WARM_UP_ROUNDS {
        random.shuffle(&mut field.instances);
        if field.round(None, until.deadline) == End::OutOfTime {
            break;
        }
    }
    while shared.rounds() < MAX_ROUNDS {
        random.shuffle(&mut field.instances);
        if shared.rounds() == 0 {
            // All are due, and where there is not time for all, those that take long are few.
            field.instances.sort_by_key(|ready| orders[ready.index].stride);
        }
        match field.round(Some(shared.rounds()), until.deadline) {
            End::Whole => shared.finish_round(),
            End::Broken => field.forget(shared.rounds()),
            // A first round may hold batches of a second and more: what it has is worth keeping.
            End::OutOfTime if shared.rounds() == 0 => {
                shared.finish_round();
                break;
            }
            End::OutOfTime => {
                field.forget(shared.rounds());
                break;
            }
        }
        let look = shared.rounds().is_multiple_of(LOOK_EVERY);
        if look && clock::monotonic() >= until.not_before && field.all_narrow(until.precision) {
            break;
        }
    }
    shared.leave();
}

/// The instances of a process, and what it has of them so far.
struct Field<'a> {
    shared: &'a SharedResults,
    clock: Clock,
    orders: &'a [InstanceOrder],
    instances: Vec<Ready>,
    /// The kept batches, by order.
    kept: Vec<Vec<Kept>>,
}

/// An instance that is ready.
struct Ready {
    /// Its place among the orders.
    index: usize,
    benchmark: Option<&'static Benchmark>,
    instance: Instance,
}

/// A kept batch.
#[derive(Clone)]
struct Kept {
    round: usize,
    net_ticks: f64,
    events: Events,
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// An instance went wrong and is out; the others go on.
    Broken,
    OutOfTime,
}

impl Field<'_> {
    fn make_ready(&mut self, find: Find) {
        for (index, order) in self.orders.iter().enumerate() {
            self.shared.enter(index);
            match prepare(find, order) {
                // How many of something there is room for can change from process to process.
                Ok(instance) if instance.ops_per_iteration != order.ops => {
                    let (now, then) = (instance.ops_per_iteration, order.ops);
                    let why =
                        format!("it makes {now} operations at a time now, and {then} when it was tried");
                    self.shared.set_instance(index, &InstanceState::Failed(why));
                }
                Ok(instance) => {
                    self.shared.set_instance(index, &ready(&instance, Readiness::default()));
                    self.instances.push(Ready { index, benchmark: find(&order.benchmark), instance });
                }
                Err(refusal) => self.shared.set_instance(index, &refusal_state(refusal)),
            }
        }
    }

    /// One batch of every instance that is due, recorded as round `record`; without, to warm up those that are due
    /// in each round.
    fn round(&mut self, record: Option<usize>, deadline: u64) -> End {
        for position in 0..self.instances.len() {
            let Ready { index, benchmark, instance } = &mut self.instances[position];
            let (index, orders) = (*index, &self.orders[*index]);
            let due = record.map_or(orders.stride == 1, |round| round.is_multiple_of(orders.stride));
            if !due {
                continue;
            }
            if clock::monotonic() >= deadline {
                return End::OutOfTime;
            }
            self.shared.enter(index);
            let order = Order { iterations: orders.iterations, extra: orders.extra };
            let batch = match run_batch(*benchmark, instance, self.clock, order) {
                Ok(batch) => batch,
                Err(refusal) => {
                    self.shared.set_instance(index, &refusal_state(refusal));
                    self.instances.remove(position);
                    return End::Broken;
                }
            };
            let Some(round) = record else { continue };
            if !batch.undisturbed {
                self.shared.set_slot(round, index, Cell::Dropped);
                continue;
            }
            let net = batch.work as i64 - batch.empty as i64;
            self.shared.set_slot(round, index, Cell::Kept(net));
            let events = events_of(&batch);
            self.shared.add_events(index, events);
            self.kept[index].push(Kept { round, net_ticks: net as f64, events });
        }
        End::Whole
    }

    /// A round that did not come to its end did not happen.
    fn forget(&mut self, round: usize) {
        for (index, kept) in self.kept.iter_mut().enumerate() {
            self.shared.set_slot(round, index, Cell::Empty);
            while let Some(batch) = kept.pop_if(|batch| batch.round == round) {
                self.shared.take_back_events(index, batch.events);
            }
        }
    }

    /// Whether every interval that counts is narrow. An instance that is not due in each round never has an interval
    /// within one process: it does not count.
    fn all_narrow(&self, precision: f64) -> bool {
        let counting =
            self.orders.iter().zip(&self.kept).filter(|(order, _)| order.decides && order.stride == 1);
        counting.into_iter().all(|(_, kept)| is_narrow(kept, precision))
    }
}

fn is_narrow(kept: &[Kept], precision: f64) -> bool {
    let samples: Vec<f64> = kept.iter().map(|batch| batch.net_ticks).collect();
    let (Some(median), Some(interval)) =
        (stats::median(&samples), stats::median_interval(&samples, CONFIDENCE))
    else {
        return false;
    };
    interval.high - interval.low <= 2.0 * precision * median.abs()
}
