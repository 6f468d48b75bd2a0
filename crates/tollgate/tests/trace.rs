//! `tollgate trace`, and `show` and `compare` of a traced command.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use common::Home;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// How much of a call's time was on a processor and in each kind of waiting, in milliseconds.
struct Parts(u64, u64, u64, u64);

fn parts(Parts(on_cpu, sleep, disk, runqueue): Parts) -> Value {
    json!({"on_cpu_ns": on_cpu * MS, "sleep_ns": sleep * MS, "disk_ns": disk * MS, "runqueue_ns": runqueue * MS})
}

fn call(name: &str, count: u64, of: Parts) -> Value {
    let total = (of.0 + of.1 + of.2 + of.3) * MS;
    let mut call = parts(of);
    let fields = json!({"name": name, "count": count, "errors": count / 10, "total_ns": total, "max_ns": total / 2,
        "histogram": [[80, count]]});
    call.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
    call
}

/// One thread that computes for 600 ms, and removes files: `disk` milliseconds of waiting for a disk.
fn traced(disk: u64) -> Value {
    json!({
        "command": ["rm", "-r", "tree"], "backend": "bpf", "ended": {"exit": 0}, "processors": 2,
        "wall_ns": (700 + disk) * MS, "user_ns": 600 * MS, "sys_ns": 80 * MS,
        "idle": {"runqueue_ns": 15 * MS, "disk_ns": disk * MS, "sleep_ns": 5 * MS},
        "processes": 1, "threads": 1,
        "calls": [call("unlinkat", 4000, Parts(70, 0, disk, 10)), call("futex", 20, Parts(1, 5, 0, 0)),
            call("openat", 900, Parts(9, 0, 0, 0))],
        "outside": parts(Parts(600, 0, 0, 5)),
        "cost_per_call_ns": 290.0, "cost_to_others_ns": 180.0,
    })
}

/// A run with one case and one repetition for each execution.
fn document(id: &str, label: &str, benchmark: &str, traced: &[Value]) -> Value {
    let samples: Vec<&Value> = traced.iter().map(|traced| &traced["wall_ns"]).collect();
    json!({
        "schema": 2, "tool": {"name": "tollgate", "version": "0.1.0"}, "id": id, "label": label, "environment": "vm",
        "started": "2026-11-21T01:54:27Z", "finished": "2026-11-21T01:55:27Z", "facts": {},
        "measurements": [{
            "benchmark": benchmark, "params": {}, "status": "measured", "unit": "ns", "provenance": "hardware",
            "ops_per_sample": 1, "clock_hz": 1_000_000_000, "samples": samples, "discarded": 0,
            "processes": [{"rounds": traced.len(), "discarded": []}], "group": "trace", "traced": traced,
        }],
    })
}

fn kept() -> Home {
    let home = Home::new();
    home.keep(&document("20261121-015427-0001", "fast", "trace/command", &[traced(10)]));
    home.keep(&document("20261121-015428-0002", "slow", "trace/command", &[traced(300)]));
    home
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().expect("a figure")
}

#[test]
fn a_kept_command_is_shown_as_when_it_was_made() {
    let table = kept().output(["show", "slow"]);
    assert!(
        table.starts_with("real 1.00 s   user 600 ms   sys 80.0 ms\nwaiting 320 ms (disk 300 ms, runnable 15.0 ms, sleep 5.00 ms)"),
        "{table}"
    );
    assert!(table.contains("rm -r tree: exit status 0"), "{table}");
    assert!(table.lines().any(|line| line.starts_with("unlinkat ") && line.contains("4,000")), "{table}");
    let beneath = table.split("blocking calls").nth(1).expect("a section");
    assert!(beneath.contains("futex") && !beneath.contains("unlinkat"), "{table}");
    assert!(!table.contains("95 % CI"), "{table}");
    let histogram = kept().output(["show", "slow", "--histogram", "--top=1"]);
    assert!(histogram.contains("how long single calls took") && histogram.contains('▇'), "{histogram}");
    assert!(words(&kept().output(["show", "slow", "--by=file"])).contains("No files were added up"));
    assert!(words(&kept().output(["show", "slow", "--tree"])).contains("Its processes were not added up"));
}

