//! The child's side: one process that makes arms ready, tries them, or runs rounds of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::{Params, stats};

use super::arm::Arm;
use super::clock::{self, Clock, FrequencySource};
use super::cpu;
use super::ledger::{ArmState, Cell, Events, Ledger, MAX_ROUNDS, Readiness};
use super::own::BLOCK;
use super::random::Random;
use super::room::{self, Room};
use super::site::{self, Site};
use super::station::{Block, Order, Refusal};
use crate::probe::Probe;

/// What a bench process is called among the processes of the machine, and how it knows itself.
pub(super) const NAME: &str = "tollgate-bench";

/// What a process is told, through the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Task {
    /// The processor to stay on.
    pub cpu: Option<usize>,
    /// The processors that the program may use; its parent may have moved aside.
    pub allowed: Vec<usize>,
    /// What may be taken.
    pub room: Room,
    /// Where files are measured, or why they cannot be.
    pub site: Result<Site, String>,
    pub work: Work,
}

impl Task {
    /// How many arms it is about.
    pub fn arms(&self) -> usize {
        self.orders().len()
    }

    fn orders(&self) -> &[ArmOrder] {
        match &self.work {
            Work::Clock => &[],
            Work::Audition { arms, .. } | Work::Rounds { arms, .. } => arms,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Work {
    /// Find out which clock can be used.
    Clock,
    /// Make each arm ready by itself and find out what one iteration costs, in about so much time
    /// (CLOCK_MONOTONIC, nanoseconds) for all of them.
    Audition { clock: Clock, arms: Vec<ArmOrder>, deadline: u64 },
    /// Run rounds of all arms.
    Rounds { clock: Clock, arms: Vec<ArmOrder>, seed: u64, until: Until },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ArmOrder {
    pub probe: String,
    pub params: Params,
    /// Operations that an iteration was found to make; 0 where nobody knows yet.
    pub ops: u64,
    /// Iterations of the loop in a block.
    pub iterations: u64,
    /// More of them than are counted: a test that slows an arm on purpose.
    pub extra: u64,
    /// Whether rounds go on until this arm's interval is narrow.
    pub decides: bool,
    /// It takes part in every so-many-th round, from the first on: a block that takes long is not due in each.
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

/// By which a bench process knows the probes that it is told of.
pub(super) type Find = fn(&str) -> Option<&'static Probe>;

static SERVES: AtomicBool = AtomicBool::new(false);

/// Where the bench process says that something happened.
static HEART: OnceLock<&AtomicU64> = OnceLock::new();

/// Says that an arm whose block takes long does not hang. In a process that an arm forked as well.
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
pub fn enter_if_told(find: fn(&str) -> Option<&'static Probe>) {
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
    match Ledger::open(file) {
        Ok(ledger) => std::process::exit(serve(&ledger, find)),
        Err(_) => std::process::exit(2),
    }
}

/// The kernel kills this process when `parent` goes away, however it goes.
pub(crate) fn die_with_parent(parent: i32) {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number (prctl(2)).
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // It may have gone before we asked.
    // SAFETY: getppid(2) has no preconditions.
    if unsafe { libc::getppid() } != parent {
        // SAFETY: ends this process at once; nothing of it is worth running down.
        unsafe { libc::_exit(2) };
    }
}

/// Does what the ledger says. Returns the exit status.
pub(super) fn serve(ledger: &Ledger, find: Find) -> i32 {
    let Ok(task) = serde_json::from_str::<Task>(&ledger.order()) else { return 2 };
    // SAFETY: getppid(2) has no preconditions.
    let parent = unsafe { libc::getppid() };
    // The ledger stays for as long as this process does.
    let _ = HEART.set(ledger.heart());
    cpu::allow(&task.allowed);
    cpu::remember(&task.allowed);
    let uses_site = task.orders().iter().any(|order| Site::is_used_by(&order.probe));
    room::set(task.room);
    if uses_site {
        site::set(task.site);
        // Another identity clears the signal for a moment, in which the parent may have gone.
        die_with_parent(parent);
    } else {
        site::set_unused();
    }
    if task.work == Work::Clock {
        find_clock(ledger);
    }
    // Where pinning is refused the run goes on and says so; the rounds themselves notice every move.
    if let Some(Err(error)) = task.cpu.map(cpu::pin) {
        ledger.set_pinned(error.raw_os_error().unwrap_or(libc::EIO));
    }
    match task.work {
        Work::Clock => {}
        Work::Audition { clock, arms, deadline } => audition(ledger, find, clock, &arms, deadline),
        Work::Rounds { clock, arms, seed, until } => rounds(ledger, find, clock, &arms, seed, until),
    }
    0
}

fn find_clock(ledger: &Ledger) {
    match Clock::tsc() {
        Ok((clock, source)) => ledger.set_clock([1, clock.hz(), source_code(source)], ""),
        Err(fault) => ledger.set_clock([2, 0, 0], &fault.to_string()),
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
pub(super) fn found_clock(ledger: &Ledger) -> Option<(Clock, Option<FrequencySource>, String)> {
    let ([kind, hz, source], why) = ledger.clock();
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

fn prepare(find: Find, order: &ArmOrder) -> Result<Arm, Refusal> {
    match find(&order.probe) {
        Some(probe) => (probe.arm)(probe, &order.params),
        None => Err(Refusal::Fail("no such probe".to_owned())),
    }
}

fn refusal_state(refusal: Refusal) -> ArmState {
    match refusal {
        Refusal::Skip(why) => ArmState::Skipped(why),
        Refusal::Fail(error) => ArmState::Failed(error),
    }
}

fn audition(ledger: &Ledger, find: Find, clock: Clock, arms: &[ArmOrder], deadline: u64) {
    for (index, order) in arms.iter().enumerate() {
        ledger.enter(index);
        let began = clock::monotonic();
        let share = deadline.saturating_sub(began) / (arms.len() - index) as u64;
        let state = prepare(find, order).map_err(refusal_state).and_then(|arm| {
            let setup = Duration::from_nanos(clock::monotonic() - began).saturating_sub(arm.spent_once);
            try_out(ledger, clock, find(&order.probe), arm, setup, began + share)
        });
        ledger.set_arm(index, &state.unwrap_or_else(|refused| refused));
        ledger.leave();
    }
}

/// Raises the iterations until a block is long enough to be timed, then takes the shortest of a few.
/// Where processors are short each block may wait its turn: after `until` what is known must do.
fn try_out(
    ledger: &Ledger,
    clock: Clock,
    probe: Option<&Probe>,
    mut arm: Arm,
    setup: Duration,
    until: u64,
) -> Result<ArmState, ArmState> {
    const LONG_ENOUGH: u64 = 20_000; // nanoseconds
    const TRIES: usize = 4;
    /// What the tries may take together: a block of milliseconds is known well enough after one.
    const ENOUGH: u64 = 2_000_000; // nanoseconds
    const MOST: u64 = 1 << 16;
    let most = arm.most_iterations.min(MOST);
    // Nanoseconds of the timed part, and of everything.
    let mut takes = |iterations: u64| {
        ledger.beat();
        let began = clock::monotonic();
        let block =
            run_block(probe, &mut arm, clock, Order { iterations, extra: 0 }).map_err(refusal_state)?;
        let timed = clock.nanoseconds(block.work as f64) as u64;
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
    Ok(ready(&arm, Readiness { cost, whole, setup, ..Readiness::default() }))
}

fn ready(arm: &Arm, known: Readiness) -> ArmState {
    let (ops, most) = (arm.ops_per_iteration, arm.most_iterations);
    let [experiment, stage] = [&arm.experiment, &arm.stage].map(|name| name.as_deref().map_or(0, number_of));
    ArmState::Ready(Box::new(Readiness {
        ops,
        most,
        experiment,
        stage,
        notes: arm.notes.join("\n"),
        ..known
    }))
}

/// A number for a name, the same in every process, and not 0.
fn number_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish().max(1)
}

/// One block. What was counted in it must be what was asked for, or what was timed is something else.
fn run_block(probe: Option<&Probe>, arm: &mut Arm, clock: Clock, order: Order) -> Result<Block, Refusal> {
    let block = arm.station.block(clock, order)?;
    let operations = (order.iterations + order.extra) * arm.ops_per_iteration;
    if let Some(share) = probe.and_then(|probe| probe.share) {
        let looked_at = operations / share.one_of.max(1);
        return match block.counted {
            Some(events) if events > looked_at => {
                Err(Refusal::Fail(format!("{events} of {looked_at} {}", share.what)))
            }
            _ => Ok(block),
        };
    }
    let Some(what) = probe.and_then(|probe| probe.counts) else { return Ok(block) };
    match block.counted {
        Some(events) if events == operations || !block.undisturbed => Ok(block),
        Some(events) => {
            Err(Refusal::Fail(format!("{events} {what} were counted in {operations} operations")))
        }
        None => Err(Refusal::Fail(format!("{what} were not counted"))),
    }
}

fn events_of(block: &Block) -> Events {
    let mut events = Events::default();
    events[0] = block.counted.unwrap_or(0);
    events[1..].copy_from_slice(&block.tallies);
    events
}

/// Iterations whose block takes about [`BLOCK`].
pub(super) fn iterations_for(cost: Duration) -> u64 {
    const MOST: u64 = 1 << 14;
    (BLOCK.as_nanos() / cost.as_nanos().max(1)).clamp(1, u128::from(MOST)) as u64
}

fn rounds(ledger: &Ledger, find: Find, clock: Clock, orders: &[ArmOrder], seed: u64, until: Until) {
    let mut field = Field { ledger, clock, orders, arms: Vec::new(), kept: vec![Vec::new(); orders.len()] };
    field.make_ready(find);
    let mut random = Random::new(seed);
    for _ in 0..WARM_UP_ROUNDS {
        random.shuffle(&mut field.arms);
        if field.round(None, until.deadline) == End::OutOfTime {
            break;
        }
    }
    while ledger.rounds() < MAX_ROUNDS {
        random.shuffle(&mut field.arms);
        if ledger.rounds() == 0 {
            // All are due, and where there is not time for all, those that take long are few.
            field.arms.sort_by_key(|ready| orders[ready.index].stride);
        }
        match field.round(Some(ledger.rounds()), until.deadline) {
            End::Whole => ledger.finish_round(),
            End::Broken => field.forget(ledger.rounds()),
            // A first round may hold blocks of a second and more: what it has is worth keeping.
            End::OutOfTime if ledger.rounds() == 0 => {
                ledger.finish_round();
                break;
            }
            End::OutOfTime => {
                field.forget(ledger.rounds());
                break;
            }
        }
        let look = ledger.rounds().is_multiple_of(LOOK_EVERY);
        if look && clock::monotonic() >= until.not_before && field.all_narrow(until.precision) {
            break;
        }
    }
    ledger.leave();
}

/// The arms of a process, and what it has of them so far.
struct Field<'a> {
    ledger: &'a Ledger,
    clock: Clock,
    orders: &'a [ArmOrder],
    arms: Vec<Ready>,
    /// The kept blocks, by order.
    kept: Vec<Vec<Kept>>,
}

/// An arm that is ready.
struct Ready {
    /// Its place among the orders.
    index: usize,
    probe: Option<&'static Probe>,
    arm: Arm,
}

/// A kept block.
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
    /// An arm went wrong and is out; the others go on.
    Broken,
    OutOfTime,
}

impl Field<'_> {
    fn make_ready(&mut self, find: Find) {
        for (index, order) in self.orders.iter().enumerate() {
            self.ledger.enter(index);
            match prepare(find, order) {
                // How many of something there is room for can change from process to process.
                Ok(arm) if arm.ops_per_iteration != order.ops => {
                    let (now, then) = (arm.ops_per_iteration, order.ops);
                    let why =
                        format!("it makes {now} operations at a time now, and {then} when it was tried");
                    self.ledger.set_arm(index, &ArmState::Failed(why));
                }
                Ok(arm) => {
                    self.ledger.set_arm(index, &ready(&arm, Readiness::default()));
                    self.arms.push(Ready { index, probe: find(&order.probe), arm });
                }
                Err(refusal) => self.ledger.set_arm(index, &refusal_state(refusal)),
            }
        }
    }

    /// One block of every arm that is due, recorded as round `record`; without, to warm up those that are due
    /// in each round.
    fn round(&mut self, record: Option<usize>, deadline: u64) -> End {
        for position in 0..self.arms.len() {
            let Ready { index, probe, arm } = &mut self.arms[position];
            let (index, orders) = (*index, &self.orders[*index]);
            let due = record.map_or(orders.stride == 1, |round| round.is_multiple_of(orders.stride));
            if !due {
                continue;
            }
            if clock::monotonic() >= deadline {
                return End::OutOfTime;
            }
            self.ledger.enter(index);
            let order = Order { iterations: orders.iterations, extra: orders.extra };
            let block = match run_block(*probe, arm, self.clock, order) {
                Ok(block) => block,
                Err(refusal) => {
                    self.ledger.set_arm(index, &refusal_state(refusal));
                    self.arms.remove(position);
                    return End::Broken;
                }
            };
            let Some(round) = record else { continue };
            if !block.undisturbed {
                self.ledger.set_cell(round, index, Cell::Dropped);
                continue;
            }
            let net = block.work as i64 - block.empty as i64;
            self.ledger.set_cell(round, index, Cell::Kept(net));
            let events = events_of(&block);
            self.ledger.add_events(index, events);
            self.kept[index].push(Kept { round, net_ticks: net as f64, events });
        }
        End::Whole
    }

    /// A round that did not come to its end did not happen.
    fn forget(&mut self, round: usize) {
        for (index, kept) in self.kept.iter_mut().enumerate() {
            self.ledger.set_cell(round, index, Cell::Empty);
            while let Some(block) = kept.pop_if(|block| block.round == round) {
                self.ledger.take_back_events(index, block.events);
            }
        }
    }

    /// Whether every interval that counts is narrow. An arm that is not due in each round never has an interval
    /// within one process: it does not count.
    fn all_narrow(&self, precision: f64) -> bool {
        let counting =
            self.orders.iter().zip(&self.kept).filter(|(order, _)| order.decides && order.stride == 1);
        counting.into_iter().all(|(_, kept)| is_narrow(kept, precision))
    }
}

fn is_narrow(kept: &[Kept], precision: f64) -> bool {
    let samples: Vec<f64> = kept.iter().map(|block| block.net_ticks).collect();
    let (Some(median), Some(interval)) =
        (stats::median(&samples), stats::median_interval(&samples, CONFIDENCE))
    else {
        return false;
    };
    interval.high - interval.low <= 2.0 * precision * median.abs()
}
