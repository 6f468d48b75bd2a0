//! The benchmarks of the registry, as `tollgate list` prints them.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_engine::{Baseline, Timed, Topology};
use tollgate_model::measurement::pairs;
use tollgate_model::{ParamValue, Params, Reach, Unit};
use tollgate_output::table::{heading, paragraph};
use tollgate_suites::{Benchmark, SUITES};

/// The benchmarks as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct List {
    /// In the order of tables.
    benchmarks: Vec<BenchmarkRecord>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Benchmark"))]
struct BenchmarkRecord {
    /// `suite/benchmark`.
    name: &'static str,
    /// Its suite.
    suite: &'static str,
    /// The measured operation, as a sentence.
    operation: &'static str,
    /// The boundaries that the operation crosses, in any of its cases, such as `kernel entry`.
    crosses: Vec<&'static str>,
    /// The instruction of this machine's architecture that makes the crossing, several separated by commas if cases differ; or None.
    instruction: Option<String>,
    /// The function of a benchmark that times whole operations instead of a loop of instructions, such as `fork(3)`, several
    /// separated by commas if cases differ; or None.
    interface: Option<String>,
    /// Why this machine's architecture does not have it, as a clause; or None.
    absent: Option<&'static str>,
    /// Unit of its samples.
    unit: Unit,
    /// The events that are counted beside the time, or None.
    counts: Option<&'static str>,
    /// The events that are counted for some of the operations, or None.
    share: Option<&'static str>,
    /// The other events that are counted in each batch.
    counters: &'static [&'static str],
    /// The parameters of each case; `[{}]` if its only case has none. Those of `memory` depend on the machine.
    params: Vec<Params>,
    /// The parameters of the cases that `--thorough` adds.
    thorough_params: Vec<Params>,
    /// The benchmark that it is compared with, or None.
    baseline: Option<&'static str>,
    /// If its cases are compared with one of its own, the parameters in which that one differs; or None.
    over: Option<Params>,
}

impl List {
    /// The chosen benchmarks with their cases on a machine, in the order of the registry.
    pub fn new(machine: &Topology, is_chosen: impl Fn(&Benchmark) -> bool) -> Self {
        let chosen =
            SUITES.iter().flat_map(|suite| suite.benchmarks).filter(|benchmark| is_chosen(benchmark));
        Self { benchmarks: chosen.map(|benchmark| BenchmarkRecord::new(benchmark, machine)).collect() }
    }
}

/// The chosen benchmarks with their cases on a machine as text, suite by suite.
pub fn text(machine: &Topology, is_chosen: impl Fn(&Benchmark) -> bool, width: usize) -> String {
    let mut text = String::new();
    for suite in SUITES {
        let mut chosen = suite.benchmarks.iter().filter(|benchmark| is_chosen(benchmark)).peekable();
        if chosen.peek().is_some() {
            text.push_str(&heading(&format!("{}: {}", suite.name, suite.about), width));
        }
        for benchmark in chosen {
            text.push_str(&format!("  {}\n", benchmark.name));
            text.push_str(&paragraph(&about(benchmark, machine), width, "      "));
        }
    }
    text
}

fn about(benchmark: &Benchmark, machine: &Topology) -> String {
    let with = |words: &str, what: Option<&str>| what.map(|what| format!(" {words}{what}."));
    let counters = (!benchmark.counters.is_empty()).then(|| benchmark.counters.join(", "));
    let share = benchmark.share.map(|share| format!("{} operations: {}", share.one_of, share.what));
    let said = [
        with("Instruction: ", instruction(benchmark, machine).as_deref()),
        with("Through ", interface(benchmark, machine).as_deref()),
        with("Counted: ", benchmark.counts),
        with("Counted for one in ", share.as_deref()),
        with("Also counted: ", counters.as_deref()),
        with("Not on this architecture: ", benchmark.why_absent(machine)),
        with("Crosses ", Some(&Reach::Boundaries(benchmark.crosses).to_string())),
        in_words(" Cases: ", &(benchmark.cases)(machine)),
        in_words(" With --thorough also: ", &(benchmark.thorough_cases)(machine)),
        with("Baseline: ", benchmark.baseline.benchmark()),
        with("Baseline: ", over(benchmark, machine).as_ref().map(pairs).as_deref()),
    ];
    std::iter::once(benchmark.operation.to_owned()).chain(said.into_iter().flatten()).collect()
}