#[test]
fn calls_that_a_filter_stopped_are_counted_without_a_time() {
    let home = kept();
    let mut filtered = traced(300);
    let stopped = json!({"name": "socket", "count": 7, "errors": 7, "stopped": 7, "total_ns": 0, "max_ns": 0,
        "on_cpu_ns": 0, "sleep_ns": 0, "disk_ns": 0, "runqueue_ns": 0});
    filtered["calls"].as_array_mut().expect("calls").push(stopped);
    filtered["calls"][0]["stopped"] = 2000.into();
    home.keep(&document("20261121-015430-0003", "filtered", "trace/command", &[filtered]));
    let text = home.output(["show", "filtered"]);
    assert!(
        text.contains("note: 2,007 calls were stopped by a filter (seccomp): counted, without a time\n"),
        "{text}"
    );
    let rows: Vec<String> = text.lines().map(words).collect();
    let row = rows.iter().position(|line| line.starts_with("socket ")).expect("its row");
    assert_eq!(rows[row..row + 2], ["socket 7 7", "7 stopped by a filter"], "{text}");
    let shown = home.json(["show", "filtered", "--format=json"]);
    let call = |number: usize| shown["measurements"][0]["traced"][0]["calls"][number].clone();
    assert_eq!(
        (&call(3)["stopped"], &call(3)["mean_s"], &call(3)["max_s"]),
        (&7.into(), &Value::Null, &Value::Null)
    );
    // 380 ms in the other 2,000 of 4,000 calls.
    assert!((seconds(&call(0)["mean_s"]) - 190e-6).abs() < 1e-12, "{shown}");
    assert_eq!(call(1)["stopped"], 0);
    let compared = words(&home.output(["compare", "slow", "filtered"]));
    assert!(compared.contains("stopped 0 calls in the base, 2,007 in the other"), "{compared}");
}

/// A build: thirty working calls, and reads from pipes that slept.
fn busy() -> Value {
    let mut busy = traced(30);
    let names =
        ["openat", "close", "newfstatat", "mmap", "munmap", "brk", "lseek", "fcntl", "ioctl", "getdents64"];
    let calls = names.iter().flat_map(|name| (0..3).map(move |n| (format!("{name}{n}"), n)));
    let mut calls: Vec<Value> = calls.map(|(name, n)| call(&name, 100, Parts(5 + n, 0, 0, 1))).collect();
    calls.extend(
        ["wait4", "poll", "futex", "nanosleep", "epoll_wait", "select"]
            .map(|name| call(name, 20, Parts(1, 900, 0, 0))),
    );
    calls.push(call("read", 400, Parts(2, 800, 0, 0)));
    calls.push(call("pread64", 400, Parts(2, 0, 800, 0)));
    busy["calls"] = calls.into();
    busy["threads"] = 9.into();
    busy
}

#[test]
fn a_command_is_on_one_screen_and_what_blocks_is_apart() {
    let home = kept();
    home.keep(&document("20261121-015430-0003", "busy", "trace/command", &[busy()]));
    let text = home.output(["show", "busy"]);
    assert!(text.lines().count() <= 40, "{} lines:\n{text}", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().any(|line| words(line).contains("cpu sleep disk runnable")), "{text}");
    let (working, blocking) = text.split_once("blocking calls\n").expect("a block of its own");
    let names = |block: &str| {
        block.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect::<Vec<_>>()
    };
    let (working, blocking) = (names(working), names(blocking));
    let has = |block: &[String], name: &str| block.iter().any(|it| it == name);
    assert!(has(&working, "pread64") && !has(&working, "read"), "a wait for a disk is work: {text}");
    assert!(has(&blocking, "wait4") && !has(&blocking, "pread64"), "{text}");
    let all = home.output(["show", "busy", "--top=100"]);
    assert!(
        has(&names(all.split_once("blocking calls\n").expect("a block").1), "read"),
        "a read that slept: {all}"
    );
    let shown = home.json(["show", "busy", "--format=json"]);
    let calls = shown["measurements"][0]["traced"][0]["calls"].as_array().expect("calls").clone();
    let blocks = |name: &str| calls.iter().find(|call| call["name"] == name).expect(name)["blocking"].clone();
    assert_eq!((blocks("read"), blocks("pread64")), (true.into(), false.into()));
}

