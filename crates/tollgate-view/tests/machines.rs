//! Every list, selection and screen of machines that this one is not: one processor and 64, of Intel, AMD and Arm, with caches of two
//! levels or unknown, with and without a hypervisor.

#[path = "../../../tests/machines.rs"]
mod made;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use made::{MACHINES, Machine, Tree};
use serde_json::Value;
use tollgate_engine::{Architecture, Topology};
use tollgate_inspect::{SUBJECTS, read_facts};
use tollgate_model::compare::Spread;
use tollgate_model::run::{SCHEMA, Tool};
use tollgate_model::{Case, Fact, Facts, Measured, Measurement, Outcome, ProcessRounds, Provenance, Run};
use tollgate_suites::{Benchmark, Extent, SUITES, Size, select};
use tollgate_view::comparison::Comparison;
use tollgate_view::doctor::Diagnosis;
use tollgate_view::inspect::facts::{self, Group};
use tollgate_view::show::text::Options;
use tollgate_view::summary::Summary;
use tollgate_view::{benchmarks, compare, explain, report, screen, show};

struct Read {
    name: &'static str,
    topology: Topology,
    facts: Facts,
    groups: Vec<Group>,
}

/// Every machine, read once from its tree.
fn all() -> &'static [Read] {
    static READ: LazyLock<Vec<Read>> = LazyLock::new(|| MACHINES.iter().map(read).collect());
    &READ
}

fn read(machine: &Machine) -> Read {
    let tree = Tree::of(machine);
    let inspected = tollgate_inspect::Machine::open(tree.path()).expect("a tree");
    let groups = SUBJECTS.iter().map(|subject| Group {
        subject: subject.name.to_owned(),
        facts: subject.facts.iter().flat_map(|spec| spec.read(&inspected)).collect(),
    });
    Read {
        name: machine.name,
        topology: Topology::below(tree.path(), (0..machine.processors).collect()),
        facts: read_facts(&inspected),
        groups: groups.collect(),
    }
}

fn registered() -> impl Iterator<Item = &'static Benchmark> {
    SUITES.iter().flat_map(|suite| suite.benchmarks).copied()
}

fn cases(machine: &Topology, patterns: &[&str], extent: Extent) -> Vec<Case> {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    select(machine, &patterns, extent, Size::Small).expect("registered").cases().collect()
}

/// A made-up figure of a case, from six processes.
fn measured(case: Case) -> Measurement {
    let median = match case.benchmark.as_str() {
        "entry/call" => 1.5,
        "entry/syscall" => 90.0,
        "entry/int80" => 1_500.0,
        "memory/latency" => 3.0,
        _ => 2_000.0,
    };
    let benchmark = tollgate_suites::find(&case.benchmark).expect("registered");
    let measured = Measured {
        unit: benchmark.unit,
        provenance: Provenance::Hardware,
        ops_per_sample: 1,
        clock_hz: 2_000_000_000,
        samples: (0..48).map(|sample| median * (1.0 + f64::from(sample % 7) / 1000.0)).collect(),
        discarded: 0,
        processes: vec![ProcessRounds { rounds: 8, ran: None, discarded: Vec::new() }; 6],
        counted: None,
        counters: Vec::new(),
        events: Vec::new(),
        bytes_per_op: (benchmark.bytes)(&case.params),
        group: benchmark.suite().to_owned(),
        baseline: benchmark.baseline_of(&case.params),
        notes: Vec::new(),
        span_ns: None,
        traced: Vec::new(),
        traced_apart: Vec::new(),
    };
    Measurement { case, outcome: Outcome::Measured(Box::new(measured)) }
}

fn run(id: &str, machine: &Read, cases: Vec<Case>) -> Run {
    let mut facts = machine.facts.clone();
    let home = machine.topology.home.expect("a processor") as i64;
    facts.extend([
        ("run.cpu".to_owned(), Fact::known(home, "a test")),
        ("run.clock".to_owned(), Fact::known("tsc", "a test")),
        ("run.clock_hz".to_owned(), Fact::known(2_000_000_000_i64, "a test")),
    ]);
    Run {
        schema: SCHEMA,
        tool: Tool { name: "tollgate".to_owned(), version: "0".to_owned() },
        id: id.parse().expect("an id"),
        label: None,
        environment: tollgate_inspect::environment(&facts),
        session: None,
        started: "2026-11-21T01:54:27Z".to_owned(),
        finished: "2026-11-21T01:55:27Z".to_owned(),
        facts,
        measurements: cases.into_iter().map(measured).collect(),
    }
}

