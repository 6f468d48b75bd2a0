//! Every format reads back unchanged, for any text and number of a run document.

use crate::sessions;
use proptest::prelude::*;
use sessions::{Side, host};
use tollgate_model::run::{SCHEMA, Tool};
use tollgate_model::traced::{Backend, Ended, Idle, TimesFrom};
use tollgate_model::{
    Case, Environment, Fact, Facts, Knob, Measured, Measurement, Outcome, ParamValue, ProcessRounds,
    Provenance, Run, Traced, Unit,
};
use tollgate_view::export::facts::{self, env_id};
use tollgate_view::export::metric::{Metric, metrics};
use tollgate_view::export::row::{ExportedRow, ndjson};
use tollgate_view::export::{bmf, csv, openmetrics};
use tollgate_view::summary::Summary;

/// Texts with the syntax of a format, and random ones.
fn text() -> impl Strategy<Value = String> {
    let odd = prop_oneof![
        "[=+@'\"\\\\,{}#\t\r\n -]{0,12}",
        Just("# EOF\n".to_owned()),
        Just("\"} 1\nforged{x=\"".to_owned()),
        Just("=cmd|' /C calc'!A0".to_owned()),
        Just("\u{202e}\u{9b}2J\u{0}".to_owned()),
        Just("\u{85}line\u{2028}".to_owned()),
    ];
    prop_oneof![odd, "\\PC{0,40}", any::<String>()]
}

/// Names as run documents may have them: without characters that control a terminal.
fn name() -> impl Strategy<Value = String> {
    text().prop_map(|text| {
        text.chars().filter(|c| !tollgate_model::text::commands_a_reader(*c)).take(60).collect()
    })
}

fn measured(unit: Unit, samples: Vec<f64>) -> Measured {
    let rounds = samples.len() as u32;
    Measured {
        unit,
        provenance: Provenance::Hardware,
        ops_per_sample: 500,
        clock_hz: 2_000_000_000,
        samples,
        discarded: 0,
        processes: vec![ProcessRounds { rounds, ran: None, discarded: Vec::new() }],
        counted: None,
        counters: Vec::new(),
        events: Vec::new(),
        bytes_per_op: None,
        group: "g".to_owned(),
        baseline: None,
        notes: Vec::new(),
        span_ns: None,
        traced: Vec::new(),
        traced_apart: Vec::new(),
    }
}

fn traced(wall_ns: u64, idle: Option<u64>) -> Traced {
    Traced {
        command: vec!["make".to_owned()],
        ended: Some(Ended::Exit(0)),
        processors: 2,
        user_ns: wall_ns / 2,
        sys_ns: wall_ns / 4,
        times_from: TimesFrom::Rusage,
        idle: idle.map(|sleep_ns| Idle { sleep_ns, ..Idle::default() }),
        processes: 1,
        threads: 1,
        ..Traced::new(Backend::Bpf, wall_ns)
    }
}

fn run(facts: Facts, measurements: Vec<Measurement>) -> Run {
    Run {
        schema: SCHEMA,
        tool: Tool { name: "tollgate".to_owned(), version: "0.1.0".to_owned() },
        id: "20261121-015427-3f2a91c4".parse().expect("an id"),
        label: Some("label".parse().expect("a label")),
        environment: Environment::Vm,
        session: None,
        started: "2026-11-21T01:54:27Z".to_owned(),
        finished: "2026-11-21T01:55:27Z".to_owned(),
        facts,
        measurements,
    }
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let unit = prop_oneof![
        Just(Unit::Nanoseconds),
        Just(Unit::NanosecondsPerLine),
        Just(Unit::Bytes),
        Just(Unit::Cycles),
        Just(Unit::Instructions)
    ];
    let sample = prop_oneof![1.0..1e6, -10.0..10.0, -1e300..1e300];
    let samples = proptest::collection::vec(sample, 1..30);
    prop_oneof![
        (unit, samples).prop_map(|(unit, samples)| Outcome::Measured(Box::new(measured(unit, samples)))),
        text().prop_map(|why| Outcome::Skipped { why }),
        text().prop_map(|error| Outcome::Failed { error }),
    ]
}