#[test]
fn the_published_rule_is_said_where_it_is_asked_for() {
    let home = kept();
    assert!(!home.output(["show", "slow"]).contains("2017"));
    let ruled = words(&home.output(["show", "slow", "--rule"]));
    assert!(ruled.contains("Waiting by the rule of 2017, real - (user + sys) / cores"), "{ruled}");
}

#[test]
fn the_footer_says_what_tracing_added() {
    let home = kept();
    let text = home.output(["show", "slow"]);
    let footer = "\
Tracing with BPF added, measured in this run:
  290 ns to each of 4,920 calls
  about 1.43 ms to the command, 0.14 % of its real time
  180 ns to each call of every other process meanwhile
";
    assert!(text.contains(footer), "{text}");
    let shown = home.json(["show", "slow", "--format=json"]);
    assert_eq!(shown["measurements"][0]["traced"][0]["cost"]["others_per_call_ns"], 180.0);
    let mut ptraced = traced(10);
    ptraced["backend"] = "ptrace".into();
    ptraced.as_object_mut().expect("fields").remove("cost_to_others_ns");
    home.keep(&document("20261121-015430-0003", "ptraced", "trace/command", &[ptraced]));
    assert!(home.output(["show", "ptraced"]).contains("  nothing to other processes\n"));
    let shown = home.json(["show", "ptraced", "--format=json"]);
    assert_eq!(shown["measurements"][0]["traced"][0]["cost"]["others_per_call_ns"], 0.0);
}

#[test]
fn a_real_command_is_on_one_screen_with_what_tracing_added() {
    for backend in ["--backend=bpf", "--backend=ptrace"] {
        let home = Home::new();
        let script = "ls -l /usr/bin | wc -l >/dev/null; sleep 0.02";
        let mut command = home.tollgate(["trace", backend, "--", "sh", "-c", script]);
        let output = command.env("COLUMNS", "80").output().expect("started");
        if output.status.code() == Some(2) {
            eprintln!("skipped: {}", text(&output.stderr));
            continue;
        }
        let printed = text(&output.stderr);
        assert!(printed.lines().count() <= 46, "{} lines:\n{printed}", printed.lines().count());
        // The file of the run has a name of its own, which is not broken.
        assert!(
            printed.lines().all(|line| line.chars().count() <= 80 || line.contains(".json")),
            "{printed}"
        );
        let others = match backend {
            // The load of a machine can hide it.
            "--backend=bpf" => " other process",
            _ => "nothing to other processes",
        };
        assert!(printed.contains("added, measured in this run:\n") && printed.contains(others), "{printed}");
        assert!(!printed.contains("2017"), "{printed}");
    }
}

#[test]
fn programs_get_the_parts_of_every_call() {
    let shown = kept().json(["show", "slow", "--format=json"]);
    let traced = &shown["measurements"][0]["traced"][0];
    let fields = [
        "attached",
        "backend",
        "blocked",
        "calls",
        "command",
        "cost",
        "ended",
        "files",
        "idle",
        "misaligned",
        "missed",
        "notes",
        "outside",
        "processes",
        "processors",
        "rule",
        "sys_s",
        "threads",
        "times_from",
        "tree",
        "unaccounted_s",
        "user_s",
        "wait_s",
        "wall_s",
    ];
    assert_eq!(traced.as_object().expect("an object").keys().collect::<Vec<_>>(), fields);
    let call = &traced["calls"][0];
    let fields = [
        "blocking",
        "count",
        "disk_s",
        "errors",
        "max_s",
        "mean_s",
        "name",
        "on_cpu_s",
        "p50_s",
        "p99_s",
        "runqueue_s",
        "sleep_s",
        "stopped",
        "total_s",
        "unfinished",
        "unknown_s",
    ];
    assert_eq!(call.as_object().expect("an object").keys().collect::<Vec<_>>(), fields);
    assert_eq!((&call["name"], &call["blocking"]), (&"unlinkat".into(), &false.into()));
    let sum: f64 = ["on_cpu_s", "sleep_s", "disk_s", "runqueue_s", "unknown_s"]
        .iter()
        .map(|part| seconds(&call[*part]))
        .sum();
    assert!((sum - seconds(&call["total_s"])).abs() < 1e-9);
    assert_eq!(seconds(&traced["wait_s"]), 0.32);
    assert_eq!((&traced["tree"], &traced["files"]), (&Value::Null, &Value::Null));
    assert!((seconds(&traced["rule"]["all_cores_s"]) - 0.66).abs() < 1e-9);
    // A trace by ptrace(2) says what is unknown.
    let home = Home::new();
    home.keep(&common::document("20261121-015429-0003", None, 1.0));
    assert_eq!(home.json(["show", "last", "--format=json"])["measurements"][0]["traced"], Value::Null);
}

