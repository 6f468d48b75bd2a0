//! Verdicts of the program. Rates come from seeded simulations, so the machine may be noisy; in real runs, which need an
//! unoptimized program, a slow-down far beyond any noise is found.

#![allow(clippy::panic, clippy::unwrap_used)] // A test may stop at the first surprise, its helpers too.

#[path = "../../tollgate-model/tests/support/mod.rs"]
mod support;

use crate::common;
use common::Home;
use serde_json::Value;
use support::Random;
use support::between::{self, CALM, Environment, environments, two_runs};
use support::within::{self, NOISES, Noise, one_run};
use tollgate_model::Run;
use tollgate_model::own::CONTROL;

/// The rows of one kind of noise by verdict, and those whose interval contains the true ratio.
#[derive(Debug, Default)]
struct Count {
    rows: usize,
    faster: usize,
    slower: usize,
    same: usize,
    covered: usize,
}

impl Count {
    fn add(&mut self, row: &Value, truth: f64) {
        self.rows += 1;
        match row["verdict"].as_str() {
            Some("faster") => self.faster += 1,
            Some("slower") => self.slower += 1,
            Some("same") => self.same += 1,
            verdict => assert_eq!(verdict, Some("inconclusive"), "{row}"),
        }
        let [low, high] = ["ratio_low", "ratio_high"].map(|end| row[end].as_f64().unwrap());
        self.covered += usize::from((low..=high).contains(&truth));
    }

    fn is_at_least(&self, percent: usize, rows: usize) -> bool {
        100 * rows >= percent * self.rows
    }
}

fn file(home: &Home, name: &str, run: &Run) -> String {
    home.file(name, run.to_json().unwrap())
}

/// The verdicts of `tollgate compare` on pairs of runs in `environment`; the second is slower by `ratio`. This many others are
/// kept.
fn compared(
    seed: u64,
    pairs: usize,
    environment: Environment,
    processes: usize,
    ratio: f64,
    kept: usize,
) -> Count {
    let (home, mut random, mut count) = (Home::new(), Random(seed), Count::default());
    for at in 0..kept {
        let (mut run, _) = two_runs(&mut random, environment, (processes, processes), 1.0);
        run.id = format!("20200101-000000-{at:08x}").parse().unwrap();
        home.keep(&serde_json::to_value(&run).unwrap());
    }
    for _ in 0..pairs {
        let (base, other) = two_runs(&mut random, environment, (processes, processes), ratio);
        let document = home.json([
            "compare",
            &file(&home, "base.json", &base),
            &file(&home, "other.json", &other),
            "--format=json",
        ]);
        for row in document["rows"].as_array().unwrap() {
            count.add(row, ratio);
        }
    }
    assert_eq!(count.rows, pairs * between::ROWS);
    count
}

/// The verdicts of `tollgate show` on instances that are slower than their baseline by `ratio`, and on A/A controls.
fn shown(seed: u64, runs: usize, noise: Noise, ratio: f64) -> (Count, Count) {
    let (home, mut random) = (Home::new(), Random(seed));
    let (mut rows, mut controls) = (Count::default(), Count::default());
    for _ in 0..runs {
        let run = file(&home, "run.json", &one_run(&mut random, noise, ratio));
        let document = home.json(["show", &run, "--format=json"]);
        for row in ["measurements", "bench"].iter().flat_map(|part| document[part].as_array().unwrap()) {
            match row["benchmark"].as_str() {
                Some("entry/syscall") => assert!(row["baseline"].is_null(), "{row}"),
                Some(CONTROL) => controls.add(&row["baseline"], 1.0 + noise.apart),
                _ => rows.add(&row["baseline"], ratio),
            }
        }
    }
    assert_eq!((rows.rows, controls.rows), (runs * within::ROWS, runs));
    (rows, controls)
}

/// At most one row in a hundred is promised. Among the few rows of one kind of noise, two may differ.
#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn equal_runs_do_not_differ() {
    let (mut rows, mut differ) = (0, 0);
    for (seed, (name, environment)) in (10..).zip(environments()) {
        if name.contains("10 processes") {
            continue; // A level that outlasts a run looks like a change.
        }
        for processes in [7, 12] {
            let count = compared(seed, 8, environment, processes, 1.0, processes - 7);
            println!("{name}, {processes}: {count:?}");
            let different = count.faster + count.slower;
            assert!(100 * different <= 2 * count.rows, "{name}, {processes}: {count:?}");
            (rows, differ) = (rows + count.rows, differ + different);
        }
    }
    assert!(100 * differ <= rows, "{differ} of {rows}");
    // An interval of 99.9 % by twelve processes is wider than the threshold of 1 %.
    let calm = compared(1, 4, CALM, 60, 1.0, 20);
    assert!(calm.is_at_least(25, calm.same), "{calm:?}");
}