fn runs() -> impl Strategy<Value = Run> {
    let facts = prop_oneof![
        text().prop_map(|text| Fact::known(text, "s")),
        proptest::collection::vec(text(), 0..3).prop_map(|list| Fact::known(list, "s")),
        any::<i64>().prop_map(|number| Fact::known(number, "s")),
        text().prop_map(Fact::refused),
    ];
    let fact_names = prop_oneof![
        Just("kernel.release".to_owned()),
        Just("cpu.model".to_owned()),
        Just("run.machine".to_owned()),
        name()
    ];
    let facts = proptest::collection::btree_map(fact_names, facts, 0..6);
    let case =
        (name(), proptest::collection::btree_map(name(), name().prop_map(|word| word.as_str().into()), 0..3));
    let measurements = proptest::collection::vec((case, outcomes()), 0..6);
    (facts, measurements).prop_map(|(facts, measurements)| {
        let measurement =
            |((benchmark, params), outcome)| Measurement { case: Case { benchmark, params }, outcome };
        let mut measurements: Vec<Measurement> = measurements.into_iter().map(measurement).collect();
        let mut seen = std::collections::HashSet::new();
        measurements.retain(|measurement| seen.insert(measurement.case.clone()));
        run(facts, measurements)
    })
}

fn cut(text: &str) -> String {
    if text.chars().count() > 256 { text.chars().take(256).chain(['…']).collect() } else { text.to_owned() }
}

fn records(text: &str) -> Vec<Vec<String>> {
    assert!(text.ends_with("\r\n"), "the last record has an end");
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let records: Result<Vec<Vec<String>>, _> = reader.deserialize().collect();
    records.expect("records of one length")
}

/// A sample's name, labels and value.
fn series(line: &str) -> (String, Vec<(String, String)>, f64) {
    let (name, rest) = line.split_once('{').expect("labels");
    let mut labels = Vec::new();
    let mut rest = rest;
    loop {
        let (label, after) = rest.split_once("=\"").expect("a label");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("an end") {
                (_, '\\') => value.push(match chars.next().expect("escaped").1 {
                    'n' => '\n',
                    c @ ('"' | '\\') => c,
                    c => unreachable!("no such escape: {c:?}"),
                }),
                (at, '"') => break at,
                (_, c) => value.push(c),
            }
        };
        labels.push((label.to_owned(), value));
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    let value = rest.strip_prefix("} ").expect("a value").parse().expect("a number");
    (name.to_owned(), labels, value)
}

