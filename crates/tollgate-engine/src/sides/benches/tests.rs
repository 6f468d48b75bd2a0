use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tollgate_model::compare::{Verdict, neighbours};
use tollgate_model::traced::Ended;
use tollgate_model::{Measurement, Outcome};

use super::harness::Size;
use super::*;
use crate::cases::run::BenchError;
use crate::cases::run::Halt;
use crate::sides::versus::{Compared, Cooled, End, Execution, Executor, Order, Output, Rounds};
use tollgate_model::stats::random::Random;

/// Executes nothing and answers like a harness.
struct Mock<A> {
    answer: A,
    orders: Vec<Order>,
    random: Random,
    /// The user's signal comes after this many executions.
    interrupted_after: usize,
}

type Answer = (String, End);

impl<A: FnMut(&Order, f64) -> Answer> Mock<A> {
    fn new(answer: A) -> Self {
        Self { answer, orders: Vec::new(), random: Random::new(7), interrupted_after: usize::MAX }
    }
}

impl<A: FnMut(&Order, f64) -> Answer> Executor for Mock<A> {
    fn execute(&mut self, order: &Order, tick: &mut dyn FnMut()) -> Result<Execution, Halt> {
        tick();
        if self.orders.len() >= self.interrupted_after {
            return Err(Halt::Run(BenchError::Interrupted(2)));
        }
        self.orders.push(order.clone());
        // Up to a thousandth, different for neighbours.
        let noise = 1.0 + (self.random.next_u64() >> 40) as f64 / (1u64 << 24) as f64 / 1000.0;
        let (text, end) = (self.answer)(order, noise);
        let Output::File(file) = &order.output else { panic!("an output that is read") };
        fs::write(file, text).unwrap();
        let said = "thread 'main' panicked\nits last words\n".to_owned();
        Ok(Execution { wall_ns: 10_000_000, said, ..Execution::ended(end) })
    }

    fn cool(&mut self, _: &[String]) -> Result<Cooled, Halt> {
        Ok(Cooled::default())
    }
}

fn builds(harness: Harness, names: &[&str]) -> Builds {
    let build = |name: &&str| Build {
        name: (*name).to_owned(),
        program: format!("/{name}").into(),
        layouts: Vec::new(),
    };
    Builds::new(harness, names.iter().map(build).collect(), Order::default()).unwrap()
}

fn ended() -> End {
    End::Ended(Ended::Exit(0))
}

fn bench(name: &str) -> Bench {
    Bench { name: name.to_owned(), builds: vec![0, 1] }
}

fn plan(benches: Vec<Bench>) -> Plan {
    Plan {
        benches,
        warmups: 1,
        rounds: Rounds { least: 1, most: 300 },
        time: Duration::from_secs(60),
        precision: 0.01,
        asked: 0.0,
        timeout: None,
        seed: 7,
    }
}

fn custom(read: &str) -> Template {
    Template::new("{binary} list", "{binary} run {bench}", read).unwrap()
}

fn build_of(order: &Order) -> usize {
    fs::read_link(&order.words[0]).map_or(9, |program| usize::from(program != Path::new("/old")))
}

fn outcome<'a>(compared: &'a Compared, build: usize, case: &str) -> &'a Outcome {
    let is_it = |measurement: &&Measurement| measurement.case.benchmark == case;
    &compared.found[build].measurements.iter().find(is_it).expect("the case").outcome
}

fn samples<'a>(compared: &'a Compared, build: usize, case: &str) -> &'a [f64] {
    outcome(compared, build, case).measured().map_or(&[], |measured| &measured.samples)
}

/// `words` after the program, for a bench with every special character of regular expressions.
fn words(harness: &Harness, bench: &str) -> String {
    harness.one_words("P", bench, Size { sample: 64, number: 20 }).join(" ")
}

