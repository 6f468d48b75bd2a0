//! The suite of locks: what holds on every machine, judged by ratios and counts of one run.

#![allow(clippy::panic)] // A test may stop at the first surprise.

mod common;

use std::time::Duration;

use common::marked::{Marked, Rows, listed};
use serde_json::{Value, json};

#[test]
fn every_row_is_answered_in_time_and_locks_at_user_level_beat_the_system_call() {
    let (rows, took) = Marked::new(&["locks"], 10).rows();
    assert!(took < Duration::from_secs(11), "took {took:?}");
    let answered: Vec<(Value, Value)> =
        rows.0.iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
    assert_eq!(answered, listed(&["locks"]));
    // A lock that let two in would have failed its case; one that found no quiet moment says so.
    let why = |row: &Value| row["error"].as_str().unwrap_or_default().to_owned();
    let is_noise = |why: &str| why.contains("other work had the processor") || why.contains("time was over");
    let failed: Vec<String> =
        rows.0.iter().filter(|row| row["status"] == "failed").map(why).filter(|why| !is_noise(why)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    uncontended(&rows);
    trade(&rows);
    one_processor_only(&rows);
    footprint(&rows);
}

#[test]
fn a_restartable_sequence_needs_no_library_that_registers_it() {
    let mut marked = Marked::new(&["locks/uncontended{by=rseq}"], 1);
    // Of glibc from 2.35 on; others never do.
    marked.command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    let (rows, _) = marked.rows();
    let row = rows.find("locks/uncontended", &json!({"by": "rseq"}));
    match row["status"].as_str() {
        Some("measured") => {}
        Some("skipped") => {
            let why = row["why"].as_str().unwrap_or_default();
            assert!(why.contains("rseq(2)") || why.contains("one processor"), "{why}");
            println!("skipped: {why}");
        }
        _ => panic!("{row}"),
    }
}

const SYSTEM_CALL: &str = "futex-trylock-pi";

fn uncontended(rows: &Rows) {
    // Below the detection limit the limit counts.
    let estimate = |by: &str| {
        let row = rows.find("locks/uncontended", &json!({"by": by}));
        row["detection_limit"].as_f64().or(row["median"].as_f64())
    };
    let (Some(call), Some(rseq), Some(cmpxchg)) =
        (estimate(SYSTEM_CALL), estimate("rseq"), estimate("cmpxchg"))
    else {
        return println!("skipped: one of them was not measured here");
    };
    println!("{call} ns by system call, {cmpxchg} by lock cmpxchg, {rseq} by a restartable sequence");
    assert!(call > 7.0 * rseq, "{call} ns by system call, {rseq} ns by a restartable sequence");
    assert!(rseq <= 1.1 * cmpxchg, "{rseq} ns by a restartable sequence, {cmpxchg} ns by lock cmpxchg");
    if let (Some(eventfd), Some(fenced), Some(unfenced)) =
        (estimate("eventfd"), estimate("lamport"), estimate("lamport-up"))
    {
        assert!(eventfd > call, "two calls: {eventfd} ns, one: {call} ns");
        assert!(fenced > unfenced, "{fenced} ns with fences, {unfenced} ns without");
    }
}

/// The published bound holds for what is released; around the lock unoptimized code takes its own time.
const LEAST_GAIN: f64 = if cfg!(debug_assertions) { 1.0 } else { 1.9 };

fn trade(rows: &Rows) {
    let mut compared = 0;
    for threads in [2, 4, 8, 16, 32, 64] {
        let params = |by: &str| json!({"by": by, "threads": threads, "cpus": "one"});
        let estimate = |by: &str| rows.estimate("locks/producer-consumer", params(by));
        let (Some(call), Some(rseq)) = (estimate(SYSTEM_CALL), estimate("rseq")) else { continue };
        println!("({threads},{threads}): {:.1} times the system call's items", call / rseq);
        assert!(call > LEAST_GAIN * rseq, "({threads},{threads}): {call} and {rseq} ns an item");
        let row = rows.find("locks/producer-consumer", &params("rseq"));
        let counter = |which: usize| row["counters"][which]["number"].as_u64().expect("a count");
        let items =
            row["samples"].as_u64().expect("samples") * row["ops_per_sample"].as_u64().expect("items");
        assert!(counter(0) > 0, "no thread was switched out: {row}");
        let (least, most) = (counter(2), counter(3));
        assert!(least <= most && most <= items && most * threads >= items, "{row}");
        compared += 1;
    }
    assert!(compared > 0 || !has_estimate(rows, "locks/uncontended"), "nothing was compared");
}

fn has_estimate(rows: &Rows, benchmark: &str) -> bool {
    rows.0.iter().any(|row| row["benchmark"] == benchmark && row["status"] == "measured")
}

/// A lock that is unsafe across processors is refused there, with the reason.
fn one_processor_only(rows: &Rows) {
    for row in &rows.0 {
        let (by, cpus) =
            (row["params"]["by"].as_str().unwrap_or(""), row["params"]["cpus"].as_str().unwrap_or(""));
        if matches!(by, "rseq" | "lamport-up" | "rseq-cpu") && matches!(cpus, "two" | "all") {
            assert_eq!(row["status"], "skipped", "{row}");
            assert!(row["why"].as_str().is_some_and(|why| why.len() > 20), "{row}");
        }
    }
}

fn footprint(rows: &Rows) {
    let bytes = |by: &str, part: &str| {
        rows.estimate("locks/footprint", json!({"by": by, "part": part})).expect("it needs no permission")
    };
    assert_eq!((bytes("xchg", "code"), bytes("xchg", "data")), (13.0, 4.0));
    assert!(bytes("lamport", "code") > bytes("rseq", "code"));
    // As in the published table: what the system call needs of the program is little, and of the kernel much.
    let in_kernel = rows.find("locks/footprint", &json!({"by": SYSTEM_CALL, "part": "kernel"}));
    match in_kernel["median"].as_f64() {
        Some(kernel) => assert!(kernel > bytes(SYSTEM_CALL, "code"), "{kernel} bytes"),
        None => println!("skipped: {}", in_kernel["why"]),
    }
}