#[test]
fn kinds_of_waiting_that_ptrace_does_not_know_are_null() {
    let mut unknown = traced(300);
    unknown["backend"] = "ptrace".into();
    for call in unknown["calls"].as_array_mut().expect("calls") {
        let total =
            call["total_ns"].as_u64().expect("a number") - call["on_cpu_ns"].as_u64().expect("a number");
        for kind in ["sleep_ns", "disk_ns", "runqueue_ns"] {
            call[kind] = 0.into();
        }
        call["unknown_ns"] = total.into();
    }
    for absent in ["idle", "outside"] {
        unknown.as_object_mut().expect("fields").remove(absent);
    }
    let home = kept();
    home.keep(&document("20261121-015430-0003", "ptraced", "trace/command", &[unknown]));
    let shown = home.json(["show", "ptraced", "--format=json"]);
    let traced = &shown["measurements"][0]["traced"][0];
    assert_eq!((&traced["wait_s"], &traced["outside"]), (&Value::Null, &Value::Null));
    assert_eq!(traced["calls"][0]["disk_s"], Value::Null);
    assert_eq!(seconds(&traced["calls"][0]["unknown_s"]), 0.31);
    assert!(home.output(["show", "ptraced"]).contains("waiting unknown\n"));
    let compared = home.output(["compare", "slow", "ptraced"]);
    let message = words(&compared);
    assert!(message.contains("Traced with BPF in the base and with ptrace(2) in the other"), "{compared}");
    assert!(message.contains("waiting, or stopped by ptrace(2) 0 320 ms"), "{compared}");
}

#[test]
fn a_difference_is_taken_apart_and_its_calls_are_ranked() {
    let home = kept();
    let table = home.output(["compare", "fast", "slow"]);
    let message = words(&table);
    assert!(message.contains("trace/command: real 710 ms → 1.00 s (+290 ms, ×1.41)"), "{table}");
    assert!(message.contains("waiting for a disk 10.0 ms 300 ms +290 ms 100 %"), "{table}");
    assert!(message.contains("unlinkat 90.0 ms 380 ms +290 ms 100 %"), "{table}");
    assert!(message.contains("Each had one thread"), "{table}");
    let document = home.json(["compare", "fast", "slow", "--format=json"]);
    let held = &document["traces"][0];
    assert_eq!((&held["benchmark"], &held["exact"]), (&"trace/command".into(), &true.into()));
    let difference = seconds(&held["difference_s"]);
    let sum = |list: &str| -> f64 {
        held[list].as_array().expect("a list").iter().map(|row| seconds(&row["difference_s"])).sum()
    };
    assert!((difference - 0.29).abs() < 1e-12);
    assert!((sum("parts") - difference).abs() < 1e-9);
    assert!((sum("calls") + seconds(&held["outside"]["difference_s"]) - difference).abs() < 1e-9);
    assert_eq!(held["calls"][0]["name"], "unlinkat");
    assert_eq!(seconds(&held["calls"][0]["disk_s"]), 0.29);
    // Runs without traces have no such section.
    home.keep(&common::document("20261121-015431-0004", Some("plain"), 1.0));
    assert_eq!(home.json(["compare", "plain", "plain", "--format=json"])["traces"], json!([]));
}

#[test]
fn different_commands_are_not_silently_compared() {
    let home = kept();
    let mut other = traced(10);
    other["command"] = json!(["make", "-j2"]);
    other["ended"] = json!({"signal": 9});
    home.keep(&document("20261121-015432-0005", "other", "trace/command", &[other]));
    let message = words(&home.output(["compare", "fast", "other"]));
    assert!(
        message.contains("Different commands: rm -r tree in the base, make -j2 in the other"),
        "{message}"
    );
    assert!(message.contains("killed by SIGKILL in the other"), "{message}");
}

