//! Event counts beside the time: in real runs, here and by agents, and the reason if there are no hardware events.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use crate::common;
use common::Home;
use serde_json::Value;

const CASES: [&str; 3] =
    ["entry/syscall", "traps/minor-fault{page=4k}", "processes/switch{by=futex, placement=same-cpu}"];

/// Events of this kind for each operation, by the first source that counts them.
fn per_operation(row: &Value, what: &str) -> Option<f64> {
    row["events"].as_array()?.iter().find_map(|source| {
        let operations = source["operations"].as_u64().filter(|operations| *operations > 0)?;
        let counts = source["counts"].as_array()?;
        let counter = counts.iter().find(|counter| counter["what"] == what)?;
        Some(counter["number"].as_u64()? as f64 / operations as f64)
    })
}

fn measured(document: &Value) -> usize {
    let rows = document["measurements"].as_array().expect("measurements");
    let is_ours = |row: &&Value| {
        CASES.iter().any(|case| row["benchmark"].as_str().is_some_and(|name| case.starts_with(name)))
    };
    rows.iter().filter(is_ours).filter(|row| row["status"] == "measured").count()
}

/// The kept runs of this process's environment and of one with a container's filter.
fn session(home: &Home) -> Vec<Value> {
    let environments = ["--in=host", "--in=host:seccomp=default"];
    let arguments =
        ["run", CASES[0], environments[0], environments[1], "--processes=1", "--quiet", "--format=json"];
    let session = home.json(arguments);
    let kept = |run: &Value| {
        let path = run["kept"].as_str().expect("a kept run");
        serde_json::from_slice::<Value>(&std::fs::read(path).expect("a file")).expect("JSON")
    };
    session["runs"].as_array().expect("runs").iter().map(kept).collect()
}

/// Checks the measured rows: each must have context switches and minor faults per operation.
fn expect_plausible(document: &Value) {
    let rows = document["measurements"].as_array().expect("measurements");
    let measured = rows.iter().filter(|row| row["status"] == "measured");
    let mut seen = 0;
    for row in measured {
        let (switches, faults) = match row["benchmark"].as_str() {
            Some("entry/syscall") => (0.0, 0.0),
            Some("traps/minor-fault") => (0.0, 1.0),
            Some("processes/switch") => (1.0, 0.0),
            _ => continue,
        };
        seen += 1;
        assert_eq!(per_operation(row, "context switches"), Some(switches), "{row}");
        let counted = per_operation(row, "minor faults").expect("faults");
        // A thread that was just woken may have a page fault of its own.
        assert!((counted - faults).abs() < 0.01, "{row}");
        assert_eq!(per_operation(row, "major faults"), Some(0.0), "{row}");
        assert_eq!(per_operation(row, "CPU migrations"), Some(0.0), "{row}");
        let Some(instructions) = per_operation(row, "kernel instructions") else {
            let why = document["facts"]["run.counters"]["why"].as_str();
            println!("skipped: no hardware events: {why:?}");
            continue;
        };
        let user = per_operation(row, "user instructions").expect("both rings");
        // A system call takes tens of instructions in the kernel at least, and few outside of it.
        assert!(instructions > 10.0 && user > 0.0 && user < instructions * 100.0, "{row}");
    }
    assert!(seen > 0, "nothing was measured: {rows:?}");
}

/// Hardware events are known with their source, or there is a reason.
fn expect_reason_or_source(document: &Value) -> String {
    let fact = &document["facts"]["run.counters"];
    match fact["status"].as_str() {
        Some("known") => fact["value"].as_str().expect("events").to_owned(),
        _ => {
            let (_, why) = fact["why"].as_str().and_then(|why| why.split_once(": ")).expect("a reason");
            assert!(why.len() > 20, "{why}");
            why.to_owned()
        }
    }
}

#[test]
fn switches_and_faults_are_those_of_the_operation() {
    let home = Home::new();
    let document =
        home.json(["run", CASES[0], CASES[1], CASES[2], "--processes", "1", "--quiet", "--format=json"]);
    assert_eq!(measured(&document), CASES.len(), "{document}");
    expect_plausible(&document);
    let why = expect_reason_or_source(&document);
    let shown = home.output(["show", "last", "--counters"]);
    assert!(shown.contains("counted by: getrusage(2)"), "{shown}");
    let fault = shown.lines().find(|line| line.starts_with("traps/minor-fault")).expect("a row");
    assert!(fault.contains(" 1.00 "), "{fault}");
    let hardware = shown.lines().find(|line| line.starts_with("hardware events: ")).expect("a reason");
    assert!(hardware.contains(&why), "{hardware}");
    let of_entry = home.output(["show", "last", "entry", "--counters"]);
    assert!(of_entry.contains("entry/syscall") && !of_entry.contains("traps/"), "{of_entry}");
}

#[test]
fn agents_count_too_and_a_filter_is_the_reason_in_its_environment() {
    let home = Home::new();
    let documents = session(&home);
    assert!(documents.iter().all(|document| measured(document) > 0));
    documents.iter().for_each(expect_plausible);
    let reasons: Vec<String> = documents.iter().map(expect_reason_or_source).collect();
    assert!(reasons[1].contains("seccomp"), "{reasons:?}");
    let shown = home.output(["show", "last", "--counters"]);
    assert_eq!(shown.matches("counted by: ").count(), 2, "{shown}");
}