fn own<'a>(metrics: &'a [Metric<'a>], benchmark: &str, params: &str, name: &str) -> &'a Metric<'a> {
    let is_it = |metric: &&Metric| {
        metric.case.benchmark == benchmark && metric.params == params && metric.name == name
    };
    metrics.iter().find(is_it).expect("the metric")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_read_back(run in runs()) {
        let summary = Summary::of(&run);
        let all = metrics(&summary);
        let text = ndjson(&run).expect("JSON");
        prop_assert_eq!(text.lines().count(), all.len());
        for (line, metric) in text.split_terminator('\n').zip(&all) {
            let row = ExportedRow::parse(line).map_err(TestCaseError::fail)?;
            prop_assert_eq!(&row.benchmark, &metric.case.benchmark);
            prop_assert_eq!(&row.params, &metric.params);
            prop_assert_eq!(row.why.as_deref().map(str::to_owned), metric.why().map(cut));
            prop_assert_eq!(row.median, metric.figures.map(|figures| figures.estimate.median));
            prop_assert_eq!(&row.env_id, &env_id(&run.facts));
            let kernel = run.facts.get("kernel.release").and_then(Fact::value);
            prop_assert_eq!(row.key_facts.kernel.clone(), kernel.map(|value| cut(&value.to_string())));
        }
    }

    #[test]
    fn comma_separated_values_read_back(run in runs()) {
        let text = csv::csv(std::slice::from_ref(&run));
        let records = records(&text);
        let summary = Summary::of(&run);
        let all = metrics(&summary);
        prop_assert_eq!(records.len(), all.len() + 1);
        let at = |column: &str| records[0].iter().position(|name| name == column).expect("a column");
        for (record, metric) in records[1..].iter().zip(&all) {
            let text = |column: &str| record[at(column)].strip_prefix('\'').unwrap_or(&record[at(column)]).to_owned();
            prop_assert_eq!(text("benchmark"), metric.case.benchmark.as_str());
            let escaped = |text: &str| text.replace('\\', "\\\\").replace(' ', "\\ ").replace('=', "\\=");
            let pair = |(name, value): (&String, &ParamValue)| format!("{}={}", escaped(name), escaped(&value.to_string()));
            let params: Vec<String> = metric.case.params.iter().map(pair).collect();
            prop_assert_eq!(text("params"), params.join(" "));
            prop_assert_eq!(text("why"), cut(metric.why().unwrap_or_default()));
            let median = metric.figures.map(|figures| figures.estimate.median);
            prop_assert_eq!(record[at("median")].parse().ok(), median);
            for column in ["machine", "kernel", "cpu", "benchmark", "params", "why"] {
                let formula = record[at(column)].starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
                prop_assert!(!formula, "{column}: {:?}", record[at(column)]);
            }
        }
    }

    #[test]
    fn openmetrics_read_back(run in runs()) {
        let text = openmetrics::openmetrics(std::slice::from_ref(&run));
        prop_assert!(text.ends_with("\n# EOF\n"));
        let summary = Summary::of(&run);
        let all = metrics(&summary);
        let mut medians = 0;
        let mut seen = std::collections::HashSet::new();
        for line in text.split_terminator('\n').filter(|line| !line.starts_with('#')) {
            let (name, labels, value) = series(line);
            prop_assert!(seen.insert((name.clone(), labels.clone())), "twice: {line}");
            let label = |wanted: &str| labels.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
            if name == "tollgate_run_info" {
                let kernel = run.facts.get("kernel.release").and_then(Fact::value);
                let kernel = kernel.map_or(String::new(), |value| cut(&value.to_string()));
                prop_assert_eq!(label("kernel"), Some(kernel.as_str()));
            }
            let quantity = ["tollgate_latency_", "tollgate_size_", "tollgate_executed_"];
            let unit = quantity.iter().find_map(|quantity| name.strip_prefix(quantity));
            let Some(unit) = unit.filter(|unit| !unit.contains('_')) else { continue };
            let metric = own(&all, label("benchmark").expect("a benchmark"), label("params").expect("params"), label("metric").expect("a metric"));
            let median = metric.figures.expect("figures").estimate.median;
            prop_assert_eq!(value, if unit == "seconds" { median / 1e9 } else { median });
            medians += 1;
        }
        prop_assert_eq!(medians, all.iter().filter(|metric| metric.figures.is_some_and(|figures| figures.below.is_none())).count());
    }

    #[test]
    fn bmf_reads_back(run in runs()) {
        let text = bmf::bmf(&run).expect("JSON");
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let summary = Summary::of(&run);
        let estimates = metrics(&summary).into_iter().filter(|metric| metric.figures.is_some_and(|figures| figures.below.is_none()));
        for metric in estimates {
            let name = if metric.params.is_empty() { metric.case.benchmark.clone() } else { format!("{}{{{}}}", metric.case.benchmark, metric.params) };
            let measures = read[&name].as_object().expect("a benchmark");
            let median = metric.figures.expect("figures").estimate.median;
            prop_assert!(measures.values().any(|measure| measure["value"] == median), "{name}");
        }
    }

    #[test]
    fn facts_read_back_under_their_name(run in runs()) {
        let (name, bytes) = facts::file(&run.facts).expect("a file");
        prop_assert_eq!(&name, &env_id(&run.facts));
        let read: Vec<serde_json::Value> = serde_json::from_slice(&bytes).expect("JSON");
        prop_assert!(read.iter().all(|fact| fact["env_id"] == name.as_str()));
        let mut other = run.facts.clone();
        other.insert("kernel.release".to_owned(), Fact::known("another kernel", "s"));
        prop_assert_ne!(env_id(&other), name.clone());
        other.clone_from(&run.facts);
        other.insert("uptime".to_owned(), Fact::known(7, "s"));
        other.insert("run.seed".to_owned(), Fact::known(7, "s"));
        other.insert("kernel.command_line".to_owned(), Fact::known("root=UUID=7", "s"));
        prop_assert_eq!(env_id(&other), name);
    }

    #[test]
    fn any_text_is_a_row_or_not(line in "\\PC{0,200}|\\{\"schema\":[0-9]{1,30}.{0,40}") {
        let _ = ExportedRow::parse(&line);
    }
}

