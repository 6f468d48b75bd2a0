use super::channel::{self, Means};
use crate::memory;
use crate::prelude::*;

pub const SAME: &str = "same";
pub const THREADS: &str = "threads";
pub const PROCESSES: &str = "processes";

/// The values of `cpus` on a machine: one processor, or two, named by what they share.
fn processors(machine: &Topology) -> Vec<ParamValue> {
    let mut words = vec![SAME.into()];
    words.extend(memory::relations(machine));
    words
}

/// Returns every case of the channels that `takes` selects, in the order of tables.
fn all(machine: &Topology, takes: fn(&Means) -> bool) -> Vec<Params> {
    let processors = processors(machine);
    let mut cases = Vec::new();
    for means in channel::ALL.iter().filter(|means| takes(means)) {
        for &bytes in means.bytes {
            for between in [PROCESSES, THREADS] {
                // An end that polls keeps the other one off a shared processor.
                for cpus in processors.iter().filter(|cpus| means.sleeps || **cpus != SAME.into()) {
                    cases.push(params(&[
                        ("by", means.name.into()),
                        ("bytes", bytes.into()),
                        ("between", between.into()),
                        ("cpus", cpus.clone()),
                    ]));
                }
            }
        }
    }
    cases
}

pub fn of_round_trips(machine: &Topology) -> (Vec<Params>, Vec<Params>) {
    let is_smallest = |case: &Params| {
        channel::means(case).is_some_and(|means| means.bytes.first() == Some(&number(case, "bytes")))
    };
    all(machine, |_| true)
        .into_iter()
        .partition(|case| word(case, "between") == PROCESSES || is_smallest(case))
}

/// Cases of messages without answers, which need a channel that keeps them.
pub fn of_throughput(machine: &Topology) -> (Vec<Params>, Vec<Params>) {
    all(machine, |means| means.is_queue).into_iter().partition(|case| word(case, "between") == PROCESSES)
}

pub const CROSSED: &[Boundary] = &[
    KernelEntry,
    SystemCall,
    KernelCode,
    UserCopy,
    Socket,
    KernelAllocation,
    MemoryAccess,
    WakeUp,
    ContextSwitch,
    CacheLine,
    InterProcessorInterrupt,
    IdleExit,
];

pub fn crossed_in(params: &Params, boundary: Boundary) -> bool {
    let Some(means) = channel::means(params) else { return false };
    let is_apart = word(params, "cpus") != SAME;
    match boundary {
        WakeUp | ContextSwitch => means.sleeps,
        CacheLine => is_apart,
        InterProcessorInterrupt | IdleExit => is_apart && means.sleeps,
        other => means.crosses.contains(&other),
    }
}

pub fn timed(params: &Params) -> Timed {
    Timed::Whole(channel::means(params).map_or("", |means| means.calls))
}

/// Returns whether a case has this size and one of these triples: `by`, `between`, and whether `cpus` is `same`.
pub fn is_one_of(params: &Params, bytes: u64, some: &[(&str, &str, bool)]) -> bool {
    number(params, "bytes") == bytes
        && some.iter().any(|&(by, between, is_same)| {
            let is_on_one = word(params, "cpus") == SAME;
            word(params, "by") == by && word(params, "between") == between && is_on_one == is_same
        })
}
