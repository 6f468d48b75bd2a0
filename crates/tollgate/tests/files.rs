//! The suite of files: properties of every file system, and no leftovers.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::marked::{Claims, Marked, Rows, expect_in_one_of_four, listed};
use common::program;
use serde_json::{Value, json};

/// A run of the suite in a directory.
fn measured_in(directory: &Path, processes: u32) -> Rows {
    let mut marked = Marked::start(Command::new(program()), &["files"], processes);
    marked.command.arg("--dir").arg(directory);
    marked.rows()
}

fn expect_empty(directory: &Path) {
    let left: Vec<_> = fs::read_dir(directory).expect("our own directory").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn every_row_is_answered_and_nothing_is_left() {
    // Below the build directory, which is on a disk; the directory for temporary files may not be.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    expect_in_one_of_four(
        6,
        |processes| measured_in(directory.path(), processes),
        |rows, claims| {
            let answered: Vec<(Value, Value)> =
                rows.0.iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
            assert_eq!(answered, listed(&["files"]));
            expect_empty(directory.path());

            // Each state was certified, operation by operation.
            for state in ["cached", "uncached"] {
                for block in ["4k", "128k", "1m"] {
                    let params = json!({"state": state, "block": block});
                    if rows.estimate("files/read", params.clone()).is_some() {
                        let row = rows.find("files/read", &params);
                        assert_eq!(row["counted"]["events"], row["counted"]["operations"], "{row}");
                        // Below the detection limit there is no rate.
                        let is_above = row["detection_limit"].is_null();
                        assert_eq!(row["bytes_per_second"].as_f64() > Some(0.0), is_above, "{row}");
                    }
                }
            }
            let read = |state: &str| rows.estimate("files/read", json!({"state": state, "block": "4k"}));
            if let (Some(cached), Some(uncached)) = (read("cached"), read("uncached")) {
                let figures = format!("{cached} ns from memory, {uncached} ns from storage");
                claims.claim("storage", uncached > 3.0 * cached, figures);
            }
            bill_adds_up(rows, claims);
        },
    );
}

/// The calls of a small file's life together take about as long as the whole.
fn bill_adds_up(rows: &Rows, claims: &mut Claims) {
    let calls =
        rows.0.iter().filter(|row| row["benchmark"] == "files/small-file" && row["status"] == "measured");
    let (all, calls): (Vec<&Value>, Vec<&Value>) = calls.partition(|row| row["params"]["call"] == "all");
    let Some(all) = all.first().and_then(|row| row["median"].as_f64()) else {
        return println!("skipped: the small file was not measured here");
    };
    let sum: f64 = calls.iter().filter_map(|row| row["median"].as_f64()).sum();
    claims.claim("calls of a small file", calls.len() >= 6, calls.len());
    // Medians need not add up, but no call may be missing or be counted twice.
    let figures = format!("{sum} ns in calls, {all} ns in all");
    claims.claim("the calls add up", (0.5..1.5).contains(&(sum / all)), figures);
}

#[test]
fn in_memory_there_is_nothing_to_read_from_beneath() {
    let shared_memory = Path::new("/dev/shm");
    let Ok(directory) = tempfile::tempdir_in(shared_memory) else {
        return println!("skipped: no directory can be made in {}", shared_memory.display());
    };
    expect_in_one_of_four(
        1,
        |processes| measured_in(directory.path(), processes),
        |rows, claims| {
            let row = rows.find("files/read", &json!({"state": "uncached", "block": "4k"}));
            claims.claim("uncached", row["status"] == "skipped", row);
            let row = rows.find("files/read", &json!({"state": "cached", "block": "4k"}));
            claims.claim("cached", row["status"] == "measured", row);
        },
    );
    expect_empty(directory.path());
}

#[test]
fn interrupted_it_leaves_no_file() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let mut marked = Marked::start(Command::new(program()), &["files"], 100);
    // Standard error has no reader, so the interrupted run must not wait for one.
    marked.command.arg("--dir").arg(directory.path()).stdout(Stdio::null()).stderr(Stdio::null());
    for after in [300, 1500] {
        let mut run = marked.command.spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(after));
        tollgate_os::process::kill(run.id() as i32, libc::SIGINT).expect("our own child");
        run.wait().expect("waited");
        marked.expect_nothing_alive();
        expect_empty(directory.path());
    }
}