fn over(benchmark: &Benchmark, machine: &Topology) -> Option<Params> {
    let cases = (benchmark.cases)(machine);
    cases.iter().find_map(|params| {
        let Baseline::Case(of) = benchmark.baseline else { return None };
        let mut over = of(params).filter(|base| cases.contains(base))?;
        over.retain(|name, value| params.get(name) != Some(value));
        (!over.is_empty()).then_some(over)
    })
}

/// ` Cases: instructions = 1, 32, 256.`; empty if its only case has no parameters.
fn in_words(what: &str, cases: &[Params]) -> Option<String> {
    let mut values: BTreeMap<&String, Vec<&ParamValue>> = BTreeMap::new();
    for (name, value) in cases.iter().flatten() {
        let values = values.entry(name).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    // Numbers are in their order, words in that of the cases.
    let is_number = |value: &&ParamValue| matches!(value, ParamValue::Number(_));
    values.values_mut().filter(|values| values.iter().all(is_number)).for_each(|values| values.sort());
    let of_each: Vec<String> =
        values.iter().map(|(name, values)| format!("{name} = {}", enumerated(values))).collect();
    // Not every combination is a case.
    let all: usize = values.values().map(Vec::len).product();
    let number = if all == cases.len() { String::new() } else { format!(" ({} in all)", cases.len()) };
    (!of_each.is_empty()).then(|| format!("{what}{}{number}.", of_each.join("; ")))
}

/// All values; if they are many, the first, the last and the number.
fn enumerated(values: &[&ParamValue]) -> String {
    const MANY: usize = 20;
    match values {
        [first, second, third, .., last] if values.len() > MANY => {
            format!("{first}, {second}, {third}, … {last} ({} values)", values.len())
        }
        _ => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

pub(crate) fn instruction(benchmark: &Benchmark, machine: &Topology) -> Option<String> {
    each_once(benchmark, machine, |timed| timed.instruction(machine.architecture))
}

/// The interface that it calls, if it is not a loop of instructions.
pub(crate) fn interface(benchmark: &Benchmark, machine: &Topology) -> Option<String> {
    each_once(benchmark, machine, |timed| match timed {
        Timed::Whole(interface) => Some(interface),
        Timed::Loop { .. } | Timed::Together { .. } => None,
    })
}

fn each_once(
    benchmark: &Benchmark,
    machine: &Topology,
    name: impl Fn(Timed) -> Option<&'static str>,
) -> Option<String> {
    let mut names = Vec::new();
    // Some benchmarks have only cases of --thorough.
    let mut cases = (benchmark.cases)(machine);
    if cases.is_empty() {
        cases = (benchmark.thorough_cases)(machine);
    }
    for name in cases.iter().filter_map(|params| name((benchmark.timed)(params))) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

impl BenchmarkRecord {
    fn new(benchmark: &'static Benchmark, machine: &Topology) -> Self {
        Self {
            name: benchmark.name,
            suite: benchmark.suite(),
            operation: benchmark.operation,
            crosses: benchmark.crosses.iter().map(|boundary| boundary.name()).collect(),
            instruction: instruction(benchmark, machine),
            interface: interface(benchmark, machine),
            absent: benchmark.why_absent(machine),
            unit: benchmark.unit,
            counts: benchmark.counts,
            share: benchmark.share.map(|share| share.what),
            counters: benchmark.counters,
            params: (benchmark.cases)(machine),
            thorough_params: (benchmark.thorough_cases)(machine),
            baseline: benchmark.baseline.benchmark(),
            over: over(benchmark, machine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_their_order_and_words_in_that_of_the_cases() {
        let case =
            |by: &str, bytes: u64| Params::from([("by".into(), by.into()), ("bytes".into(), bytes.into())]);
        let cases = [case("pipe", 1), case("pipe", 65536), case("eventfd", 8), case("futex", 4)];
        let said = " Cases: by = pipe, eventfd, futex; bytes = 1, 4, 8, 65536 (4 in all).";
        assert_eq!(in_words(" Cases: ", &cases).as_deref(), Some(said));
        let mixed = [case("pipe", 64), Params::from([("bytes".into(), "all".into())]), case("pipe", 8)];
        assert!(in_words("", &mixed).is_some_and(|said| said.contains("bytes = 64, all, 8")), "mixed");
    }
}
