//! `tollgate trace`, and `show` and `compare` of a traced command.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use crate::common;
use common::Home;
use common::text::{part, refusals, screen, words};
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

fn seconds(value: &Value) -> f64 {
    value.as_f64().expect("a figure")
}

#[test]
fn a_kept_command_is_shown_as_when_it_was_made() {
    let home = kept();
    insta::assert_snapshot!("a-command", screen(&home, ["show", "slow"]));
    let with = |options: &str, from: &str| {
        let text = screen(&home, ["show", "slow"].into_iter().chain(options.split(' ')));
        format!("{options}\n{}\n\n", part(&text, from, "\n\n"))
    };
    let options =
        [("--histogram --top=1", "how long"), ("--by=file", "Files were not"), ("--tree", "processes\n")];
    insta::assert_snapshot!("options", options.map(|(options, from)| with(options, from)).concat());
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
    let text = screen(&home, ["show", "filtered"]);
    assert_eq!(
        part(&text, "note: ", "\nrun "),
        "note: 2,007 calls were stopped by a filter (seccomp): counted, without a time"
    );
    assert_eq!(words(part(&text, "socket ", "  together ")), "socket 7 7 7 stopped by a filter");
    let shown = home.json(["show", "filtered", "--format=json"]);
    let call = |number: usize| shown["measurements"][0]["traced"][0]["calls"][number].clone();
    assert_eq!(
        (&call(3)["stopped"], &call(3)["mean_s"], &call(3)["max_s"]),
        (&7.into(), &Value::Null, &Value::Null)
    );
    // 380 ms in the other 2,000 of 4,000 calls.
    assert!((seconds(&call(0)["mean_s"]) - 190e-6).abs() < 1e-12, "{shown}");
    assert_eq!(call(1)["stopped"], 0);
    assert_eq!(
        words(part(&screen(&home, ["compare", "slow", "filtered"]), "A filter", "real time by")),
        "A filter (seccomp) stopped 0 calls in the base, 2,007 in the other: they are counted without a time."
    );
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
    let text = screen(&home, ["show", "busy"]);
    assert!(text.lines().count() <= 40, "{} lines:\n{text}", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // A wait for a disk is work: pread64 is not a blocking call.
    insta::assert_snapshot!("a-busy-command", text);
    let all = screen(&home, ["show", "busy", "--top=100"]);
    let blocking = part(&all, "blocking calls\n", "\n\n").lines().skip(1);
    let names: Vec<&str> = blocking.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        ["wait4", "poll", "futex", "nanosleep", "epoll_wait", "select", "read", "together"],
        "with the read that slept"
    );
    let shown = home.json(["show", "busy", "--format=json"]);
    let calls = shown["measurements"][0]["traced"][0]["calls"].as_array().expect("calls").clone();
    let blocks = |name: &str| calls.iter().find(|call| call["name"] == name).expect(name)["blocking"].clone();
    assert_eq!((blocks("read"), blocks("pread64")), (true.into(), false.into()));
}

#[test]
fn the_published_rule_is_said_where_it_is_asked_for() {
    let [plain, ruled] = [&["show", "slow"][..], &["show", "slow", "--rule"]]
        .map(|words| screen(&kept(), words.iter().copied()));
    assert!(!plain.contains("2017"), "{plain}");
    insta::assert_snapshot!("the-rule", part(&ruled, "Waiting by", "\nTracing "));
}

