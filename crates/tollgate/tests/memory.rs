//! The suite of cache lines: what holds on every machine, judged by ratios of one run.

mod common;

use std::process::Command;
use std::time::Duration;

use common::Home;
use common::marked::{Marked, PROGRAM, Rows, listed};
use serde_json::{Value, json};

/// The parameters of a benchmark's cases that have these.
fn cases(benchmark: &str, with: &[(&str, Value)]) -> Vec<Value> {
    let has = |params: &Value| with.iter().all(|(name, value)| params[*name] == *value);
    listed(&[benchmark]).into_iter().map(|(_, params)| params).filter(has).collect()
}

/// The same case with another value of one parameter.
fn but(params: &Value, name: &str, value: Value) -> Value {
    let mut params = params.clone();
    params[name] = value;
    params
}

fn sizes(benchmark: &str) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        cases(benchmark, &[]).iter().map(|params| params["kib"].as_u64().expect("a size")).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Lines that were looked at and had been stored to by the other core last, and all that were.
fn taken(row: &Value) -> (u64, u64) {
    let number = |name: &str| row["counted"][name].as_u64().expect("a count");
    (number("events"), number("operations"))
}

#[test]
fn every_row_is_answered_in_time_and_sharing_costs_where_lines_are_private() {
    let (rows, took) = Marked::new(&["memory"], 10).rows();
    assert!(took < Duration::from_secs(11), "took {took:?}");
    let answered: Vec<(Value, Value)> =
        rows.0.iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
    assert_eq!(answered, listed(&["memory"]));
    sharing(&rows);
    latency(&rows);
    contention(&rows);
}

fn sharing(rows: &Rows) {
    let sizes = sizes("memory/thrash");
    assert!((3..=4).contains(&sizes.len()), "{sizes:?}");
    let last = sizes.len() - 1;
    for params in cases("memory/thrash", &[("shared", json!(true))]) {
        let apart = but(&params, "shared", json!(false));
        let (Some(shared), Some(alone)) =
            (rows.estimate("memory/thrash", params.clone()), rows.estimate("memory/thrash", apart.clone()))
        else {
            continue;
        };
        let (theirs, looked) = taken(rows.find("memory/thrash", &params));
        let share = theirs as f64 / looked as f64;
        assert_eq!(
            taken(rows.find("memory/thrash", &apart)).0,
            0,
            "no other processor stores there: {apart}"
        );
        assert!(looked > 0 && theirs > 0, "{params}");
        let ratio = shared / alone;
        println!("{params}: {shared:.2} and {alone:.2} ns/line, {:.0} % taken", share * 100.0);
        // Hardware threads of one core share the first level: there is nothing to take from each other.
        if params["kib"] == sizes[0] && params["pair"] != "smt" {
            assert!(ratio > 2.0, "{params}: {shared} and {alone} ns/line");
            assert!(share > 0.3, "{params}: {theirs} of {looked} lines were the peer's");
        }
        if params["kib"] == sizes[last] && params["order"] == "random" {
            assert!(ratio < 2.0, "{params}: {shared} and {alone} ns/line");
        }
    }
}

