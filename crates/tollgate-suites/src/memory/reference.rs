//! Compares latency, page walks, bandwidth and two writers with loops in C (`reference`), in alternation.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::topology::Pair;
use super::{bandwidth, latency, pairing, thrash, tlb};
use crate::prelude::*;
use crate::testing::{Directory, pinned, ready};

/// Compiles the loops in C. Prints the reason and returns `None` if that is not possible.
fn compiled() -> Option<Directory> {
    if !tollgate_arch::features::has_avx2() {
        eprintln!("skipped: the processor or the kernel has no AVX2");
        return None;
    }
    let directory = Directory::new();
    for (name, text) in
        [("memory", include_str!("reference/memory.c")), ("thrash", include_str!("reference/thrash.c"))]
    {
        let (source, program) = (directory.0.join(name).with_extension("c"), directory.0.join(name));
        std::fs::write(&source, text).expect("a file");
        let mut cc = Command::new("cc");
        match cc.args(["-O3", "-mavx2", "-pthread", "-w", "-o"]).arg(program).arg(&source).status() {
            Ok(status) => assert!(status.success(), "cc: {status}"),
            Err(error) => {
                eprintln!("skipped: cc: {error}");
                return None;
            }
        }
    }
    Some(directory)
}

/// A reference loop, ready in its own process on this thread's processor.
struct Reference {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reference {
    fn start(directory: &Directory, program: &str, words: &[String]) -> Self {
        let mut command = Command::new(directory.0.join(program));
        let mut child = (command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())
            .expect("the compiled program");
        let orders = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, orders, answers }
    }

    /// Returns the reference's current time of an operation in nanoseconds.
    fn measure(&mut self) -> f64 {
        writeln!(self.orders).expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("a line");
        line.trim().parse().expect("a number")
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Compared {
    benchmark: &'static Benchmark,
    case: Params,
    program: &'static str,
    reference: Vec<String>,
}

impl Compared {
    /// Returns `None` if the case has no reference.
    fn new(benchmark: &'static Benchmark, case: Params) -> Option<Self> {
        let text = |name: &str| case.get(name).map(ToString::to_string).unwrap_or_default();
        let words: Vec<String> = match benchmark.name {
            "memory/latency" => vec!["latency".to_owned(), text("kib"), text("page")],
            "memory/tlb" => vec!["tlb".to_owned(), text("pages"), text("stride_kib"), text("page")],
            _ if text("threads") == "1" && text("by") == "avx2" => {
                vec![text("op"), text("kib"), text("page")]
            }
            _ => return None,
        };
        (words[0] != "write-nt").then_some(Self { benchmark, case, program: "memory", reference: words })
    }

    /// Compares two writers in sequential order, on these two processors.
    fn thrash(case: Params, pair: Pair) -> Option<Self> {
        let text = |name: &str| case.get(name).map(ToString::to_string).unwrap_or_default();
        let words =
            vec![text("kib"), text("page"), text("shared"), pair.from.to_string(), pair.to.to_string()];
        let is_published = text("order") == "sequential" && text("pair") == pair.relation.word();
        is_published.then_some(Self {
            benchmark: &thrash::BENCHMARK,
            case,
            program: "thrash",
            reference: words,
        })
    }

    /// Returns the median of the ratios to the reference in this many turns, and the medians of both in ns; `None` if the case cannot run here.
    fn ratio(&self, turns: usize, directory: &Directory, context: &mut Context) -> Option<[f64; 3]> {
        let clock = Clock::tsc().map_or(Clock::Kernel, |(clock, _)| clock);
        let Kind::Instance(make) = self.benchmark.kind else {
            panic!("{} has no instance", self.benchmark.name)
        };
        let timed = (self.benchmark.timed)(&self.case);
        let mut instance = ready(&self.case, make(timed, &self.case, context))?;
        let mut reference = Reference::start(directory, self.program, &self.reference);
        let turns: Vec<[f64; 2]> =
            (0..turns).map(|_| [per_operation(&mut instance, clock), reference.measure()]).collect();
        let median = |of: fn(&[f64; 2]) -> f64| {
            tollgate_model::stats::median(&turns.iter().map(of).collect::<Vec<f64>>()).expect("turns")
        };
        Some([median(|[own, theirs]| own / theirs), median(|turn| turn[0]), median(|turn| turn[1])])
    }
}

/// Nanoseconds of an operation: the median of a few batches, as in a process of a run.
fn per_operation(instance: &mut Instance, clock: Clock) -> f64 {
    const BATCHES: usize = 5;
    let ops = instance.limits().0;
    let iterations = (1_u64 << 12).div_ceil(ops).min(32);
    let batches = (0..BATCHES).map(|_| {
        let batch = instance.batch(clock, Order::new(iterations)).expect("a batch");
        clock.nanoseconds(batch.work.saturating_sub(batch.empty) as f64) / (iterations * ops) as f64
    });
    tollgate_model::stats::median(&batches.collect::<Vec<f64>>()).expect("batches")
}

/// Prints every case beside its loop in C, as a table.
#[test]
#[ignore = "takes minutes; to be run by hand on a quiet machine: --ignored --nocapture a_table_of_memory"]
fn a_table_of_memory_beside_loops_in_c() {
    const TURNS: usize = 11;
    let Some(directory) = compiled() else { return };
    let all = cpu::allowed();
    let only = std::env::var("TOLLGATE_CASES").unwrap_or_default();
    let benchmarks = [&latency::BENCHMARK, &tlb::BENCHMARK, &bandwidth::BENCHMARK];
    let pair = pairing::two_cores(&mut Context::here());
    let machine = Topology::here();
    let of_two = (thrash::BENCHMARK.cases)(&machine).into_iter();
    let of_two = of_two.filter_map(|case| Compared::thrash(case, pair.clone().ok()?));
    let cases = benchmarks.into_iter().flat_map(|benchmark| {
        let cases = (benchmark.cases)(&machine).into_iter();
        cases.filter_map(move |case| Compared::new(benchmark, case))
    });
    println!("| case | ns | in C | ratio |\n|---|---|---|---|");
    for compared in cases.chain(of_two) {
        let name = compared.benchmark.case(compared.case.clone()).to_string();
        if !name.contains(&only) {
            continue;
        }
        // Each case returns its memory before the next one is made.
        let mut context = Context::here();
        pinned();
        if let Some([ratio, own, theirs]) = compared.ratio(TURNS, &directory, &mut context) {
            println!("| `{name}` | {own:.3} | {theirs:.3} | {ratio:.2} |");
        }
        cpu::allow(&all);
    }
}
