//! The system calls and page faults of an iteration of a bench: the difference of a traced execution with twice the iterations and
//! one with these, because both include the work of the harness around them.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_model::stats;
use tollgate_model::traced::{Backend, Ended};

use super::builds::{Builds, Ran, ended, last_words};
use super::harness::Size;
use crate::sides::versus::rounds::how_ended;
use crate::sides::versus::{End, Execution, How, NotCompared};
use crate::sides::versus::{Executor, Halt};

/// The time of the iterations of the shorter execution, in ns, without the overhead of the tracer; and the most iterations.
const TIME: f64 = 5e6;
const MOST_ITERATIONS: f64 = 1e7;
/// Pairs of executions of a build, for a median of their differences: a language's runtime has calls of its own.
const PAIRS: usize = 3;
const WITHIN: Duration = Duration::from_secs(60);

/// The requests of an iteration to the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// System calls by their names in the kernel's table.
    pub calls: BTreeMap<String, f64>,
    /// Page faults.
    pub faults: f64,
    /// The difference in iterations of the two executions.
    pub iterations: u64,
}

impl Builds {
    /// Measures the system calls and page faults of an iteration of a bench in each build.
    ///
    /// # Errors
    /// If the harness does not take a number of iterations or failed, or there is no tracer; see [`Halt`].
    pub fn asked_of_kernel(
        &self,
        bench: &str,
        executor: &mut dyn Executor,
    ) -> Result<Vec<Asked>, NotCompared> {
        let iterations = self.iterations(bench, TIME, WITHIN, executor).map_err(ended)?;
        let iterations = iterations.map_err(|why| self.failed(0, bench, &why, String::new()))?;
        (0..self.all().len()).map(|build| self.asked_by(build, bench, iterations, &mut *executor)).collect()
    }

    /// How many iterations take `ns` in the base: a power of two, so that it usually repeats. The error is a predicate.
    pub(super) fn iterations(
        &self,
        bench: &str,
        ns: f64,
        within: Duration,
        executor: &mut dyn Executor,
    ) -> Result<Result<u64, String>, Halt> {
        let (mut size, mut iterations) = (Size::FIRST, 1);
        // The first figure includes the extra time of a first iteration.
        for _ in 0..2 {
            let done = self.one((0, 0), bench, size, Some(within), &mut *executor, &mut || {})?;
            match done.figure {
                Ok(each) => {
                    iterations = 1 << ((ns / each).clamp(1.0, MOST_ITERATIONS) as u64).ilog2();
                    size = self.harness().whole(iterations);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(iterations))
    }

    fn asked_by(
        &self,
        build: usize,
        bench: &str,
        iterations: u64,
        executor: &mut dyn Executor,
    ) -> Result<Asked, NotCompared> {
        let mut all = Vec::new();
        for _ in 0..PAIRS {
            let mut counted = |number| {
                let execution = self.traced(build, bench, number, &mut *executor)?;
                counts(&execution).ok_or_else(|| {
                    self.failed(
                        build,
                        bench,
                        "was not traced: neither BPF nor ptrace(2) works here",
                        String::new(),
                    )
                })
            };
            let short = counted(iterations)?;
            all.push(difference(short, counted(2 * iterations)?, iterations));
        }
        Ok(Asked { calls: medians(&all), faults: median(all.iter().map(|(_, faults)| *faults)), iterations })
    }

    fn traced(
        &self,
        build: usize,
        bench: &str,
        iterations: u64,
        executor: &mut dyn Executor,
    ) -> Result<Execution, NotCompared> {
        let failed = |why: &str, said: String| self.failed(build, bench, why, said);
        let words = self.exactly(build, bench, iterations)?;
        let how = How::Traced { files: false };
        let Ran { execution, .. } =
            self.execute(words, how, Some(WITHIN), executor, &mut || {}).map_err(ended)?;
        match execution.end {
            End::Ended(Ended::Exit(0)) => Ok(execution),
            end => {
                let why = format!("{}{}", how_ended(&end, Some(WITHIN)), last_words(&execution.said));
                Err(failed(&why, execution.said))
            }
        }
    }

    /// The command that executes a bench of a build with exactly this many iterations, if the harness takes their number.
    pub(super) fn exactly(
        &self,
        build: usize,
        bench: &str,
        iterations: u64,
    ) -> Result<Vec<String>, NotCompared> {
        let words = self.harness().exactly(self.link(build), bench, iterations);
        words.ok_or_else(|| {
            let why = format!("belongs to {}, which takes no number of iterations", self.harness().name());
            self.failed(build, bench, &why, String::new())
        })
    }

    fn failed(&self, build: usize, bench: &str, why: &str, said: String) -> NotCompared {
        let name = &self.all()[build].name;
        NotCompared::Failed { sentence: format!("{bench} {why} (in {name})"), said }
    }
}

type Counts = (BTreeMap<String, f64>, f64);

fn counts(execution: &Execution) -> Option<Counts> {
    let traced = execution.traced.as_ref().filter(|traced| traced.backend != Backend::Rusage)?;
    let calls = traced.calls.iter().map(|call| (call.name.clone(), call.count as f64));
    Some((calls.collect(), execution.faults as f64))
}

fn difference((short, few): Counts, (mut long, many): Counts, iterations: u64) -> Counts {
    short.into_iter().for_each(|(name, count)| *long.entry(name).or_default() -= count);
    let each = |more: f64| more / iterations as f64;
    long.values_mut().for_each(|count| *count = each(*count));
    (long, each(many - few))
}

fn medians(all: &[Counts]) -> BTreeMap<String, f64> {
    let names = all.iter().flat_map(|(calls, _)| calls.keys().cloned());
    let of = |name: &str| median(all.iter().map(|(calls, _)| calls.get(name).copied().unwrap_or_default()));
    names.map(|name| (name.clone(), of(&name))).collect()
}

/// The median, or 0 without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    stats::median(&values.collect::<Vec<f64>>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(calls: &[(&str, f64)], faults: f64) -> Counts {
        (calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(), faults)
    }

    #[test]
    fn what_both_executions_have_is_of_no_iteration() {
        let short = counted(&[("read", 110.0), ("mmap", 7.0)], 150.0);
        let long = counted(&[("read", 210.0), ("mmap", 7.0), ("futex", 50.0)], 200.0);
        let each = difference(short, long, 100);
        assert_eq!(each, counted(&[("read", 1.0), ("mmap", 0.0), ("futex", 0.5)], 0.5));
        let others = [each, counted(&[("read", 1.0)], 0.0), counted(&[("read", 9.0), ("futex", 0.1)], 0.0)];
        assert_eq!(medians(&others), counted(&[("read", 1.0), ("mmap", 0.0), ("futex", 0.1)], 0.0).0);
    }
}