#[test]
fn of_several_repetitions_the_median_is_taken_apart() {
    let home = Home::new();
    let of = |disks: [u64; 3]| disks.map(traced);
    home.keep(&document("20261121-015427-0001", "warm", "workloads/checkout", &of([30, 10, 20])));
    home.keep(&document("20261121-015428-0002", "cold", "workloads/checkout", &of([100, 900, 300])));
    let shown = home.output(["show", "cold", "--all"]);
    assert!(shown.contains("workloads/checkout: real 1.00 s") && shown.contains('▒'), "{shown}");
    assert!(words(&shown).contains("unlinkat 380 ms (disk 300 ms, on a processor 70.0 ms"), "{shown}");
    let held = &home.json(["compare", "warm", "cold", "--format=json"])["traces"][0];
    assert_eq!((&held["base"]["repetitions"], seconds(&held["base"]["wall_s"])), (&3.into(), 0.72));
    assert_eq!(seconds(&held["other"]["wall_s"]), 1.0);
    let message = words(&home.output(["compare", "warm", "cold"]));
    assert!(
        message.contains("The median repetitions by real time, of 3 in the base and 3 in the other"),
        "{message}"
    );
}

#[test]
fn no_document_is_too_wide_or_commands_the_terminal() {
    let home = kept();
    // Nearly as long as a text may be.
    let evil = format!("\u{1b}]0;owned\u{7}\u{202e}{}", "x".repeat((1 << 20) - 100));
    let mut hostile = traced(300);
    hostile["command"] = json!([evil, evil]);
    hostile["notes"] = json!([evil]);
    hostile["missed"] = json!([{"what": evil, "number": u64::MAX}]);
    hostile["calls"][0]["name"] = evil.clone().into();
    hostile["files"] = json!([{"path": evil, "operations": []}]);
    for number in ["wall_ns", "user_ns", "sys_ns"] {
        hostile[number] = u64::MAX.into();
    }
    let mut document = document("20261121-015433-0006", "evil", "trace/command", &[hostile]);
    document["measurements"][0]["samples"] = json!([1e9]);
    home.keep(&document);
    for width in [54, 60, 80, 120] {
        for arguments in
            [vec!["show", "evil"], vec!["show", "evil", "--by=call"], vec!["compare", "evil", "slow"]]
        {
            let mut command = home.tollgate(arguments.clone());
            let output =
                command.env("COLUMNS", width.to_string()).assert().success().get_output().stdout.clone();
            let text = String::from_utf8(output).expect("text");
            assert!(
                !text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
                "{arguments:?}"
            );
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{arguments:?} at {width}: {line}");
            }
        }
    }
}

#[test]
fn wrong_usage_is_refused_in_one_line() {
    let home = Home::new();
    home.refusal(["trace"]);
    home.refusal(["trace", "--linger=-1", "--", "true"]);
    home.refusal(["trace", "--by=colour", "--", "true"]);
    assert!(home.refusal(["trace", "--for=1", "--", "true"]).contains("--for"));
    assert!(home.refusal(["trace", "-p", "4294967295"]).contains("there is no process 4294967295"));
    assert!(home.refusal(["trace", "-p", "1,x"]).contains("not the number of a process"));
    assert!(home.refusal(["trace", "--cgroup=/tmp"]).contains("/tmp is no control group"));
    home.refusal(["trace", "-p", "1", "--", "true"]);
    assert!(home.refusal(["trace", "--only=,", "--", "true"]).contains("names no system call"));
    let absent = home.refusal(["trace", "--timeline=/absent/file.json", "--", "true"]);
    assert!(absent.contains("--timeline /absent/file.json"), "{absent}");
    let absent = home.refusal(["trace", "--out=/absent/run.json", "--", "true"]);
    assert!(absent.contains("--out /absent/run.json"), "{absent}");
}