#[test]
fn a_slow_down_beyond_the_noise_is_found_and_so_is_a_gain() {
    for (seed, (name, environment)) in (100..).zip(environments()) {
        // Without other runs, two are assumed to lie up to a factor of two apart.
        let slow = compared(seed, 4, environment, 12, 3.0, 0);
        println!("{name}: {slow:?}");
        assert!(slow.is_at_least(90, slow.slower) && slow.faster == 0, "{name}: {slow:?}");
        if environment.drift > 0.05 {
            continue; // The drift itself takes the gain away.
        }
        let fast = compared(seed, 4, environment, 12, 1.0 / 3.0, 0);
        assert!(fast.is_at_least(90, fast.faster) && fast.slower == 0, "{name}: {fast:?}");
    }
    let small = compared(2, 8, CALM, 12, 1.05, 8);
    assert!(small.is_at_least(95, small.slower) && small.faster == 0, "{small:?}");
}

/// If processes are independent, as the interval assumes.
#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn the_interval_between_runs_contains_the_true_ratio() {
    let environments = environments().into_iter().filter(|(_, noise)| {
        let Environment { levels, drift, kept, .. } = *noise;
        levels == 1.0 && drift == 0.0 && kept == 0.0
    });
    let mut seen = 0;
    for (seed, (name, environment)) in (200..).zip(environments) {
        for ratio in [1.0, 1.03] {
            let count = compared(seed, 8, environment, 12, ratio, 0);
            println!("{name}: {count:?}");
            assert!(count.is_at_least(99, count.covered), "{name}, {ratio}: {count:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, 10);
}

#[test]
fn equal_instances_and_a_a_controls_do_not_differ() {
    for (seed, (name, noise)) in (20..).zip(NOISES) {
        let (rows, controls) = shown(seed, 6, noise, 1.0);
        println!("{name}: {rows:?}, {controls:?}");
        assert!(100 * (rows.faster + rows.slower) <= rows.rows, "{name}: {rows:?}");
        if noise.apart > 0.0 {
            continue; // There the control does differ, and its instances are covered up to that.
        }
        assert_eq!((controls.faster, controls.slower), (0, 0), "{name}: {controls:?}");
        assert!(rows.is_at_least(99, rows.covered), "{name}: {rows:?}");
        assert!(noise.process > 0.01 || noise.batch > 0.05 || rows.same > 0, "{name}: {rows:?}");
    }
}

#[test]
fn five_percent_within_a_run_are_found() {
    for (seed, (name, noise)) in (30..).zip(NOISES) {
        if noise.process > 0.01 || noise.apart > 0.0 {
            continue; // The noise is as large.
        }
        let (slow, _) = shown(seed, 4, noise, 1.05);
        println!("{name}: {slow:?}");
        assert!(slow.is_at_least(95, slow.slower) && slow.faster == 0, "{name}: {slow:?}");
        let (fast, _) = shown(seed, 4, noise, 1.0 / 1.05);
        assert!(fast.is_at_least(95, fast.faster) && fast.slower == 0, "{name}: {fast:?}");
    }
}

/// Other work on the machine may spoil a pair of runs, so up to five pairs are tried, each of twice as many processes as the
/// one before; the slow-down is tenfold.
#[cfg(debug_assertions)]
#[test]
fn a_tenfold_slow_down_of_a_real_run_is_found() {
    let home = Home::new();
    let run = |name: &str, processes: u32, slow: &str| {
        let processes = processes.to_string();
        let arguments = ["run", "entry/syscall", "--processes", &processes, "--quiet", "--out", name];
        home.tollgate(arguments).env("TOLLGATE_TEST_SLOW", slow).assert().success();
    };
    let verdict = |base: &str, other: &str| {
        let rows = home.json(["compare", base, other, "--format=json"])["rows"].clone();
        let row = rows.as_array().unwrap().iter().find(|row| row["benchmark"] == "entry/syscall").cloned();
        println!("{base} {other}: {row:?}");
        row.map_or(Value::Null, |row| row["verdict"].clone())
    };
    let found = |pair: &usize| {
        let [base, slow] = ["base", "slow"].map(|side| format!("{side}-{pair}"));
        run(&base, 8 << pair, "");
        run(&slow, 8 << pair, "entry/syscall=10");
        verdict(&base, &slow) == "slower" && verdict(&slow, &base) == "faster"
    };
    assert!((0..5).any(|pair| found(&pair)), "not found in any of five pairs");
}
