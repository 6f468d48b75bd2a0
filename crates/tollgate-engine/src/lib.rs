//! The engine measures a selection of benchmarks: it turns "measure these cases" into samples.
//!
//! [`measure()`] is the entry. It calibrates each case alone, then runs rounds of batches in fresh bench processes until every CI
//! is narrow or the time is over. [`session::measure_in`] measures several environments, with an agent in each, and lets their
//! bench processes take turns. [`versus`] alternates whole commands of the user, [`benches`] the benches of builds.
//!
//! Its layers, from top to bottom; each may use those below it:
//!
//! - `sides`: several environments, commands or builds in alternation.
//! - `rounds`: a run in one environment, from calibration to findings.
//! - `bench_process`: the process in which benchmarks run, and the border to its parent.
//! - `cases`: what is measured, and how a run spends its time on it.
//! - `loops`: ways to run a batch of operations, and to count events next to its time.
//! - `machine`: clock, processors, memory and limits, and processes that end together.

// First, because the modules below use its macros.
#[macro_use]
mod refusal;

mod bench_process;
mod cases;
#[cfg(test)]
mod faults;
mod loops;
mod machine;
#[cfg(test)]
mod recorded;
mod rounds;
mod sides;

pub use bench_process::own::{OWN_BENCHMARKS, REFUSED_CALL};
pub use bench_process::shared::MAX_INSTANCES;
pub use bench_process::worker::serve_if_worker;
pub use cases::aspect::Aspect;
pub use cases::benchmark::{
    Baseline, Benchmark, Chosen, Commands, Company, Extent, Kind, PLAIN, Share, Suite, TIME_OF_MEMORY, each,
    each_word, no_case, number, one_case, params, word,
};
pub use cases::fixture::{Fixture, Repetition, Step, Stop};
pub use cases::headline::{Headline, Section};
pub use cases::plan::{Length, Ordinal, Plan};
pub use cases::run::{BenchError, Decided, Findings, Progress, RunContext};
pub use cases::selection::{Group, Selection};
pub use cases::{aspect, benchmark, plan, selection};
pub use loops::compat::Entry;
pub use loops::contended::{Contended, Contender, ContendingLoop, Partner};
pub use loops::context::Context;
pub use loops::experiment::{Experiment, Shared};
pub use loops::heartbeat::Heartbeat;
pub use loops::instance::{Instance, Loop};
pub use loops::own_process::OwnProcess;
pub use loops::runner::{Batch, BatchHooks, Counters, Order, Runner, until_undisturbed};
pub use loops::settling::Settling;
pub use loops::timed::{LongLoop, LoopContext, Timed, TimedLoop, run_empty};
pub use loops::{contended, events, experiment, instance, own_process, parallel, timed};
pub use machine::clock::{Clock, Span};
pub use machine::cpu::CpuShare;
pub use machine::ending::{Ending, signal_name};
pub use machine::limits::{Allowed, Limits, Quota, Reserved, Taken};
pub use machine::storage::Storage;
pub use machine::topology::Topology;
pub use machine::{clock, cpu, group, interrupt, limits, mapping, topology};
pub use refusal::{OrRefused, Refusal, Result, checked};
pub use rounds::measure::{INTERRUPTED, measure};
pub use sides::{agent, benches, session, versus};
pub use tollgate_arch::architecture::{Architecture, HERE};
pub use tollgate_arch::{bytes_between, compat_loop, contending_loop, timed_loop};
pub use tollgate_model::stats::random::Random;
