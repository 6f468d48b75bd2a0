//! The suites of traps and processes as a whole: orders, ratios of one run, counts; leftovers; and environments with low
//! limits.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;

use common::marked::{Claims, Marked, ONE_AT_A_TIME, Rows, expect_in_one_of_four, listed};
use common::{program, readable_copy, wait_for};
use serde_json::{Value, json};

#[test]
#[ignore = "slow: .ci/run runs it"]
fn both_suites_answer_for_every_row_and_in_the_order_that_is_known() {
    let patterns = ["traps", "processes"];
    expect_in_one_of_four(
        8,
        |seconds| Marked::within(Command::new(program()), &patterns, seconds).rows(),
        |rows, claims| {
            let answered: Vec<(Value, Value)> =
                rows.0.iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
            assert_eq!(answered, listed(&patterns));
            counts(rows, claims);
            latencies(rows, claims);
        },
    );
}

fn counts(rows: &Rows, claims: &mut Claims) {
    // The count is exactly the number of operations.
    let counted = rows.0.iter().filter(|row| !row["counted"].is_null());
    let counted: Vec<&Value> = counted.collect();
    claims.claim("rows are counted", counted.len() > 5, counted.len());
    for row in counted {
        assert_eq!(row["counted"]["events"], row["counted"]["operations"], "{row}");
        assert!(row["counted"]["events"].as_u64() > Some(0), "{row}");
    }
    for page in ["4k", "thp"] {
        if rows.estimate("traps/minor-fault", json!({"page": page})).is_some() {
            assert_eq!(
                rows.find("traps/minor-fault", &json!({"page": page}))["counted"]["what"],
                "minor faults"
            );
        }
    }
}

fn latencies(rows: &Rows, claims: &mut Claims) {
    // Trap and emulate is slower than the instruction by about two orders of magnitude on any machine.
    let imul = rows.estimate("traps/imul", json!({}));
    for opcode in [json!({}), json!({"opcode": "ud1"})] {
        if let (Some(trap), Some(imul)) = (rows.estimate("traps/invalid-opcode", opcode), imul) {
            claims.claim("a trap and imul", trap > 50.0 * imul, format!("{trap} and {imul} ns"));
        }
    }
    let branch = rows.estimate("traps/branch", json!({}));
    if let (Some(trap), Some(branch)) =
        (rows.estimate("traps/invalid-opcode", json!({"opcode": "ud1"})), branch)
    {
        claims.claim("a trap and a branch", trap > 5.0 * branch, format!("{trap} and {branch} ns"));
    }

    // fork pays for written memory and not for mapped memory; the others pay for neither.
    let gone = |benchmark: &str, dirty: u64| match dirty {
        0 => rows.estimate(benchmark, json!({"dirty_mib": 0, "until": "exited"})),
        mib => rows.estimate(benchmark, json!({"dirty_mib": mib, "page": "4k", "until": "exited"})),
    };
    for benchmark in ["processes/fork", "processes/clone3"] {
        let mapped = rows.estimate(benchmark, json!({"mapped_mib": 256, "until": "exited"}));
        if let [Some(none), Some(some), Some(much)] = [0, 64, 256].map(|mib| gone(benchmark, mib)) {
            let figures = format!("{none}, {some}, {much} ns");
            claims.claim(format!("{benchmark}: dirty"), some > 2.0 * none && much > 1.5 * some, figures);
            if let Some(mapped) = mapped {
                let figures = format!("{none} ns, {mapped} ns with memory that is only mapped");
                claims.claim(format!("{benchmark}: mapped"), mapped < 2.0 * none, figures);
            }
        }
    }
    for benchmark in ["processes/vfork", "processes/thread"] {
        if let (Some(none), Some(much)) = (gone(benchmark, 0), gone(benchmark, 256)) {
            claims.claim(benchmark, much < 2.0 * none, format!("{none}, {much} ns"));
        }
    }
    if let (Some(thread), Some(fork)) = (gone("processes/thread", 0), gone("processes/fork", 0)) {
        claims.claim("a thread and a fork", thread < fork, format!("{thread} and {fork} ns"));
    }
}

#[test]
fn killed_in_the_middle_of_the_population_it_leaves_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut marked = Marked::new(&["processes/population"], 100);
    let mut run = marked.command.spawn().expect("the program starts");
    let is_made = wait_for("the population", || {
        let has_ended = run.try_wait().expect("our own child").is_some();
        (has_ended || marked.alive().len() >= 100).then_some(!has_ended)
    });
    if !is_made {
        return println!("skipped: the limits of this environment allow no population");
    }
    run.kill().expect("our own child");
    run.wait().expect("waited");
    marked.expect_nothing_alive();
}