#[test]
fn each_harness_is_asked_in_its_own_words() {
    let criterion = words(&Harness::Criterion, "sum/of (2)");
    assert!(
        criterion.starts_with("P --bench ") && criterion.ends_with(" --exact --noplot -- sum/of (2)"),
        "{criterion}"
    );
    let divan = words(&Harness::Divan, "ops::inc::t=2");
    let wanted = "P --bench --color never --sample-size 64 --sample-count 20 --threads 2 --exact -- ops::inc";
    assert_eq!(divan, wanted);
    assert!(words(&Harness::Divan, "ops::t=x").ends_with("--exact -- ops::t=x"));
    let go = words(&Harness::Go, "BenchmarkSum/n=1.5");
    assert!(go.contains(r" -test.bench=^BenchmarkSum$/^n=1\.5$ -test.benchtime=64x -test.count=20 "), "{go}");
    let google = words(&Harness::GoogleBenchmark, "BM_Sum<int>/10");
    assert_eq!(
        google,
        "P --benchmark_filter=^BM_Sum<int>/10$ --benchmark_min_time=0.0002 --benchmark_repetitions=20 --benchmark_format=json"
    );
    let own = Harness::Template(Box::new(custom("{ns}")));
    assert_eq!(own.one_words("P", "a {binary} b", Size::FIRST), ["P", "run", "a {binary} b"]);
}

#[test]
fn a_harness_makes_exactly_so_many_iterations_or_says_that_it_cannot() {
    let words =
        |harness: &Harness, iterations| harness.exactly("P", "b", iterations).unwrap_or_default().join(" ");
    let of_divan = |size: &str| format!("P --bench --color never {size} --exact -- b");
    assert_eq!(words(&Harness::Divan, 1 << 15), of_divan("--sample-size 8192 --sample-count 4"));
    assert_eq!(words(&Harness::Divan, 64), of_divan("--sample-size 64 --sample-count 1"));
    let go = words(&Harness::Go, 1 << 15);
    assert!(
        go.starts_with("P -test.run=^$ -test.bench=^b$ -test.benchtime=32768x -test.count=1 -test.cpu="),
        "{go}"
    );
    assert_eq!(
        words(&Harness::GoogleBenchmark, 64),
        "P --benchmark_filter=^b$ --benchmark_min_time=64x --benchmark_repetitions=1"
    );
    let told = Template::new("{binary}", "{binary} -n {iterations} {bench}", "{ns}").expect("a template");
    let told = Harness::Template(Box::new(told));
    assert_eq!((words(&told, 64).as_str(), told.is_told()), ("P -n 64 b", true));
    assert_eq!(told.size(1000.0), Size { sample: 10_000, number: 1 });
    for other in [Harness::Criterion, Harness::Template(Box::new(custom("{ns}")))] {
        assert!(!other.is_told() && words(&other, 64).is_empty());
    }
}

#[test]
fn lists_of_each_harness_are_read() {
    let of = |harness: &Harness, text: &str| harness.listed(text).join("|");
    let criterion = include_str!("recorded/criterion-list.txt");
    assert_eq!(of(&Harness::Criterion, criterion), "work 1000|sum/of/upto/10|sum/of/upto/100|sort");
    let google = include_str!("recorded/gbench-list.txt");
    assert_eq!(of(&Harness::GoogleBenchmark, google), "BM_Work|BM_Sum/10|BM_Sum/100|BM_Sort|BM_Bad");
    let divan = include_str!("recorded/divan-list.txt");
    let benches = of(&Harness::Divan, divan);
    assert!(
        benches.starts_with(
            "ops::memchr|ops::sort|ops::sum::100|ops::sum::1000|ops::work|ops::named group::inc::t=1|"
        ),
        "{benches}"
    );
    assert!(benches.ends_with("|ops::nested::fill::u64::8|ops::nested::fill::u64::64"), "{benches}");
    // A bench may write anything, and an ignored one does not count.
    let noisy = "ops\n├─ a\nhello\n├─ b  (ignored)\n╰─ c\n\nother\n╰─ d\n";
    assert_eq!(of(&Harness::Divan, noisy), "ops::a|ops::c|other::d");
    let go = include_str!("recorded/go-list.txt");
    let name = |line: &str| reading::go_name(line, "-2");
    let names: Vec<String> = go.lines().filter_map(name).collect();
    assert_eq!(
        names,
        ["BenchmarkWork", "BenchmarkSum/n=10", "BenchmarkSum/n=100", "BenchmarkSort", "BenchmarkMap"]
    );
    assert_eq!(reading::go_name("BenchmarkA/size-8 ", "").as_deref(), Some("BenchmarkA/size-8"));
}