/// The output of `tollgate trace` with these arguments; None, with the reason printed, where it cannot trace here.
fn traced_by(home: &Home, arguments: &[&str]) -> Option<Output> {
    let output = |arguments: &[&str]| {
        let all = ["trace"].iter().chain(arguments).copied();
        home.tollgate(all).env("COLUMNS", "100").output().expect("started")
    };
    let trial = output(&["--quiet", "--out=/dev/null", "--", "true"]);
    if !trial.status.success() {
        eprintln!("skipped: {}", text(&trial.stderr));
        return None;
    }
    Some(output(arguments))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn the_commands_output_and_status_are_its_own_and_the_table_is_beside_them() {
    let home = Home::new();
    let script = "echo out; echo err >&2; exit 7";
    let Some(output) = traced_by(&home, &["--label=mine", "--", "sh", "-c", script]) else { return };
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "out\n"));
    let printed = text(&output.stderr);
    assert!(printed.starts_with("err\nreal "), "{printed}");
    assert!(printed.contains("exit status 7") && printed.contains("kept as"), "{printed}");
    // The kept one is the same table, but for where it is kept.
    let shown = home.tollgate(["show", "mine"]).env("COLUMNS", "100").output().expect("started").stdout;
    let shown = text(&shown);
    let page = shown.split("run mine ").next().expect("a page");
    assert!(page.len() > 200 && printed.contains(page), "{printed}\n-----\n{shown}");
}

#[test]
fn the_parts_of_a_short_command_sum_to_its_real_time() {
    let home = Home::new();
    for _ in 0..5 {
        let arguments = ["--format=json", "--out=/dev/null", "--", "true"];
        let Some(output) = traced_by(&home, &arguments) else { return };
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if document["backend"] != "bpf" || document["missed"] != json!([]) {
            return println!("skipped: not traced with BPF, or not all of it: {}", document["notes"]);
        }
        assert_eq!(document["times_from"], "trace", "{document}");
        let [user, sys] = ["user_s", "sys_s"].map(|part| seconds(&document[part]));
        // The clock tick gives a command this short to one of them, or to neither.
        assert!(user > 0.0 && sys > 0.0, "user {user} s, sys {sys} s");
        let sum = user + sys + seconds(&document["wait_s"]) + seconds(&document["unaccounted_s"]);
        assert!((sum - seconds(&document["wall_s"])).abs() < 2e-9, "{sum} s, and {document}");
    }
}

#[test]
fn json_is_one_line_behind_what_the_command_printed() {
    let home = Home::new();
    let Some(output) =
        traced_by(&home, &["--label=mine", "--format=json", "--", "sh", "-c", "echo '{'; true | true"])
    else {
        return;
    };
    let printed = text(&output.stdout);
    let (first, rest) = printed.split_once('\n').expect("memory");
    assert_eq!((first, rest.lines().count()), ("{", 1));
    let document: Value = serde_json::from_str(rest).expect("JSON");
    assert_eq!(document["ended"], json!({"exit": 0}));
    assert_eq!(document["command"][0], "sh");
    assert!(document["wall_s"].as_f64() > Some(0.0));
    assert_eq!(document["kept"].as_str().map(|path| std::path::Path::new(path).exists()), Some(true));
    assert_eq!(text(&output.stderr), "");
    if document["backend"] == "rusage" {
        eprintln!("skipped: cannot trace here: {}", document["notes"]);
        return;
    }
    assert_eq!(document["processes"], 3);
    let calls = document["calls"].as_array().expect("calls");
    for call in calls {
        let part = |name: &str| call[name].as_f64().unwrap_or(0.0);
        let parts = ["on_cpu_s", "sleep_s", "disk_s", "runqueue_s", "unknown_s"];
        let sum: f64 = parts.iter().map(|name| part(name)).sum();
        assert!((sum - part("total_s")).abs() <= 0.01 * part("total_s") + 1e-9, "{call}");
    }
    let wait4 = calls.iter().find(|call| call["name"] == "wait4").expect("the shell waits for its children");
    assert_eq!(wait4["blocking"], true);
}

#[test]
fn a_command_that_cannot_start_says_why_with_the_shells_status() {
    let home = Home::new();
    if traced_by(&home, &["--", "true"]).is_none() {
        return;
    }
    let refusal = |command: &str, status: i32| {
        // A directory of PATH that this user may not search would be another reason.
        let mut tracing = home.tollgate(["trace", "--", command]);
        let output = tracing.env("PATH", "/usr/bin:/bin").output().expect("started");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0));
        common::one_line(&output.stderr)
    };
    let sentence = refusal("no-such-program", 127);
    assert!(sentence.contains("no-such-program"), "{sentence}");
    let script = home.file("not-executable", "#!/bin/sh\n");
    let sentence = refusal(&script, 126);
    assert!(sentence.contains("not-executable"), "{sentence}");
}

