//! Whole suites: every row has an answer, what is counted is exact, nothing is left, and low limits are named. Latencies are held against
//! loops in C by tests/reference, not here: two times of one machine have no ratio that holds beside any other work.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use common::marked::{Marked, ONE_AT_A_TIME, Rows, listed};
use common::{Home, program, readable_copy, wait_for};
use serde_json::{Value, json};

/// A run of one process of each case.
fn one_of(patterns: &[&str]) -> Marked {
    Marked::start(Command::new(program()), patterns, 1)
}

/// Runs whole suites, and expects an answer for each case in the order of the list. A lock that let two threads in, or memory that was
/// not what it should be, would have failed its case; a case without a quiet moment fails too, and says so.
fn answered(patterns: &[&str], directory: Option<&Path>) -> Rows {
    let mut run = one_of(patterns);
    if let Some(directory) = directory {
        run.command.arg("--dir").arg(directory);
    }
    let rows = run.rows();
    let of = |row: &Value| (row["benchmark"].clone(), row["params"].clone());
    assert_eq!(rows.0.iter().map(of).collect::<Vec<_>>(), listed(patterns));
    let failed = rows.0.iter().filter(|row| row["status"] == "failed" && !is_noise(row));
    assert_eq!(failed.collect::<Vec<_>>(), Vec::<&Value>::new());
    rows
}

/// Whether a case failed only because of other work on the machine.
fn is_noise(row: &Value) -> bool {
    let reasons =
        ["other work had the processor", "other processes used the processor", "time ended", "had left"];
    let why = row["error"].as_str().unwrap_or_default();
    reasons.iter().any(|reason| why.contains(reason))
}