#[test]
fn figures_of_each_harness_are_read() {
    let nowhere = Path::new("/nonexistent");
    let of = |harness: &Harness, text: &str| harness.figure(text, nowhere).map(|figure| figure.ns);
    assert_eq!(of(&Harness::Divan, include_str!("recorded/divan-one.txt")), Ok(38.34));
    assert_eq!(of(&Harness::Divan, include_str!("recorded/divan-counters.txt")), Ok(2879.0));
    let go = of(&Harness::Go, include_str!("recorded/go-one.txt")).unwrap();
    assert!((50.0..500.0).contains(&go), "{go}");
    assert_eq!(of(&Harness::Go, "BenchmarkA-2 hello\n  3\t 12.5 ns/op\t 3 B/op\nPASS\n"), Ok(12.5));
    let google = of(&Harness::GoogleBenchmark, include_str!("recorded/gbench-one.json")).unwrap();
    assert!((8.0..12.0).contains(&google), "{google}");
    assert_eq!(
        of(&Harness::GoogleBenchmark, include_str!("recorded/gbench-error.json")),
        Err("failed: no such file".to_owned())
    );
    let results =
        tempfile_with("sum_of/upto/10/new/sample.json", include_str!("recorded/criterion-sample.json"));
    let criterion = Harness::Criterion.figure("", results.path()).unwrap().ns;
    assert!((20.8..20.9).contains(&criterion), "{criterion}");
    for (read, line) in [
        ("took {ms} ms", "1: took 0.00125ms"),
        ("{ns}", " 1250 "),
        ("t={us}", "t=1.25e0 (us)"),
        ("| {ns} |", "|            1,250.00 |          800,000.00 |    0.4% |      0.01 | `a`"),
        (
            "<mean value=\"{ns}\"",
            "   <mean value=\"1250\" lowerBound=\"1249\" upperBound=\"1251\" ci=\"0.95\"/>",
        ),
    ] {
        assert_eq!(custom(read).figure(&format!("noise\n{line}\n")), Ok(1250.0), "{read}");
    }
}

#[test]
fn a_comma_that_is_none_of_a_group_is_no_number() {
    for line in ["1,25", "1,2500", "1.250,00", "12,34,567", ",", "1,"] {
        assert!(custom("{ns}").figure(line).is_err(), "{line}");
    }
    assert_eq!(custom("{ns}").figure("1,234,567.5\n"), Ok(1_234_567.5));
}

fn tempfile_with(name: &str, text: &str) -> tollgate_os::private::PrivateDirectory {
    let made = tollgate_os::private::PrivateDirectory::temporary().unwrap();
    let file = made.path().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    made
}