#[test]
fn a_signal_that_ends_the_command_ends_tollgate() {
    let home = Home::new();
    let Some(output) = traced_by(&home, &["--label=killed", "--", "sh", "-c", "kill -TERM $$"]) else {
        return;
    };
    assert_eq!(output.status.signal(), Some(15));
    assert!(text(&output.stderr).contains("killed by SIGTERM"));
    assert_eq!(
        home.json(["show", "killed", "--format=json"])["measurements"][0]["traced"][0]["ended"],
        json!({"signal": 15})
    );
}

#[test]
fn a_run_that_cannot_be_kept_is_said_and_changes_nothing() {
    let home = Home::new();
    let Some(output) = traced_by(&home, &["--out=/dev/full", "--", "sh", "-c", "exit 3"]) else { return };
    assert_eq!(output.status.code(), Some(3));
    let printed = text(&output.stderr);
    assert!(
        printed.starts_with("real ") && printed.contains("not kept: /dev/full: No space left"),
        "{printed}"
    );
    let mut homeless = home.tollgate(["trace", "--label=lost", "--", "sh", "-c", "exit 4"]);
    let output = homeless.env_remove("XDG_DATA_HOME").env_remove("HOME").output().expect("started");
    assert_eq!(output.status.code(), Some(4));
    assert!(words(&text(&output.stderr)).contains("will not be kept"), "{}", text(&output.stderr));
    let mut nowhere = home.tollgate(["trace", "--quiet", "--label=lost", "--", "sh", "-c", "exit 5"]);
    let output = nowhere.env("XDG_DATA_HOME", "/dev/null/runs").output().expect("started");
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("cannot be kept in /dev/null/runs"), "{}", text(&output.stderr));
}

