//! Verdicts over real runs, with a build that can slow a benchmark down on purpose. Counts and orders only:
//! the machine may be as noisy as it likes.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");

/// More by `TOLLGATE_VERDICT_PAIRS=20`, which takes about two minutes.
fn pairs() -> usize {
    std::env::var("TOLLGATE_VERDICT_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(5)
}

/// One in twenty may be missed; of few pairs two, since other work may have run on the machine.
fn misses() -> usize {
    (pairs() / 20).max(if pairs() < 20 { 2 } else { 1 })
}

/// The slow-down of a call.
const SLOWED: f64 = 0.5;

/// Concurrent runs would add noise to each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn equal_runs_do_not_differ_and_a_slow_down_by_half_is_found() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: String| directory.path().join(name).display().to_string();
    let (mut differing, mut rows, mut found, mut fit) = (Vec::new(), 0, 0, 0);
    for pair in 0..2 * pairs() {
        if fit == pairs() {
            break;
        }
        let (base, other, slow) =
            (file(format!("{pair}-a")), file(format!("{pair}-b")), file(format!("{pair}-c")));
        run(&base, None);
        run(&other, None);
        run(&slow, Some("entry/syscall=1.5"));
        for row in compare(&base, &other) {
            rows += 1;
            if ["faster", "slower"].contains(&row["verdict"].as_str().expect("a verdict")) {
                differing.push(format!("pair {pair}: {row}"));
            }
        }
        let syscall = compare(&base, &slow).into_iter().find(|row| row["benchmark"] == "entry/syscall");
        let syscall = syscall.expect("a row for entry/syscall");
        match syscall["verdict"].as_str() {
            Some("slower") => (found, fit) = (found + 1, fit + 1),
            // The noise of one of the two runs was as large.
            _ if syscall["threshold"].as_f64() >= Some(SLOWED) => println!("pair {pair}: unfit {syscall}"),
            _ => {
                fit += 1;
                println!("pair {pair}: missed {syscall}");
            }
        }
    }
    println!(
        "{} of {rows} rows of equal runs differ; slow-down found {found} of {fit} times",
        differing.len()
    );
    if fit < pairs() {
        println!("skipped in part: the machine's own speed changed by half in {} pairs", 2 * pairs() - fit);
    }
    assert!(rows >= 15 * pairs(), "only {rows} rows");
    // At most one in a hundred is promised; few rows need one more.
    assert!(differing.len() <= rows / 100 + 1, "{differing:#?}");
    assert!(found + misses() >= fit, "found {found} of {fit}");
}

#[test]
fn an_a_a_control_does_not_differ_and_five_percent_are_found() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("run").display().to_string();
    let (mut differing, mut found) = (0, 0);
    for pair in 0..pairs() {
        run(&file, None);
        let equal = baseline(&file, "entry/test-equal");
        if equal["verdict"] != "same" && equal["verdict"] != "inconclusive" {
            differing += 1;
            println!("pair {pair}: {equal}");
        }
        run(&file, Some("entry/test-equal=1.05"));
        let slowed = baseline(&file, "entry/test-equal");
        match slowed["verdict"].as_str() {
            Some("slower") => found += 1,
            _ => println!("pair {pair}: missed {slowed}"),
        }
    }
    println!("{differing} of {} A/A controls differ; 5 % found {found} times", pairs());
    assert!(differing * 100 <= pairs(), "{differing} of {}", pairs());
    assert!(found + misses() >= pairs(), "found {found} of {}", pairs());
}

fn run(out: &str, slow: Option<&str>) {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "entry", "--time", "3", "--quiet", "--out", out]);
    match slow {
        Some(orders) => command.env("TOLLGATE_TEST_SLOW", orders),
        None => command.env_remove("TOLLGATE_TEST_SLOW"),
    };
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn json(arguments: &[&str]) -> Value {
    let output = Command::new(PROGRAM).args(arguments).output().expect("the program starts");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn compare(base: &str, other: &str) -> Vec<Value> {
    json(&["compare", base, other, "--format", "json"])["rows"].as_array().expect("rows").clone()
}

fn baseline(run: &str, benchmark: &str) -> Value {
    let document = json(&["show", run, "--format", "json"]);
    let rows = document["measurements"].as_array().expect("measurements");
    rows.iter().find(|row| row["benchmark"] == benchmark).expect("a row")["baseline"].clone()
}
