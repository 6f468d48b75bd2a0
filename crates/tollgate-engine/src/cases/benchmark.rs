//! Benchmarks and suites.

use std::time::Duration;

use tollgate_arch::architecture::HERE;
use tollgate_arch::memory::page_size;
use tollgate_model::{Boundary, Case, ParamValue, Params, Unit, own};

use crate::cases::aspect::Aspect;
use crate::cases::fixture::{Fixture, Step};
use crate::cases::headline::Headline;
use crate::cases::run::RunContext;
use crate::loops::timed::{EMPTY, Timed};
use crate::{
    loops::context::Context, loops::instance::Instance, machine::topology::Topology, refusal::Refusal,
    refusal::Result,
};

/// Benchmarks whose instances share their rounds.
pub struct Suite {
    /// The part before the slash in its benchmarks' names.
    pub name: &'static str,
    /// A sentence that describes it.
    pub about: &'static str,
    /// In the order of tables.
    pub benchmarks: &'static [&'static Benchmark],
}

/// How the cases of a benchmark are measured. All benchmarks of a suite are of one kind.
#[derive(Clone, Copy)]
pub enum Kind {
    /// In batches of an instance, which bench processes run in rounds. The function prepares the instance of a case in the
    /// calling process, from its timed code and its parameters, or returns why that fails.
    Instance(fn(Timed, &Params, &mut Context) -> Result<Instance>),
    /// As whole commands, one after the other, by the run's own process or the agent's. They are long, so the user must ask for them.
    Command(&'static Commands),
    /// From outside, for an environment of a session itself, each time it is started. The function returns what a case measures;
    /// `None` for parameters of another version.
    Environment(fn(&Params) -> Option<Aspect>),
}

/// Makes the fixture of some cases.
pub type MakeFixture = fn(&[Chosen], &mut RunContext) -> Step<Box<dyn Fixture>>;

/// The whole commands of a suite.
pub struct Commands {
    /// Returns the time that these cases get by default.
    pub usual: fn(cases: &[Chosen]) -> Duration,
    /// Groups the cases that share a fixture, as indices, with the probably shortest first.
    pub fixtures: fn(cases: &[Chosen]) -> Vec<Vec<usize>>,
    /// Makes the fixture of some cases that share one.
    pub fixture: MakeFixture,
}

/// A chosen case: a benchmark and its parameters.
pub type Chosen = (&'static Benchmark, Params);

/// The extent of a benchmark's cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The default cases on the first screen, unless a pattern asks for others.
    Headlines,
    /// The default cases.
    Usual,
    /// Every case: every pair of processors, every eighth of an octave.
    Thorough,
}

/// The benchmarks with which a benchmark's cases share their processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Those of its suite. They share rounds, and can be paired.
    Suite,
    /// No other: it slows later batches of others, like an exit to the hypervisor, or depends on the whole process, like fork(2).
    Own,
}

/// One measured operation.
pub struct Benchmark {
    /// `suite/benchmark`.
    pub name: &'static str,
    /// The measured operation, as a sentence.
    pub operation: &'static str,
    /// How a program avoids the latency, as a sentence.
    pub avoid: &'static str,
    /// The manual, the source file or the paper that describes the operation.
    pub source: &'static str,
    /// The boundaries that the operation always crosses and that take about a tenth of its time or more. Only facts that affect one
    /// of them are shown as causes of a difference.
    pub crosses: &'static [Boundary],
    /// Whether a case crosses this boundary, if the cases differ.
    pub crossed_in: fn(&Params, Boundary) -> bool,
    /// The timed code of a case.
    pub timed: fn(&Params) -> Timed,
    /// The unit of its samples.
    pub unit: Unit,
    /// The events counted next to the time, in the plural. Each operation makes exactly one, or the case fails.
    pub counts: Option<&'static str>,
    /// A property that is counted among some of the operations.
    pub share: Option<Share>,
    /// Other counts of each batch, in the plural; at most as many as [`Counters`](crate::loops::runner::Counters) has.
    pub counters: &'static [&'static str],
    /// The case that a case is compared with, round by round.
    pub baseline: Baseline,
    /// Other benchmarks that explain its time, each with its relation: one step of it alone, or all of it without one step.
    pub beside: &'static [(&'static str, &'static str)],
    /// Returns the parameters of its cases, which depend only on the machine; one empty set for a benchmark without parameters.
    pub cases: fn(&Topology) -> Vec<Params>,
    /// Returns the parameters of the cases that run only in a thorough run, or when a pattern names them.
    pub thorough_cases: fn(&Topology) -> Vec<Params>,
    /// Whether a run without patterns measures a default case. Such a run has a minute for all suites, so it takes only the most
    /// informative cases of a curve or a family of calls. A pattern selects every case that it matches.
    pub in_everything: fn(&Params, &Topology) -> bool,
    /// Returns the bytes that one operation of a case moves, if its throughput is of interest.
    pub bytes: fn(&Params) -> Option<u64>,
    /// Its cases on the first screen.
    pub headlines: &'static [Headline],
    /// How its cases are measured.
    pub kind: Kind,
    /// The benchmarks with which its cases share their processes.
    pub company: Company,
    /// Whether an instance forks the bench process. Such instances are made first, so that no copy has memory that others map or write.
    pub forks: fn(&Params) -> bool,
    /// Whether its cases need a directory for files.
    pub uses_files: bool,
    /// Why its instruction count is not informative, if so: caches, storage or timers take its time, or a translator executes it
    /// differently.
    pub uncounted: Option<&'static str>,
    /// Signals that kill the process of an operation which does not exist in this environment, each with why it does not.
    pub absence: &'static [(i32, &'static str)],
}