#[test]
fn traced_commands_have_their_parts() {
    let mut whole = measured(Unit::Nanoseconds, vec![4000.0, 8000.0]);
    // A tenth of the real time is neither on a processor nor waiting.
    whole.traced = vec![traced(4000, Some(600)), traced(8000, Some(1200))];
    let measurement = |outcome| Measurement { case: Case::plain("workloads/build"), outcome };
    let complete = run(Facts::new(), vec![measurement(Outcome::Measured(Box::new(whole.clone())))]);
    let medians: Vec<(&str, f64)> = metrics(&Summary::of(&complete))
        .iter()
        .map(|metric| (metric.name, metric.figures.expect("measured").estimate.median))
        .collect();
    assert_eq!(
        medians,
        [
            ("latency", 6000.0),
            ("real", 6000.0),
            ("user", 3000.0),
            ("sys", 1500.0),
            ("waiting", 900.0),
            ("unaccounted", 600.0)
        ]
    );
    // A backend that does not see waiting does not report it.
    whole.traced = vec![traced(4000, Some(1000)), traced(8000, None)];
    let partial = run(Facts::new(), vec![measurement(Outcome::Measured(Box::new(whole)))]);
    assert!(!ndjson(&partial).expect("memory").contains("waiting"));
}

#[test]
fn a_metric_is_named_after_its_unit() {
    let units = [Unit::Nanoseconds, Unit::Bytes, Unit::Instructions, Unit::Cycles, Unit::NanosecondsPerLine];
    let measurement = |unit: Unit| Measurement {
        case: Case::plain(format!("entry/{unit}")),
        outcome: Outcome::Measured(Box::new(measured(unit, vec![100.0; 9]))),
    };
    let run = run(Facts::new(), units.map(measurement).to_vec());
    let names: Vec<&str> = metrics(&Summary::of(&run)).iter().map(|metric| metric.name).collect();
    assert_eq!(names, ["latency", "size", "instructions", "latency", "latency"]);
    let text = openmetrics::openmetrics(&[run]);
    for family in
        ["latency_seconds", "size_bytes", "executed_instructions", "latency_cycles", "latency_min_seconds"]
    {
        assert!(text.contains(&format!("# TYPE tollgate_{family} gauge\n")), "{family}: {text}");
    }
    assert!(
        text.contains(
            "tollgate_cases{status=\"measured\",environment=\"vm\",label=\"label\",machine=\"\"} 5\n"
        )
    );
}

