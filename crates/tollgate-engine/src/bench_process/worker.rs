//! The child's side: a bench process that prepares instances, calibrates them, runs rounds of them or counts their instructions.
//!
//! A batch runs its own empty loop before and after the timed one, and subtracts the shorter. An empty loop for a whole round would be
//! further away in time. With a single one per batch, an interrupt in it made about one latency in a few thousand too low.
//!
//! Batches are discarded, not rounds. With twenty instances a round lasts more than a millisecond, and on a busy processor nearly
//! every round has a context switch. Pairs are made of the rounds in which both batches survived.

mod counting;
mod turns;

use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::{Boundary, Params};
use tollgate_os::process::die_with_parent;

use crate::bench_process::own::BATCH_TIME;
use crate::bench_process::shared::{Events, MAX_ROUNDS, OWN_EVENTS, Report, SharedResults, Slot};
use crate::bench_process::slow_down::SlowDown;
use crate::cases::benchmark::Benchmark;
use crate::loops::context::Context;
use crate::loops::events;
use crate::loops::instance::Readiness;
use crate::loops::instance::{Instance, loop_address};
use crate::loops::runner::{Batch, Order};
use crate::machine::affinity::Observed;
use crate::machine::clock::{self, Clock};
use crate::machine::cpu;
use crate::machine::limits::{Limits, Quota};
use crate::machine::storage::Storage;
use crate::refusal::Result;
use tollgate_model::stats::random::Random;

use turns::{Pipes, TurnRunner};

pub use turns::{TurnOrder, WARM_UP_PART};

/// The process name of a bench process, by which it also recognises itself.
pub(crate) const NAME: &str = "tollgate-bench";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub cpu: Option<usize>,
    /// The processors that the program may use; its parent's affinity may be narrower.
    pub allowed: Vec<usize>,
    /// Whether the affinity binds, or why not, if it was tried.
    pub affinity: Result<(), String>,
    pub limits: Limits,
    pub storage: Result<Storage, String>,
    pub work: Work,
}

impl Task {
    pub fn instances(&self) -> usize {
        self.orders().len()
    }

    /// The descriptors that it needs open, besides its shared results.
    pub fn descriptors(&self) -> &[i32] {
        match &self.work {
            Work::Turns { pipes, .. } | Work::Watched { pipes, .. } => pipes,
            _ => &[],
        }
    }

    pub fn counts(&self) -> bool {
        matches!(self.work, Work::Count { .. } | Work::Watched { .. })
    }

    fn any(&self, find: Find, is: impl Fn(&Benchmark) -> bool) -> bool {
        self.orders().iter().filter_map(|order| find(&order.benchmark)).any(is)
    }