/// The baseline of a benchmark's cases.
#[derive(Clone, Copy)]
pub enum Baseline {
    /// They have none.
    None,
    /// Another benchmark, with the same number of operations in a batch.
    Benchmark(&'static str),
    /// The case of the same benchmark with the parameters that the function returns.
    Case(fn(&Params) -> Option<Params>),
}

impl Baseline {
    /// Returns the other benchmark.
    pub fn benchmark(self) -> Option<&'static str> {
        match self {
            Self::Benchmark(name) => Some(name),
            Self::None | Self::Case(_) => None,
        }
    }
}

/// A property that is counted among a sample of the operations.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Sample and property: `sampled lines came from the other processor`.
    pub what: &'static str,
    /// One of this many operations is sampled.
    pub one_of: u64,
}

/// Defaults for benchmarks: one case, in nanoseconds, without a baseline.
pub const PLAIN: Benchmark = Benchmark {
    name: "",
    operation: "",
    avoid: "",
    source: "",
    crosses: &[],
    crossed_in: |_, _| true,
    timed: |_| Timed::Loop { code: EMPTY, instruction: "", times: 0 },
    unit: Unit::Nanoseconds,
    counts: None,
    share: None,
    counters: &[],
    baseline: Baseline::None,
    beside: &[],
    cases: one_case,
    thorough_cases: no_case,
    in_everything: |_, _| true,
    bytes: |_| None,
    headlines: &[],
    kind: Kind::Instance(|_, _, _| Err(fail!("the benchmark has no instance"))),
    company: Company::Suite,
    forks: |_| false,
    uses_files: false,
    uncounted: None,
    absence: &[],
};

/// Returns a note on the page size, if the case is named after the 4 KiB pages of x86-64 but has other pages.
fn note_on_pages(params: &Params, size: usize) -> Option<String> {
    let is_named = matches!(params.get("page"), Some(ParamValue::Word(name)) if name == "4k");
    (is_named && size != 4096).then(|| format!("pages of {} KiB", size >> 10))
}

/// [`Benchmark::uncounted`] for the time of memory and caches.
pub const TIME_OF_MEMORY: &str = "memory is not counted, and a guest under QEMU's translator has no times";

impl Benchmark {
    /// Returns the case of this benchmark with `params`.
    pub fn case(&self, params: Params) -> Case {
        Case { benchmark: self.name.to_owned(), params }
    }

    /// Prepares a case.
    ///
    /// # Errors
    /// [`Refusal::Skip`] if this architecture does not have the operation, and why the preparation fails.
    pub fn instance(&self, params: &Params, context: &mut Context) -> Result<Instance> {
        let Kind::Instance(make) = self.kind else { return Err(fail!("a whole command has no instance")) };
        let timed = (self.timed)(params);
        if let Some(why) = timed.why_absent(HERE) {
            return Err(Refusal::Skip(why.to_owned()));
        }
        let instance = make(timed, params, context)?;
        Ok(instance.with_notes(note_on_pages(params, page_size())))
    }