/// Every answer of a build leads to a sentence.
#[test]
fn answers_that_are_none_are_said() {
    let nowhere = Path::new("/nonexistent");
    let hostile = [
        "",
        "{\n",
        "{\n}",
        "│││││",
        "╰─ a  1 ns │ 1 ns │ NaN ns │ 1 ns │ 3 │ 3",
        "x ns/op",
        "-5 ns/op",
        "├─ ",
        "1e999 ns/op",
    ];
    let own = Harness::Template(Box::new(custom("{s} s")));
    for harness in [Harness::Criterion, Harness::Divan, Harness::Go, Harness::GoogleBenchmark, own] {
        assert!(tollgate_model::versus::is_bench(&format!("{}/a", harness.name())));
        for text in hostile {
            let why = harness.figure(text, nowhere).unwrap_err();
            assert!(why.contains(' ') && !why.ends_with('.'), "{why}");
            let _ = harness.listed(text);
        }
    }
    for spoiled in ["[]", "{\"times\":[1.0],\"iters\":[]}", "{\"times\":[1],\"iters\":[0]}", "no"] {
        let results = tempfile_with("a/new/sample.json", spoiled);
        assert!(Harness::Criterion.figure("", results.path()).is_err(), "{spoiled}");
    }
    let template = |list: &str, one: &str, read: &str| Template::new(list, one, read).unwrap_err();
    assert_eq!(template("x", "{binary} {bench}", "{ns}"), "--list x: it lacks {binary}");
    assert_eq!(template("{binary}", "{binary}", "{ns}"), "--one {binary}: it lacks {bench}");
    assert_eq!(
        template("{binary}", "{binary} {bench}", "x"),
        "--read x: it lacks {ns}, {us}, {ms} or {s} in place of the figure"
    );
    assert!(template("{binary} 'x", "{binary} {bench}", "{ns}").starts_with("--list {binary} 'x: "));
}

#[test]
fn a_program_is_recognised_by_the_texts_in_it() {
    let of = |text: &str| {
        let made = tempfile_with("program", text);
        Harness::of_program(&made.path().join("program"))
    };
    // Across the end of a searched piece.
    let far = format!("{}DIVAN_SAMPLE_COUNT", "D".repeat((1 << 20) - 5));
    assert_eq!(of(&far), Ok(Harness::Divan));
    assert_eq!(of("a CRITERION_HOME b"), Ok(Harness::Criterion));
    assert_eq!(of("libbenchmark.so.1"), Ok(Harness::GoogleBenchmark));
    assert_eq!(of("test.benchtime"), Ok(Harness::Go));
    assert_eq!(
        of("").unwrap_err(),
        "has no benches of criterion, divan, Go (`go test -c`) or Google Benchmark; name its harness with --harness, or describe another one with --list and --one"
    );
    let both = of("CRITERION_HOME DIVAN_SAMPLE_COUNT").unwrap_err();
    assert_eq!(both, "looks like criterion and divan; name its harness with --harness");
    let why = |path: &str| Harness::of_program(Path::new(path)).unwrap_err();
    assert_eq!(why("/dev/zero"), "cannot be read: /dev/zero is a device; a regular file would be right");
    assert!(why("/nonexistent").starts_with("cannot be read: No such file or directory"));
}

#[test]
fn a_changed_bench_is_found_and_equal_ones_are_the_same() {
    let own = Harness::Template(Box::new(custom("{ns}")));
    let builds = builds(own, &["old", "new"]);
    let mut mock = Mock::new(|order: &Order, noise: f64| {
        let is_slower = order.words[2] == "b" && build_of(order) == 1;
        (format!("{}", 1000.0 * noise * if is_slower { 1.03 } else { 1.0 }), ended())
    });
    let plan = plan(["a", "b", "c"].map(bench).into());
    let compared = measure(&builds, &mut mock, &plan, &mut |_| {}).unwrap();
    let verdict = |case: &str| {
        let [base, other] = [0, 1].map(|build| samples(&compared, build, case));
        assert_eq!(base.len(), other.len());
        neighbours(base, other, 3, 0.0, false).unwrap().verdict
    };
    assert_eq!(
        ["custom/a", "custom/b", "custom/c"].map(verdict),
        [Verdict::Same, Verdict::Slower, Verdict::Same]
    );
    assert!(mock.orders.len() < 3 * 2 * 100, "it ends where all is decided: {}", mock.orders.len());
    // Neighbours are of one bench, and each build leads as often as it follows.
    let pairs: Vec<&[Order]> = mock.orders.chunks(2).collect();
    assert!(
        pairs.iter().all(|pair| pair[0].words[2] == pair[1].words[2] && pair[0].words[0] != pair[1].words[0])
    );
    let leads = pairs.iter().filter(|pair| pair[0].words[0].ends_with("build-000")).count();
    assert!(leads.abs_diff(pairs.len() / 2) <= pairs.len() / 5, "{leads} of {}", pairs.len());
    // Only the link tells an execution which build it is.
    let lengths = |order: &Order| {
        let variable = order.variables.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        (order.words.iter().map(String::len).sum::<usize>(), variable)
    };
    assert!(mock.orders.windows(2).all(|two| lengths(&two[0]) == lengths(&two[1])));
    let homes = |order: &Order| order.variables[0].1.clone();
    assert!(mock.orders.windows(2).all(|two| homes(&two[0]) != homes(&two[1])), "each has a fresh home");
}

