//! The instructions of an iteration of a bench, in a guest that counts them.
//!
//! A bench is executed with a number of iterations and with twice as many, as in [`kernel`](super::kernel). The difference
//! belongs to the iterations, because both executions start the process and the harness.

use std::time::Duration;

use tollgate_model::measurement::{Measured, Measurement, Outcome, Provenance, Unit};
use tollgate_model::traced::Ended;
use tollgate_model::versus::{BENCHES, KERNEL_NOISE, part_of_bench};
use tollgate_model::{Case, stats};

use super::builds::{Builds, ended, last_words};
use super::rounds::Bench;
use crate::sides::session::Counted;
use crate::sides::versus::counted::PATIENCE;
use crate::sides::versus::executor::Executor;
use crate::sides::versus::rounds::how_ended;
use crate::sides::versus::{End, Execution, Found, Given, NotCompared, Order};

/// The commands of a bench: with its iterations, and with twice as many.
const COMMANDS: usize = 2;

/// Describes the figures: the object of a sentence.
pub const STATISTIC: &str = "what an execution with twice the iterations has more, per iteration: the program's instructions; {of=kernel}: the kernel's, if it is entered; {of=total}: both, if they are not separated";

/// A bench to count.
#[derive(Debug)]
pub struct Numbered<'b> {
    bench: &'b Bench,
    iterations: Result<u64, Outcome>,
}

impl Numbered<'_> {
    fn of_build(&self, build: usize) -> Option<u64> {
        self.iterations.as_ref().ok().copied().filter(|_| self.bench.builds.contains(&build))
    }
}

