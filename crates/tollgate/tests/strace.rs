//! `tollgate trace --from`: logs that strace 6.1 wrote of a small command (tests/strace), and strace's own table of the same
//! execution.

use crate::common;
use common::Home;
use common::text::{part, refusals, screen};
use serde_json::Value;

const COMMAND: &str = include_str!("strace/command.log");
const TERMINAL: &str = include_str!("strace/terminal.log");
const TABLE: &str = include_str!("strace/table.log");

fn read(home: &Home, log: &str, options: &[&str]) -> Value {
    home.file("log", log);
    let arguments = ["trace", "--from", "log", "--format", "json"];
    home.json(arguments.into_iter().chain(options.iter().copied()))
}

fn calls(document: &Value) -> Vec<(String, u64, u64, f64)> {
    let row = |call: &Value| {
        let number = |field: &str| call[field].as_u64().expect("a number");
        let name = call["name"].as_str().expect("a name").to_owned();
        (name, number("count"), number("errors"), call["total_s"].as_f64().expect("seconds"))
    };
    let mut rows: Vec<_> = document["calls"].as_array().expect("a list").iter().map(row).collect();
    rows.retain(|row| row.1 > 0);
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    rows
}

/// The log as `strace -f -T -tt -C -w` wrote it, and the table below it.
fn parts() -> (&'static str, &'static str) {
    COMMAND.split_at(COMMAND.find("% time").expect("a table"))
}

#[test]
fn a_log_has_the_sums_of_straces_own_table() {
    let home = Home::new();
    let (log, table) = parts();
    let (log, table) = (calls(&read(&home, log, &[])), calls(&read(&home, table, &[])));
    assert_eq!(log.len(), table.len());
    for ((name, count, errors, seconds), known) in log.iter().zip(&table) {
        assert_eq!((name, count, errors), (&known.0, &known.1, &known.2));
        // The log truncates each time to microseconds, the table only the sum.
        let cut = *count as f64 * 1e-6 + 1e-6;
        assert!((seconds - known.3).abs() <= cut, "{name}: {seconds} and {}", known.3);
    }
    assert_eq!(log.iter().map(|row| row.1).sum::<u64>(), 77);
    // A file with both is read as the log.
    assert_eq!(calls(&read(&home, COMMAND, &[])), log);
}

#[test]
fn what_strace_writes_on_a_terminal_is_read_too() {
    let home = Home::new();
    let (log, terminal) = (read(&home, COMMAND, &["--tree"]), read(&home, TERMINAL, &["--tree"]));
    let counts = |document: &Value| -> Vec<(String, u64, u64)> {
        calls(document).into_iter().map(|(name, count, errors, _)| (name, count, errors)).collect()
    };
    assert_eq!(counts(&log), counts(&terminal));
    for document in [&log, &terminal] {
        assert_eq!(document["command"], serde_json::json!(["sh", "work.sh"]));
        assert_eq!(document["ended"]["signal"], 10);
        let tree = document["tree"].as_array().expect("a list");
        let names: Vec<(&str, Option<u64>)> =
            tree.iter().map(|it| (it["name"].as_str().expect("a name"), it["parent"].as_u64())).collect();
        assert_eq!(
            names,
            [("sh", None), ("ls", Some(0)), ("cat", Some(0)), ("sh", Some(0)), ("sleep", Some(3))]
        );
    }
}

#[test]
fn what_a_log_cannot_tell_is_unknown() {
    let home = Home::new();
    for (name, log, has_time) in [("a-log", COMMAND, true), ("a-table", TABLE, false)] {
        let document = read(&home, log, &["--tree"]);
        for field in ["user_s", "sys_s", "wait_s", "idle", "outside", "processors"] {
            assert_eq!(document[field], Value::Null, "{field}");
        }
        assert_eq!(document["wall_s"].is_f64(), has_time);
        assert_eq!((&document["backend"], &document["times_from"]), (&"strace".into(), &"unknown".into()));
        for call in document["calls"].as_array().expect("a list") {
            for field in ["on_cpu_s", "sleep_s", "disk_s", "runqueue_s"] {
                assert_eq!(call[field], Value::Null, "{field}: {call}");
            }
        }
        let text = screen(&home, ["trace", "--from", "log", "--tree", "--rule"]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn a_log_is_kept_and_compared_like_a_command_that_was_traced() {
    let home = Home::new();
    for (label, log) in [("log", COMMAND), ("terminal", TERMINAL)] {
        home.file("log", log);
        home.tollgate(["trace", "--from", "log", "--label", label]).assert().success();
    }
    let shown = screen(&home, ["show", "log"]);
    assert_eq!(
        shown.lines().nth(1),
        Some("sh work.sh: killed by SIGUSR1, 5 processes, 5 threads"),
        "{shown}"
    );
    // User, kernel, waiting and the time outside of calls are unknown.
    let compared = screen(&home, ["compare", "log", "terminal"]);
    insta::assert_snapshot!("two-logs", part(&compared, "trace/command: ", "Not alternated"));
    let document = home.json(["show", "log", "--format", "json"]);
    assert_eq!(document["facts"], serde_json::json!({}), "this machine's facts are not the log's");
    home.file("table", TABLE);
    let why = home.refusal(["trace", "--from", "table", "--label", "table"]);
    assert_eq!(
        why,
        "--from table: it has no time stamps (strace -tt), so no real time, which a kept run needs"
    );
    assert_eq!(home.json(["runs", "--format", "json"])["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn single_calls_are_a_timeline() {
    let home = Home::new();
    home.file("log", COMMAND);
    home.tollgate([
        "trace",
        "--from",
        "log",
        "--timeline",
        "timeline",
        "--only",
        "clock_nanosleep,openat",
        "-q",
    ])
    .assert()
    .success();
    let text = std::fs::read(home.path().join("timeline")).expect("written");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    let events = document["traceEvents"].as_array().expect("events");
    let sleep = events.iter().find(|event| event["name"] == "clock_nanosleep").expect("the sleep");
    assert!(sleep["dur"].as_f64().is_some_and(|us| us > 20_000.0), "{sleep}");
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 18);
}

#[test]
fn what_is_no_log_is_refused_in_one_line() {
    let home = Home::new();
    for (name, text) in [("words", "hello\n"), ("empty", ""), ("untimed", "12 close(3) = 0\n")] {
        home.file(name, text);
    }
    let lines = [
        "trace --from words",
        "trace --from empty",
        "trace --from untimed --label untimed",
        "trace --from missing",
        "trace --from untimed --by file",
        "trace --from untimed -- true",
        "trace --from untimed --calibrate",
    ];
    insta::assert_snapshot!("no-logs", refusals(&home, lines));
    let mut piped = home.tollgate(["trace", "--from", "-"]);
    piped.write_stdin(COMMAND).assert().success();
}