/// A run of what is measured without patterns.
fn usual_run(machine: &Read) -> Run {
    run("20261121-015427-0001", machine, cases(&machine.topology, &[], Extent::Usual))
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Checks that no line is wider than this many columns.
fn expect_within(width: usize, what: &str, text: &str) {
    for line in plain(text).lines() {
        let columns = unicode_width::UnicodeWidthStr::width(line);
        assert!(columns <= width, "{what}: {columns} columns: {line}\n{text}");
    }
}

#[test]
fn a_tree_is_read_as_the_machine_that_it_simulates() {
    let machines = all();
    let pairs = |at: usize, extent: Extent| {
        let benchmark = tollgate_suites::find("memory/pingpong").expect("registered");
        benchmark.cases_in(extent, &machines[at].topology).len() / 2
    };
    // One of each relation; and every pair, with many processors those of 24.
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|at| pairs(at, Extent::Usual)), [1, 3, 3, 1, 1, 1, 1]);
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|at| pairs(at, Extent::Thorough)), [1, 66, 279, 1, 6, 28, 277]);
    assert_eq!(machines[1].topology.home, Some(7), "the last fast one");
    assert_eq!(machines[2].topology.nodes.len(), 4);
    assert!(machines[5].topology.caches().is_empty());
    let shown = |name: &str| -> Vec<String> {
        let value = |machine: &Read| match &machine.facts[name] {
            Fact::Known { value, .. } => value.to_string(),
            Fact::Unknown { .. } => "unknown".to_owned(),
        };
        machines.iter().map(value).collect()
    };
    assert_eq!(shown("cpu.online"), ["2", "12", "64", "1", "4", "8", "64"]);
    assert_eq!(shown("cpu.threads_per_core"), ["1", "2", "2", "1", "1", "unknown", "1"]);
    assert_eq!(shown("cpu.cores"), ["2", "8", "32", "1", "4", "unknown", "64"]);
    assert_eq!(shown("cpu.packages"), ["1", "1", "2", "1", "1", "unknown", "1"]);
    assert_eq!(shown("cpu.nodes"), ["1", "1", "4", "1", "1", "1", "1"]);
    assert_eq!(shown("hypervisor.layers"), ["KVM", "none", "none", "Hyper-V", "none", "QEMU TCG", "unknown"]);
}

#[test]
fn every_benchmark_is_listed_with_its_cases_there() {
    for machine in all() {
        for width in [80, 40] {
            let text = benchmarks::text(&machine.topology, |_| true, width);
            expect_within(width, machine.name, &text);
        }
        let list = serde_json::to_value(benchmarks::List::new(&machine.topology, |_| true)).expect("JSON");
        let records = list["benchmarks"].as_array().expect("benchmarks");
        assert_eq!(records.len(), registered().count());
        for (record, benchmark) in records.iter().zip(registered()) {
            let of = |extent| benchmark.cases_in(extent, &machine.topology).len();
            let number = |field: &str| record[field].as_array().map_or(0, Vec::len);
            assert_eq!(number("params"), of(Extent::Usual), "{}", benchmark.name);
            assert_eq!(number("params") + number("thorough_params"), of(Extent::Thorough));
            let named = ["instruction", "interface", "absent"].map(|field| !record[field].is_null());
            assert_eq!(named.iter().filter(|is_named| **is_named).count(), 1, "{record}");
            // The case that a comparison is over is a case of this machine.
            let Value::Object(over) = &record["over"] else { continue };
            let is_base = |case: &Value| over.iter().all(|(name, value)| case[name] == *value);
            let params = record["params"].as_array().expect("cases");
            assert!(params.iter().any(is_base), "{}: {record}", machine.name);
        }
    }
}

/// The sentences on each benchmark that the list of one architecture has and that of the other has not, for equal processors.
#[test]
fn each_architecture_has_its_own_cases_and_says_why_it_lacks_others() {
    let on = |architecture| Topology { architecture, ..all()[6].topology.clone() };
    let [x86, arm64] = [Architecture::X86_64, Architecture::Arm64].map(on);
    assert_eq!(all()[6].topology, arm64, "the tree names it");
    let sentences = |benchmark: &Benchmark, machine: &Topology| -> Vec<String> {
        let text = benchmarks::text(machine, |other| other.name == benchmark.name, 10_000);
        let about = text.lines().last().expect("a paragraph").trim().trim_end_matches('.');
        about.split(". ").map(str::to_owned).collect()
    };
    let mut differences = String::new();
    for benchmark in registered() {
        let lists = [&x86, &arm64].map(|machine| sentences(benchmark, machine));
        for (name, own, other) in [("x86-64", &lists[0], &lists[1]), ("arm64", &lists[1], &lists[0])] {
            for sentence in own.iter().filter(|sentence| !other.contains(sentence)) {
                differences.push_str(&format!("{} of {name}: {sentence}\n", benchmark.name));
            }
        }
    }
    insta::assert_snapshot!(differences);
}

