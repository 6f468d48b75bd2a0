//! Commands in alternation, as users call it: the documented examples of hyperfine, its files, and kept runs.

use std::collections::BTreeMap;
use std::fs;

use crate::common;
use common::Home;
use serde_json::Value;

/// The verb with few rounds and no trace.
fn versus<'a>(arguments: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    ["versus", "--no-trace", "--quiet", "--format", "json"].into_iter().chain(arguments.iter().copied())
}

fn commands(document: &Value) -> Vec<&str> {
    let all = document["commands"].as_array().expect("commands");
    all.iter().map(|command| command["command"].as_str().expect("a command")).collect()
}

fn lines(home: &Home, name: &str) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(home.path().join(name)).expect("the commands wrote it");
    let mut counts = BTreeMap::new();
    text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

#[test]
fn a_command_and_several_are_timed_as_often_as_asked() {
    let home = Home::new();
    let log = home.file("log", "");
    let (a, b) = (format!("echo a >> '{log}'"), format!("echo b >> '{log}'; sleep 0.3"));
    let document = home.json(versus(&["--runs", "5", "--warmup", "3", &a, &b]));
    assert_eq!(commands(&document), [a.as_str(), &b]);
    assert_eq!(lines(&home, "log"), BTreeMap::from([("a".to_owned(), 8), ("b".to_owned(), 8)]));
    let row = &document["comparison"]["rows"][0];
    assert_eq!((&row["command"], &row["pairs"]), (&b.as_str().into(), &5.into()));
    // A busy machine makes a command longer, but never shorter than its sleep.
    assert!(document["commands"][1]["min_s"].as_f64().expect("a time") >= 0.3, "{document}");
    let alone = home.json(versus(&["-r", "7", "-w0", "sleep 0.02"]));
    assert!(alone["commands"][0]["min_s"].as_f64().expect("a time") >= 0.015, "{alone}");
    assert_eq!(alone["comparison"]["rows"], Value::Array(Vec::new()));
}

#[test]
fn parameters_are_scanned_listed_and_combined() {
    let home = Home::new();
    let scan = home.json(versus(&["-r1", "-w0", "-P", "threads", "1", "3", "true {threads}"]));
    assert_eq!(commands(&scan), ["true 1", "true 2", "true 3"]);
    let steps =
        home.json(versus(&["-r1", "-w0", "-P", "delay", "0.01", "0.03", "-D", "0.01", "sleep {delay}"]));
    assert_eq!(commands(&steps), ["sleep 0.01", "sleep 0.02", "sleep 0.03"]);
    let list = ["-r1", "-w0", "-L", "c", "gcc,clang", "-L", "o", "1,2", "true {c} -O{o}", "-n", "{c}{o}"];
    let file = home.path().join("list.json").display().to_string();
    home.json(versus(&[&list[..], &["--export-json", &file]].concat()));
    let exported: Value = serde_json::from_slice(&fs::read(&file).expect("written")).expect("JSON");
    let of = |field: &str| {
        let results = exported["results"].as_array().expect("results");
        results.iter().map(|result| result[field].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(of("command"), ["gcc1", "clang1", "gcc2", "clang2"]);
    assert_eq!(of("parameters")[3], serde_json::json!({"c": "clang", "o": "2"}));
    // Values may begin with a hyphen, and have commas.
    let quoted = home.json(versus(&["-r1", "-w0", "-L", "o", r"-a\,b,-c", "true {o}"]));
    assert_eq!(commands(&quoted), ["true -a,b", "true -c"]);
    let wrong: [&[&str]; 3] = [
        &["-P", "x", "3", "1", "true {x}"],
        &["-P", "x", "0", "1", "-D", "0", "true {x}"],
        &["-L", "x", "a", "-L", "x", "b", "true {x}"],
    ];
    assert_eq!(
        wrong.map(|wrong| home.refusal(versus(wrong))),
        [
            "--parameter-scan x 3 1: the range is empty: MIN is above MAX",
            "--parameter-scan x 0 1: the step is not above 0",
            "the parameter `x` is given twice or has no name; give each parameter its own name",
        ]
    );
}

#[test]
fn what_is_executed_around_commands_comes_as_often_as_it_should() {
    let home = Home::new();
    let log = home.file("log", "");
    let echo = |what: &str| format!("echo {what} >> '{log}'");
    let (setup, cleanup, conclude) = (echo("setup"), echo("cleanup"), echo("conclude"));
    let prepares = [echo("prepare-a"), echo("prepare-b")];
    let around = ["--setup", &setup, "-p", &prepares[0], "-p", &prepares[1], "-C", &conclude, "-c", &cleanup];
    home.json(versus(&[&["-r3", "-w1"][..], &around, &["true", "true # b"]].concat()));
    let expected = [("setup", 2), ("prepare-a", 4), ("prepare-b", 4), ("conclude", 8), ("cleanup", 2)];
    assert_eq!(lines(&home, "log"), expected.map(|(what, times)| (what.to_owned(), times)).into());
    let three = ["-p", "true", "-p", "true", "-p", "true", "true", "false"];
    let refused = home.refusal(versus(&three));
    assert_eq!(refused, "--prepare is given 3 times; give it once, or once for each of the 2 commands");
    // With a reference, the reference may have its own.
    let each = ["-r1", "-w0", "-p", &echo("r"), "-p", &echo("x"), "-p", &echo("y"), "--reference", "true"];
    home.json(versus(&[&each[..], &["true", "true"]].concat()));
    assert_eq!(lines(&home, "log").get("r"), Some(&1));
    // A command knows the number of its execution.
    let numbered = format!("echo $HYPERFINE_ITERATION >> '{}'", home.file("numbers", ""));
    home.json(versus(&["-r2", "-w1", &numbered]));
    let numbers = lines(&home, "numbers").into_keys().collect::<Vec<_>>();
    assert_eq!(numbers, ["0", "1", "warmup-0"]);
}

#[test]
fn shells_are_chosen_and_left_out() {
    let home = Home::new();
    let script = "my_function() { sleep 0.01; }; export -f my_function; exec \"$0\" versus --no-trace --format json -r2 \
                  --shell=bash my_function";
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script]).arg(common::program()).env("XDG_DATA_HOME", home.path());
    match bash.output() {
        Err(error) => println!("skipped: no bash: {error}"),
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
    }
    let exact = home.json(versus(&["-r2", "-N", "printf '%s' 'a  b'", "--output", "pipe"]));
    assert_eq!(commands(&exact), ["printf '%s' 'a  b'"]);
    // Without a shell a semicolon is not a separator.
    for blank in ["", "  "] {
        assert_eq!(home.refusal(versus(&["-r2", blank, "true"])), "a command is empty");
    }
    let said = home.refusal(versus(&["-r2", "--shell", "none", "true;false 'x"]));
    assert_eq!(said, "the command true;false 'x: a single quote (') is not closed");
    assert_eq!(
        home.refusal(versus(&["-r2", "-N", "no-such-program-of-ours"])),
        "no-such-program-of-ours was not started: `no-such-program-of-ours` was not found in PATH; a path with a slash is used as it is"
    );
}