fn latency(rows: &Rows) {
    let sizes = sizes("memory/latency");
    let estimate = |kib: u64| rows.estimate("memory/latency", json!({"kib": kib, "page": "4k"}));
    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    if let (Some(small), Some(large)) = (estimate(first), estimate(last)) {
        assert!(large > 5.0 * small, "{small} ns in {first} KiB, {large} ns in {last} KiB");
    }
    // Loads beyond a cache's size take longer than loads within it, for each cache that the kernel reports. The last
    // one may be shared with others, who leave only a part of it: there both sides keep away from its end.
    for (index, name) in [(0, "L1d"), (2, "L2"), (3, "L3")] {
        let Some(end) = cache_kib(index) else {
            println!("skipped: the kernel tells of no {name}");
            continue;
        };
        let (most, least) = if name == "L3" { (end / 8, end * 2) } else { (end, end) };
        let within = sizes.iter().rfind(|&&kib| kib <= most);
        let beyond = sizes.iter().find(|&&kib| kib > least);
        if let (Some(&within), Some(&beyond)) = (within, beyond)
            && let (Some(near), Some(far)) = (estimate(within), estimate(beyond))
        {
            assert!(far > 1.3 * near, "{name}: {near} ns in {within} KiB, {far} ns in {beyond} KiB");
        }
    }
    // Small pages are never nearer than huge ones.
    let huge = rows.find("memory/latency", &json!({"kib": last, "page": "2m"}))["median"].as_f64();
    if let (Some(small), Some(huge)) = (estimate(last), huge) {
        assert!(small > 0.8 * huge, "{small} ns with small pages, {huge} ns with huge ones");
    }
}

/// The size of a cache of processor 0 that holds data.
fn cache_kib(index: u32) -> Option<u64> {
    let directory = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
    let text = std::fs::read_to_string(format!("{directory}/size")).ok()?;
    text.trim().strip_suffix('K')?.parse().ok()
}

/// Whether the closest pair of processors that is not one core is two cores.
fn has_two_cores() -> bool {
    let pairs = cases("memory/thrash", &[]);
    pairs.iter().any(|params| !["smt", "unknown"].contains(&params["pair"].as_str().unwrap_or_default()))
}

fn contention(rows: &Rows) {
    if !has_two_cores() {
        return println!("skipped: no two cores");
    }
    for op in ["add", "xchg", "cas"] {
        let estimate = |threads: u64| rows.estimate("memory/atomic", json!({"op": op, "threads": threads}));
        if let (Some(alone), Some(together)) = (estimate(1), estimate(2)) {
            assert!(together > 1.5 * alone, "{op}: {alone} ns alone, {together} ns with another core");
        }
    }
    let store = rows.estimate("memory/atomic", json!({"op": "store", "threads": 1}));
    let add = rows.estimate("memory/atomic", json!({"op": "add", "threads": 1}));
    if let (Some(store), Some(add)) = (store, add) {
        assert!(store < add, "a store for {store} ns, an atomic addition for {add} ns");
    }
    let neighbour = |distance: u64| rows.estimate("memory/neighbour", json!({"distance": distance}));
    if let (Some(same), Some(away)) = (neighbour(8), neighbour(128)) {
        assert!(same > 1.5 * away, "{same} ns in one line, {away} ns apart");
    }
}

#[test]
fn on_one_processor_what_needs_two_says_so() {
    let mut one = Command::new("taskset");
    one.args(["-c", "0"]).arg(PROGRAM);
    if Command::new("taskset").arg("--version").output().is_err() {
        return println!("skipped: no taskset");
    }
    let (rows, _) = Marked::of(one, &["memory/atomic", "memory/neighbour"], 3).rows();
    let alone = rows.find("memory/atomic", &json!({"op": "add", "threads": 1}));
    assert_eq!(alone["status"], "measured", "{alone}");
    for (benchmark, params) in
        [("memory/atomic", json!({"op": "add", "threads": 2})), ("memory/neighbour", json!({"distance": 64}))]
    {
        let row = rows.find(benchmark, &params);
        assert_eq!(row["status"], "skipped", "{row}");
        assert!(row["why"].as_str().is_some_and(|why| why.contains("processor")), "{row}");
    }
}

#[test]
fn the_curve_and_the_matrix_are_drawn_from_what_was_measured() {
    let home = Home::new();
    let text = home.output(["run", "memory/latency{page=4k}", "memory/pingpong", "--time", "4", "--quiet"]);
    assert!(text.contains("memory/latency: ns per dependent load") && text.contains('●'), "{text}");
    if !cases("memory/pingpong", &[]).is_empty() {
        assert!(text.contains("memory/pingpong: ns per cache-line transfer"), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