fn limited(program: &Path, limits: &'static [(libc::__rlimit_resource_t, u64)]) -> Command {
    let mut command = Command::new(program);
    let change = move || {
        for &(resource, amount) in limits {
            let limit = libc::rlimit { rlim_cur: amount, rlim_max: amount };
            // SAFETY: the pointer is to a whole rlimit.
            if unsafe { libc::setrlimit(resource, &limit) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: single system calls on memory that was made before.
    unsafe { command.pre_exec(change) };
    command.current_dir("/").env("HOME", "/nonexistent").env_remove("XDG_DATA_HOME");
    command
}

#[test]
fn where_little_memory_is_allowed_much_is_skipped_with_the_limit_named() {
    let run = |seconds| {
        let command = limited(&program(), &[(libc::RLIMIT_AS, 64 << 20)]);
        Marked::within(command, &["traps", "processes"], seconds).rows()
    };
    expect_in_one_of_four(3, run, |rows, claims| {
        for mib in [64, 256] {
            let row =
                rows.find("processes/fork", &json!({"dirty_mib": mib, "page": "4k", "until": "exited"}));
            let is_named = row["why"].as_str().is_some_and(|why| why.contains("RLIMIT_AS"));
            claims.claim(format!("{mib} MiB"), row["status"] == "skipped" && is_named, row);
        }
        for (benchmark, params) in
            [("processes/fork", json!({"dirty_mib": 0, "until": "exited"})), ("traps/breakpoint", json!({}))]
        {
            let row = rows.find(benchmark, &params);
            claims.claim(benchmark, row["status"] == "measured", row);
        }
    });
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn free_memory_of_a_population_holds_a_difference_of_memfree_or_is_not_measured() {
    let mut run = Marked::within(Command::new(program()), &["processes/population-free"], 12);
    let rows = run.rows();
    let row = rows.find("processes/population-free", &json!({"of": "thread"}));
    let why = row["why"].as_str().unwrap_or_default();
    match row["status"].as_str() {
        Some("not measured") => {
            let reasons = ["MemFree", "other activity", "the run's time ended"];
            assert!(reasons.iter().any(|reason| why.contains(reason)), "{row}");
        }
        Some("measured") => {
            assert!(row["detection_limit"].is_null(), "a thread takes memory: {row}");
            let [low, high] = ["ci_low", "ci_high"].map(|end| row[end].as_f64().expect("an interval"));
            let found = free_memory_of_a_thread();
            assert!((low..=high).contains(&found), "{found} bytes, and {row}");
        }
        _ => assert_eq!(row["status"], "skipped", "{row}"),
    }
}

/// The difference of MemFree for each of 1,000 paused threads, in bytes: the median of several attempts.
fn free_memory_of_a_thread() -> f64 {
    const THREADS: usize = 1000;
    let free = || {
        let text = std::fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
        let line = text.lines().find_map(|line| line.strip_prefix("MemFree:")).expect("MemFree");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
    };
    let difference = |_| {
        // The memory of ended threads is freed later.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let before = free();
        let (paused, end) = (std::sync::Barrier::new(THREADS + 1), std::sync::Barrier::new(THREADS + 1));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    paused.wait();
                    end.wait();
                });
            }
            paused.wait();
            let during = free();
            end.wait();
            (before - during) / THREADS as f64
        })
    };
    let mut differences: Vec<f64> = (0..5).map(difference).collect();
    differences.sort_unstable_by(f64::total_cmp);
    differences[2]
}

#[test]
fn where_few_processes_are_allowed_no_population_is_made() {
    if !common::is_root() {
        return println!("skipped: only root may become a user that has no other processes");
    }
    let directory = common::public_directory();
    let program = readable_copy(directory.path());
    let run = |seconds| {
        let mut command = limited(&program, &[(libc::RLIMIT_NPROC, 5)]);
        // A user ID of this test's own: others' processes would count against the limit.
        command.uid(64_777).gid(64_777);
        Marked::within(command, &["traps", "processes"], seconds).rows()
    };
    expect_in_one_of_four(3, run, |rows, claims| {
        let row = rows.find("processes/population", &json!({"of": "process"}));
        let is_named = row["why"].as_str().is_some_and(|why| why.contains("RLIMIT_NPROC"));
        claims.claim("processes/population", row["status"] == "skipped" && is_named, row);
        let row = rows.find("traps/breakpoint", &json!({}));
        claims.claim("traps/breakpoint", row["status"] == "measured", row);
    });
}