#[test]
fn streams_go_where_they_are_asked_to() {
    let home = Home::new();
    let (input, output) = (home.file("input", "three\nlines\nhere\n"), home.path().join("output"));
    let output = output.display().to_string();
    home.json(versus(&["-r2", "wc -l", "--input", &input, "--output", &output]));
    assert_eq!(fs::read_to_string(&output).expect("written").trim(), "3");
    let second = format!("{output}-2");
    home.json(versus(&["-r2", "echo a", "echo b", "--output", &output, "--output", &second]));
    assert_eq!(
        (fs::read_to_string(&output).ok(), fs::read_to_string(&second).ok()),
        (Some("a\n".into()), Some("b\n".into()))
    );
    let shown = home
        .tollgate(["versus", "-r1", "-w0", "--no-trace", "--show-output", "echo shown"])
        .output()
        .expect("ran");
    assert!(String::from_utf8_lossy(&shown.stdout).starts_with("shown\n"), "{shown:?}");
}

#[test]
fn a_failing_command_stops_with_its_output_and_may_be_accepted() {
    let home = Home::new();
    let failing = "echo out; echo to the error stream >&2; exit 3";
    let output = home.tollgate(versus(&["-r2", "--output", "pipe", "true", failing])).output().expect("ran");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("out\nto the error stream\ntollgate: {failing} ended with exit status 3\n")
    );
    for accepted in ["-i", "--ignore-failure=3,4"] {
        let document = home.json(versus(&["-r2", accepted, failing]));
        assert_eq!(document["commands"].as_array().map(Vec::len), Some(1), "{accepted}");
    }
    let other = home.refusal(versus(&["-r2", "--ignore-failure=1", "exit 3"]));
    assert_eq!(other, "exit 3 ended with exit status 3");
    assert_eq!(
        home.refusal(versus(&["-r2", "--ignore-failure=x", "true"])),
        "--ignore-failure=x: it is neither `all-non-zero` nor a list of exit statuses, such as 1,2"
    );
}

