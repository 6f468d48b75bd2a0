//! The suites of traps and processes as a whole: orders, ratios of one run, counts; what they leave behind;
//! and environments with low limits.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use common::marked::{Marked, ONE_AT_A_TIME, PROGRAM, listed};
use serde_json::{Value, json};

#[test]
fn both_suites_answer_for_every_row_in_time_and_in_the_order_that_is_known() {
    let patterns = ["traps", "processes"];
    let (rows, took) = Marked::new(&patterns, 8).rows();
    assert!(took < Duration::from_secs(9), "took {took:?}");
    let answered: Vec<(Value, Value)> =
        rows.0.iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
    assert_eq!(answered, listed(&patterns));

    // Trap and emulate is slower than the instruction by about two orders of magnitude on any machine.
    let imul = rows.estimate("traps/imul", json!({}));
    for opcode in [json!({}), json!({"opcode": "ud1"})] {
        if let (Some(trap), Some(imul)) = (rows.estimate("traps/invalid-opcode", opcode), imul) {
            assert!(trap > 50.0 * imul, "{trap} and {imul} ns");
        }
    }
    let branch = rows.estimate("traps/branch", json!({}));
    if let (Some(trap), Some(branch)) =
        (rows.estimate("traps/invalid-opcode", json!({"opcode": "ud1"})), branch)
    {
        assert!(trap > 5.0 * branch, "{trap} and {branch} ns");
    }

    // The count is exactly the number of operations.
    let counted = rows.0.iter().filter(|row| !row["counted"].is_null());
    let counted: Vec<&Value> = counted.collect();
    assert!(counted.len() > 5, "{} rows are counted", counted.len());
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

    // fork pays for what is written and not for what is mapped; the others pay for neither.
    let gone = |benchmark: &str, dirty: u64| match dirty {
        0 => rows.estimate(benchmark, json!({"dirty_mib": 0, "until": "exited"})),
        mib => rows.estimate(benchmark, json!({"dirty_mib": mib, "page": "4k", "until": "exited"})),
    };
    for benchmark in ["processes/fork", "processes/clone3"] {
        let mapped = rows.estimate(benchmark, json!({"mapped_mib": 256, "until": "exited"}));
        if let [Some(none), Some(some), Some(much)] = [0, 64, 256].map(|mib| gone(benchmark, mib)) {
            assert!(some > 2.0 * none && much > 1.5 * some, "{benchmark}: {none}, {some}, {much} ns");
            if let Some(mapped) = mapped {
                assert!(
                    mapped < 2.0 * none,
                    "{benchmark}: {none} ns, {mapped} ns with memory that is only mapped"
                );
            }
        }
    }
    for benchmark in ["processes/vfork", "processes/thread"] {
        if let (Some(none), Some(much)) = (gone(benchmark, 0), gone(benchmark, 256)) {
            assert!(much < 2.0 * none, "{benchmark}: {none}, {much} ns");
        }
    }
    if let (Some(thread), Some(fork)) = (gone("processes/thread", 0), gone("processes/fork", 0)) {
        assert!(thread < fork, "a thread for {thread} ns, a fork for {fork} ns");
    }
}

#[test]
fn killed_in_the_middle_of_the_population_it_leaves_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut marked = Marked::new(&["processes/population"], 20);
    let mut run = marked.command.spawn().expect("the program starts");
    let began = Instant::now();
    while marked.alive().len() < 100 {
        if run.try_wait().expect("our own child").is_some() || began.elapsed() > Duration::from_secs(15) {
            println!("skipped: the limits of this environment allow no population");
            let _ = run.kill();
            let _ = run.wait();
            return;
        }
    }
    run.kill().expect("our own child");
    run.wait().expect("waited");
    marked.expect_nothing_alive();
}

/// The program under limits that are set before it starts.
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
    let command = limited(Path::new(PROGRAM), &[(libc::RLIMIT_AS, 64 << 20)]);
    let (rows, took) = Marked::of(command, &["traps", "processes"], 5).rows();
    assert!(took < Duration::from_millis(5800), "took {took:?}");
    for mib in [64, 256] {
        let row = rows.find("processes/fork", &json!({"dirty_mib": mib, "page": "4k", "until": "exited"}));
        assert_eq!(row["status"], "skipped", "{row}");
        assert!(row["why"].as_str().is_some_and(|why| why.contains("RLIMIT_AS")), "{row}");
    }
    assert_eq!(
        rows.find("processes/fork", &json!({"dirty_mib": 0, "until": "exited"}))["status"],
        "measured"
    );
    assert_eq!(rows.find("traps/breakpoint", &json!({}))["status"], "measured");
}

#[test]
fn where_few_processes_are_allowed_no_population_is_made() {
    // SAFETY: geteuid(2) has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: only root may become a user that has no other processes");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("tollgate");
    fs::copy(PROGRAM, &program).expect("a copy of the program");
    for path in [directory.path(), program.as_path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
    let mut command = limited(&program, &[(libc::RLIMIT_NPROC, 5)]);
    // A user of this test's own: others' processes would count against the limit.
    command.uid(64_777).gid(64_777);
    let (rows, took) = Marked::of(command, &["traps", "processes"], 5).rows();
    assert!(took < Duration::from_millis(5800), "took {took:?}");
    let row = rows.find("processes/population", &json!({"of": "process"}));
    assert_eq!(row["status"], "skipped", "{row}");
    assert!(row["why"].as_str().is_some_and(|why| why.contains("RLIMIT_NPROC")), "{row}");
    assert_eq!(rows.find("traps/breakpoint", &json!({}))["status"], "measured");
}
