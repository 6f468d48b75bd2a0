//! `tollgate trace`, and `show` and `compare` of a traced command.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use crate::common;
use common::Home;
use common::text::{part, words};
use serde_json::{Value, json};

/// One thread that computes for 600 ms, and removes files: 300 ms of waiting for a disk.
const SLOW: &str = include_str!("cases/trace.in/slow.json");

/// A document of the cases.
fn case(name: &str) -> String {
    format!("{}/tests/cases/trace.in/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

/// The traced command of a case, as programs get it.
fn shown(name: &str) -> Value {
    Home::new().json(["show", &case(name), "--format=json"])["measurements"][0]["traced"][0].take()
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().expect("a figure")
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
        // The rule of that year is for --rule. A run's name may have the number as a time.
        assert!(!printed.split([' ', ',', '\n']).any(|word| word == "2017"), "{printed}");
    }
}

#[test]
fn programs_get_the_parts_of_every_call() {
    let traced = shown("slow");
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
    assert_eq!(traced["cost"]["others_per_call_ns"], 180.0);
    // A filter stopped 2,000 of 4,000 calls, and the others took 380 ms.
    let filtered = &shown("filtered")["calls"];
    assert!((seconds(&filtered[0]["mean_s"]) - 190e-6).abs() < 1e-12, "{filtered}");
    let [stopped, other] = [&filtered[3], &filtered[1]];
    assert_eq!((&stopped["stopped"], &other["stopped"]), (&7.into(), &0.into()));
    assert_eq!((&stopped["mean_s"], &stopped["max_s"]), (&Value::Null, &Value::Null));
    let busy = shown("busy")["calls"].take();
    let blocks = |name: &str| {
        let call = busy.as_array().expect("calls").iter().find(|call| call["name"] == name).expect(name);
        call["blocking"] == true
    };
    assert!(blocks("read") && !blocks("pread64"), "a wait for a disk is work");
    // A trace by ptrace(2) says what is unknown.
    let ptraced = shown("ptraced");
    assert_eq!((&ptraced["wait_s"], &ptraced["outside"]), (&Value::Null, &Value::Null));
    assert_eq!(ptraced["calls"][0]["disk_s"], Value::Null);
    assert_eq!(seconds(&ptraced["calls"][0]["unknown_s"]), 0.31);
    assert_eq!(ptraced["cost"]["others_per_call_ns"], 0.0);
    let home = Home::new();
    home.keep(&common::document("20261121-015429-0003", None, 1.0));
    assert_eq!(home.json(["show", "last", "--format=json"])["measurements"][0]["traced"], Value::Null);
}

#[test]
fn the_parts_of_a_difference_and_the_calls_sum_to_it() {
    let home = Home::new();
    let compared = |base: &str, other: &str| {
        home.json(["compare", &case(base), &case(other), "--format=json"])["traces"][0].take()
    };
    let held = compared("fast", "slow");
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
    // The median of several repetitions.
    let held = compared("warm", "cold");
    assert_eq!((&held["base"]["repetitions"], seconds(&held["base"]["wall_s"])), (&3.into(), 0.72));
    assert_eq!(seconds(&held["other"]["wall_s"]), 1.0);
    // Runs without traces have no such section.
    home.keep(&common::document("20261121-015431-0004", Some("plain"), 1.0));
    assert_eq!(home.json(["compare", "plain", "plain", "--format=json"])["traces"], json!([]));
}

#[test]
fn no_document_is_too_wide_or_commands_the_terminal() {
    let home = Home::new();
    // Nearly as long as a text may be.
    let evil = format!("\u{1b}]0;owned\u{7}\u{202e}{}", "x".repeat((1 << 20) - 100));
    let mut document: Value = serde_json::from_str(SLOW).expect("JSON");
    home.keep(&document);
    let hostile = &mut document["measurements"][0]["traced"][0];
    hostile["command"] = json!([evil, evil]);
    hostile["notes"] = json!([evil]);
    hostile["missed"] = json!([{"what": evil, "number": u64::MAX}]);
    hostile["calls"][0]["name"] = evil.clone().into();
    hostile["files"] = json!([{"path": evil, "operations": []}]);
    for number in ["wall_ns", "user_ns", "sys_ns"] {
        hostile[number] = u64::MAX.into();
    }
    document["id"] = "20261121-015433-0006".into();
    document["label"] = "evil".into();
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
    if stacks.contains(";[lost] ") {
        return eprintln!("skipped: the kernel's table had another stack in its place");
    }
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