#[test]
fn a_timeline_has_the_calls_of_every_process() {
    let home = Home::new();
    let file = home.path().join("timeline.json").display().to_string();
    let arguments =
        ["--quiet", "--label=mine", "--timeline", &file, "--", "sh", "-c", "sleep 0.02; true | true"];
    let Some(output) = traced_by(&home, &arguments) else { return };
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let shown = home.json(["show", "mine", "--format=json"]);
    let traced = &shown["measurements"][0]["traced"][0];
    assert_eq!(traced["tree"], Value::Null, "it was not asked for");
    if traced["backend"] == "rusage" {
        eprintln!("skipped: cannot trace here: {}", traced["notes"]);
        return;
    }
    let timeline: Value = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    let entries = timeline["traceEvents"].as_array().expect("events");
    let of = |phase: &str| entries.iter().filter(|entry| entry["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("M").len() as u64, traced["processes"].as_u64().expect("a number"));
    let calls: u64 =
        traced["calls"].as_array().expect("calls").iter().filter_map(|call| call["count"].as_u64()).sum();
    assert!(of("X").len() as u64 >= calls, "{} events of {calls} calls", of("X").len());
    let sleep = of("X").into_iter().find(|event| event["name"] == "clock_nanosleep").expect("the sleep");
    assert!(sleep["dur"].as_f64() >= Some(20_000.0), "{sleep}");
    assert!(of("X").iter().all(|event| event["ts"].as_f64() >= Some(0.0)));
}

#[test]
fn files_and_processes_are_added_up_where_they_are_asked_for() {
    for backend in ["--backend=bpf", "--backend=ptrace"] {
        let home = Home::new();
        let script = "cat /etc/passwd >/dev/null; true | true";
        let arguments = ["trace", backend, "--label=mine", "--by=file", "--tree", "--", "sh", "-c", script];
        let output = home.tollgate(arguments).output().expect("started");
        if output.status.code() == Some(2) {
            eprintln!("skipped: {}", text(&output.stderr));
            continue;
        }
        let printed = text(&output.stderr);
        assert!(printed.contains("└ ") && printed.contains("top call"), "{printed}");
        let shown = home.json(["show", "mine", "--format=json"]);
        let traced = &shown["measurements"][0]["traced"][0];
        assert_eq!(traced["tree"].as_array().map(Vec::len), Some(4));
        let files =
            traced["files"].as_array().unwrap_or_else(|| panic!("{backend}: no files: {}", traced["notes"]));
        let read = files.iter().find(|file| file["path"] == "/etc/passwd").expect("the file that was read");
        let bytes: u64 = read["operations"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|done| done["bytes"].as_u64())
            .sum();
        let length = std::fs::metadata("/etc/passwd").map(|file| file.len()).expect("a file");
        assert_eq!(bytes, length, "{read}");
    }
}

#[test]
fn stacks_of_programs_that_have_ended_have_names() {
    let home = Home::new();
    let file = home.path().join("stacks");
    let arguments = ["trace", "--backend=bpf", "--stacks", file.to_str().expect("text"), "--", "sh", "-c"];
    let output =
        home.tollgate(arguments.into_iter().chain(["sleep 0.05; sleep 0.05"])).output().expect("started");
    if output.status.code() == Some(2) || text(&output.stderr).contains("is [unknown] in the stacks") {
        return eprintln!("skipped: {}", text(&output.stderr));
    }
    let stacks = std::fs::read_to_string(&file).expect("the stacks");
    let slept: Vec<Vec<&str>> = stacks
        .lines()
        .filter(|line| line.starts_with("sleep;"))
        .map(|line| line.split(';').collect())
        .collect();
    let in_timer = |frames: &&Vec<&str>| frames.iter().any(|frame| frame.contains("nanosleep"));
    // Both executions lie at addresses of their own, and are one line.
    let [frames] = slept.iter().filter(in_timer).collect::<Vec<_>>()[..] else { panic!("{stacks}") };
    let micros =
        frames.last().and_then(|last| last.rsplit(' ').next()).and_then(|number| number.parse::<u64>().ok());
    assert!(micros >= Some(100_000), "{stacks}");
    assert!(!frames[1].starts_with("0x") && frames[1] != "[unknown]", "{stacks}");
}

#[test]
fn what_another_backend_does_not_know_is_said_by_the_option_that_asks_for_it() {
    let home = Home::new();
    let directory = tempfile::tempdir().expect("a directory");
    let [new, old] = ["new", "old"].map(|name| directory.path().join(name));
    std::fs::write(&old, "of before").expect("a file");
    let options = |stacks: &std::path::Path| [format!("--stacks={}", stacks.display())];
    let said = |options: &[String]| {
        let plain = home.tollgate(["trace", "--format=json"]);
        // Root without the rights to load programs.
        let mut without = std::process::Command::new("setpriv");
        without
            .arg("--bounding-set=-bpf,-perfmon,-sys_admin")
            .arg(plain.get_program())
            .args(plain.get_args());
        without.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = without.args(options).args(["--", "true"]).output().ok()?;
        let document: Value = serde_json::from_slice(&output.stdout).ok()?;
        (document["backend"] != "bpf").then(|| document["notes"].to_string())
    };
    let blocked = ["--blocked".to_owned()];
    let (Some(blocked), Some(stacks), Some(kept)) =
        (said(&blocked), said(&options(&new)), said(&options(&old)))
    else {
        return eprintln!("skipped: setpriv(1) cannot take the rights to load BPF programs away");
    };
    assert!(
        blocked.contains("what ended sleeps is known with BPF only") && !blocked.contains("stacks"),
        "{blocked}"
    );
    assert!(stacks.contains("new was not written\"") && !stacks.contains("what ended"), "{stacks}");
    assert!(kept.contains("old was not written; the file that is there is an older one"), "{kept}");
    assert!(!new.exists() && std::fs::read_to_string(&old).expect("a file") == "of before");
}

#[test]
fn only_the_calls_that_are_asked_for_are_counted() {
    for backend in ["--backend=bpf", "--backend=ptrace"] {
        let home = Home::new();
        let arguments =
            ["trace", "--format=json", backend, "--only=openat,, close", "--", "cat", "/dev/null"];
        let output = home.tollgate(arguments).output().expect("started");
        if output.status.code() == Some(2) {
            eprintln!("skipped: {}", text(&output.stderr));
            continue;
        }
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let calls = document["calls"].as_array().expect("calls");
        let mut names: Vec<&str> = calls.iter().filter_map(|call| call["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["close", "openat"], "{backend}");
        assert!(calls.iter().all(|call| call["count"].as_u64() >= Some(1)), "{backend}: {calls:?}");
        assert!(document["notes"].to_string().contains("only these calls were traced: openat, close"));
    }
}
