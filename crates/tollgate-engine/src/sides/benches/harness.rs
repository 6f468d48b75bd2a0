//! Harnesses of benches: how to recognise a program's harness, list its benches, and execute one of them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tollgate_model::text::quoted;
use tollgate_os::paths;

use super::template::Template;
use super::{divan, reading};

/// The rest of a larger program is not searched: it is debug information.
const MOST_SEARCHED: u64 = 4 << 30;

/// A harness, which executes the benches of a build.
#[derive(Debug, Clone, PartialEq)]
pub enum Harness {
    /// criterion.rs.
    Criterion,
    /// divan.
    Divan,
    /// A test program of Go, as `go test -c` makes it.
    Go,
    /// Google Benchmark.
    GoogleBenchmark,
    /// One that the user describes.
    Template(Box<Template>),
}

/// How much a harness executes, equally in all builds, if it can be set. Its own choice rests on a first estimate and varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Iterations of a sample.
    pub sample: u64,
    /// The number of samples.
    pub number: u64,
}

impl Size {
    /// For a first estimate of an iteration's time.
    pub(super) const FIRST: Self = Self { sample: 1, number: 3 };
}

/// The time of all samples of an execution, in ns.
const ALL: f64 = 10e6;
/// The time of a sample of divan: a thousand steps of its clock.
const SAMPLE_OF_DIVAN: f64 = 20e3;
/// The most iterations of a sample, which may each have an input prepared, and the most samples.
const MOST_ITERATIONS: f64 = 10e3;
const MOST_OF_DIVAN: f64 = 500.0;
/// The most iterations of a sample if their number is a power of two.
const MOST_OF_A_SAMPLE: u64 = 8192;
/// The time of a sample of Go, and the most samples: even on a busy machine, some of these short samples are undisturbed.
const SAMPLE_OF_GO: f64 = 0.4e6;
const MOST_OF_GO: f64 = 25.0;
/// Samples of criterion, of which number n makes n times the iterations of the first. It demands at least ten.
const OF_CRITERION: [u64; 2] = [10, 40];
/// Repetitions of Google Benchmark, which take a fifth of a millisecond each, or as long as an iteration.
const MOST_OF_GOOGLE: f64 = 50.0;

/// Texts in a program that identify its harness.
const SIGNS: [(Harness, &[&str]); 4] = [
    // The variable that names the directory of its results.
    (Harness::Criterion, &["CRITERION_HOME"]),
    (Harness::Divan, &["DIVAN_SAMPLE_COUNT"]),
    // A flag of the package testing.
    (Harness::Go, &["test.benchtime"]),
    // Its flags, or the library that has them.
    (Harness::GoogleBenchmark, &["benchmark_list_tests", "libbenchmark.so"]),
];

