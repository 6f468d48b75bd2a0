//! Divides an operation's instructions among functions, in an environment whose instructions are counted.
//!
//! The case is counted first, as in a run. Then another such process takes samples while the instructions of the environment are
//! watched, and the agent names the kernel's functions. A watched sample with the row's count stands for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tollgate_model::{Outcome, Unit};

use super::agent_side::{AgentSide, unexpected};
use super::connection::{Gone, plain};
use super::counting::{self, MOST, STALL};
use super::iterations::{FunctionCount, Lengths, choose, functions, is_kernel, iterations};
use super::teller::Teller;
use super::{InstructionLog, Side, Watch};
use crate::bench_process::worker::{InstanceOrder, TurnOrder};
use crate::cases::plan::{Ordinal, Plan};
use crate::cases::run::{BenchError, Progress};
use crate::cases::selection::Group;
use crate::loops::instance::loop_address;
use crate::loops::timed::{Timed, TimedLoop};
use crate::machine::ending::Ending;
use crate::refusal::Refusal;
use crate::sides::agent::protocol::{Answer, Job, Request};

/// Samples before the watched ones.
const WARM_UP: usize = 3;
/// Samples to watch, and the number of instructions after which watching ends.
const SAMPLES: usize = 5;
/// Samples to watch if all are equal.
const EQUAL_SAMPLES: usize = 2;
const ENOUGH: usize = 4_000_000;
/// Functions that the agent is asked for in one message.
pub(super) const MOST_ADDRESSES: usize = 1 << 16;
const MOST_NAME: usize = 120;
const NO_LOOP: &str = "it is not a loop of instructions but whole operations, which are not separated";
/// Reading the symbols of a kernel takes a part of a second in the guest.
const SYMBOLS: Duration = Duration::from_secs(300);

/// An operation's instructions by function.
#[derive(Debug, Clone, PartialEq)]
pub struct Functions {
    /// Instructions of an operation, as a run counts them: the median of its samples.
    pub counted: f64,
    /// The least and the most of its samples; equal if the count is exact.
    pub range: (f64, f64),
    /// Operations in an iteration.
    pub operations: u64,
    /// Iterations over which the functions' instructions are summed.
    pub iterations: u64,
    /// Lengths of the iterations, in instructions.
    pub lengths: Lengths,
    /// In the order of their first execution.
    pub functions: Vec<FunctionCount>,
}

