//! The entry of a benchmark or fact is enough to show it everywhere.

use std::collections::HashSet;

use tollgate_engine::Topology;
use tollgate_model::compare::Spread;
use tollgate_model::run::{SCHEMA, Tool};
use tollgate_model::{
    Case, Environment, Fact, Facts, Measured, Measurement, Outcome, Params, ProcessRounds, Provenance, Run,
};
use tollgate_suites::{Benchmark, SUITES};
use tollgate_view::comparison::Comparison;
use tollgate_view::export::{csv, openmetrics, row};
use tollgate_view::summary::Summary;
use tollgate_view::{benchmarks, causes, compare, report, show};

const WIDE: usize = 1_000_000;

fn all() -> impl Iterator<Item = &'static Benchmark> {
    SUITES.iter().flat_map(|suite| suite.benchmarks).copied()
}

/// A benchmark's first case, if it has any without --thorough.
fn case(benchmark: &Benchmark) -> Case {
    let params: Params = (benchmark.cases)(&Topology::default()).into_iter().next().unwrap_or_default();
    Case { benchmark: benchmark.name.to_owned(), params }
}

fn run(id: &str, level: f64, value: &str) -> Run {
    let measured = |benchmark: &Benchmark| Measured {
        unit: benchmark.unit,
        provenance: Provenance::Hardware,
        ops_per_sample: 1,
        clock_hz: 2_000_000_000,
        samples: (0..64).map(|sample| level * (1000.0 + f64::from(sample % 8))).collect(),
        discarded: 0,
        processes: vec![ProcessRounds { rounds: 8, ran: None, discarded: Vec::new() }; 8],
        counted: None,
        counters: Vec::new(),
        events: Vec::new(),
        bytes_per_op: None,
        group: benchmark.suite().to_owned(),
        baseline: None,
        notes: Vec::new(),
        span_ns: None,
        traced: Vec::new(),
        traced_apart: Vec::new(),
    };
    let measurement = |benchmark: &Benchmark| Measurement {
        case: case(benchmark),
        outcome: Outcome::Measured(Box::new(measured(benchmark))),
    };
    let facts: Facts = names().into_iter().map(|name| (name, Fact::known(value, "a file"))).collect();
    Run {
        schema: SCHEMA,
        tool: Tool { name: "tollgate".to_owned(), version: "0".to_owned() },
        id: id.parse().expect("an id"),
        label: Some(value.parse().expect("a label")),
        environment: Environment::Host,
        session: None,
        started: "2026-11-21T01:54:27Z".to_owned(),
        finished: "2026-11-21T01:55:27Z".to_owned(),
        facts,
        measurements: all().map(measurement).collect(),
    }
}

/// The names of the facts; a family has one of any name.
fn names() -> Vec<String> {
    tollgate_inspect::facts().map(|spec| spec.name.replace('*', "any")).collect()
}

/// The beginning of a text, up to what a page or a line of JSON would escape.
fn plain(text: &str) -> &str {
    text.split(['&', '<', '>', '"', '\'', '\\']).next().unwrap_or_default()
}

#[test]
fn a_benchmark_is_in_every_list_page_and_export() {
    let run = run("20261121-015427-0001", 1.0, "base");
    let summary = Summary::of(&run);
    let machine = Topology::default();
    let list = benchmarks::text(&machine, |_| true, WIDE);
    let json = serde_json::to_string(&benchmarks::List::new(&machine, |_| true)).expect("JSON");
    let page =
        report::page_of(std::slice::from_ref(&run), |_| None, &Spread::default()).render().expect("a page");
    let rows = row::ndjson(&run).expect("JSON");
    let metrics = openmetrics::openmetrics(std::slice::from_ref(&run));
    let (table, long) = (show::csv::csv(&summary), csv::csv(std::slice::from_ref(&run)));
    let text = show::text::text(&summary, show::text::Options::default());
    for benchmark in all() {
        let (name, operation) = (benchmark.name, plain(benchmark.operation));
        let texts = [&list, &json, &page, &rows, &metrics, &table, &long, &text];
        for (at, shown) in texts.into_iter().enumerate() {
            assert!(shown.contains(name), "{name} is not in text {at}");
        }
        for (at, shown) in [&list, &json, &page].into_iter().enumerate() {
            assert!(shown.contains(operation), "what {name} does is not in text {at}");
        }
        for boundary in benchmark.crosses {
            assert!(json.contains(boundary.name()), "{name}: {boundary}");
        }
    }
}

#[test]
fn a_fact_is_shown_with_what_it_affects_and_causes_what_crosses_that() {
    let (base, other) = (run("20261121-015427-0001", 1.0, "base"), run("20261121-015428-0002", 9.0, "other"));
    let comparisons = [Comparison::of(&base, &other)];
    let text = compare::text::text(&comparisons, true, WIDE);
    let alone =
        report::page_of(std::slice::from_ref(&base), |_| None, &Spread::default()).render().expect("a page");
    let page = report::page_of(&[base.clone(), other.clone()], |_| None, &Spread::default())
        .render()
        .expect("a page");
    let differing: HashSet<&str> = comparisons[0].facts.iter().map(|fact| fact.name.as_str()).collect();
    let mut causing = 0;
    for name in names() {
        assert!(alone.contains(&name), "{name} is not on the page of a run");
        // A fact that changes by the moment is not a difference between environments.
        if tollgate_model::compare::is_volatile(&name) {
            continue;
        }
        assert!(differing.contains(name.as_str()) && page.contains(&name), "{name}");
        assert!(text.contains(&format!("{name}: base → other")), "{name}");
        let Some(effect) = tollgate_inspect::effect(&name) else { continue };
        let words = effect.to_string();
        assert!(text.contains(&format!("affects {words}")), "{name}");
        assert!(page.contains(plain(&words)) && alone.contains(plain(&words)), "{name}");
        let reached = all().filter(|benchmark| causes::reaches(effect, &case(benchmark))).count();
        let counted = format!("{reached} of {reached} such cases differ.");
        assert!(reached == 0 || page.contains(&counted), "{name}: {counted}");
        causing += reached;
    }
    assert!(causing > 0);
}