impl Harness {
    /// Identifies the harness of a program by the texts in its file.
    ///
    /// # Errors
    /// The predicate of a sentence whose subject is the file.
    pub fn of_program(program: &Path) -> Result<Self, String> {
        let cannot = |why: String| format!("cannot be read: {why}");
        let file = paths::open_regular(program).map_err(|why| cannot(why.to_string()))?;
        let found = search(file).map_err(|why| cannot(tollgate_model::text::plainly(&why)))?;
        let names = || found.iter().map(Harness::name).collect::<Vec<_>>();
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err("has no benches of criterion, divan, Go (`go test -c`) or Google Benchmark; name its harness with --harness, or describe another one with --list and --one"
                .to_owned()),
            _ => Err(format!("looks like {}; name its harness with --harness", tollgate_model::text::listed(&names()))),
        }
    }

    /// Returns its name in options and in the names of cases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Criterion => "criterion",
            Self::Divan => "divan",
            Self::Go => "go",
            Self::GoogleBenchmark => "gbench",
            Self::Template(_) => "custom",
        }
    }

    /// Whether the name of a bench can be passed unchanged: a shell of `--one` takes it for one word.
    pub fn can_name(&self, bench: &str) -> bool {
        match self {
            Self::Template(template) if template.is_interpreted() => quoted(bench) == bench,
            _ => true,
        }
    }

    /// Describes the figure of an execution. It was chosen for each harness by executions of equal and of unequal builds.
    pub fn statistic(&self) -> &'static str {
        match self {
            Self::Criterion => "the fastest of its samples",
            Self::Divan => "the median of its samples",
            Self::Go => "the fastest of its measurements, on one processor unless GOMAXPROCS is set",
            Self::GoogleBenchmark => "the fastest of its repetitions",
            Self::Template(_) => "the median of the figures that it prints",
        }
    }

    pub(super) fn size(&self, ns: f64) -> Size {
        let iterations = |time: f64, most: f64| (time / ns).ceil().clamp(1.0, most);
        let of = |sample: f64, most: f64| {
            let number = (ALL / (sample * ns)).ceil().clamp(1.0, most);
            Size { sample: sample as u64, number: number as u64 }
        };
        match self {
            Self::Divan => of(iterations(SAMPLE_OF_DIVAN, MOST_ITERATIONS), MOST_OF_DIVAN),
            Self::Go => of(iterations(SAMPLE_OF_GO, f64::from(i32::MAX)), MOST_OF_GO),
            Self::GoogleBenchmark => of(1.0, MOST_OF_GOOGLE),
            Self::Criterion => {
                let [few, many] = OF_CRITERION;
                let iterations = (many * (many + 1) / 2) as f64;
                Size { sample: 1, number: if iterations * ns < 4.0 * ALL { many } else { few } }
            }
            Self::Template(_) => Size { sample: iterations(ALL, f64::from(i32::MAX)) as u64, number: 1 },
        }
    }

    /// Returns why the program's instructions are not separated from the kernel's; `None` if they are.
    pub fn why_not_split(&self) -> Option<&'static str> {
        match self {
            Self::Divan => Some(
                "divan measures its own overhead at each start with 90 million instructions, not always the same",
            ),
            Self::Go => Some(
                "the threads of Go's runtime do different work in each execution, so those of one are not enough; this is the median of several executions",
            ),
            Self::Criterion | Self::GoogleBenchmark | Self::Template(_) => None,
        }
    }

    /// The time of the counted iterations on this machine, in ns. They are some million instructions, and the differences between
    /// executions are small in comparison. If the kernel's part is not separated, it takes more.
    pub(super) fn counted_time(&self) -> f64 {
        if self.why_not_split().is_some() { 10e6 } else { 0.5e6 }
    }

    /// Returns how often each number of iterations is counted: enough for a median of what differs.
    pub fn counted_rounds(&self) -> u32 {
        if *self == Self::Go { 15 } else { 5 }
    }

    /// The command that lists the benches. Go and divan name sub-benches only while they execute each once.
    pub(super) fn list_words(&self, program: &str) -> Vec<String> {
        let rest: &[&str] = match self {
            Self::Criterion => &["--bench", "--list", "--format", "terse"],
            Self::Divan => &["--test", "--color", "never"],
            Self::Go => &["-test.run=^$", "-test.bench=.", "-test.benchtime=1x", &processors()],
            Self::GoogleBenchmark => &["--benchmark_list_tests"],
            Self::Template(template) => return template.list_words(program),
        };
        with(program, rest)
    }

    /// The command that names the benches without executing them, if it is another one. It does not name sub-benches.
    pub(super) fn name_words(&self, program: &str) -> Option<Vec<String>> {
        match self {
            Self::Divan => Some(with(program, &["--list", "--color", "never"])),
            Self::Go => Some(with(program, &["-test.run=^$", "-test.list=^Benchmark"])),
            Self::Criterion | Self::GoogleBenchmark | Self::Template(_) => None,
        }
    }

    pub(super) fn named(&self, output: &str) -> Vec<String> {
        match self {
            Self::Go => {
                let names = output.lines().map(str::trim).filter(|line| line.starts_with("Benchmark"));
                names.map(str::to_owned).collect()
            }
            _ => self.listed(output),
        }
    }

    pub(super) fn list_one_words(&self, program: &str, name: &str) -> Vec<String> {
        let mut words = self.list_words(program);
        match self {
            Self::Divan => words.extend(["--exact".to_owned(), "--".to_owned(), name.to_owned()]),
            _ => words
                .iter_mut()
                .filter(|word| word.starts_with("-test.bench="))
                .for_each(|word| *word = format!("-test.bench=^{}$", literal(name))),
        }
        words
    }

    pub(super) fn listed(&self, output: &str) -> Vec<String> {
        let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
        let all: Vec<String> = match self {
            Self::Criterion => {
                let names = lines().filter_map(|line| line.strip_suffix(": benchmark"));
                names.map(str::to_owned).collect()
            }
            Self::Divan => divan::leaves(output),
            Self::Go => lines().filter_map(|line| reading::go_name(line, &suffix())).collect(),
            Self::GoogleBenchmark | Self::Template(_) => lines().map(str::to_owned).collect(),
        };
        let mut known = std::collections::HashSet::new();
        all.into_iter().filter(|name| known.insert(name.clone())).collect()
    }

    /// Whether the list is complete despite this exit status: a failing bench of Go fails at every execution.
    pub(super) fn is_listed(&self, status: i32, output: &str) -> bool {
        status == 0 || (*self == Self::Go && status == 1 && output.contains("--- FAIL:"))
    }

    pub(super) fn one_words(&self, program: &str, bench: &str, size: Size) -> Vec<String> {
        match self {
            Self::Criterion => {
                // Its default time is some seconds; without --bench it only tests.
                let number = size.number.max(OF_CRITERION[0]).to_string();
                let rest = [
                    ["--warm-up-time", "0.01"],
                    ["--measurement-time", "0.02"],
                    ["--sample-size", &number],
                    ["--nresamples", "1001"],
                    ["--exact", "--noplot"],
                    ["--", bench],
                ];
                with(program, &[&["--bench"], rest.as_flattened()].concat())
            }
            Self::Divan => {
                let (path, threads) = divan::without_threads(bench);
                let [sample, number] = [size.sample, size.number].map(|number| number.to_string());
                let mut rest =
                    vec!["--bench", "--color", "never", "--sample-size", &sample, "--sample-count", &number];
                rest.extend(threads.into_iter().flat_map(|threads| ["--threads", threads]));
                rest.extend(["--exact", "--", path]);
                with(program, &rest)
            }
            Self::Go => {
                let anchored: Vec<String> =
                    bench.split('/').map(|part| format!("^{}$", literal(part))).collect();
                let [bench, sample, number] = [
                    format!("-test.bench={}", anchored.join("/")),
                    format!("-test.benchtime={}x", size.sample),
                    format!("-test.count={}", size.number),
                ];
                with(program, &["-test.run=^$", &bench, &sample, &number, &processors()])
            }
            Self::GoogleBenchmark => {
                let filter = format!("--benchmark_filter=^{}$", literal(bench));
                let number = format!("--benchmark_repetitions={}", size.number);
                with(program, &[&filter, "--benchmark_min_time=0.0002", &number, "--benchmark_format=json"])
            }
            Self::Template(template) => template.one_words(program, bench, size.sample),
        }
    }

    /// The command that executes one bench with exactly this many iterations, except Go's first; `None` if the harness chooses.
    pub(super) fn exactly(&self, program: &str, bench: &str, iterations: u64) -> Option<Vec<String>> {
        match self {
            Self::Divan | Self::Go => Some(self.one_words(program, bench, self.whole(iterations))),
            Self::GoogleBenchmark => {
                let filter = format!("--benchmark_filter=^{}$", literal(bench));
                // Since version 1.8.
                let number = format!("--benchmark_min_time={iterations}x");
                Some(with(program, &[&filter, &number, "--benchmark_repetitions=1"]))
            }
            Self::Template(template) => {
                template.is_told().then(|| template.one_words(program, bench, iterations))
            }
            Self::Criterion => None,
        }
    }

    /// This many iterations, a power of two. Each iteration of a sample of divan may have an input prepared.
    pub(super) fn whole(&self, iterations: u64) -> Size {
        let most = if *self == Self::Divan { MOST_OF_A_SAMPLE } else { iterations };
        Size { sample: iterations.min(most), number: iterations.div_ceil(most) }
    }

    /// Whether the number of iterations can be set.
    pub fn is_told(&self) -> bool {
        self.exactly("", "", 1).is_some()
    }

    pub(super) fn has_size(&self) -> bool {
        self.is_told() || *self == Self::Criterion
    }

    /// The figure of an execution in ns, from its output and its directory of results. The error is the predicate of a sentence.
    pub(super) fn figure(&self, output: &str, results: &Path) -> Result<Figure, String> {
        let mut is_hasty = false;
        let ns = match self {
            Self::Criterion => reading::criterion(results),
            Self::Divan => {
                divan::median(output).ok_or_else(|| "has no row of figures in its output".to_owned())
            }
            Self::Go => reading::go(output),
            Self::GoogleBenchmark => {
                let fastest = reading::google(output)?;
                is_hasty = fastest.ns * fastest.iterations < SHORT_OF_GOOGLE;
                Ok(fastest.ns)
            }
            Self::Template(template) => template.figure(output),
        }?;
        if ns > 0.0 && ns.is_finite() {
            Ok(Figure { ns, is_hasty })
        } else {
            Err(format!("took {ns} ns by its own figures; the time must be above zero"))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub ns: f64,
    /// Whether the clock affects the figure, because a disturbance made the harness choose too few iterations.
    pub is_hasty: bool,
}

/// Repetitions of Google Benchmark that took less, in ns, although twice as much was requested.
const SHORT_OF_GOOGLE: f64 = 0.1e6;

fn search(file: File) -> io::Result<Vec<Harness>> {
    const PIECE: usize = 1 << 20;
    let longest = SIGNS.iter().flat_map(|(_, signs)| *signs).map(|sign| sign.len()).max().unwrap_or_default();
    let mut file = file.take(MOST_SEARCHED);
    let mut bytes: Vec<u8> = Vec::with_capacity(PIECE + longest);
    let mut found = [false; SIGNS.len()];
    loop {
        // A text across the end of a piece is found in the next one.
        bytes.drain(..bytes.len().saturating_sub(longest));
        if file.by_ref().take(PIECE as u64).read_to_end(&mut bytes)? == 0 {
            break;
        }
        for (found, (_, signs)) in found.iter_mut().zip(&SIGNS) {
            *found = *found || signs.iter().any(|sign| contains(&bytes, sign.as_bytes()));
        }
    }
    Ok(SIGNS.into_iter().zip(found).filter_map(|((harness, _), found)| found.then_some(harness)).collect())
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some((first, rest)) = text.split_first() else { return true };
    let mut from = bytes;
    while let Some(at) = from.iter().position(|byte| byte == first) {
        from = &from[at + 1..];
        if from.starts_with(rest) {
            return true;
        }
    }
    false
}

fn with(program: &str, rest: &[&str]) -> Vec<String> {
    std::iter::once(&program).chain(rest).map(|word| (*word).to_owned()).collect()
}

/// A regular expression (POSIX, ECMAScript, RE2) that matches only this name.
fn literal(name: &str) -> String {
    let escaped = |c: char| if r"\.+*?()|[]{}^$".contains(c) { vec!['\\', c] } else { vec![c] };
    name.chars().flat_map(escaped).collect()
}

/// Sets Go's number of processors in all builds, so that they agree on the suffix of each bench's name.
fn processors() -> String {
    format!("-test.cpu={}", number_of_processors())
}

/// The suffix: nothing for one processor.
fn suffix() -> String {
    match number_of_processors() {
        1 => String::new(),
        number => format!("-{number}"),
    }
}

/// The user's `GOMAXPROCS`, or one. With more, the runtime moved a bench between threads, which took ten times its time on a busy
/// machine.
fn number_of_processors() -> usize {
    let asked = std::env::var("GOMAXPROCS").ok().and_then(|number| number.trim().parse().ok());
    asked.filter(|number| *number > 0).unwrap_or(1)
}