impl Builds {
    /// Determines how many iterations of each bench are counted, equally in all builds. Each is executed on this machine first.
    ///
    /// # Errors
    /// See [`Halt`](crate::cases::run::Halt).
    pub fn numbered<'b>(
        &self,
        benches: &'b [Bench],
        within: Option<Duration>,
        executor: &mut dyn Executor,
    ) -> Result<Vec<Numbered<'b>>, NotCompared> {
        let within = within.unwrap_or(PATIENCE);
        let mut one = |bench: &'b Bench| {
            let iterations = match bench.alone(self) {
                Some(why) => Err(Outcome::NotMeasured { why }),
                None => self
                    .iterations(&bench.name, self.harness().counted_time(), within, &mut *executor)
                    .map_err(ended)?
                    .map_err(|why| Outcome::Failed { error: self.inside(&why, 0) }),
            };
            Ok(Numbered { bench, iterations })
        };
        benches.iter().map(&mut one).collect()
    }

    /// Returns the commands to count for a build: two of each bench that it has.
    ///
    /// # Errors
    /// If the harness does not take a number of iterations.
    pub fn commands(&self, build: usize, benches: &[Numbered<'_>]) -> Result<Vec<Given>, NotCompared> {
        let mut all = Vec::new();
        for (bench, iterations) in
            benches.iter().filter_map(|bench| Some((bench.bench, bench.of_build(build)?)))
        {
            for iterations in [iterations, COMMANDS as u64 * iterations] {
                let words = self.exactly(build, &bench.name, iterations)?;
                let name = &self.all()[build].name;
                all.push(Given {
                    name: format!("{} of {name}, {iterations} iterations,", bench.name),
                    order: Order { words, ..Order::default() },
                    layouts: Vec::new(),
                    setup: None,
                    prepare: None,
                    conclude: None,
                    cleanup: None,
                });
            }
        }
        Ok(all)
    }

    /// Returns the findings of each build, from the results of its commands.
    pub fn found(
        &self,
        benches: &[Numbered<'_>],
        within: Option<Duration>,
        counted: &[Counted],
    ) -> Vec<Found> {
        let within = within.unwrap_or(PATIENCE);
        let mut found = vec![Found::default(); counted.len()];
        for (at, bench) in benches.iter().enumerate() {
            let of_build = |build: usize| {
                let Some(iterations) = bench.of_build(build) else { return Ok(None) };
                let before = benches[..at].iter().filter(|other| other.of_build(build).is_some());
                let counts = Counts::new(&counted[build], before.count(), iterations, within);
                counts.map(Some).map_err(|why| Outcome::Failed { error: self.inside(&why, build) })
            };
            let name = format!("{}/{}", self.harness().name(), bench.bench.name);
            let counts: Result<Vec<_>, _> = (0..counted.len()).map(of_build).collect();
            let rows = match bench.iterations.clone().and(counts) {
                Ok(counts) => rows(&name, &counts),
                Err(why) => vec![vec![Measurement { case: Case::plain(name), outcome: why }]; counted.len()],
            };
            found.iter_mut().zip(rows).for_each(|(found, rows)| found.measurements.extend(rows));
        }
        found
    }

    fn inside(&self, why: &str, build: usize) -> String {
        format!("{why} (in {})", self.all()[build].name)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Counts {
    iterations: u64,
    /// The difference of a round's executions, in instructions per iteration.
    total: Vec<f64>,
    user: Result<f64, String>,
}

impl Counts {
    /// For the bench with this index among those of the build. The error is the predicate of a sentence.
    fn new(counted: &Counted, place: usize, iterations: u64, within: Duration) -> Result<Self, String> {
        let all = counted.executions.chunks(counted.inside.len());
        let pairs: Vec<_> = all.filter_map(|round| round.chunks(COMMANDS).nth(place)).collect();
        let is_bad = |execution: &&Execution| !matches!(execution.end, End::Ended(Ended::Exit(0)));
        if let Some(Execution { end, said, .. }) = pairs.iter().copied().flatten().find(is_bad) {
            return Err(how_ended(end, Some(within)) + &last_words(said));
        }
        let more = |short: u64, long: u64| (long as f64 - short as f64) / iterations as f64;
        let totals = pairs.iter().filter_map(|pair| match pair {
            [short, long] => Some(more(short.wall_ns, long.wall_ns)),
            _ => None,
        });
        // In the first execution after the start, the kernel finds things that it already knows in later ones.
        let total: Vec<f64> = totals.skip(1).collect();
        let sums = counted.inside.chunks(COMMANDS).nth(place).ok_or("was not counted")?;
        let user = |at: usize| sums[at].sums.as_ref().map(|sums| sums.program()).map_err(Clone::clone);
        if total.is_empty() {
            Err("was not executed: an earlier one did not end".to_owned())
        } else {
            Ok(Self { iterations, total, user: user(0).and_then(|short| Ok(more(short, user(1)?))) })
        }
    }

    fn kernel(&self) -> Option<Vec<f64>> {
        let user = self.user.as_ref().ok()?;
        Some(self.total.iter().map(|total| (total - user).max(0.0)).collect())
    }

    /// Whether the iterations have more kernel instructions than executions differ by anyway.
    fn enters_kernel(&self) -> bool {
        let median = self.kernel().and_then(|kernel| stats::median(&kernel));
        median.is_some_and(|median| median * self.iterations as f64 > KERNEL_NOISE)
    }

    fn measured(&self, case: Case, samples: Vec<f64>) -> Measurement {
        let measured = Measured {
            provenance: Provenance::QemuIcount,
            ops_per_sample: self.iterations,
            notes: self.user.as_ref().err().cloned().into_iter().collect(),
            ..Measured::of_executions(BENCHES, Unit::Instructions, samples)
        };
        Measurement { case, outcome: Outcome::Measured(Box::new(measured)) }
    }
}

/// The rows of a bench, equal in all builds: the program's instructions, and the kernel's if any build enters it; or else their sum.
fn rows(name: &str, counts: &[Option<Counts>]) -> Vec<Vec<Measurement>> {
    let is_split = counts.iter().flatten().all(|counts| counts.user.is_ok());
    let enters_kernel = counts.iter().flatten().any(Counts::enters_kernel);
    let of_build = |counts: &Option<Counts>| match counts {
        None => {
            let why = "is not in this build".to_owned();
            vec![Measurement { case: Case::plain(name), outcome: Outcome::NotMeasured { why } }]
        }
        Some(counts @ Counts { user: Ok(user), .. }) if is_split => {
            let kernel = counts.kernel().filter(|_| enters_kernel);
            let kernel = kernel.map(|kernel| counts.measured(part_of_bench(name, "kernel"), kernel));
            std::iter::once(counts.measured(Case::plain(name), vec![*user])).chain(kernel).collect()
        }
        Some(counts) => vec![counts.measured(part_of_bench(name, "total"), counts.total.clone())],
    };
    counts.iter().map(of_build).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sides::session::{Inside, Sums};

    /// Executions of a bench with 100 and 200 iterations, in two rounds after the first, with the instructions per iteration of each
    /// kind.
    fn counted(user: u64, kernel: u64) -> Counted {
        let sums = |iterations: u64| Sums { user: 5_000_000 + iterations * user, ..Sums::default() };
        let execution = |iterations: u64| Execution {
            wall_ns: 7_000_000 + iterations * (user + kernel),
            ..Execution::ended(End::Ended(Ended::Exit(0)))
        };
        let inside = |iterations| Inside {
            sums: Ok(sums(iterations)),
            traced: Err(String::new()),
            functions: Vec::new(),
            stacks: Err(crate::sides::session::UNASKED.to_owned()),
        };
        let executions = (0..6).map(|at| execution(100 + 100 * (at % 2))).collect();
        Counted { executions, inside: [100, 200].map(inside).into() }
    }

    fn rows_of(counted: &[&Counted]) -> Vec<Vec<(String, Vec<f64>)>> {
        let counts: Vec<_> =
            counted.iter().map(|counted| Counts::new(counted, 0, 100, PATIENCE).ok()).collect();
        let row = |row: &Measurement| {
            let samples = row.outcome.measured().map(|measured| measured.samples.clone());
            (row.case.to_string(), samples.unwrap_or_default())
        };
        rows("go/A", &counts).iter().map(|rows| rows.iter().map(row).collect()).collect()
    }

    #[test]
    fn what_both_executions_have_is_of_no_iteration() {
        let row = |name: &str, samples: &[f64]| (name.to_owned(), samples.to_vec());
        assert_eq!(rows_of(&[&counted(300, 0)]), [[row("go/A", &[300.0])]]);
        // If one side enters the kernel, both sides have the kernel's part.
        let found = rows_of(&[&counted(300, 0), &counted(310, 500)]);
        assert_eq!(found[0], [row("go/A", &[300.0]), row("go/A{of=kernel}", &[0.0; 2])]);
        assert_eq!(found[1], [row("go/A", &[310.0]), row("go/A{of=kernel}", &[500.0; 2])]);
    }

    #[test]
    fn an_execution_that_was_not_watched_has_the_sum_in_all_builds() {
        let mut long = counted(300, 7);
        long.inside[1].sums = Err("no plugins".to_owned());
        let sum = |samples: f64| vec![("go/A{of=total}".to_owned(), vec![samples; 2])];
        assert_eq!(rows_of(&[&counted(300, 0), &long]), [sum(300.0), sum(307.0)]);
    }

    #[test]
    fn a_bench_that_fails_in_the_guest_says_how() {
        let mut bad = counted(300, 0);
        bad.executions[3] =
            Execution { said: "no file\n".to_owned(), ..Execution::ended(End::Ended(Ended::Exit(2))) };
        let of = |bad: &Counted| Counts::new(bad, 0, 100, Duration::from_secs(5));
        assert_eq!(of(&bad), Err("ended with exit status 2: no file".to_owned()));
        bad.executions[3] = Execution::ended(End::OutOfTime);
        assert!(of(&bad).is_err_and(|why| why.contains("5.0 s")));
        bad.executions.truncate(2);
        assert_eq!(of(&bad), Err("was not executed: an earlier one did not end".to_owned()));
    }
}