#[test]
fn a_line_that_contradicts_itself_is_no_row() {
    let one = run(
        Facts::new(),
        vec![Measurement {
            case: Case::plain("entry/syscall"),
            outcome: Outcome::Measured(Box::new(measured(Unit::Nanoseconds, vec![100.0; 9]))),
        }],
    );
    let line = ndjson(&one).expect("a line");
    assert!(ExportedRow::parse(line.trim_end()).is_ok());
    for (wrong, part) in [
        (line.replace("\"count\":9", "\"count\":8"), "histogram"),
        (line.replace("\"hist_counts\":[9]", "\"hist_counts\":[9,0]"), "histogram"),
        (line.replace("\"hist_offset\":", "\"hist_offset\":9"), "histogram"),
        (line.replace("\"hist_scale\":5", "\"hist_scale\":4"), "histogram"),
        (line.replace("\"status\":\"measured\"", "\"status\":\"skipped\""), "figures"),
        (line.replace("\"schema\":2", "\"schema\":1"), "has schema 1, but this tollgate reads schema 2"),
        (line.replace("\"run\"", "\"ran\""), "not a row"),
    ] {
        let why = ExportedRow::parse(wrong.trim_end()).expect_err("wrong");
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn runs_of_a_session_carry_it_and_others_are_as_before() {
    let knob = Knob { path: "/proc/sys/vm/x".to_owned(), was: "0".to_owned(), value: "1".to_owned() };
    let sides = [host(), Side { name: "host", knob: Some(knob), ..host() }];
    let runs = sessions::runs(&sides, &sessions::CASES[..2]);
    let alone = Run { session: None, ..runs[0].clone() };

    let lines = ndjson(&runs[1]).expect("lines");
    let line: serde_json::Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(line["session"], sessions::ID);
    assert_eq!(line["session_environment"], "host");
    assert_eq!((&line["session_place"], &line["session_paired"]), (&1.into(), &true.into()));
    assert_eq!(line["session_knob"], "/proc/sys/vm/x=1");
    let row = ExportedRow::parse(lines.lines().next().expect("a line")).expect("a row");
    assert_eq!(row.session.expect("a part").session, sessions::ID);
    assert!(!ndjson(&alone).expect("lines").contains("session"));

    // A table has the same columns on each line, including the session's if one of the runs has one.
    let records = records(&csv::csv(&[alone.clone(), runs[1].clone()]));
    let [header, first, .., last] = records.as_slice() else { unreachable!("{records:?}") };
    let own = header.len() - 6;
    assert_eq!(
        header[own..],
        [
            "session",
            "session_environment",
            "session_place",
            "session_paired",
            "session_knob",
            "session_command"
        ]
    );
    assert_eq!(first[own..], ["", "", "", "", "", ""]);
    assert_eq!(last[own..], [sessions::ID, "host", "1", "true", "/proc/sys/vm/x=1", ""]);
    assert!(csv::csv(std::slice::from_ref(&alone)).starts_with(&format!("{}\r\n", header[..own].join(","))));

    let text = openmetrics::openmetrics(&runs);
    let of_syscall = |run: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with("tollgate_latency_seconds{"));
        let line =
            lines.find(|line| line.contains("\"entry/syscall\"") && line.contains(run)).expect("a line");
        series(line).1
    };
    let labels = of_syscall("-00000001");
    let has = |name: &str, value: &str| labels.contains(&(name.to_owned(), value.to_owned()));
    assert!(has("session", sessions::ID) && has("session_environment", "host"), "{labels:?}");
    assert!(has("session_knob", "/proc/sys/vm/x=1"), "{labels:?}");
    assert!(of_syscall("-00000000").iter().all(|(name, _)| name != "session_knob"));
    assert!(!openmetrics::openmetrics(std::slice::from_ref(&alone)).contains("session"));

    // Series of one run keep their labels from session to session.
    let one = openmetrics::openmetrics(&runs[..1]);
    let lines_with_id: Vec<&str> = one.lines().filter(|line| line.contains(sessions::ID)).collect();
    assert!(
        matches!(lines_with_id.as_slice(), [line] if line.starts_with("tollgate_run_info{")),
        "{lines_with_id:?}"
    );

    let read: serde_json::Value = serde_json::from_str(&bmf::of_session(&runs).expect("JSON")).expect("JSON");
    let names: Vec<&String> = read.as_object().expect("an object").keys().collect();
    assert!(read["entry/syscall in host"]["latency"]["value"].is_number(), "{names:?}");
    assert!(read["entry/syscall in host, vm/x=1"]["latency"]["value"].is_number(), "{names:?}");
    let one: serde_json::Value = serde_json::from_str(&bmf::bmf(&alone).expect("JSON")).expect("JSON");
    assert!(one["entry/syscall"]["latency"]["value"].is_number(), "{one}");
}