/// Counts the one case of this group in an environment, and divides an operation's instructions among functions.
///
/// # Errors
/// [`BenchError::NoEnvironment`] with a sentence; [`BenchError::Interrupted`].
pub fn explain_in(
    side: &mut Side<'_>,
    log: &mut dyn InstructionLog,
    group: &Group,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Functions, BenchError> {
    if let Some((benchmark, params)) = group.cases.first()
        && loop_address(&(benchmark.timed)(params)).is_none()
    {
        return Err(BenchError::NoEnvironment(format!("{}: {NO_LOOP}", benchmark.name)));
    }
    let place = Ordinal { number: 1, of: 1 };
    let schedules = vec![counting::schedule(group, place, side.has_disk)];
    // Counting takes none of a run's time.
    let plan = Plan::within(Duration::ZERO);
    let mut teller = Teller::new(watch, &plan);
    let mut side = AgentSide::new(side, schedules);
    let found = side.explain(log, &mut |what| teller.say(what, place));
    found.map_err(|gone| match gone {
        Gone::Interrupted(signal) => BenchError::Interrupted(signal),
        Gone::Lost(why) | Gone::Over(why) => BenchError::NoEnvironment(why),
    })
}

struct Counted {
    per_operation: f64,
    range: (f64, f64),
    /// Instructions of the median sample.
    ticks: i64,
    /// Its iterations are those of the shorter batch of a sample.
    order: InstanceOrder,
    in_batch: u64,
    is_called: bool,
}

/// A sample, and the addresses executed in about its time.
struct Watched {
    addresses: Vec<u64>,
    ticks: i64,
}

impl AgentSide<'_, '_> {
    fn explain(
        &mut self,
        log: &mut dyn InstructionLog,
        say: &mut dyn FnMut(String),
    ) -> Result<Functions, Gone> {
        let name = self.side.name.clone();
        say(format!("starting {name}"));
        self.start()?;
        self.settle(self.side.cpu.or(self.hello.usual))?;
        while self.count_one(0, &mut |what| say(format!("counting {what} in {name}")))? {}
        let counted = self.counted().map_err(Gone::Lost)?;
        say(format!("watching the instructions of {} in {name}", counted.order.benchmark));
        let (samples, entry) = self.watched(&counted, log)?;
        let sample = samples.iter().min_by_key(|sample| sample.ticks.abs_diff(counted.ticks));
        let addresses = sample.map(|sample| sample.addresses.as_slice()).unwrap_or_default();
        let all =
            iterations(addresses, entry, counted.in_batch as usize, counted.is_called).map_err(Gone::Lost)?;
        // The iterations that the longer batch of a sample has in addition.
        let looked_at = &all[all.len().saturating_sub(counted.order.iterations as usize)..];
        let chosen = choose(looked_at, counted.per_operation * counted.order.ops as f64);
        say(format!("reading the kernel's symbols in {name}"));
        let executed = || chosen.iterations.iter().flat_map(|range| &addresses[range.clone()]).copied();
        let names = self.names(executed().filter(|&address| is_kernel(address)).collect())?;
        let name = |address: u64| names.get(&address).map_or("(no function)", String::as_str);
        self.close();
        Ok(Functions {
            counted: counted.per_operation,
            range: counted.range,
            operations: counted.order.ops,
            iterations: chosen.iterations.len() as u64,
            lengths: chosen.lengths,
            functions: functions(executed(), name),
        })
    }

    fn counted(&self) -> Result<Counted, String> {
        let state = self.schedules.first().and_then(|schedule| schedule.single());
        let state = state.ok_or("only one case can be explained at a time")?;
        let case = state.case();
        let measurement = state.clone().conclude(case.suite(), self.clock, None);
        let measured = match measurement.outcome {
            Outcome::Measured(measured) if measured.unit == Unit::Bytes => {
                return Err(format!("{case}: it is an amount of memory, not of instructions"));
            }
            Outcome::Measured(measured) => measured,
            Outcome::Skipped { why }
            | Outcome::NotMeasured { why }
            | Outcome::Refused { why, .. }
            | Outcome::Failed { error: why } => {
                return Err(format!("{case}: {why}"));
            }
        };
        let per_operation = tollgate_model::stats::median(&measured.samples).unwrap_or_default();
        let range = measured.samples.iter().fold((per_operation, per_operation), |(least, most), &sample| {
            (sample.min(least), sample.max(most))
        });
        let mut ticks = state.batches.clone();
        ticks.sort_unstable();
        let ticks = ticks.get(ticks.len() / 2).copied().unwrap_or_default();
        let iterations = state.ready.counted.max(1);
        let longer = iterations.saturating_mul(2);
        let in_batch = if longer <= state.ready.most { longer } else { iterations };
        let order = InstanceOrder { iterations, ..state.order(1) };
        let timed = (state.benchmark.timed)(&state.params);
        let is_called = matches!(timed, Timed::Loop { code: TimedLoop::Long(code), .. } if code.is_called());
        Ok(Counted { per_operation, range, ticks, order, in_batch, is_called })
    }

    /// Samples of this instance with the addresses that the environment executed meanwhile, and the one where the loop begins.
    fn watched(
        &mut self,
        counted: &Counted,
        log: &mut dyn InstructionLog,
    ) -> Result<(Vec<Watched>, u64), Gone> {
        let case = &counted.order.benchmark;
        let job = Job::Watched { instances: vec![counted.order.clone()] };
        if let Some((ending, _)) = self.prepare(job, STALL, MOST, &mut |_| {})? {
            return Err(Gone::Lost(format!("{case}: its process ended ({ending:?}) before it was watched")));
        }
        for round in 0..WARM_UP {
            self.sample(round)?;
        }
        let (mut samples, mut all): (Vec<Vec<u64>>, usize) = (Vec::new(), 0);
        let most = if counted.range.0 == counted.range.1 { EQUAL_SAMPLES } else { SAMPLES };
        while samples.len() < most && all < ENOUGH {
            log.begin(Watch { take: 1, has_order: true, ..Watch::default() }).map_err(Gone::Lost)?;
            let sampled = self.sample(WARM_UP + samples.len());
            let windows = log.end().map_err(Gone::Lost);
            sampled?;
            let addresses: Vec<u64> = windows?.into_iter().flat_map(|window| window.order).collect();
            all += addresses.len();
            samples.push(addresses);
        }
        let ended = self.ask(&Request::End, MOST, 1, &mut |_| {})?;
        let instance = ended.and_then(|(_, record)| {
            let instance = record.instances.into_iter().next()?;
            let ticks: Vec<i64> = instance.batches(record.rounds).map(|(_, ticks)| ticks).collect();
            Some((instance.state?, ticks))
        });
        let (state, ticks) =
            instance.ok_or_else(|| Gone::Lost(format!("{case}: its process was not ready")))?;
        let ready = state.map_err(|refusal| Gone::Lost(format!("{case}: {}", Refusal::why(&refusal))))?;
        let entry = ready.entry.ok_or_else(|| Gone::Lost(format!("{case}: {NO_LOOP}")))?;
        let samples = samples.into_iter().zip(ticks.into_iter().skip(WARM_UP));
        Ok((samples.map(|(addresses, ticks)| Watched { addresses, ticks }).collect(), entry))
    }

    fn sample(&mut self, round: usize) -> Result<(), Gone> {
        let turn = TurnOrder { round, due: vec![0], warms_up: false };
        match self.ask(&Request::Turn(turn), MOST, 1, &mut |_| {})? {
            None => Ok(()),
            Some((Ending::Finished, _)) => Err(Gone::Lost("its process ended before its sample".to_owned())),
            Some((ending, _)) => Err(Gone::Lost(format!("its process ended before its sample: {ending:?}"))),
        }
    }

    pub(super) fn names(&mut self, addresses: BTreeSet<u64>) -> Result<BTreeMap<u64, String>, Gone> {
        let addresses: Vec<u64> = addresses.into_iter().take(MOST_ADDRESSES).collect();
        if addresses.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.send(&Request::Functions(addresses.clone()), SYMBOLS)?;
        match self.receive(SYMBOLS)? {
            Answer::Functions(names) if names.len() == addresses.len() => {
                let named = addresses.into_iter().zip(names);
                Ok(named.filter_map(|(address, name)| Some((address, plain(&name?, MOST_NAME)))).collect())
            }
            other => Err(unexpected(other)),
        }
    }
}
