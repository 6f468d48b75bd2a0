//! Real programs on a source tree of our own: what somebody who works on a program waits for all day.
//!
//! `source` is the tree and all that is known of it, `ground` the tree on disk and what is made beside it, `command` a
//! program that is run or followed, `cache` puts the tree's pages into memory or out of it; `work` is what the benchmarks, one
//! file each, have in common, and `course` runs them, one after the other.

use std::time::Duration;

use tollgate_model::Boundary::{self, BlockRead, IdleExit, ReadAhead};
use tollgate_model::Params;

use tollgate_engine::benchmark::{self, Benchmark, Chosen, Commands, Means, Suite, word};

mod archive;
mod build;
mod cache;
mod checkout;
mod command;
mod digest;
mod fixture;
mod grep;
mod history;
mod schedule;
mod source;
mod tags;
#[cfg(test)]
mod tests;
mod unpack;
mod work;

pub use source::Size;

/// The workloads.
pub(crate) static SUITE: Suite = Suite {
    name: "workloads",
    about: "Real programs on a source tree that tollgate makes itself, followed; only where they are asked for.",
    benchmarks: &[
        &checkout::BENCHMARK,
        &tags::BENCHMARK,
        &build::BENCHMARK,
        &unpack::BENCHMARK,
        &grep::BENCHMARK,
    ],
    control: None,
    means: Means::Commands(&COMMANDS),
};

static COMMANDS: Commands = Commands { usual: usual_time, measure: schedule::measure };

/// How each benchmark's case is made ready.
const READY: [(&Benchmark, work::Ready); 5] = [
    (&checkout::BENCHMARK, checkout::ready),
    (&tags::BENCHMARK, tags::ready),
    (&build::BENCHMARK, build::ready),
    (&unpack::BENCHMARK, unpack::ready),
    (&grep::BENCHMARK, grep::ready),
];

/// For [`Benchmark::crossed_in`]: storage is read where pages are out of memory.
fn crossed_in(params: &Params, boundary: Boundary) -> bool {
    match boundary {
        BlockRead | ReadAhead | IdleExit => word(params, "cache") == "cold",
        _ => true,
    }
}

/// The time for a tree of each size that is worked on.
fn usual_time(cases: &[Chosen]) -> Duration {
    let is_chosen = |size: &Size| cases.iter().any(|(_, params)| size_of(params) == Some(*size));
    Size::ALL.into_iter().filter(is_chosen).map(Size::usual_time).sum()
}

fn size_of(params: &Params) -> Option<Size> {
    Size::named(word(params, Size::PARAMETER))
}

/// The cases of a benchmark that has these parameters besides: each size, with pages out of memory and in it.
fn cases(others: &[Params]) -> Vec<Params> {
    let mut cases = Vec::new();
    for size in Size::ALL {
        for other in others {
            for cache in ["cold", "warm"] {
                let mut case =
                    benchmark::params(&[(Size::PARAMETER, size.name().into()), ("cache", cache.into())]);
                case.extend(other.clone());
                cases.push(case);
            }
        }
    }
    cases
}