    fn orders(&self) -> &[InstanceOrder] {
        match &self.work {
            Work::Clock => &[],
            Work::Calibration { instances, .. }
            | Work::Rounds { instances, .. }
            | Work::Turns { instances, .. }
            | Work::Count { instances }
            | Work::Watched { instances, .. } => instances,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Work {
    Clock,
    /// Prepare each instance alone and time one iteration, for all until about this deadline (CLOCK_MONOTONIC, nanoseconds).
    Calibration {
        clock: Clock,
        instances: Vec<InstanceOrder>,
        deadline: u64,
    },
    Rounds {
        clock: Clock,
        instances: Vec<InstanceOrder>,
        seed: u64,
        /// CLOCK_MONOTONIC, nanoseconds.
        deadline: u64,
    },
    Turns {
        clock: Clock,
        instances: Vec<InstanceOrder>,
        /// The ends of two pipes: orders to read, and where a byte reports the end of a turn.
        pipes: [i32; 2],
    },
    Count {
        instances: Vec<InstanceOrder>,
    },
    /// Make turns whose instructions are watched.
    Watched {
        instances: Vec<InstanceOrder>,
        pipes: [i32; 2],
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceOrder {
    pub benchmark: String,
    pub params: Params,
    /// Operations in an iteration, from the calibration; 0 before it.
    pub ops: u64,
    pub iterations: u64,
    /// With stride n it takes part in every n-th round, beginning with the first.
    pub stride: usize,
}

/// Unrecorded rounds that warm up caches, pages and predictors.
pub(crate) const WARM_UP_ROUNDS: usize = 3;

pub(crate) type Find = fn(&str) -> Option<&'static Benchmark>;

/// Serves and never returns if this process was started as a bench process. `main` must call it first, with the registry's
/// `find`.
pub fn serve_if_worker(find: fn(&str) -> Option<&'static Benchmark>) {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != NAME) {
        return;
    }
    let number = |text: Option<std::ffi::OsString>| text?.into_string().ok()?.parse::<i32>().ok();
    let (Some(descriptor), Some(parent)) = (number(arguments.next()), number(arguments.next())) else {
        std::process::exit(2)
    };
    die_with_parent(parent);
    if descriptor <= 2 {
        std::process::exit(2);
    }
    // SAFETY: the parent left this descriptor open for this process, and nothing else uses it.
    let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
    match SharedResults::open(file) {
        Ok(shared) => std::process::exit(serve(&shared, find)),
        Err(_) => std::process::exit(2),
    }
}

pub(crate) fn serve(shared: &SharedResults, find: Find) -> i32 {
    let Some(task) = shared.task::<Task>() else { return 2 };
    // Without pinning the run continues and says so; each batch detects migrations itself.
    let pinned = task.cpu.map(cpu::pin);
    if !matches!(pinned, Some(Ok(()))) {
        cpu::allow(&task.allowed);
    }
    let (counts_instructions, switches) =
        (task.counts(), task.any(find, |benchmark| benchmark.crosses.contains(&Boundary::ContextSwitch)));
    let storage = if task.any(find, |benchmark| benchmark.uses_files) {
        task.storage
    } else {
        Err("this process was started for cases without a directory".to_owned())
    };
    let clock = match &task.work {
        Work::Clock => Some(Clock::tsc().map_err(|fault| fault.to_string())),
        Work::Count { .. } | Work::Watched { .. } => {
            Some(Clock::of_instructions().map_err(|fault| fault.to_string()))
        }
        _ => None,
    };
    let used = clock.as_ref().map(|found| found.as_ref().map_or(Clock::Kernel, |(clock, _)| *clock));
    let step = used.filter(|_| task.work == Work::Clock).map(Clock::step);
    let mut report = Report { clock, step, ..Report::default() };
    if let Some(Err(error)) = pinned {
        report.pin_error = Some(error.raw_os_error().unwrap_or(libc::EIO));
    } else if task.work == Work::Clock {
        report.affinity = task.cpu.and_then(|cpu| Observed::here(cpu).ok());
    }
    // When instructions are counted, hardware counters are not used.
    if !counts_instructions {
        let pinned = task.cpu.filter(|_| report.pin_error.is_none());
        let pmu = events::open(pinned, switches);
        report.pmu = (task.work == Work::Clock).then_some(pmu);
    }
    shared.set_report(&report);
    let context = Context::new(task.allowed, Quota::new(task.limits), shared.heartbeat(), storage)
        .with_affinity(task.affinity);
    let mut bench = Bench { shared, find, context };
    match task.work {
        Work::Clock => {}
        Work::Calibration { clock, instances, deadline } => bench.calibration(clock, &instances, deadline),
        Work::Rounds { clock, instances, seed, deadline } => bench.rounds(clock, &instances, seed, deadline),
        Work::Count { instances } => {
            let clock = report.clock.unwrap_or_else(|| Err("its counter was not read".to_owned()));
            bench.count(clock.map(|(clock, _)| clock), &instances);
        }
        Work::Turns { clock, instances, pipes } => return bench.turns(clock, &instances, pipes, false),
        Work::Watched { instances, pipes } => {
            let Some(Ok((clock, _))) = report.clock else { return 2 };
            return bench.turns(clock, &instances, pipes, true);
        }
    }
    0
}

struct Bench<'a> {
    shared: &'a SharedResults,
    find: Find,
    context: Context,
}

impl Bench<'_> {
    /// The order in which instances are made: first those that fork this process, so that the copies have no memory of the others.
    fn making_order(&self, orders: &[InstanceOrder]) -> Vec<usize> {
        let forks = |order: &InstanceOrder| {
            (self.find)(&order.benchmark).is_some_and(|benchmark| (benchmark.forks)(&order.params))
        };
        let mut order: Vec<usize> = (0..orders.len()).collect();
        order.sort_by_key(|&index| !forks(&orders[index]));
        order
    }

    fn prepare(&mut self, order: &InstanceOrder) -> Result<(&'static Benchmark, Instance)> {
        let benchmark = (self.find)(&order.benchmark);
        let benchmark = benchmark.ok_or_else(|| fail!("no such benchmark"))?;
        let instance = benchmark.instance(&order.params, &mut self.context)?;
        Ok((benchmark, instance))
    }

    fn calibration(&mut self, clock: Clock, instances: &[InstanceOrder], deadline: u64) {
        for (made, index) in self.making_order(instances).into_iter().enumerate() {
            let order = &instances[index];
            self.shared.enter(index);
            let began = clock::monotonic();
            let share = deadline.saturating_sub(began) / (instances.len() - made) as u64;
            let state = self.prepare(order).and_then(|(benchmark, instance)| {
                let setup =
                    Duration::from_nanos(clock::monotonic() - began).saturating_sub(instance.spent_once);
                try_out(self.shared, clock, benchmark, instance, setup, began + share)
            });
            self.shared.set_instance(index, &state);
            self.shared.leave();
        }
    }

    fn rounds(&mut self, clock: Clock, orders: &[InstanceOrder], seed: u64, deadline: u64) {
        let instances = self.make_ready(orders);
        let kept = vec![None; orders.len()];
        RoundRunner { shared: self.shared, clock, orders, instances, kept }.run(seed, deadline);
    }

    fn turns(&mut self, clock: Clock, orders: &[InstanceOrder], pipes: [i32; 2], is_sample: bool) -> i32 {
        let Ok(pipes) = Pipes::open(pipes) else { return 2 };
        let instances = self.make_ready(orders);
        let runner = TurnRunner { shared: self.shared, clock, orders, instances, is_sample };
        i32::from(runner.run(pipes).is_err())
    }

    fn make_ready(&mut self, orders: &[InstanceOrder]) -> Vec<Ready> {
        let mut instances = Vec::new();
        for index in self.making_order(orders) {
            let order = &orders[index];
            self.shared.enter(index);
            let state = self.prepare(order).and_then(|(benchmark, instance)| {
                // A limit can change between processes.
                if instance.ready.ops != order.ops {
                    let (now, then) = (instance.ready.ops, order.ops);
                    return Err(fail!(
                        "an iteration has {now} operations now, but had {then} in the calibration"
                    ));
                }
                let entry = instance.ready.entry.or_else(|| loop_address(&(benchmark.timed)(&order.params)));
                let state = Readiness { entry, ..instance.ready.clone() };
                let slow_down = SlowDown::new(benchmark, order.iterations);
                instances.push(Ready { index, benchmark, instance, slow_down });
                Ok(state)
            });
            self.shared.set_instance(index, &state);
        }
        instances
    }
}

/// Raises the iterations until a batch is long enough to be timed, then takes the shortest of a few. The search ends at `until`.
fn try_out(
    shared: &SharedResults,
    clock: Clock,
    benchmark: &Benchmark,
    mut instance: Instance,
    setup: Duration,
    until: u64,
) -> Result<Readiness> {
    const LONG_ENOUGH: u64 = 20_000; // nanoseconds
    const TRIES: usize = 4;
    /// A batch of this length is not retried after a disturbance, because most such batches have one.
    const SLOW: u64 = 100_000_000; // nanoseconds
    /// Time of all tries together: one batch of milliseconds is exact enough.
    const ENOUGH: u64 = 2_000_000; // nanoseconds
    const MOST: u64 = 1 << 16;
    let most = instance.ready.most.min(MOST);
    // Nanoseconds of the timed part, and of the whole batch. A disturbed batch is retried: an operation that other work delayed by
    // milliseconds must not count as slow, because it would then be measured in batches of one.
    let mut takes = |iterations: u64| {
        let mut attempts = 0;
        loop {
            attempts += 1;
            shared.beat();
            let began = clock::monotonic();
            let batch = run_batch(benchmark, &mut instance, clock, Order::new(iterations))?;
            let timed = clock.nanoseconds(batch.work as f64) as u64;
            let took = clock::monotonic() - began;
            if batch.undisturbed || attempts == TRIES || took > SLOW {
                return Ok((timed, took));
            }
        }
    };
    let mut iterations = 1;
    let mut shortest: (u64, u64) = takes(iterations)?;
    // All the untimed time of one iteration may be fixed.
    let mut fixed = shortest.1.saturating_sub(shortest.0);
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
    fixed = fixed.min(shortest.1.saturating_sub(shortest.0));
    // Rounded up, because an iteration of less than a nanosecond must not become zero.
    let per_iteration = |time: u64| Duration::from_nanos(time.div_ceil(iterations).max(1));
    let (cost, whole) = (per_iteration(shortest.0), per_iteration(shortest.1 - fixed));
    let fixed = Duration::from_nanos(fixed);
    Ok(Readiness { cost, whole, fixed, setup, ..instance.ready })
}

fn run_batch(benchmark: &Benchmark, instance: &mut Instance, clock: Clock, order: Order) -> Result<Batch> {
    let batch = instance.counted_batch(clock, order)?;
    let operations = order.all() * instance.ready.ops;
    if let Some(share) = benchmark.share {
        let looked_at = operations / share.one_of.max(1);
        return match batch.counted {
            Some(events) if events > looked_at => Err(fail!("{events} of {looked_at} {}", share.what)),
            _ => Ok(batch),
        };
    }
    let Some(what) = benchmark.counts else { return Ok(batch) };
    match batch.counted {
        Some(events) if events == operations || !batch.undisturbed => Ok(batch),
        Some(events) => Err(fail!("{events} {what} were counted in {operations} operations")),
        None => Err(fail!("{what} were not counted")),
    }
}

fn events_of(batch: &Batch) -> Events {
    let mut events = Events::default();
    events[0] = batch.counted.unwrap_or(0);
    events[1..OWN_EVENTS].copy_from_slice(&batch.counters);
    events[OWN_EVENTS..].copy_from_slice(&batch.tally.words());
    events
}

pub(crate) fn iterations_for(cost: Duration) -> u64 {
    const MOST: u64 = 1 << 14;
    (BATCH_TIME.as_nanos() / cost.as_nanos().max(1)).clamp(1, u128::from(MOST)) as u64
}

struct RoundRunner<'a> {
    shared: &'a SharedResults,
    clock: Clock,
    orders: &'a [InstanceOrder],
    instances: Vec<Ready>,
    kept: Vec<Option<Kept>>,
}

struct Ready {
    index: usize,
    benchmark: &'static Benchmark,
    instance: Instance,
    slow_down: SlowDown,
}

#[derive(Clone)]
struct Kept {
    round: usize,
    events: Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundEnd {
    Whole,
    /// An instance failed and is removed; the others continue.
    Broken,
    OutOfTime,
}

impl RoundRunner<'_> {
    fn run(mut self, seed: u64, deadline: u64) {
        let mut random = Random::new(seed);
        for _ in 0..WARM_UP_ROUNDS {
            random.shuffle(&mut self.instances);
            if self.round(None, deadline) == RoundEnd::OutOfTime {
                break;
            }
        }
        let shared = self.shared;
        while shared.rounds() < MAX_ROUNDS {
            random.shuffle(&mut self.instances);
            if shared.rounds() == 0 {
                // All are due in the first round. Long batches come last, in case the time is short.
                let orders = self.orders;
                self.instances.sort_by_key(|ready| orders[ready.index].stride);
            }
            match self.round(Some(shared.rounds()), deadline) {
                RoundEnd::Whole => shared.finish_round(),
                RoundEnd::Broken => self.discard_round(shared.rounds()),
                // A first round may have batches of a second and more, so its records are kept.
                RoundEnd::OutOfTime if shared.rounds() == 0 => {
                    shared.finish_round();
                    break;
                }
                RoundEnd::OutOfTime => {
                    self.discard_round(shared.rounds());
                    break;
                }
            }
        }
        shared.leave();
    }