#[test]
fn patterns_select_cases_there_with_their_baselines() {
    for machine in all() {
        let topology = &machine.topology;
        let everything = cases(topology, &["*"], Extent::Thorough);
        let names: BTreeSet<String> = everything.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), everything.len(), "{}: a case is selected twice", machine.name);
        let [quick, usual, whole] =
            [Extent::Headlines, Extent::Usual, Extent::Thorough].map(|extent| cases(topology, &[], extent));
        assert!(quick.iter().all(|case| usual.contains(case)), "{}", machine.name);
        assert!(usual.iter().all(|case| whole.contains(case)), "{}", machine.name);
        // The name of a case is a pattern that matches it, and its baseline is selected with it: the last one of each suite.
        for suite in SUITES {
            let benchmark = suite.benchmarks.last().expect("a benchmark");
            let last = everything.iter().rfind(|case| case.benchmark == benchmark.name).expect("a case");
            let alone = cases(topology, &[&last.to_string()], Extent::Usual);
            let expected: BTreeSet<Case> = benchmark
                .baseline_of(&last.params)
                .filter(|base| everything.contains(base))
                .into_iter()
                .collect();
            let others: BTreeSet<Case> = alone.iter().filter(|case| *case != last).cloned().collect();
            assert!(alone.contains(last), "{}: {last}", machine.name);
            assert_eq!(others, expected, "{}: {last}", machine.name);
        }
    }
}

#[test]
fn the_first_screen_has_each_headline_that_was_measured_there() {
    let mut heads = String::new();
    for machine in all() {
        let run = usual_run(machine);
        let summary = Summary::of(&run);
        for width in [200, 80, 60, 40] {
            let text = screen::text(&summary, width);
            let rows: Vec<&str> = text.lines().skip(if width > 80 { 4 } else { 0 }).collect();
            expect_within(width.min(80), machine.name, &rows.join("\n"));
            expect_within(width, machine.name, &text);
            assert!(
                width <= 80 || !text.lines().take(4).any(|line| line.trim_end().ends_with('…')),
                "{text}"
            );
            assert!(width < 80 || text.lines().count() <= 43, "{}\n{text}", machine.name);
        }
        let text = plain(&screen::text(&summary, 80));
        for headline in registered().flat_map(|benchmark| benchmark.headlines) {
            let of = registered().find(|benchmark| benchmark.headlines.contains(headline)).expect("its own");
            let is_there = of.case_of(headline, &machine.topology).is_some();
            let is_loads = headline.section == tollgate_engine::Section::Loads;
            let shown = match is_loads {
                true => text.lines().any(|line| line.contains(&format!(" {} ", headline.name))),
                // A name and its figure: no cell of a row is empty.
                false => text.lines().any(|line| {
                    let cells = line.trim_start_matches(['~', ' ']).strip_prefix(headline.name);
                    cells.is_some_and(|cells| cells.split_whitespace().count() >= 5)
                }),
            };
            assert_eq!(shown, is_there, "{}: {}\n{text}", machine.name, headline.name);
        }
        let head: Vec<&str> = text.lines().skip(1).take(3).collect();
        let home = machine.topology.home.expect("a processor");
        assert!(head[0].ends_with(&format!("on CPU {home}")), "{}\n{text}", machine.name);
        heads.push_str(&format!("{}\n  {}\n", machine.name, head.join("\n  ")));
    }
    insta::assert_snapshot!(heads);
}

#[test]
fn arm64_is_shown_in_its_own_words() {
    let arm64 = &all()[6];
    let mut run = usual_run(arm64);
    let is_there = |row: &Measurement| {
        tollgate_suites::find(&row.case.benchmark)
            .is_some_and(|known| known.why_absent(&arm64.topology).is_none())
    };
    run.measurements.retain(is_there);
    let facts = [
        ("run.clock", Fact::known("cntvct", "a test")),
        ("mitigation.spectre_v2", Fact::known("Mitigation: CSV2, BHB", "a test")),
        ("cpu.feature.atomics", Fact::known(false, "a test")),
        ("memory.page_size", Fact::known(65_536, "a test")),
    ];
    run.facts.extend(facts.map(|(name, fact)| (name.to_owned(), fact)));
    let texts =
        [screen::text(&Summary::of(&run), 80), facts::screen(&run.facts, 80)].map(|text| plain(&text));
    let [first, inspected] = &texts;
    for word in ["TSC", "SYSCALL", "INT 80h", "int 0x80", "FRED", "CPUID", "microcode", "32-bit", "LOCK"] {
        assert!(texts.iter().all(|text| !text.contains(word)), "{word}\n{first}\n{inspected}");
    }
    assert!(
        first.lines().any(|line| line.contains("System call") && line.contains("BHB at entry")),
        "{first}"
    );
    for words in
        ["Arm Neoverse-V1", "no LSE", "64-bit by SVC", "pages of 64 KiB", "counter of unstated frequency"]
    {
        assert!(inspected.contains(words), "{words}\n{inspected}");
    }
}

