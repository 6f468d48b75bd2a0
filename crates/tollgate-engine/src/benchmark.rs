//! What a benchmark and a suite are.

use std::time::Duration;

use tollgate_model::{Boundary, Case, ParamValue, Params, Unit};

use crate::instance::Instance;
use crate::runner::Refusal;
use crate::timed::{EMPTY, Timed};
use crate::{BenchError, Findings, RunContext};

/// A folder of benchmarks whose instances share their rounds.
pub struct Suite {
    /// The first half of its benchmarks' names.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// In the order in which prices are shown.
    pub benchmarks: &'static [&'static Benchmark],
    /// The same code as the benchmark that it is `against`, as a second instance of the same rounds: how much
    /// two equal instances differ is the floor under every verdict.
    pub control: Option<&'static Benchmark>,
    /// How they are measured.
    pub means: Means,
}

/// How the cases of a suite are measured.
#[derive(Clone, Copy)]
pub enum Means {
    /// In batches, whose rounds bench processes run.
    Rounds,
    /// As whole commands, one after the other, by this process. They take so long that they are measured only where they
    /// are asked for.
    Commands(&'static Commands),
}

/// What measures whole commands.
pub struct Commands {
    /// The time that these cases get where nobody says how much.
    pub usual: fn(cases: &[Chosen]) -> Duration,
    /// Measures them, one answer for each in their order.
    pub measure: fn(cases: &[Chosen], context: &mut RunContext) -> Result<Findings, BenchError>,
}

/// A benchmark with the parameters of a case that was chosen.
pub type Chosen = (&'static Benchmark, Params);

/// How many of its cases a benchmark is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Those that most questions are about.
    Usual,
    /// All of them: every pair of processors, every eighth of an octave.
    Thorough,
}

/// One question about a price.
pub struct Benchmark {
    /// `suite/benchmark`.
    pub name: &'static str,
    /// The one operation that is priced, as a sentence.
    pub operation: &'static str,
    /// The boundaries that its operation crosses, in any of its cases: those whose part of the figure is noticeable, a
    /// tenth or so. A fact of the machine is shown as a cause of a difference only where it affects one of them.
    pub crosses: &'static [Boundary],
    /// Whether a case crosses this one of them, where its cases differ.
    pub crossed_in: fn(&Params, Boundary) -> bool,
    /// What is timed in a case.
    pub timed: fn(&Params) -> Timed,
    /// Of its samples.
    pub unit: Unit,
    /// The events that are counted beside the time, in the plural, where they are: one an operation, or the
    /// case has failed.
    pub counts: Option<&'static str>,
    /// The operations that are looked at, and what is counted among them, where that is a share and not all of them.
    pub share: Option<Share>,
    /// What else is counted in each batch, [`Counters`](crate::runner::Counters) at the most, in the plural.
    pub counters: &'static [&'static str],
    /// The benchmark that this one is held against, round by round: what does it add to that? Both have the
    /// same number of operations in a batch.
    pub baseline: Option<&'static str>,
    /// The parameters of the case of this benchmark that a case is held against, where it is one of its own. Itself is
    /// held against nothing.
    pub over: fn(&Params) -> Option<Params>,
    /// Parameters of its cases; one empty set where it has none. They may depend on the machine, never on what
    /// has been measured.
    pub cases: fn() -> Vec<Params>,
    /// Parameters of the cases that are measured only where time is plenty, or where one is asked for by name.
    pub more: fn() -> Vec<Params>,
    /// Bytes that one operation of a case moves, where a throughput says something.
    pub bytes: fn(&Params) -> Option<u64>,
    /// Makes the instance ready in the calling process, or says why it cannot be.
    pub instance: fn(&'static Benchmark, &Params) -> Result<Instance, Refusal>,
    /// What a death by this signal says of the place: `Some` where it means that the operation does
    /// not exist here.
    pub absence: fn(signal: i32) -> Option<&'static str>,
}

/// What some of the operations are counted for.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// What is looked at and true of those that are counted: `lines looked at came from the other processor`.
    pub what: &'static str,
    /// One of so many operations is looked at.
    pub one_of: u64,
}

/// What most benchmarks have in common, to be completed: one case, in nanoseconds, held against nothing.
pub const PLAIN: Benchmark = Benchmark {
    name: "",
    operation: "",
    crosses: &[],
    crossed_in: |_, _| true,
    timed: |_| Timed::Loop { code: EMPTY, instruction: "", times: 0 },
    unit: Unit::Nanoseconds,
    counts: None,
    share: None,
    counters: &[],
    baseline: None,
    over: |_| None,
    cases: one_case,
    more: Vec::new,
    bytes: |_| None,
    instance: |_, _| Err(Refusal::Fail("it has no instance".to_owned())),
    absence: never_absent,
};

impl Benchmark {
    /// The case of this benchmark with `params`.
    pub fn case(&self, params: Params) -> Case {
        Case { benchmark: self.name.to_owned(), params }
    }

    /// What a case of this benchmark is held against.
    pub fn baseline_of(&self, params: &Params) -> Option<Case> {
        let own = || (self.over)(params).filter(|base| base != params).map(|base| self.case(base));
        self.baseline.map(Case::plain).or_else(own)
    }

    /// The boundaries that its case with `params` crosses.
    pub fn crosses_in<'a>(&'a self, params: &'a Params) -> impl Iterator<Item = Boundary> + 'a {
        self.crosses.iter().copied().filter(|boundary| (self.crossed_in)(params, *boundary))
    }

    /// The cases that are measured in such an extent.
    pub fn cases_in(&self, extent: Extent) -> Vec<Params> {
        let mut cases = (self.cases)();
        if extent == Extent::Thorough {
            cases.extend((self.more)());
        }
        cases
    }

    /// What is compared has the same number of operations in a batch: the benchmark that this one is held
    /// against, or itself.
    pub fn comparison(&self) -> &'static str {
        self.baseline.unwrap_or(self.name)
    }

    /// The suite's name.
    pub fn suite(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(suite, _)| suite)
    }
}

/// For [`Benchmark::cases`]: one case, no parameters.
pub fn one_case() -> Vec<Params> {
    vec![Params::new()]
}

/// For [`Benchmark::cases`]: one parameter with several values.
pub fn each(name: &str, values: &[u64]) -> Vec<Params> {
    values.iter().map(|&value| Params::from([(name.to_owned(), ParamValue::Number(value))])).collect()
}

/// For [`Benchmark::absence`]: every death is a failure.
pub fn never_absent(_signal: i32) -> Option<&'static str> {
    None
}

/// For [`Benchmark::cases`]: one parameter with several values that are words.
pub fn each_word(name: &str, values: &[&str]) -> Vec<Params> {
    values.iter().map(|&value| params(&[(name, value.into())])).collect()
}

/// The parameters of one case.
pub fn params(pairs: &[(&str, ParamValue)]) -> Params {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// The parameter `name` of a case that is a word, empty where it has none.
pub fn word<'a>(params: &'a Params, name: &str) -> &'a str {
    match params.get(name) {
        Some(ParamValue::Word(word)) => word,
        _ => "",
    }
}

/// The numeric parameter `name` of a case, 0 where it has none.
pub fn number(params: &Params, name: &str) -> u64 {
    match params.get(name) {
        Some(ParamValue::Number(n)) => *n,
        _ => 0,
    }
}