    /// Why the machine's architecture has none of its cases; `None` if it has one.
    pub fn why_absent(&self, machine: &Topology) -> Option<&'static str> {
        let cases = (self.cases)(machine);
        let why = |params: &Params| (self.timed)(params).why_absent(machine.architecture);
        let why: Option<Vec<_>> = cases.iter().map(why).collect();
        why?.first().copied()
    }

    /// Returns the baseline of a case of this benchmark.
    pub fn baseline_of(&self, params: &Params) -> Option<Case> {
        match self.baseline {
            Baseline::None => None,
            Baseline::Benchmark(name) => Some(Case::plain(name)),
            Baseline::Case(of) => of(params).filter(|base| base != params).map(|base| self.case(base)),
        }
    }

    /// Returns the boundaries that the case with `params` crosses.
    pub fn crosses_in<'a>(&'a self, params: &'a Params) -> impl Iterator<Item = Boundary> + 'a {
        self.crosses.iter().copied().filter(|boundary| (self.crossed_in)(params, *boundary))
    }

    /// Returns the cases of this extent on a machine.
    pub fn cases_in(&self, extent: Extent, machine: &Topology) -> Vec<Params> {
        let mut cases = (self.cases)(machine);
        if extent == Extent::Thorough {
            cases.extend((self.thorough_cases)(machine));
        }
        cases
    }

    /// Returns the parameters of a headline's case on a machine.
    pub fn case_of(&self, headline: &Headline, machine: &Topology) -> Option<Params> {
        (self.cases)(machine).into_iter().find(|params| headline.names(params))
    }

    /// Returns the benchmark that it is compared with, or itself. Compared cases have the same number of operations in a batch.
    pub fn comparison(&self) -> &'static str {
        self.baseline.benchmark().unwrap_or(self.name)
    }

    /// Whether its cases are whole commands.
    pub fn is_command(&self) -> bool {
        matches!(self.kind, Kind::Command(_))
    }

    /// Whether its cases measure an environment itself.
    pub fn is_of_environment(&self) -> bool {
        matches!(self.kind, Kind::Environment(_))
    }

    /// Returns what a case measures of an environment itself.
    pub fn aspect_of(&self, params: &Params) -> Option<Aspect> {
        match self.kind {
            Kind::Environment(aspect) => aspect(params),
            Kind::Instance(_) | Kind::Command(_) => None,
        }
    }

    /// Returns why the operation does not exist in this environment, if this signal killed its process for that reason.
    pub fn absence_by(&self, signal: i32) -> Option<&'static str> {
        self.absence.iter().find(|(deadly, _)| *deadly == signal).map(|(_, why)| *why)
    }

    /// Whether it is one of the engine's own.
    pub fn is_own(&self) -> bool {
        own::is_own(self.name)
    }

    /// Returns the suite's name.
    pub fn suite(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(suite, _)| suite)
    }

    /// Returns the name of the [`Group`](crate::Group) of its cases.
    pub fn group(&self) -> &'static str {
        match self.company {
            Company::Suite => self.suite(),
            Company::Own => self.name,
        }
    }
}

/// For [`Benchmark::cases`]: one case, no parameters.
pub fn one_case(_machine: &Topology) -> Vec<Params> {
    vec![Params::new()]
}

/// For [`Benchmark::cases`] and [`Benchmark::thorough_cases`]: none.
pub fn no_case(_machine: &Topology) -> Vec<Params> {
    Vec::new()
}

/// For [`Benchmark::cases`]: one parameter with several values.
pub fn each(name: &str, values: &[u64]) -> Vec<Params> {
    values.iter().map(|&value| Params::from([(name.to_owned(), ParamValue::Number(value))])).collect()
}

/// For [`Benchmark::cases`]: one parameter with several words as values.
pub fn each_word(name: &str, values: &[&str]) -> Vec<Params> {
    values.iter().map(|&value| params(&[(name, value.into())])).collect()
}

/// Makes the parameters of one case.
pub fn params(pairs: &[(&str, ParamValue)]) -> Params {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// Returns the parameter `name` if it is a word, else an empty text.
pub fn word<'a>(params: &'a Params, name: &str) -> &'a str {
    match params.get(name) {
        Some(ParamValue::Word(word)) => word,
        _ => "",
    }
}

/// Returns the parameter `name` if it is a number, else 0.
pub fn number(params: &Params, name: &str) -> u64 {
    match params.get(name) {
        Some(ParamValue::Number(n)) => *n,
        _ => 0,
    }
}