fn expect_each_operation_counted(row: &Value) {
    assert_eq!(row["counted"]["events"], row["counted"]["operations"], "{row}");
    assert!(row["counted"]["events"].as_u64() > Some(0), "{row}");
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn traps_and_processes_answer_for_every_row_and_count_each_operation() {
    let rows = answered(&["traps", "processes"], None);
    let counted: Vec<&Value> = rows.0.iter().filter(|row| !row["counted"].is_null()).collect();
    assert!(counted.len() > 5, "{}", counted.len());
    counted.into_iter().for_each(expect_each_operation_counted);
    for page in ["4k", "thp"] {
        let params = json!({"page": page});
        if rows.estimate("traps/minor-fault", params.clone()).is_some() {
            assert_eq!(rows.find("traps/minor-fault", &params)["counted"]["what"], "minor faults");
        }
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn locks_answer_for_every_row_and_what_is_unsafe_is_refused() {
    let rows = answered(&["locks"], None);
    for row in &rows.0 {
        let word = |name: &str| row["params"][name].as_str().unwrap_or_default();
        if matches!(word("by"), "rseq" | "lamport-up" | "rseq-cpu") && matches!(word("cpus"), "two" | "all") {
            assert_eq!(row["status"], "skipped", "{row}");
            assert!(row["why"].as_str().is_some_and(|why| why.len() > 20), "{row}");
        }
        if row["benchmark"] == "locks/producer-consumer"
            && word("by") == "rseq"
            && row["status"] == "measured"
        {
            let counter = |which: usize| row["counters"][which]["number"].as_u64().expect("a count");
            let of = |name: &str| row[name].as_u64().expect("a count");
            let (least, most, items) = (counter(2), counter(3), of("samples") * of("ops_per_sample"));
            let threads = row["params"]["threads"].as_u64().expect("threads");
            assert!(least <= most && most <= items && most * threads >= items, "{row}");
        }
    }
    let bytes = |by: &str, part: &str| {
        rows.estimate("locks/footprint", json!({"by": by, "part": part})).expect("it needs no permission")
    };
    assert_eq!((bytes("xchg", "code"), bytes("xchg", "data")), (13.0, 4.0));
    assert!(bytes("lamport", "code") > bytes("rseq", "code"));
    // As in the published table: the system call needs little memory of the program, and much of the kernel.
    let call = "futex-trylock-pi";
    let in_kernel = rows.find("locks/footprint", &json!({"by": call, "part": "kernel"}));
    match in_kernel["median"].as_f64() {
        Some(kernel) => assert!(kernel > bytes(call, "code"), "{kernel} bytes"),
        None => println!("skipped: {}", in_kernel["why"]),
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn memory_answers_for_every_row_and_counts_the_lines_that_a_peer_took() {
    let rows = answered(&["memory"], None);
    let thrash = |is_shared: bool| {
        let is_of = move |row: &&Value| {
            row["benchmark"] == "memory/thrash"
                && row["params"]["shared"] == is_shared
                && row["status"] == "measured"
        };
        let taken = |row: &Value| {
            ["events", "operations"].map(|name| row["counted"][name].as_u64().expect("a count"))
        };
        let all: Vec<[u64; 2]> = rows.0.iter().filter(is_of).map(taken).collect();
        (all.len(), all.into_iter().fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]))
    };
    assert_eq!(thrash(false).1[0], 0, "no other processor stores to lines of one's own");
    match thrash(true) {
        (0, _) => println!("skipped: no two processors share lines here"),
        (_, [taken, looked]) => assert!(0 < taken && taken <= looked, "{taken} of {looked}"),
    }
}

/// On the disk of the build; the directory for temporary files may be in memory.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

fn expect_empty(directory: &Path) {
    let left: Vec<_> = fs::read_dir(directory).expect("our own directory").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn files_answer_for_every_row_and_each_state_is_certified() {
    let directory = on_disk();
    let rows = answered(&["files"], Some(directory.path()));
    expect_empty(directory.path());
    for (state, block) in
        ["cached", "uncached"].iter().flat_map(|state| ["4k", "128k", "1m"].map(|block| (state, block)))
    {
        let params = json!({"state": state, "block": block});
        if rows.estimate("files/read", params.clone()).is_some() {
            let row = rows.find("files/read", &params);
            expect_each_operation_counted(row);
            // Below the detection limit there is no rate.
            assert_eq!(
                row["bytes_per_second"].as_f64() > Some(0.0),
                row["detection_limit"].is_null(),
                "{row}"
            );
        }
    }
}

#[test]
fn in_memory_there_is_nothing_to_read_from_beneath() {
    let shared_memory = Path::new("/dev/shm");
    let Ok(directory) = tempfile::tempdir_in(shared_memory) else {
        return println!("skipped: no directory can be made in {}", shared_memory.display());
    };
    let rows = answered(&["files/read"], Some(directory.path()));
    let status = |state: &str| &rows.find("files/read", &json!({"state": state, "block": "4k"}))["status"];
    assert_eq!(status("uncached"), "skipped");
    assert_ne!(status("cached"), "skipped");
    expect_empty(directory.path());
}

#[test]
fn interrupted_among_files_it_leaves_none() {
    let directory = on_disk();
    let mut marked = Marked::new(&["files"], 100);
    // Standard error has no reader, so the interrupted run must not wait for one.
    marked.command.arg("--dir").arg(directory.path()).stdout(Stdio::null()).stderr(Stdio::null());
    for _ in 0..3 {
        let mut run = marked.command.spawn().expect("the program starts");
        wait_for("a file of the suite", || {
            fs::read_dir(directory.path()).expect("our own directory").next().map(|_| ())
        });
        tollgate_os::process::kill(run.id() as i32, libc::SIGINT).expect("our own child");
        run.wait().expect("waited");
        marked.expect_nothing_alive();
        expect_empty(directory.path());
    }
}

#[test]
fn a_restartable_sequence_needs_no_library_that_registers_it() {
    let mut marked = one_of(&["locks/uncontended{by=rseq}"]);
    // Since glibc 2.35; earlier ones never register.
    marked.command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    let rows = marked.rows();
    let row = rows.find("locks/uncontended", &json!({"by": "rseq"}));
    if row["status"] == "skipped" {
        let why = row["why"].as_str().unwrap_or_default();
        assert!(why.contains("rseq(2)") || why.contains("one processor"), "{why}");
        return println!("skipped: {why}");
    }
    assert!(row["status"] == "measured" || is_noise(row), "{row}");
}

#[test]
fn on_one_processor_what_needs_two_says_so() {
    if Command::new("taskset").arg("--version").output().is_err() {
        return println!("skipped: no taskset");
    }
    let mut one = Command::new("taskset");
    one.args(["-c", "0"]).arg(program());
    let rows = Marked::start(one, &["memory/atomic", "memory/neighbour"], 1).rows();
    assert_ne!(rows.find("memory/atomic", &json!({"op": "add", "threads": 1}))["status"], "skipped");
    for (benchmark, params) in
        [("memory/atomic", json!({"op": "add", "threads": 2})), ("memory/neighbour", json!({"distance": 64}))]
    {
        let row = rows.find(benchmark, &params);
        assert_eq!(row["status"], "skipped", "{row}");
        assert!(row["why"].as_str().is_some_and(|why| why.contains("processor")), "{row}");
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn the_curve_and_the_matrix_are_drawn_from_what_was_measured() {
    let home = Home::new();
    let screen =
        home.output(["run", "memory/latency{page=4k}", "memory/pingpong", "--quiet", "--processes", "6"]);
    // The four lines of the head are not wrapped in a pipe.
    assert!(screen.lines().skip(4).all(|line| line.chars().count() <= 80), "{screen}");
    let text = home.output(["show", "--all", "--width", "80"]);
    assert!(text.contains("memory/latency: ns per dependent load") && text.contains('●'), "{text}");
    let has_pairs = !listed(&["memory/pingpong"]).is_empty();
    assert_eq!(text.contains("memory/pingpong: ns per cache-line transfer"), has_pairs, "{text}");
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
    let command = limited(&program(), &[(libc::RLIMIT_AS, 64 << 20)]);
    let rows = Marked::start(command, &["processes/fork", "traps/breakpoint"], 1).rows();
    for mib in [64, 256] {
        let row = rows.find("processes/fork", &json!({"dirty_mib": mib, "page": "4k", "until": "exited"}));
        expect_limit_named(row, "RLIMIT_AS");
    }
    let small = rows.find("processes/fork", &json!({"dirty_mib": 0, "until": "exited"}));
    for row in [small, rows.find("traps/breakpoint", &json!({}))] {
        assert_ne!(row["status"], "skipped", "{row}");
    }
}

fn expect_limit_named(row: &Value, limit: &str) {
    let is_named = row["why"].as_str().is_some_and(|why| why.contains(limit));
    assert!(row["status"] == "skipped" && is_named, "{row}");
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn free_memory_of_a_population_holds_a_difference_of_memfree_or_is_not_measured() {
    let mut run = Marked::new(&["processes/population-free"], 6);
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
            // Both include memory that other programs free and take in between.
            assert!(found > low / 2.0 && found < high * 2.0, "{found} bytes, and {row}");
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
    let mut command = limited(&program, &[(libc::RLIMIT_NPROC, 5)]);
    // A user ID of this test's own: others' processes would count against the limit.
    command.uid(64_777).gid(64_777);
    let rows = Marked::start(command, &["processes/population", "traps/breakpoint"], 1).rows();
    expect_limit_named(rows.find("processes/population", &json!({"of": "process"})), "RLIMIT_NPROC");
    let row = rows.find("traps/breakpoint", &json!({}));
    assert_ne!(row["status"], "skipped", "{row}");
}
