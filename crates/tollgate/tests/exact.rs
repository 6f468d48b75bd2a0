//! Instructions that are counted in a guest: the same in each boot, beside environments that are timed.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use common::Home;
use serde_json::{Value, json};

/// The run of a guest in these words.
fn run(home: &Home, words: &[&str]) -> Value {
    let kept = home.path().join("run.json");
    let path = kept.to_str().expect("a path");
    home.output([&["run"], words, &["--in", "vm:exact", "--quiet", "--out", path]].concat());
    let document = serde_json::from_slice(&std::fs::read(&kept).expect("a run")).expect("JSON");
    std::fs::remove_file(&kept).expect("it is there");
    document
}

fn rows(document: &Value) -> impl Iterator<Item = &Value> {
    document["measurements"].as_array().expect("rows").iter()
}

/// The name of a case, and its samples without repetition.
fn counts(row: &Value) -> (String, Vec<f64>) {
    let mut samples: Vec<f64> =
        row["samples"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    samples.sort_by(f64::total_cmp);
    samples.dedup();
    (format!("{} {}", row["benchmark"], row["params"]), samples)
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn each_boot_counts_the_same_to_the_instruction() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let documents = [(); 3].map(|()| run(&home, &["entry"]));
    for row in rows(&documents[0]).filter(|row| row["status"] == "measured") {
        assert_eq!(
            (&row["unit"], &row["provenance"]),
            (&json!("instructions"), &json!("qemu-icount")),
            "{row}"
        );
        assert_eq!(row["processes"].as_array().map(Vec::len), Some(1), "{row}");
    }
    let [one, others @ ..]: [Vec<_>; 3] =
        documents.each_ref().map(|document| rows(document).map(counts).collect());
    assert!(others.iter().all(|other| one.len() == other.len()));
    // A call that reads the clock takes another way in a part of each second.
    let is_exact = |(_, samples): &&(String, Vec<f64>)| samples.len() == 1;
    for (one, other) in others.iter().flat_map(|other| one.iter().zip(other)) {
        let are_exact = is_exact(&one) && is_exact(&other);
        assert!(!are_exact || one == other, "{one:?} {other:?}");
    }
    let exact = one.iter().filter(is_exact).count();
    let measured = one.iter().filter(|(_, samples)| !samples.is_empty()).count();
    assert!(exact >= 10 && exact * 4 >= measured * 3, "{exact} of {measured} are exact: {one:?}");
    let count = |benchmark: &str| {
        let row = rows(&documents[0]).find(|row| row["benchmark"] == benchmark).expect("a row");
        match counts(row).1.as_slice() {
            &[count] => count,
            samples => panic!("{benchmark}: {samples:?}"),
        }
    };
    // Both are of user code alone: RDTSC is one instruction, and CALL and RET are two.
    assert_eq!((count("entry/rdtsc"), count("entry/call")), (1.0, 2.0));
    assert!(count("entry/syscall") < count("entry/syscall-getpid"));
    assert!(count("entry/int80") < count("entry/int80-getpid"));
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn what_is_of_caches_and_storage_is_not_counted_and_says_so() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let document = run(&home, &["entry/call", "memory/latency", "files/stat"]);
    for row in rows(&document).filter(|row| row["benchmark"] != "entry/call") {
        assert_eq!(row["status"], "not measured", "{row}");
        assert_eq!(
            row["why"],
            "a guest under QEMU's translator has no times; memory and storage are not counted"
        );
    }
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_host_is_timed_beside_a_guest_that_is_counted() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    home.output(["run", "entry/syscall", "--in", "host", "--in", "vm:exact", "--processes", "1", "--quiet"]);
    let documents: Vec<Value> = common::entries(&home.runs())
        .iter()
        .map(|path| serde_json::from_slice(&std::fs::read(path).expect("a run")).expect("JSON"))
        .collect();
    let unit = |document: &Value| {
        let row = rows(document).find(|row| row["benchmark"] == "entry/syscall").expect("a row");
        (row["status"] == "measured").then(|| row["unit"].to_string())
    };
    let mut units: Vec<Option<String>> = documents.iter().map(unit).collect();
    units.sort();
    assert_eq!(units, [Some("\"instructions\"".to_owned()), Some("\"ns\"".to_owned())]);
}
