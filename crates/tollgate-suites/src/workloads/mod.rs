//! Real programs on a generated source tree: a programmer's daily work.
//!
//! `source` generates the tree and its known contents, `fixture` is the tree on disk with files next to it, `command`
//! runs or traces a program, `cache` fills or empties the page cache. `work` is the interface of the benchmarks, one
//! file each; `on_tree` prepares and executes them, one after the other.

mod archive;
mod build;
mod cache;
mod checkout;
mod command;
mod digest;
mod fixture;
mod grep;
mod history;
mod on_tree;
mod source;
mod tags;
#[cfg(test)]
mod tests;
mod unpack;
mod work;

pub use source::Size;
use work::Workload;

use crate::prelude::*;

pub(crate) static SUITE: Suite = Suite {
    name: "workloads",
    about: "Real programs on a generated source tree, traced; only on request.",
    benchmarks: &BENCHMARKS,
};

static WORKLOADS: [&Workload; 5] =
    [&checkout::WORKLOAD, &tags::WORKLOAD, &build::WORKLOAD, &unpack::WORKLOAD, &grep::WORKLOAD];

static BENCHMARKS: [&Benchmark; WORKLOADS.len()] = {
    let mut benchmarks = [&WORKLOADS[0].benchmark; WORKLOADS.len()];
    let mut at = 1;
    while at < WORKLOADS.len() {
        benchmarks[at] = &WORKLOADS[at].benchmark;
        at += 1;
    }
    benchmarks
};

const COMMAND: Benchmark = Benchmark {
    kind: Kind::Command(&Commands {
        usual: on_tree::usual_time,
        fixtures: on_tree::by_size,
        fixture: on_tree::make,
    }),
    crossed_in,
    cases: |_| cases(&[Params::new()]),
    uncounted: Some("a workload is a whole command; `tollgate versus --in vm:exact COMMAND` counts one"),
    uses_files: true,
    ..PLAIN
};

/// For [`Benchmark::crossed_in`]: storage is read if the cache is cold.
fn crossed_in(params: &Params, boundary: Boundary) -> bool {
    match boundary {
        BlockRead | ReadAhead | IdleExit => word(params, "cache") == "cold",
        _ => true,
    }
}

fn size_of(params: &Params) -> Option<Size> {
    Size::named(word(params, Size::PARAMETER))
}

/// Returns the cases of a benchmark with these further parameters: each size, with a cold and a warm cache.
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