#[test]
fn the_footer_says_what_tracing_added() {
    let home = kept();
    let footer = |label: &str| part(&screen(&home, ["show", label]), "Tracing ", "\nrun ").to_owned();
    assert_eq!(
        footer("slow"),
        "\
Tracing with BPF added, measured in this run:
  290 ns to each of 4,920 calls
  about 1.43 ms to the command, 0.14 % of its real time
  180 ns to each call of every other process meanwhile"
    );
    let shown = home.json(["show", "slow", "--format=json"]);
    assert_eq!(shown["measurements"][0]["traced"][0]["cost"]["others_per_call_ns"], 180.0);
    let mut ptraced = traced(10);
    ptraced["backend"] = "ptrace".into();
    ptraced.as_object_mut().expect("fields").remove("cost_to_others_ns");
    home.keep(&document("20261121-015430-0003", "ptraced", "trace/command", &[ptraced]));
    assert_eq!(footer("ptraced").lines().last(), Some("  nothing to other processes"));
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
        // The run's file name is one word, which is not broken.
        assert!(
            printed.lines().all(|line| line.chars().count() <= 80 || line.contains(".json")),
            "{printed}"
        );
        let (head, others) = match backend {
            // The machine's load can hide it.
            "--backend=bpf" => ("Tracing with BPF added, measured in this run:", " other process"),
            _ => ("Tracing with ptrace(2) added, measured in this run:", "  nothing to other processes"),
        };
        let mut footer = part(&printed, "Tracing ", "\nrun ").lines();
        assert_eq!(footer.next(), Some(head), "{printed}");
        assert!(footer.any(|line| line.contains(others)), "{printed}");
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
    // A trace by ptrace(2) names what is unknown.
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
    assert_eq!(
        screen(&home, ["show", "ptraced"]).lines().next(),
        Some("real 1.00 s   user 600 ms   sys 80.0 ms   waiting unknown")
    );
    let compared = screen(&home, ["compare", "slow", "ptraced"]);
    assert_eq!(
        words(part(&compared, "Traced with", "real time by")),
        "Traced with BPF in the base and with ptrace(2) in the other: the difference includes the overhead of tracing."
    );
    assert_eq!(
        words(part(&compared, "waiting, or", "\nreal ")),
        "waiting, or stopped by ptrace(2) 0 320 ms +320 ms"
    );
}

#[test]
fn a_difference_is_taken_apart_and_its_calls_are_ranked() {
    let home = kept();
    let compared = screen(&home, ["compare", "fast", "slow"]);
    insta::assert_snapshot!("a-difference", part(&compared, "trace/command: ", "Not alternated"));
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
    assert_eq!(
        words(part(&screen(&home, ["compare", "fast", "other"]), "Different", "real time by")),
        "Different commands: rm -r tree in the base, make -j2 in the other. They ended differently: exit status 0 in the \
         base, killed by SIGKILL in the other."
    );
}

#[test]
fn of_several_repetitions_the_median_is_taken_apart() {
    let home = Home::new();
    let of = |disks: [u64; 3]| disks.map(traced);
    home.keep(&document("20261121-015427-0001", "warm", "workloads/checkout", &of([30, 10, 20])));
    home.keep(&document("20261121-015428-0002", "cold", "workloads/checkout", &of([100, 900, 300])));
    let shown = screen(&home, ["show", "cold", "--all"]);
    insta::assert_snapshot!("repetitions", part(&shown, "where the real time", "\n\n"));
    let held = &home.json(["compare", "warm", "cold", "--format=json"])["traces"][0];
    assert_eq!((&held["base"]["repetitions"], seconds(&held["base"]["wall_s"])), (&3.into(), 0.72));
    assert_eq!(seconds(&held["other"]["wall_s"]), 1.0);
    assert_eq!(
        part(&screen(&home, ["compare", "warm", "cold"]), "The median", "\nreal time by"),
        "The median repetitions by real time, of 3 in the base and 3 in the other."
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
    let no_group = home.refusal(["trace", "--cgroup=/tmp"]);
    assert!(no_group.starts_with("/tmp is not a control group: it has no file cgroup.procs, "), "{no_group}");
    let lines = [
        "trace",
        "trace --linger=-1 -- true",
        "trace --by=colour -- true",
        "trace --for=1 -- true",
        "trace -p 4294967295",
        "trace -p 1,x",
        "trace -p 1 -- true",
        "trace --only=, -- true",
        "trace --timeline=/absent/file.json -- true",
        "trace --out=/absent/run.json -- true",
    ];
    insta::assert_snapshot!("refusals", refusals(&home, lines));
}

/// The output of `tollgate trace` with these arguments. `None`, with the reason printed, if it cannot trace here.
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
    let command = "sh -c 'echo out; echo err >&2; exit 7': exit status 7";
    assert!(printed.lines().any(|line| line.starts_with(command)), "{printed}");
    let [kept] = &common::entries(&home.runs())[..] else { panic!("{:?}", home.files()) };
    assert!(words(&printed).ends_with(&format!("; kept as {}", kept.display())), "{printed}");
    // The kept run has the same table, except for its place.
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
        // The clock tick gives the time of such a short command to one of them, or to neither.
        assert!(user > 0.0 && sys > 0.0, "user {user} s, sys {sys} s");
        let unaccounted = seconds(&document["unaccounted_s"]);
        let beyond = user + sys + seconds(&document["wait_s"]) + unaccounted - seconds(&document["wall_s"]);
        // The clocks of the trace and of the real time may differ if nothing is left.
        assert!(beyond.abs() < 2e-9 || (unaccounted == 0.0 && beyond > 0.0), "{beyond} s, and {document}");
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
    assert_eq!(
        refusal("no-such-program", 127),
        "`no-such-program` was not found in PATH; a path with a slash is used as it is"
    );
    let script = home.file("not-executable", "#!/bin/sh\n");
    assert_eq!(
        refusal(&script, 126),
        format!(
            "`{script}` may not be executed: the file needs execute permission (chmod +x), and its file system must allow it"
        )
    );
}

