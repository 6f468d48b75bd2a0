//! The child's side: one process that makes arms ready, tries them, or runs rounds of them.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::{Params, stats};

use super::arm::Arm;
use super::clock::{self, Clock, FrequencySource};
use super::cpu;
use super::ledger::{ArmState, Cell, Ledger, MAX_ROUNDS};
use super::own::BLOCK;
use super::random::Random;
use super::station::{Order, Refusal};
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
    pub work: Work,
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
    /// Iterations of the loop in a block.
    pub iterations: u64,
    /// More of them than are counted: a test that slows an arm on purpose.
    pub extra: u64,
    /// Whether rounds go on until this arm's interval is narrow.
    pub decides: bool,
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
pub(super) fn die_with_parent(parent: i32) {
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
    cpu::allow(&task.allowed);
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
        let now = clock::monotonic();
        let share = deadline.saturating_sub(now) / (arms.len() - index) as u64;
        let state = prepare(find, order).map_err(refusal_state);
        let state = state.and_then(|arm| try_out(ledger, clock, arm, now + share));
        ledger.set_arm(index, &state.unwrap_or_else(|refused| refused));
        ledger.leave();
    }
}

/// Raises the iterations until a block is long enough to be timed, then takes the shortest of a few.
/// Where processors are short each block may wait its turn: after `until` what is known must do.
fn try_out(ledger: &Ledger, clock: Clock, mut arm: Arm, until: u64) -> Result<ArmState, ArmState> {
    const LONG_ENOUGH: f64 = 20e3; // nanoseconds
    const TRIES: usize = 4;
    const MOST: u64 = 1 << 16;
    let mut takes = |iterations: u64| {
        ledger.beat();
        let block = arm.station.block(clock, Order { iterations, extra: 0 }).map_err(refusal_state)?;
        Ok(clock.nanoseconds(block.work as f64))
    };
    let mut iterations = 1;
    let mut shortest: f64 = takes(iterations)?;
    while shortest < LONG_ENOUGH && iterations < MOST && clock::monotonic() < until {
        iterations *= 4;
        shortest = takes(iterations)?;
    }
    for _ in 0..TRIES {
        if clock::monotonic() < until {
            shortest = shortest.min(takes(iterations)?);
        }
    }
    // Ceiling: an iteration that costs less than a nanosecond must not seem to cost nothing.
    let cost = Duration::from_nanos((shortest / iterations as f64).ceil().max(1.0) as u64);
    Ok(ready(&arm, cost))
}

fn ready(arm: &Arm, cost: Duration) -> ArmState {
    ArmState::Ready { cost, ops: arm.ops_per_iteration, notes: arm.notes.join("\n") }
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
            return ledger.leave();
        }
    }
    while ledger.rounds() < MAX_ROUNDS {
        random.shuffle(&mut field.arms);
        match field.round(Some(ledger.rounds()), until.deadline) {
            End::Whole => ledger.finish_round(),
            // What it had recorded is overwritten by the next round.
            End::Broken => continue,
            End::OutOfTime => break,
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
    /// Those that are ready, with their places among the orders.
    arms: Vec<(usize, Arm)>,
    /// Net ticks of the kept blocks, by order.
    kept: Vec<Vec<f64>>,
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
                Ok(arm) => {
                    self.ledger.set_arm(index, &ready(&arm, Duration::ZERO));
                    self.arms.push((index, arm));
                }
                Err(refusal) => self.ledger.set_arm(index, &refusal_state(refusal)),
            }
        }
    }

    /// One block of every arm, recorded as round `record`.
    fn round(&mut self, record: Option<usize>, deadline: u64) -> End {
        for position in 0..self.arms.len() {
            if clock::monotonic() >= deadline {
                return End::OutOfTime;
            }
            let (index, arm) = &mut self.arms[position];
            let index = *index;
            self.ledger.enter(index);
            let order = Order { iterations: self.orders[index].iterations, extra: self.orders[index].extra };
            let cell = match arm.station.block(self.clock, order) {
                Ok(block) if block.undisturbed => Cell::Kept(block.work as i64 - block.empty as i64),
                Ok(_) => Cell::Dropped,
                Err(refusal) => {
                    self.ledger.set_arm(index, &refusal_state(refusal));
                    self.arms.remove(position);
                    return End::Broken;
                }
            };
            let Some(round) = record else { continue };
            self.ledger.set_cell(round, index, cell);
            if let Cell::Kept(net) = cell {
                self.kept[index].push(net as f64);
            }
        }
        End::Whole
    }

    /// Whether every interval that counts is narrow.
    fn all_narrow(&self, precision: f64) -> bool {
        let counting = self.orders.iter().zip(&self.kept).filter(|(order, _)| order.decides);
        counting.into_iter().all(|(_, samples)| is_narrow(samples, precision))
    }
}

fn is_narrow(samples: &[f64], precision: f64) -> bool {
    let (Some(median), Some(interval)) =
        (stats::median(samples), stats::median_interval(samples, CONFIDENCE))
    else {
        return false;
    };
    interval.high - interval.low <= 2.0 * precision * median.abs()
}
