//! The engine measures a selection of benchmarks: it turns "measure these cases" into samples.
//!
//! [`measure()`] is the entry. It calibrates each case alone, then runs rounds of batches in fresh bench processes
//! until every CI is narrow or the time is over. [`session::measure_in`] measures several environments, with an agent
//! in each, and lets their bench processes take turns. The modules, from top to bottom:
//!
//! - What to measure: `benchmark` (suites, benchmarks, cases), `aspect` (of an environment itself), `selection` (the chosen cases), `plan` (how a run spends
//!   its time), `limits` and `storage` (processes, memory and the directory that a run may use).
//! - The parent: `measure` (a run from calibration to findings), `schedule` and `case_state` (the cases of one suite and
//!   their batch order), `supervisor` (starts, watches and ends bench processes), `group` (process groups that end
//!   together), `ending` (how a process ended), `interrupt` (requests to stop).
//! - Several environments: `session` (their coordinator) and `agent` (this program in one of them).
//! - Whole commands of the user, in alternation: `versus`; the benches of builds: `benches`.
//! - The border: `shared` (the memory in which a bench process leaves its results), `record` (the same as plain data).
//! - The bench process: `worker` (calibrates instances, runs rounds of them or takes turns), `instance` (a case that is ready to run),
//!   `runner` (the interface of everything that runs batches).
//! - Ways to run a batch: `timed` (loops written in instructions), `compat` (the same in a 32-bit program), `contended`
//!   (a loop with partners on other processors), `parallel` (threads or processes that make one operation at the same time),
//!   `settling` (a loop in its steady state), `own_process` (instances in a process of their own), `experiment` (one action that gives several measurements).
//! - Tools: `clock` (the only clock), `cpu` (affinity and switches), `affinity` (whether it binds), `own` (the
//!   engine's measurements of itself: detection limit, loop overhead, timer overhead), `events` (what is counted beside the time).

// First, since its macros are known from here on.
#[macro_use]
mod refusal;

mod affinity;
pub mod agent;
pub mod aspect;
pub mod benches;
pub mod benchmark;
mod case_state;
pub mod clock;
mod commands;
mod compat;
pub mod contended;
mod context;
pub mod cpu;
mod ending;
pub mod events;
pub mod experiment;
#[cfg(test)]
mod faults;
mod fixture;
pub mod group;
mod headline;
mod heartbeat;
pub mod instance;
pub mod interrupt;
pub mod limits;
pub mod mapping;
mod measure;
mod memory;
mod other_cpus;
mod own;
pub mod own_process;
pub mod parallel;
pub mod plan;
mod record;
#[cfg(test)]
mod recorded;
mod run;
mod runner;
mod schedule;
pub mod selection;
pub mod session;
mod settling;
mod shared;
mod slow_down;
mod storage;
mod supervisor;
pub mod timed;
pub mod topology;
pub mod versus;
mod worker;

pub use aspect::Aspect;
pub use benchmark::{
    Benchmark, Chosen, Commands, Company, Extent, Kind, PLAIN, Share, Suite, TIME_OF_MEMORY, each, each_word,
    never_absent, no_case, number, one_case, params, word,
};
pub use clock::{Clock, Span};
pub use compat::Entry;
pub use contended::{Contended, Contender, ContendingLoop, Partner};
pub use context::Context;
pub use cpu::CpuShare;
pub use ending::{Ending, signal_name};
pub use experiment::{Experiment, Shared};
pub use fixture::{Execution, Fixture, Step, Stop};
pub use headline::{Headline, Section};
pub use heartbeat::Heartbeat;
pub use instance::{Instance, Loop};
pub use limits::{Allowed, Limits, Quota, Reserved, Taken};
pub use measure::{INTERRUPTED, measure};
pub use own::{OWN_BENCHMARKS, REFUSED_CALL};
pub use own_process::OwnProcess;
pub use plan::{Length, Place, Plan};
pub use refusal::{OrRefused, Refusal, Result, checked};
pub use run::{BenchError, Decided, Findings, Progress, RunContext};
pub use runner::{Batch, BatchHooks, Counters, Order, Runner, until_undisturbed};
pub use selection::{Group, Selection};
pub use settling::Settling;
pub use shared::MAX_INSTANCES;
pub use storage::Storage;
pub use timed::{LongLoop, LoopContext, Timed, TimedLoop, run_empty};
pub use tollgate_model::stats::random::Random;
pub use topology::Topology;
pub use worker::serve_if_worker;