#[test]
fn a_signal_that_ends_the_command_ends_tollgate() {
    let home = Home::new();
    let Some(output) = traced_by(&home, &["--label=killed", "--", "sh", "-c", "kill -TERM $$"]) else {
        return;
    };
    assert_eq!(output.status.signal(), Some(15));
    let printed = text(&output.stderr);
    let command = "sh -c 'kill -TERM $$': killed by SIGTERM";
    assert!(printed.lines().any(|line| line.starts_with(command)), "{printed}");
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
    let last = "tollgate: the run was not kept: /dev/full: No space left on device";
    assert!(printed.starts_with("real ") && printed.lines().last() == Some(last), "{printed}");
    let mut homeless = home.tollgate(["trace", "--label=lost", "--", "sh", "-c", "exit 4"]);
    let output = homeless.env_remove("XDG_DATA_HOME").env_remove("HOME").output().expect("started");
    assert_eq!(output.status.code(), Some(4));
    let warning = "tollgate: warning: this run will not be kept: neither XDG_DATA_HOME nor HOME is set; name a file with \
                   --out to keep it";
    let printed = text(&output.stderr);
    assert!(printed.lines().any(|line| line == warning), "{printed}");
    let mut nowhere = home.tollgate(["trace", "--quiet", "--label=lost", "--", "sh", "-c", "exit 5"]);
    let output = nowhere.env("XDG_DATA_HOME", "/dev/null/runs").output().expect("started");
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(
        common::one_line(&output.stderr),
        "runs cannot be kept in /dev/null/runs/tollgate/runs (XDG_DATA_HOME): Not a directory; name a file with --out FILE"
    );
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
    assert_eq!(traced["tree"], Value::Null, "it was not requested");
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
        let tree = part(&printed, "processes\n", "\nreal: ").lines().map(words);
        // Without the figures; the first is the number of equal ones.
        let names =
            tree.map(|line| line.split(char::is_numeric).next().unwrap_or_default().trim().to_owned());
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["processes", "process real cpu waiting top call", "sh", "├ cat", "└ sh ×"],
            "{printed}"
        );
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
    // The executions have different addresses, but are one line.
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
        let notes = document["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
        // Otherwise a note says why BPF cannot trace here.
        let of_options = notes.filter(|note| note.contains("only BPF reports")).map(str::to_owned);
        (document["backend"] != "bpf").then(|| of_options.collect::<Vec<_>>())
    };
    let blocked = ["--blocked".to_owned()];
    let (Some(blocked), Some(stacks), Some(kept)) =
        (said(&blocked), said(&options(&new)), said(&options(&old)))
    else {
        return eprintln!("skipped: setpriv(1) cannot take the rights to load BPF programs away");
    };
    assert_eq!(blocked, ["what ended sleeps is not shown: only BPF reports it"]);
    let not_written = |file: &std::path::Path| {
        format!("{} was not written: only BPF reports the stacks of sleeps", file.display())
    };
    assert_eq!(stacks, [not_written(&new)]);
    assert_eq!(kept, [not_written(&old) + "; the existing file is an older one"]);
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
        let note = json!("only these calls were traced: openat, close");
        assert!(document["notes"].as_array().expect("notes").contains(&note), "{}", document["notes"]);
    }
}