    /// Runs one batch of every due instance, recorded as round `record`. Without a record, it warms up the instances that are always due.
    fn round(&mut self, record: Option<usize>, deadline: u64) -> RoundEnd {
        for position in 0..self.instances.len() {
            let Ready { index, benchmark, instance, slow_down } = &mut self.instances[position];
            let (index, orders, slow_down) = (*index, &self.orders[*index], *slow_down);
            let due = record.map_or(orders.stride == 1, |round| round.is_multiple_of(orders.stride));
            if !due {
                continue;
            }
            if clock::monotonic() >= deadline {
                return RoundEnd::OutOfTime;
            }
            self.shared.enter(index);
            let order = Order { iterations: orders.iterations, extra: slow_down.extra };
            let batch = match run_batch(benchmark, instance, self.clock, order) {
                Ok(batch) => batch,
                Err(refusal) => {
                    self.shared.set_instance(index, &Err(refusal));
                    self.instances.remove(position);
                    return RoundEnd::Broken;
                }
            };
            let Some(round) = record else { continue };
            if !batch.undisturbed {
                self.shared.set_slot(round, index, Slot::Discarded);
                continue;
            }
            let net = batch.work as i64 - batch.empty as i64;
            self.shared.set_slot(round, index, Slot::Kept(slow_down.net(net)));
            let events = events_of(&batch);
            self.shared.add_events(index, events);
            self.kept[index] = Some(Kept { round, events });
        }
        RoundEnd::Whole
    }

    fn discard_round(&mut self, round: usize) {
        for (index, kept) in self.kept.iter_mut().enumerate() {
            self.shared.set_slot(round, index, Slot::Empty);
            if let Some(batch) = kept.take_if(|batch| batch.round == round) {
                self.shared.take_back_events(index, batch.events);
            }
        }
    }
}
