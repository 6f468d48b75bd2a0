//! Sessions: environments that are measured in turns, and messages about those that do not work.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use common::{Home, one_line};
use serde_json::Value;

/// The agent, after a prefix that does something else first.
fn after(script: &str) -> String {
    format!("exec:sh -c '{script}; exec \"$@\"' sh")
}

/// A session of two short cases, in this many processes.
fn session(home: &Home, environments: &[&str], processes: &str, rest: &[&str]) -> Output {
    let mut words = vec!["run", "entry/call", "entry/syscall", "--quiet", "--processes", processes];
    environments.iter().for_each(|name| words.extend(["--in", name]));
    words.extend(rest);
    home.tollgate(words).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

fn environments(document: &Value) -> Vec<&str> {
    let runs = document["runs"].as_array().expect("runs");
    runs.iter().map(|run| run["session"]["environment"].as_str().expect("a name")).collect()
}

/// An environment of this kind that works here, or the reason why none does.
fn working(home: &Home, kind: &str) -> Result<String, String> {
    let known = home.json(["environments", "--format=json"]);
    let all = known["environments"].as_array().expect("environments");
    let ours =
        || all.iter().filter(|one| one["environment"].as_str().is_some_and(|name| name.starts_with(kind)));
    let name = ours().find(|one| one["works"] == true).and_then(|one| one["environment"].as_str());
    name.map(str::to_owned)
        .ok_or_else(|| ours().map(|one| format!("{}", one["why"])).collect::<Vec<_>>().join("; "))
}

#[test]
fn two_environments_are_compared_and_kept() {
    let home = Home::new();
    let output = session(&home, &["host", "host"], "8", &["--label", "two", "--format=json"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "");
    let shown = document(&output);
    let session = shown["session"].as_str().expect("an id");
    assert_eq!(environments(&shown), ["host", "host"]);
    for (place, run) in shown["runs"].as_array().expect("runs").iter().enumerate() {
        assert_eq!((&run["session"]["id"], &run["session"]["place"]), (&shown["session"], &place.into()));
        assert_eq!((&run["session"]["of"], &run["session"]["paired"]), (&2.into(), &true.into()));
        assert_eq!(run["label"], "two");
        assert!(
            run["facts"]["kernel.release"]["value"].is_string() && run["facts"]["run.patterns"].is_object()
        );
        let path = run["kept"].as_str().expect("the file that keeps it");
        assert!(fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o777 == 0o600), "{path}");
    }
    let rows = shown["comparison"]["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["benchmark"] == "entry/syscall").expect("a row");
    for field in [
        "benchmark",
        "params",
        "unit",
        "base",
        "other",
        "ratio",
        "ratio_low",
        "ratio_high",
        "adds",
        "verdict",
        "correlation",
    ] {
        assert!(row.get(field).is_some(), "{field}: {row}");
    }
    assert!(["same", "inconclusive"].contains(&row["verdict"].as_str().expect("a verdict")), "{row}");
    assert!(row["pairs"].as_u64().is_some_and(|pairs| pairs >= 6), "{row}");
    assert!(shown["comparison"]["facts"].is_array());

    let table = home.output(["show", session]);
    assert!(table.contains(session) && table.lines().count() <= 40, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(table, home.output(["show", "two"]));
    let said = home.refusal(["show", session, "files"]);
    assert_eq!(said, format!("session {session} has no row that matches files"));
    let compared = home.json(["compare", session, "--format=json"]);
    assert_eq!(compared["base"]["id"], shown["runs"][0]["id"]);
    assert_eq!(compared["others"][0]["id"], shown["runs"][1]["id"]);
    let page = home.path().join("page.html").display().to_string();
    home.output(["report", "last", "--out", &page]);
    let page = fs::read_to_string(page).expect("written");
    let heading = common::text::part(&page, "<h1>", "</h1>");
    assert_eq!(heading, "<h1>host (2) compared with host (1)");
}

#[test]
fn a_directory_gets_a_file_for_each() {
    let home = Home::new();
    let directory = home.path().join("made/here");
    let out = directory.display().to_string();
    let output = session(&home, &["host", "host:nice=19"], "6", &["--out", &out]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(common::entries(&directory), ["1-host.json", "2-host.json"].map(|name| directory.join(name)));
    assert!(!home.runs().exists(), "nothing is kept beside");
    let files = common::entries(&directory);
    let [base, other] = [&files[0], &files[1]].map(|path| path.display().to_string());
    let compared = home.json(["compare", &base, &other, "--format=json"]);
    assert_eq!(compared["others"].as_array().expect("others").len(), 1);
    let said = home.refusal(["run", "entry/call", "--in", "host", "--in", "host", "--out", "-"]);
    let directory =
        "several environments are several runs; name a directory, or print all with --format json";
    assert_eq!(said, format!("--out -: {directory}"));
    let file = home.file("file", "");
    let said = home.refusal(["run", "entry/call", "--in", "host", "--in", "host", "--out", &file]);
    let directory = "Not a directory; with several environments it must be a directory";
    assert_eq!(said, format!("--out {file}: {directory}"));
}

#[test]
fn one_environment_is_a_run() {
    let home = Home::new();
    let output = session(&home, &["host:nice=19"], "1", &["--format=json"]);
    assert!(output.status.success(), "{}", said(&output));
    let run = document(&output);
    assert_eq!(common::row(&run, "entry/syscall")["status"], "measured");
    assert_eq!(home.json(["runs", "--format=json"])["runs"].as_array().expect("runs").len(), 1);
}

#[test]
fn a_container_is_compared_with_the_host() {
    let home = Home::new();
    let container = match working(&home, "container") {
        Ok(container) => container,
        Err(why) => return println!("skipped: no container can be made: {why}"),
    };
    let output = session(&home, &["host", &container], "8", &["--format=json"]);
    assert!(output.status.success(), "{}", said(&output));
    let shown = document(&output);
    assert_eq!(environments(&shown), ["host", &container]);
    let rows = shown["comparison"]["rows"].as_array().expect("rows");
    let call = rows.iter().find(|row| row["benchmark"] == "entry/call").expect("a row");
    assert!(["same", "inconclusive"].contains(&call["verdict"].as_str().expect("a verdict")), "{call}");
    // One alone, by the same agent.
    let output = session(&home, &[&container], "1", &["--format=json"]);
    let run = document(&output);
    assert_eq!(common::row(&run, "entry/syscall")["status"], "measured", "{}", said(&output));
}

/// A session of the host, this environment, and the host again: the line that names the second.
fn beside(environment: &str) -> String {
    beside_for("1", environment)
}

/// Likewise in this many processes.
fn beside_for(processes: &str, environment: &str) -> String {
    let home = Home::new();
    let output = session(&home, &["host", environment, "host"], processes, &["--format=json"]);
    assert!(output.status.success(), "{environment}: {}", said(&output));
    let shown = document(&output);
    let measured: Vec<&str> = environments(&shown).into_iter().filter(|name| *name == "host").collect();
    assert_eq!(measured.len(), 2, "{environment}: the others go on");
    one_line(&output.stderr)
}

/// The text after what a command printed.
const NO_AGENT: &str = "where an agent of tollgate answers; it must pass standard input and output on unchanged and print nothing itself";

#[test]
fn a_prefix_that_prints_a_banner_is_refused_with_the_banner() {
    for (banner, printed) in
        [("echo Welcome", "`Welcome`"), ("head -c 500000 /dev/zero", "bytes that are not text")]
    {
        let printed = format!("the command printed {printed} {NO_AGENT}");
        assert_eq!(beside(&after(banner)), format!("{}: {printed}", after(banner)));
    }
    // If an agent's output has begun, the program waits for the rest.
    let begun = after("printf \"\\211tol\"");
    let said = beside(&begun);
    assert!(said.starts_with(&format!("{begun}: no agent answered within 30 s")), "{said}");
}

#[test]
fn an_environment_that_does_not_work_is_named_in_one_line_and_the_others_go_on() {
    for (environment, why) in [
        ("exec:/nonexistent/prefix", "/nonexistent/prefix: there is no such program"),
        (
            "exec:false",
            "the command ended before an agent answered, without a word; it must run the program that follows it",
        ),
        (
            "exec:sh -c 'echo no such image >&2; exit 125'",
            "the command ended before an agent answered: no such image",
        ),
        // A message of 29 bytes, and one of 4 GiB.
        (
            r#"exec:sh -c 'printf "\211tollg8\n\035\0\0\0{\"protocol\":99,\"version\":\"9\"}"; sleep 20'"#,
            "its agent of version 9 speaks protocol 99, this tollgate speaks 2",
        ),
        (
            r#"exec:sh -c 'printf "\211tollg8\n\377\377\377\377{\"protocol\":1"; sleep 20'"#,
            "its agent announced a message of 4294967295 bytes; the limit is 65536",
        ),
    ] {
        assert_eq!(beside(environment), format!("{environment}: {why}"));
    }
    for environment in ["exec:cat /dev/urandom", "exec:head -c 100 /dev/urandom", "exec:yes"] {
        let said = beside(environment);
        assert!(said.starts_with(&format!("{environment}: the command printed ")), "{said}");
        assert!(said.ends_with(NO_AGENT), "{said}");
    }
}

#[test]
fn an_environment_that_dies_in_the_middle_costs_itself_only() {
    // Killed a moment after its first measuring process began.
    let script = "exec 3<&0; \"$@\" <&3 & agent=$!; until grep -q . /proc/$agent/task/$agent/children; do sleep 0.01; done; \
        sleep 0.2; kill -KILL $agent; wait";
    let said = beside_for("12", &format!("exec:sh -c '{script}' sh"));
    assert_eq!(said, format!("exec:sh -c '{script}' sh: its agent ended"));
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_prefix_that_never_answers_is_given_up() {
    let said = beside("exec:sh -c 'sleep 600'");
    assert_eq!(said, "exec:sh -c 'sleep 600': no agent answered within 30 s");
}

#[test]
fn where_nothing_is_measured_the_status_is_2() {
    let home = Home::new();
    let output = session(&home, &["exec:false", "exec:/nonexistent/prefix"], "1", &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(output.stdout.is_empty() && home.files().is_empty(), "{:?}", home.files());
    assert_eq!(
        one_line(&output.stderr),
        "nothing was measured: exec:false: the command ended before an agent answered, without a word; it must run the \
         program that follows it; exec:/nonexistent/prefix: /nonexistent/prefix: there is no such program"
    );
}

#[test]
fn wrong_names_and_options_are_refused_before_anything_starts() {
    let home = Home::new();
    for (words, expected) in [
        (&["--in", "hst"][..], "host"),
        (&["--in", "host:speed=1"], "keys"),
        (&["--in", "host:nice=fast"], "nice"),
        (&["--in", "container:runtime=lxc"], "runtime is one of"),
        (&["--in", "gvisor:platform=x"], "systrap"),
        (&["--in", "ssh:"], "ssh"),
        (&["--in", "exec:"], "exec"),
        (&["--in", "host", "--in", ""], "--in"),
        (&["--fail-on", "slower"], "needs several environments"),
        (&["--in", "host", "--threshold", "2%"], "needs several environments"),
        (&["--in", "host", "--in", "host", "--on", "ram"], "--on"),
        (&["--in", "host", "--in", "host", "--dir", "/tmp"], "--dir"),
        (&["--knob", "/etc/passwd=x"], "--knob"),
        (&["--knob", "/proc/sys/no/such=1"], "--knob"),
        (&["--knob", "/proc/sys/vm/stat_interval"], "--knob"),
        (&["--switch", "true"], "2 values required"),
        (&["--switch", "true", " "], "ON, OFF and NAME are each one line of text, not ' '"),
        (&["--switch", "true", "true", "a", "--switch", "false", "true", "a"], "two states are called a"),
        (&["--switch", "true", "true", "entry"], "entry selects benchmarks; write it before --switch"),
        (&["--switch", "true", "true", "--knob", "/proc/sys/vm/stat_interval=1"], "cannot be used with"),
        (&["--in", "host", "--in", "host", "--switch", "true", "true"], "at most one"),
        (&["--in", "host", "--in", "host", "--knob", "/proc/sys/vm/stat_interval=1"], "at most one"),
    ] {
        let said = home.refusal(["run", "entry/call"].iter().chain(words).copied());
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    assert!(home.files().is_empty(), "{:?}", home.files());
}

fn pretended(home: &Home, program: &str, complaint: &str, status: i32) -> String {
    let path =
        home.file(&format!("bin/{program}"), format!("#!/bin/sh\necho '{complaint}' >&2\nexit {status}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").expect("a path"))
}

#[test]
fn a_runtime_that_refuses_is_named_with_its_reason() {
    for (runtime, complaint, words) in [
        (
            "docker",
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
            "daemon",
        ),
        ("bwrap", "bwrap: No permissions to create new namespace", "No permissions"),
    ] {
        let home = Home::new();
        let path = pretended(&home, runtime, complaint, 1);
        let container = format!("container:runtime={runtime}");
        let mut command =
            home.tollgate(["run", "entry/call", "--processes", "1", "--in", &container, "--quiet"]);
        let output = command.env("PATH", path).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let said = one_line(&output.stderr);
        assert!(said.contains(&container) && said.contains(words), "{said}");
        assert!(!home.runs().exists() || common::entries(&home.runs()).is_empty());
    }
}

#[test]
fn what_is_not_installed_is_named_as_the_survey_does() {
    let home = Home::new();
    let known = home.json(["environments", "--format=json"]);
    let all = known["environments"].as_array().expect("environments").iter();
    let mut missing = all.filter(|one| one["why"].as_str().is_some_and(|why| why.contains("not installed")));
    let Some(missing) = missing.next() else { return println!("skipped: everything is installed") };
    let name = missing["environment"].as_str().expect("a name");
    let output = session(&home, &[name], "1", &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("not installed"), "{}", said(&output));
}

#[test]
fn a_condition_decides_the_status() {
    let home = Home::new();
    let run = |rest: &[&str]| session(&home, &["host", "host"], "8", rest).status.code();
    let status = run(&["--fail-on", "slower", "--threshold", "1000%"]);
    assert!(matches!(status, Some(0 | 3)), "{status:?}");
    // An environment that was lost may be slower.
    let output = session(
        &home,
        &["host", "host", "exec:false"],
        "8",
        &["--fail-on", "slower", "--threshold", "1000%"],
    );
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("exec:false"), "{}", said(&output));
}

#[test]
fn the_machine_says_what_it_can_do() {
    let home = Home::new();
    let known = home.json(["environments", "--format=json"]);
    let all = known["environments"].as_array().expect("environments");
    for kind in ["host", "container:runtime=runc", "container:runtime=docker", "gvisor", "ssh", "exec"] {
        let one =
            all.iter().find(|one| one["environment"].as_str().is_some_and(|name| name.starts_with(kind)));
        let one = one.unwrap_or_else(|| panic!("{kind} is not in {known}"));
        let why = one["why"].as_str().is_some_and(|why| !why.is_empty());
        assert!(one["works"] == true || why, "{one}");
    }
    assert_eq!(all[0]["works"], true, "the host");
    let text =
        home.tollgate(["environments"]).env("COLUMNS", "80").assert().success().get_output().stdout.clone();
    let text = String::from_utf8(text).expect("text");
    assert!(
        text.contains("container:runtime=podman") && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_full_directory_is_reported_with_a_status_of_its_own() {
    if !common::is_root() {
        return println!("skipped: needs root (a full file system)");
    }
    let home = Home::new();
    // Room for the trial before the session but, once it is filled, for nothing later. An agent follows the cleanup process.
    let script = r#"mount -t tmpfs -o size=$1 none "$2" || exit 99
        "$3" run entry/call --quiet --processes 60 --in host --in host --out "$2/out" & program=$!
        over() { ! grep -q '^State:.[^Z]' /proc/$program/status 2> /dev/null; }
        until over || [ "$(wc -w < /proc/$program/task/$program/children)" -ge 2 ]; do sleep 0.02; done
        dd if=/dev/zero of="$2/filler" bs=1k 2> /dev/null; wait $program; status=$?; ls -A "$2/out"; exit $status"#;
    for (size, status) in [("16k", 2), ("600k", 4)] {
        let full = home.path().join(size);
        fs::create_dir(&full).expect("made");
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh", size]).args([&full, &common::program()]);
        let output = command.output().expect("unshare(1)");
        if output.status.code() == Some(99) {
            return println!("skipped: nothing can be mounted");
        }
        let said = said(&output);
        assert_eq!(output.status.code(), Some(status), "{size}: {said}");
        assert!(said.contains("No space left on device"), "{size}: {said}");
        let listed = String::from_utf8_lossy(&output.stdout);
        assert!(!listed.contains(".json") && !listed.contains(".tmp"), "{size}: {listed}");
    }
}
