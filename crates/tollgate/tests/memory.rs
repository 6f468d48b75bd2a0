//! The suite of cache lines: properties of every machine, judged by ratios of one run.

mod common;

use std::process::Command;

use common::marked::{Claims, Marked, Rows, expect_in_one_of_four, listed};
use common::{Home, program};
use serde_json::{Value, json};

fn cases(benchmark: &str, with: &[(&str, Value)]) -> Vec<Value> {
    let has = |params: &Value| with.iter().all(|(name, value)| params[*name] == *value);
    listed(&[benchmark]).into_iter().map(|(_, params)| params).filter(has).collect()
}

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

/// The examined lines that the other core had stored to last, and all examined lines.
fn taken(row: &Value) -> (u64, u64) {
    let number = |name: &str| row["counted"][name].as_u64().expect("a count");
    (number("events"), number("operations"))
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn every_row_is_answered_and_sharing_costs_where_lines_are_private() {
    expect_in_one_of_four(
        10,
        |seconds| Marked::within(Command::new(program()), &["memory"], seconds).rows(),
        |rows, claims| {
            let answered: Vec<(Value, Value)> =
                rows.0.iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
            assert_eq!(answered, listed(&["memory"]));
            sharing(rows, claims);
            latency(rows, claims);
            contention(rows, claims);
        },
    );
}

fn sharing(rows: &Rows, claims: &mut Claims) {
    let sizes = sizes("memory/thrash");
    assert!((3..=8).contains(&sizes.len()), "the published sizes, and those of the levels: {sizes:?}");
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
        let figures = format!("{shared} and {alone} ns/line, {theirs} of {looked} lines were the peer's");
        claims.claim(format!("{params}: taken"), looked > 0 && theirs > 0, &figures);
        let ratio = shared / alone;
        println!("{params}: {shared:.2} and {alone:.2} ns/line, {:.0} % taken", share * 100.0);
        // Hardware threads of one core share the first-level cache, so neither takes lines from the other.
        if params["kib"] == sizes[0] && params["pair"] != "smt" {
            claims.claim(format!("{params}: shared is slower"), ratio > 2.0 && share > 0.3, &figures);
        }
        if params["kib"] == sizes[last] && params["order"] == "random" {
            claims.claim(format!("{params}: shared is as fast"), ratio < 2.0, &figures);
        }
    }
}

fn latency(rows: &Rows, claims: &mut Claims) {
    let sizes = sizes("memory/latency");
    let estimate = |kib: u64| rows.estimate("memory/latency", json!({"kib": kib, "page": "4k"}));
    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    if let (Some(small), Some(large)) = (estimate(first), estimate(last)) {
        let figures = format!("{small} ns in {first} KiB, {large} ns in {last} KiB");
        claims.claim("the largest size", large > 5.0 * small, figures);
    }
    // Loads beyond a cache's size take longer than loads within it, for each cache that the kernel reports. The last one may be
    // shared with other programs, which leave only a part of it, so both sides keep away from its end. Pages of 4 KiB have any
    // physical addresses: as many as fill the second-level cache overfill some of its sets, but half of it always fits.
    for (index, name) in [(0, "L1d"), (2, "L2"), (3, "L3")] {
        let Some(end) = cache_kib(index) else {
            println!("skipped: the kernel tells of no {name}");
            continue;
        };
        let (most, least) = match name {
            "L3" => (end / 8, end * 2),
            "L2" => (end / 2, end),
            _ => (end, end),
        };
        let within = sizes.iter().rfind(|&&kib| kib <= most);
        let beyond = sizes.iter().find(|&&kib| kib > least);
        if let (Some(&within), Some(&beyond)) = (within, beyond)
            && let (Some(near), Some(far)) = (estimate(within), estimate(beyond))
        {
            let figures = format!("{near} ns in {within} KiB, {far} ns in {beyond} KiB");
            claims.claim(name, far > 1.3 * near, figures);
        }
    }
    // Small pages are never closer than huge ones.
    let huge = rows.find("memory/latency", &json!({"kib": last, "page": "2m"}))["median"].as_f64();
    if let (Some(small), Some(huge)) = (estimate(last), huge) {
        let figures = format!("{small} ns with small pages, {huge} ns with huge ones");
        claims.claim("pages", small > 0.8 * huge, figures);
    }
}

/// The size of a cache of processor 0 that holds data.
fn cache_kib(index: u32) -> Option<u64> {
    let directory = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
    let text = std::fs::read_to_string(format!("{directory}/size")).ok()?;
    text.trim().strip_suffix('K')?.parse().ok()
}

fn has_two_cores() -> bool {
    let pairs = cases("memory/thrash", &[]);
    pairs.iter().any(|params| !["smt", "unknown"].contains(&params["pair"].as_str().unwrap_or_default()))
}

fn contention(rows: &Rows, claims: &mut Claims) {
    if !has_two_cores() {
        return println!("skipped: no two cores");
    }
    for op in ["add", "xchg", "cas"] {
        let estimate = |threads: u64| rows.estimate("memory/atomic", json!({"op": op, "threads": threads}));
        if let (Some(alone), Some(together)) = (estimate(1), estimate(2)) {
            let figures = format!("{alone} ns alone, {together} ns with another core");
            claims.claim(op, together > 1.5 * alone, figures);
        }
    }
    let store = rows.estimate("memory/atomic", json!({"op": "store", "threads": 1}));
    let add = rows.estimate("memory/atomic", json!({"op": "add", "threads": 1}));
    if let (Some(store), Some(add)) = (store, add) {
        claims.claim("a store and an addition", store < add, format!("{store} and {add} ns"));
    }
    let neighbour = |distance: u64| rows.estimate("memory/neighbour", json!({"distance": distance}));
    if let (Some(same), Some(away)) = (neighbour(8), neighbour(128)) {
        claims.claim("neighbours", same > 1.5 * away, format!("{same} ns in one line, {away} ns apart"));
    }
}

#[test]
fn on_one_processor_what_needs_two_says_so() {
    if Command::new("taskset").arg("--version").output().is_err() {
        return println!("skipped: no taskset");
    }
    let run = |seconds| {
        let mut one = Command::new("taskset");
        one.args(["-c", "0"]).arg(program());
        Marked::within(one, &["memory/atomic", "memory/neighbour"], seconds).rows()
    };
    expect_in_one_of_four(3, run, |rows, claims| {
        let alone = rows.find("memory/atomic", &json!({"op": "add", "threads": 1}));
        claims.claim("one thread", alone["status"] == "measured", alone);
        for (benchmark, params) in [
            ("memory/atomic", json!({"op": "add", "threads": 2})),
            ("memory/neighbour", json!({"distance": 64})),
        ] {
            let row = rows.find(benchmark, &params);
            assert_eq!(row["status"], "skipped", "{row}");
            assert!(row["why"].as_str().is_some_and(|why| why.contains("processor")), "{row}");
        }
    });
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_curve_and_the_matrix_are_drawn_from_what_was_measured() {
    let home = Home::new();
    let screen =
        home.output(["run", "memory/latency{page=4k}", "memory/pingpong", "--quiet", "--processes", "6"]);
    // The four lines of the head are not wrapped in a pipe.
    assert!(screen.lines().skip(4).all(|line| line.chars().count() <= 80), "{screen}");
    let text = home.output(["show", "--all", "--width", "80"]);
    println!("{text}");
    let has_matrix = text.contains("memory/pingpong: ns per cache-line transfer");
    assert!(text.contains("memory/latency: ns per dependent load") && text.contains('●'), "not drawn");
    assert!(has_matrix || cases("memory/pingpong", &[]).is_empty(), "not drawn");
}