#[test]
fn all_rows_the_page_and_the_checks_are_shown_of_there() {
    for machine in all() {
        let run = usual_run(machine);
        let summary = Summary::of(&run);
        let options = Options { width: Some(80), bench: true, ..Options::default() };
        expect_within(80, machine.name, &show::text::text(&summary, options));
        let table = show::csv::csv(&summary);
        assert_eq!(table.lines().count(), run.measurements.len() + 1, "{}", machine.name);
        let page = report::page_of(std::slice::from_ref(&run), |_| None, &Spread::default())
            .render()
            .expect("a page");
        for benchmark in run.measurements.iter().map(|row| &row.case.benchmark) {
            assert!(page.contains(benchmark.as_str()), "{}: {benchmark} is not on the page", machine.name);
        }
        let diagnosis = Diagnosis::of(&summary).text(80);
        let checks = diagnosis.split("\nTo copy:\n").next().unwrap_or_default();
        expect_within(80, machine.name, checks);
    }
}

#[test]
fn a_clock_that_programs_read_without_the_kernel_is_good() {
    for (source, is_good) in [("tsc", true), ("arch_sys_counter", true), ("hpet", false)] {
        let mut run = usual_run(&all()[0]);
        run.facts.insert("clocksource.current".to_owned(), Fact::known(source, "test"));
        let text = plain(&Diagnosis::of(&Summary::of(&run)).text(80));
        assert_eq!(!text.contains("every clock reading enters the kernel"), is_good, "{source}: {text}");
    }
}

#[test]
fn every_benchmark_is_explained_there() {
    for machine in all() {
        let expect = |benchmark: &Benchmark, summary: Option<&Summary>| {
            let text = explain::text(benchmark, &machine.topology, summary, None, &machine.facts, 80);
            expect_within(80, &format!("{}: {}", machine.name, benchmark.name), &text);
            let text = plain(&text);
            assert!(text.contains(benchmark.name) && text.contains("\nSubtracted "), "{text}");
            let is_absent = benchmark.why_absent(&machine.topology).is_some();
            assert_eq!(text.contains("not measured yet"), summary.is_none() && !is_absent, "{text}");
            assert_eq!(text.contains("not on this architecture"), summary.is_none() && is_absent, "{text}");
        };
        registered().for_each(|benchmark| expect(benchmark, None));
        // Those whose cases depend on the machine most, with their figures.
        for benchmark in registered().filter(|benchmark| benchmark.suite() == "memory") {
            let cases = (benchmark.cases)(&machine.topology).into_iter().map(|params| benchmark.case(params));
            let run = run("20261121-015427-0001", machine, cases.collect());
            expect(benchmark, Some(&Summary::of(&run)));
        }
    }
}

#[test]
fn the_facts_are_shown_of_there() {
    for machine in all() {
        for width in [80, 60] {
            expect_within(width, machine.name, &facts::screen(&machine.facts, width));
            expect_within(width, machine.name, &facts::listing(&machine.groups, &machine.facts, width));
            expect_within(width, machine.name, &facts::sentence(&machine.facts, width));
        }
        let screen = plain(&facts::screen(&machine.facts, 80));
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        for (name, fact) in machine.facts.iter().filter(|(name, _)| name.ends_with(".sizes")) {
            let sizes = fact.value().expect("known").to_string();
            assert!(words.contains(&sizes), "{name}: {sizes}\n{screen}");
        }
        assert!(screen.lines().count() <= 43, "{}\n{screen}", machine.name);
        let line = screen.lines().find(|line| line.starts_with("Topology")).expect("a line");
        let count = machine.topology.processors.len();
        let counted = if count == 1 { "1 CPU,".to_owned() } else { format!("{count} CPUs,") };
        assert!(line.contains(&counted), "{line}");
    }
}

#[test]
fn runs_of_two_machines_are_compared_by_the_cases_that_both_have() {
    let machines = all();
    let base = usual_run(&machines[0]);
    for (at, other) in machines.iter().enumerate().skip(1) {
        let run = run(&format!("20261121-015428-{at:04}"), other, cases(&other.topology, &[], Extent::Usual));
        let comparison = Comparison::of(&base, &run);
        let common = cases(&machines[0].topology, &[], Extent::Usual);
        let common = common.iter().filter(|case| run.measurements.iter().any(|row| row.case == **case));
        assert!(comparison.rows.len() >= common.count(), "{}", other.name);
        for all in [false, true] {
            expect_within(80, other.name, &compare::text::text(std::slice::from_ref(&comparison), all, 80));
        }
    }
}
