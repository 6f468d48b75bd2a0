//! The suite of locks: properties of every machine, judged by ratios and counts of one run.

mod common;

use common::marked::{Claims, Marked, Rows, expect_in_one_of_four, listed};
use serde_json::{Value, json};

#[test]
#[ignore = "slow: .ci/run runs it"]
fn every_row_is_answered_and_locks_at_user_level_beat_the_system_call() {
    expect_in_one_of_four(
        6,
        |processes| Marked::new(&["locks"], processes).rows(),
        |rows, claims| {
            let answered: Vec<(Value, Value)> =
                rows.0.iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
            assert_eq!(answered, listed(&["locks"]));
            // A lock that let two threads in would have failed its case; a case without a quiet moment reports that.
            let failed = |row: &&Value| row["status"] == "failed" && !is_noise(row);
            let failed: Vec<&Value> = rows.0.iter().filter(failed).collect();
            assert!(failed.is_empty(), "{failed:?}");
            uncontended(rows, claims);
            trade(rows, claims);
            one_processor_only(rows);
            footprint(rows);
        },
    );
}

/// Whether a case failed only because of other work on the machine.
fn is_noise(row: &Value) -> bool {
    let reasons =
        ["other work had the processor", "other processes used the processor", "time ended", "had left"];
    let why = row["error"].as_str().unwrap_or_default();
    row["status"] == "failed" && reasons.iter().any(|reason| why.contains(reason))
}

#[test]
fn a_restartable_sequence_needs_no_library_that_registers_it() {
    let run = |processes| {
        let mut marked = Marked::new(&["locks/uncontended{by=rseq}"], processes);
        // Since glibc 2.35; earlier ones never register.
        marked.command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        marked.rows()
    };
    expect_in_one_of_four(1, run, |rows, claims| {
        let row = rows.find("locks/uncontended", &json!({"by": "rseq"}));
        if row["status"] == "skipped" {
            let why = row["why"].as_str().unwrap_or_default();
            assert!(why.contains("rseq(2)") || why.contains("one processor"), "{why}");
            return println!("skipped: {why}");
        }
        assert!(row["status"] == "measured" || is_noise(row), "{row}");
        claims.claim("rseq", row["status"] == "measured", row);
    });
}

const SYSTEM_CALL: &str = "futex-trylock-pi";

fn uncontended(rows: &Rows, claims: &mut Claims) {
    // Below the detection limit, the limit counts.
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
    claims.claim("the system call and rseq", call > 7.0 * rseq, format!("{call} and {rseq} ns"));
    claims.claim("rseq and lock cmpxchg", rseq <= 1.1 * cmpxchg, format!("{rseq} and {cmpxchg} ns"));
    if let (Some(eventfd), Some(fenced), Some(unfenced)) =
        (estimate("eventfd"), estimate("lamport"), estimate("lamport-up"))
    {
        claims.claim("two calls and one", eventfd > call, format!("{eventfd} and {call} ns"));
        claims.claim("with fences and without", fenced > unfenced, format!("{fenced} and {unfenced} ns"));
    }
}

/// The published bound holds for a release build; unoptimized code around the lock takes its own time.
fn least_gain() -> f64 {
    if std::env::var_os("TOLLGATE_PROGRAM").is_none() && cfg!(debug_assertions) { 1.0 } else { 1.9 }
}

fn trade(rows: &Rows, claims: &mut Claims) {
    let mut compared = 0;
    for threads in [2, 4, 8, 16, 32, 64] {
        let params = |by: &str| json!({"by": by, "threads": threads, "cpus": "one"});
        let estimate = |by: &str| rows.estimate("locks/producer-consumer", params(by));
        let (Some(call), Some(rseq)) = (estimate(SYSTEM_CALL), estimate("rseq")) else { continue };
        println!("({threads},{threads}): {:.1} times the system call's items", call / rseq);
        let figures = format!("{call} and {rseq} ns an item");
        claims.claim(format!("{threads} producers"), call > least_gain() * rseq, figures);
        let row = rows.find("locks/producer-consumer", &params("rseq"));
        let counter = |which: usize| row["counters"][which]["number"].as_u64().expect("a count");
        let items =
            row["samples"].as_u64().expect("samples") * row["ops_per_sample"].as_u64().expect("items");
        claims.claim(format!("{threads} producers are switched"), counter(0) > 0, row);
        let (least, most) = (counter(2), counter(3));
        assert!(least <= most && most <= items && most * threads >= items, "{row}");
        compared += 1;
    }
    let is_there = compared > 0 || !has_estimate(rows, "locks/uncontended");
    claims.claim("producers are compared", is_there, "nothing was compared");
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
    // As in the published table: the system call needs little memory of the program, and much of the kernel.
    let in_kernel = rows.find("locks/footprint", &json!({"by": SYSTEM_CALL, "part": "kernel"}));
    match in_kernel["median"].as_f64() {
        Some(kernel) => assert!(kernel > bytes(SYSTEM_CALL, "code"), "{kernel} bytes"),
        None => println!("skipped: {}", in_kernel["why"]),
    }
}