#[test]
fn names_and_a_reference_are_shown_and_compared_with() {
    let home = Home::new();
    let arguments = [
        "-r3",
        "sleep 0.2",
        "sleep 0.4",
        "-n",
        "two",
        "--reference",
        "sleep 0.01",
        "--reference-name",
        "one",
    ];
    let file = home.path().join("table.md").display().to_string();
    let document =
        home.json(versus(&[&arguments[..], &["--export-markdown", &file, "-u", "millisecond"]].concat()));
    assert_eq!(commands(&document), ["sleep 0.01", "sleep 0.2", "sleep 0.4"]);
    let rows = document["comparison"]["rows"].as_array().expect("rows");
    assert!(rows.len() == 2 && rows.iter().all(|row| row["ratio"].is_f64()), "{rows:?}");
    let table = fs::read_to_string(&file).expect("written");
    let names: Vec<&str> = table.lines().skip(2).filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(names, ["one", "two", "sleep 0.4"], "{table}");
    assert!(table.starts_with("| Command | Mean [ms] |"), "{table}");
}

#[test]
fn a_kept_comparison_is_taken_by_the_other_verbs() {
    let home = Home::new();
    let arguments = ["-r24", "--label", "sleeps", "sleep 0.01", "sleep 0.2", "--fail-on", "slower"];
    let output = home.tollgate(versus(&arguments)).output().expect("ran");
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 1 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(home.files().len(), 2);
    let shown = home.output(["show", "sleeps"]);
    assert!(shown.lines().any(|line| line == "B  sleep 0.2"), "{shown}");
    // The verdict is that of the executions: a busy machine leaves it open.
    let is_slower = shown.lines().any(|line| line.starts_with("B is ") && line.contains(" × slower"));
    assert_eq!(status == Some(1), is_slower, "{shown}");
    let compared = home.json(["compare", "sleeps", "--format", "json"]);
    assert_eq!(compared["rows"][0]["benchmark"], "versus/real");
    let listed = home.output(["runs"]);
    assert!(listed.split("  ").any(|cell| cell.trim() == "1/2: sleep 0.01"), "{listed}");
    let page = home.path().join("page.html").display().to_string();
    home.output(["report", "sleeps", "--out", &page]);
    assert!(fs::read_to_string(&page).expect("written").contains("sleep 0.2"));
    let rows = home.output(["export", "sleeps", "--format", "ndjson"]);
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).expect("JSON")["benchmark"].take());
    assert_eq!(rows.filter(|benchmark| benchmark == "versus/real").count(), 2);
    // Nothing is kept without a request.
    let kept = home.files().len();
    home.json(versus(&["-r1", "true"]));
    assert_eq!(home.files().len(), kept);
}

#[test]
fn options_that_do_not_go_together_are_refused_before_anything_is_executed() {
    let home = Home::new();
    let log = home.file("log", "");
    let command = format!("echo executed >> '{log}'");
    for wrong in [
        &["--output", "pip"][..],
        &["--export-json", "/nonexistent/file.json"],
        &["--min-runs", "5", "--max-runs", "3"],
        &["--in", "no-such-environment"],
        &["--in", "host", "--show-output"],
        &["-n", "a", "-n", "b"],
        &["--shell", "'"],
    ] {
        let said = home.refusal(versus(&[wrong, &[&command]].concat()));
        assert!(!said.is_empty(), "{wrong:?}");
    }
    assert_eq!(fs::read_to_string(&log).expect("there"), "");
}

#[test]
fn counts_decide_the_exit_status_where_they_are_asked_to() {
    let home = Home::new();
    let status = |words: &[&str]| {
        let output = home.tollgate(versus(words)).output().expect("executed");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let many = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done";
    // Times do not matter, and fewer is no more.
    let (found, said) = status(&["-r8", "--fail-on", "more", "true", many]);
    assert!(found == Some(1) && said.starts_with("tollgate: B does more than A: faults "), "{said}");
    assert_eq!(status(&["-r8", "--fail-on", "more", many, "true"]), (Some(0), String::new()));
    let (found, said) = status(&["-r3", "--budget", "faults=1", "true"]);
    assert!(found == Some(1) && said.starts_with("tollgate: A is over budget: faults "), "{said}");
    assert!(said.ends_with(" (1 allowed)\n"), "{said}");
    assert_eq!(status(&["-r3", "--budget", "faults=10000000", "true"]), (Some(0), String::new()));
    for (budget, why) in [
        ("calls=1", "--budget calls: calls are counted by a trace: omit --no-trace"),
        ("openat=1", "--budget openat: calls are counted by a trace: omit --no-trace"),
        ("user=1", "--budget user: a guest counts instructions: add --in vm:exact"),
    ] {
        let (found, said) = status(&["--budget", budget, "touch executed"]);
        assert_eq!((found, said), (Some(2), format!("tollgate: {why}\n")));
    }
    assert!(!home.path().join("executed").exists());
}