#[test]
fn a_bench_that_fails_or_is_in_one_build_is_left_out_with_its_reason() {
    let own = Harness::Template(Box::new(custom("{ns}")));
    let builds = builds(own, &["old", "new"]);
    let mut mock = Mock::new(|order: &Order, noise: f64| match (order.words[2].as_str(), build_of(order)) {
        ("panics", 1) => (String::new(), End::Ended(Ended::Exit(101))),
        ("hangs", 0) => (String::new(), End::OutOfTime),
        ("mute", _) => ("nothing".to_owned(), ended()),
        _ => (format!("{}", 1000.0 * noise), ended()),
    });
    let mut benches: Vec<Bench> = ["a", "panics", "hangs", "mute"].map(bench).into();
    benches.push(Bench { name: "gone".to_owned(), builds: vec![0] });
    benches.push(Bench { name: "added".to_owned(), builds: vec![1] });
    let plan = Plan { timeout: Some(Duration::from_secs(2)), ..plan(benches) };
    let compared = measure(&builds, &mut mock, &plan, &mut |_| {}).unwrap();
    assert!(samples(&compared, 1, "custom/a").len() >= 16);
    let why = |case: &str| match outcome(&compared, 0, case) {
        Outcome::Failed { error } => format!("failed: {error}"),
        Outcome::NotMeasured { why } => why.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(why("custom/panics"), "failed: ended with exit status 101: its last words (in new)");
    assert_eq!(
        why("custom/hangs"),
        "failed: was ended: it took longer than 2.0 s; give it more with --timeout: its last words (in old)"
    );
    assert_eq!(why("custom/mute"), "failed: has no line in its output that matches --read (in old)");
    assert_eq!([why("custom/gone"), why("custom/added")], ["is in old only", "is in new only"]);
    let executed: BTreeMap<&str, usize> = mock.orders.iter().fold(BTreeMap::new(), |mut counts, order| {
        *counts.entry(order.words[2].as_str()).or_default() += 1;
        counts
    });
    assert!(
        executed["panics"] <= 2 && executed["hangs"] <= 2 && !executed.contains_key("gone"),
        "{executed:?}"
    );
}

#[test]
fn divan_makes_as_many_iterations_in_each_build() {
    let builds = builds(Harness::Divan, &["old", "new"]);
    let mut mock = Mock::new(|_: &Order, noise: f64| {
        (format!("╰─ a  9 ns │ 9 ns │ {:.1} ns │ 9 ns │ 20 │ 1280\n", 50.0 * noise), ended())
    });
    let plan = Plan { rounds: Rounds::exactly(3), ..plan(vec![bench("ops::a")]) };
    let compared = measure(&builds, &mut mock, &plan, &mut |_| {}).unwrap();
    assert_eq!(samples(&compared, 0, "divan/ops::a").len(), 3);
    let size = |order: &Order| order.words[4..8].join(" ");
    assert_eq!(size(&mock.orders[0]), "--sample-size 1 --sample-count 3");
    let of = |harness: &Harness, ns: f64| (harness.size(ns).sample, harness.size(ns).number);
    assert_eq!([2.0, 1e6, 3e9].map(|ns| of(&Harness::Go, ns)), [(200_000, 25), (1, 10), (1, 1)]);
    assert_eq!([0.5, 50e3, 3e9].map(|ns| of(&Harness::Divan, ns)), [(10_000, 500), (1, 200), (1, 1)]);
    assert_eq!([2.0, 1e6].map(|ns| of(&Harness::Criterion, ns).1), [40, 10]);
    assert_eq!([2.0, 1e6, 3e9].map(|ns| of(&Harness::GoogleBenchmark, ns).1), [50, 10, 1]);
    let sizes: Vec<String> = mock.orders[2..].iter().map(size).collect();
    assert!(sizes.iter().all(|size| *size == sizes[0] && size.starts_with("--sample-size 4")), "{sizes:?}");
}

#[test]
fn what_was_timed_before_the_signal_is_kept() {
    let own = Harness::Template(Box::new(custom("{ns}")));
    let builds = builds(own, &["old", "new"]);
    let mut mock = Mock::new(|_: &Order, noise: f64| (format!("{}", 1000.0 * noise), ended()));
    mock.interrupted_after = 15;
    let compared = measure(&builds, &mut mock, &plan(vec![bench("a")]), &mut |_| {}).unwrap();
    assert_eq!(compared.interrupted, Some(2));
    assert_eq!([0, 1].map(|build| samples(&compared, build, "custom/a").len()), [6, 6]);
}

#[test]
fn a_list_that_ended_badly_is_said() {
    let builds = builds(Harness::Go, &["old"]);
    let list = |text: &str, status: i32| {
        let text = text.to_owned();
        let mut mock = Mock::new(move |_: &Order, _| (text.clone(), End::Ended(Ended::Exit(status))));
        builds.list(0, None, &mut mock, &mut || {})
    };
    assert_eq!(list("BenchmarkA 1 3 ns/op\nBenchmarkA 1 3 ns/op\n", 0).unwrap(), ["BenchmarkA"]);
    assert_eq!(list("BenchmarkA\n--- FAIL: BenchmarkA\n", 1).unwrap(), ["BenchmarkA"]);
    let ended = list("panic: x", 2).unwrap_err().to_string();
    assert!(
        ended.starts_with("old, asked for its benches with -test.run=^$ ")
            && ended.ends_with("ended with exit status 2"),
        "{ended}"
    );
    let none = list("usage: x\n", 0).unwrap_err().to_string();
    let asked = Harness::Go.list_words("P")[1..].join(" ");
    assert_eq!(none, format!("old lists no benches; asked with {asked}, it wrote: usage: x"));
}

/// A run of benches is recognised by these names. With a missing one it would be taken for a run of the registry's benchmarks.
#[test]
fn the_cases_of_every_harness_are_benches() {
    for harness in [
        Harness::Criterion,
        Harness::Divan,
        Harness::Go,
        Harness::GoogleBenchmark,
        Harness::Template(Box::new(custom("{ns}"))),
    ] {
        assert!(tollgate_model::versus::HARNESSES.contains(&harness.name()), "{}", harness.name());
    }
}

const PANIC_OF_GO: &str =
    "panic: boom [recovered]\n\tpanic: boom\n\ngoroutine 7 [running]:\nx.BenchmarkPanics(0x1)\n";

#[test]
fn a_bench_that_panics_while_it_is_listed_is_one_of_the_list() {
    let mut go = Mock::new(|order: &Order, _| {
        let words = order.words.join(" ");
        let (text, status) = if words.contains("-test.list=") {
            ("BenchmarkGood\nBenchmarkPanics\nok\n", 0)
        } else if words.contains("^BenchmarkGood$") {
            ("BenchmarkGood/a \t 1\t 3 ns/op\nPASS\n", 0)
        } else {
            ("goos: linux\n", 2)
        };
        (text.to_owned(), End::Ended(Ended::Exit(status)))
    });
    let listed = builds(Harness::Go, &["old"]).list(0, None, &mut go, &mut || {}).expect("a list");
    assert_eq!(listed, ["BenchmarkGood/a", "BenchmarkPanics"]);
    let mut divan = Mock::new(|order: &Order, _| {
        let words = order.words.join(" ");
        let of = |name: &str| (format!("x\n╰─ {name}\n"), ended());
        match () {
            () if words.contains("--list") => ("x\n├─ good\n╰─ panics\n".to_owned(), ended()),
            () if words.ends_with("--exact -- x::good") => of("good"),
            () => (String::new(), End::Ended(Ended::Exit(101))),
        }
    });
    let listed = builds(Harness::Divan, &["old"]).list(0, None, &mut divan, &mut || {}).expect("a list");
    assert_eq!(listed, ["x::good", "x::panics"]);
}

#[test]
fn the_reason_of_a_panic_is_its_message() {
    let rust = "\nthread 'main' (7) panicked at benches/b.rs:9:5:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
    let old = "thread 'main' panicked at 'it's, \'boom\'', benches/b.rs:9:5\nnote: run with `RUST_BACKTRACE=1` environment\n";
    for (said, reason) in [
        (rust, ": panicked: boom"),
        (old, ": panicked: it's, 'boom'"),
        (PANIC_OF_GO, ": panicked: boom"),
        ("error: one\nerror: two\n\n", ": error: two"),
        ("why\nnote: run with `RUST_BACKTRACE=1`", ": why"),
        ("", ""),
    ] {
        assert_eq!(super::builds::last_words(said), reason);
    }
}

#[test]
fn orders_and_documents_are_as_recorded() {
    let names = ["old", "new", "newer"];
    let own = Harness::Template(Box::new(custom("{ns}")));
    let builds = [builds(own, &names), builds(Harness::Divan, &names)];
    crate::recorded::hold("benches", |seed| {
        let mut recorded = String::new();
        for builds in &builds {
            let is_divan = builds.harness() == &Harness::Divan;
            let mut mock = Mock::new(|order: &Order, noise: f64| {
                let bench = order.words.last().map_or("", String::as_str);
                let link = Path::new(&order.words[0]);
                let is_new = link.ends_with("build-001");
                let ns = 1000.0 * noise * if is_new && bench == "b" { 1.03 } else { 1.0 };
                match bench {
                    "panics" if is_new => (String::new(), End::Ended(Ended::Exit(101))),
                    _ if is_divan => {
                        (format!("╰─ a  9 ns │ 9 ns │ {ns:.1} ns │ 9 ns │ 20 │ 1280\n"), ended())
                    }
                    _ => (format!("{ns}"), ended()),
                }
            });
            mock.random = Random::new(seed);
            mock.interrupted_after = if seed % 4 == 0 { 40 + seed as usize } else { usize::MAX };
            let mut benches: Vec<Bench> = ["a", "b", "panics"].map(bench).into();
            benches.push(Bench { name: "c".to_owned(), builds: vec![0, 1, 2] });
            benches.push(Bench { name: "gone".to_owned(), builds: vec![0] });
            let rounds = [Rounds { least: 1, most: 40 }, Rounds::exactly(5), Rounds { least: 3, most: 30 }];
            let time = Duration::from_secs(if seed % 3 == 2 { 0 } else { 600 });
            let plan = Plan { seed, rounds: rounds[seed as usize % 3], time, ..plan(benches) };
            let compared = measure(builds, &mut mock, &plan, &mut |_| {}).unwrap();
            for order in &mock.orders {
                let link = Path::new(&order.words[0]).file_name().unwrap_or_default().to_string_lossy();
                recorded += &format!("{link} {}, ", order.words[1..].join(" "));
            }
            for found in &compared.found {
                recorded += "\n";
                recorded += &serde_json::to_string(&found.measurements).unwrap();
            }
            recorded += &format!("\n{:?} {:?}\n", compared.facts, compared.interrupted);
        }
        recorded
    });
}
