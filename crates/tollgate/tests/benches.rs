//! `versus --bench`: builds whose harnesses are scripts here, which answer as criterion, divan, Go's testing and Google Benchmark do.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use common::{Home, wait_for};
use serde_json::Value;

/// What all scripts begin with: `ns NAME` is what a bench takes, in every execution.
const COMMON: &str = r#"#!/bin/sh
ns() { case $1 in *b) of=$B;; *) of=1000;; esac; echo "$of.5"; }
"#;

const CRITERION: &str = r#"# CRITERION_HOME
case "$*" in
  "--bench --list --format terse") printf 'group/a: benchmark\nb: benchmark\n'; exit;;
  "--bench --warm-up-time "*" --exact --noplot -- "*) ;;
  *) echo "unknown: $*" >&2; exit 2;;
esac
for name; do :; done
[ -e "$CRITERION_HOME/$name" ] && exit 3
mkdir -p "$CRITERION_HOME/$name/new"
echo "{\"sampling_mode\":\"Linear\",\"iters\":[10.0,20.0],\"times\":[$(ns "$name")0,1e9]}" > "$CRITERION_HOME/$name/new/sample.json"
"#;

const DIVAN: &str = r#"# DIVAN_SAMPLE_COUNT
case "$*" in
  "--test --color never") printf 'ops\n├─ a\n╰─ inner\n   ╰─ b\n'; exit;;
  "--bench --color never --sample-size "*" --exact -- ops::"*) ;;
  *) echo "unknown: $*" >&2; exit 2;;
esac
for name; do :; done
echo "Timer precision: 20 ns" >&2
echo "ops           fastest       │ slowest       │ median        │ mean          │ samples │ iters"
echo "╰─ ${name##*::}  1 ns          │ 1 s           │ $(ns "$name") ns       │ 1 s           │ 20      │ 1280"
"#;

const GO: &str = r#"# test.benchtime
cpu=${*##*-test.cpu=}; cpu=${cpu%% *}; suffix=-$cpu; [ "$cpu" = 1 ] && suffix=
case "$*" in
  "-test.run=^$ -test.bench=. -test.benchtime=1x -test.cpu="*)
    printf 'goos: linux\nBenchmarkSum/a%s \t 1\t 12.0 ns/op\nBenchmarkb%s\t 1\t 12 ns/op\nPASS\n' "$suffix" "$suffix"; exit;;
  "-test.run=^$ -test.bench=^BenchmarkSum$/^a$ "*) name=a;;
  "-test.run=^$ -test.bench=^Benchmarkb$ "*) name=b;;
  *) echo "unknown: $*" >&2; exit 2;;
esac
for time in 3 2 9; do printf 'Benchmark%s%s \t 1000\t %s ns/op\t 8 B/op\n' $name "$suffix" "$(ns $name)$time"; done
"#;

const GBENCH: &str = r#"# benchmark_list_tests
case "$*" in
  --benchmark_list_tests) printf 'BM_a\nBM_b\n'; exit;;
  "--benchmark_filter=^BM_a$ --benchmark_min_time=0.0002 "*) name=a;;
  "--benchmark_filter=^BM_b$ --benchmark_min_time=0.0002 "*) name=b;;
  *) echo "unknown: $*" >&2; exit 2;;
esac
cat <<END
{
  "context": {},
  "benchmarks": [
    { "run_type": "iteration", "real_time": $(ns $name), "time_unit": "ns" },
    { "run_type": "iteration", "real_time": 9.0e+03, "time_unit": "us" },
    { "run_type": "aggregate", "real_time": 1.0, "time_unit": "ns" }
  ]
}
END
"#;

const CUSTOM: &str = r#"
case $1 in
  list) printf 'a\nb\n';;
  *) echo "took $(ns "$2") ns";;
esac
"#;

/// A build of these scripts, whose bench `b` takes so many ns.
fn build(home: &Home, name: &str, script: &str, b: u32) -> String {
    let path = home.file(name, format!("{COMMON}B={b}\n{script}"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

fn versus<'a>(arguments: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    ["versus", "--bench", "--quiet"].into_iter().chain(arguments.iter().copied())
}

/// The verdicts by the names of the benches.
fn verdicts(document: &Value) -> Vec<(String, String)> {
    let rows = document["comparison"]["rows"].as_array().expect("rows");
    let text = |value: &'_ Value| value.as_str().map(str::to_owned);
    rows.iter().filter_map(|row| Some((text(&row["benchmark"])?, text(&row["verdict"])?))).collect()
}

fn named(verdicts: &[(&str, &str)]) -> Vec<(String, String)> {
    verdicts.iter().map(|(name, verdict)| ((*name).to_owned(), (*verdict).to_owned())).collect()
}

#[test]
fn each_harness_is_recognised_asked_and_read() {
    let home = Home::new();
    for (script, [a, b]) in [
        (CRITERION, ["criterion/group/a", "criterion/b"]),
        (DIVAN, ["divan/ops::a", "divan/ops::inner::b"]),
        (GO, ["go/BenchmarkSum/a", "go/Benchmarkb"]),
        (GBENCH, ["gbench/BM_a", "gbench/BM_b"]),
    ] {
        let (old, new) = (build(&home, "old", script, 1000), build(&home, "new", script, 1030));
        let document = home.json(versus(&[&old, &new, "--runs", "24", "--format", "json"]));
        assert_eq!(verdicts(&document), named(&[(a, "same"), (b, "slower")]));
    }
}

#[test]
fn another_harness_is_described() {
    let home = Home::new();
    let (old, new) = (build(&home, "old", CUSTOM, 1000), build(&home, "new", CUSTOM, 970));
    let refused = home.refusal(versus(&[&old, &new]));
    assert!(refused.contains("old has no benches of criterion, divan, Go"), "{refused}");
    let described = ["--list", "{binary} list", "--one", "{binary} one {bench}", "--read", "took {ns} ns"];
    let arguments = [&[old.as_str(), &new, "--runs", "24", "--format", "json"], &described[..]].concat();
    assert_eq!(
        verdicts(&home.json(versus(&arguments))),
        named(&[("custom/a", "same"), ("custom/b", "faster")])
    );
    let wrong = [&[old.as_str(), &new, "--list", "x", "--one", "y"][..]].concat();
    assert!(home.refusal(versus(&wrong)).contains("--list x: it has no {binary}"));
}

#[test]
fn patterns_and_builds_are_told_apart_and_wrong_ones_said() {
    let home = Home::new();
    let (old, new) = (build(&home, "old", GBENCH, 1000), build(&home, "new", GBENCH, 1000));
    let third = build(&home, "third", GBENCH, 1030);
    let all = home.json(versus(&[&old, &new, &third, "gbench/BM_b", "--runs", "24", "--format", "json"]));
    assert_eq!(verdicts(&all), named(&[("gbench/BM_b", "same"), ("gbench/BM_b", "slower")]));
    let why = home.refusal(versus(&[&old, &new, "sort"]));
    assert!(why.contains("no bench matches sort; there are BM_a and BM_b"), "{why}");
    let go = build(&home, "go", GO, 1000);
    let why = home.refusal(versus(&[&old, &go]));
    assert!(
        why.contains("old has benches of gbench") && why.contains("of go; builds of one harness"),
        "{why}"
    );
    let why = home.refusal(versus(&[&old]));
    assert!(why.contains("there is one; name the old and the new"), "{why}");
    let mut asked = home.tollgate(versus(&[&old, &new, "--harness", "criterion"]));
    let why = String::from_utf8(asked.output().expect("it runs").stderr).expect("text");
    assert!(
        why.contains("asked for its benches by --bench --list") && why.contains("exit status 2"),
        "{why}"
    );
    let why = home.refusal(versus(&[&old, &new, "--prepare", "true"]));
    assert!(why.contains("--prepare"), "{why}");
    let text = home.file("text", "CRITERION_HOME");
    let why = home.refusal(versus(&[&text, &text]));
    assert!(why.contains("was not started"), "{why}");
}

#[test]
fn what_fails_or_is_in_one_build_only_is_said() {
    let home = Home::new();
    let old = build(&home, "old", &GBENCH.replace("BM_a\\n", "BM_a\\nBM_gone\\n"), 1000);
    let new = build(&home, "new", &GBENCH.replace("name=b;;", "echo cannot open x >&2; exit 9;;"), 1000);
    let text = home.output(versus(&[&old, &new, "--runs", "8"]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("gbench/BM_gone: is in old only"), "{text}");
    assert!(text.contains("gbench/BM_b: ended with exit status 9: cannot open x (in new)"), "{text}");
    let both = home.refusal(versus(&[&new, &new, "BM_b", "--runs", "8"]));
    assert!(both.contains("nothing was timed: gbench/BM_b ended with exit status 9"), "{both}");
}

#[test]
fn a_condition_fails_and_kept_runs_are_shown_and_compared() {
    let home = Home::new();
    let (old, new) = (build(&home, "old", GBENCH, 1000), build(&home, "new", GBENCH, 1030));
    let arguments = [&old, &new, "--runs", "24", "--label", "mine", "-n", "before", "-n", "after"];
    let mut failing =
        home.tollgate(versus(&[&arguments[..], &["--fail-on", "slower", "--threshold", "2%"]].concat()));
    let output = failing.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("gbench/BM_b is slower"), "{output:?}");
    for verb in [["show", "mine"].as_slice(), &["show", "mine", "--all"]] {
        let text = home.output(verb.iter().copied());
        assert!(text.contains("after compared with before") && text.contains("gbench/BM_b"), "{text}");
    }
    let written = home.output(["export", "mine", "--format", "csv"]);
    assert!(written.contains(",gbench,gbench/BM_b,"), "{written}");
    let reported = home.output(["report", "mine", "--format", "md"]);
    assert!(reported.contains("gbench/BM_b"), "{reported}");
    let kinds = home.json(["runs", "--format", "json"]);
    assert_eq!([&kinds["runs"][0]["kind"], &kinds["runs"][1]["kind"]], ["versus"; 2]);
    let passing = [&arguments[..4], &["--fail-on", "slower", "--threshold", "5%"]].concat();
    home.output(versus(&passing));
    let out = home.path().join("kept");
    home.output(versus(&[&arguments[..4], &["--out", out.to_str().expect("text")]].concat()));
    let files: Vec<String> = common::entries(&out).iter().map(|file| file.display().to_string()).collect();
    let compared = home.output(["compare", &files[0], &files[1], "--all"]);
    assert!(compared.contains("gbench/BM_b") && compared.contains("slower"), "{compared}");
}

#[test]
fn each_format_has_the_verdicts_of_the_screen() {
    let home = Home::new();
    let (old, new) = (build(&home, "old", GBENCH, 1000), build(&home, "new", GBENCH, 1030));
    let shown = |format: &str, more: &[&str]| {
        let arguments = [&[old.as_str(), &new, "--runs", "24", "--format", format], more].concat();
        home.output(versus(&arguments))
    };
    let csv = shown("csv", &["--label", "mine"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(
        lines[0]
            .starts_with("base_run,base_name,other_run,other_name,benchmark,params,unit,base,other,ratio,"),
        "{csv}"
    );
    assert_eq!(lines.len(), 3, "{csv}");
    let verdict = |bench: &str| {
        let line = lines.iter().find(|line| line.contains(bench)).expect("its line");
        line.split(',').find(|field| ["slower", "same"].contains(field)).expect("a verdict")
    };
    assert_eq!(["BM_a", "BM_b"].map(verdict), ["same", "slower"]);
    assert_eq!(home.output(["show", "mine", "--format", "csv"]), csv);
    let compared = home.output(["compare", "mine", "--format", "csv"]);
    assert_eq!(compared.lines().next(), csv.lines().next(), "{compared}");
    let markdown = shown("md", &[]);
    assert!(markdown.contains("| gbench/BM_b |") && markdown.contains("**slower**"), "{markdown}");
    let within = shown("md", &["--threshold", "5%"]);
    assert!(!within.contains("**slower**") && within.contains("No significant difference"), "{within}");
    let picture = shown("svg", &[]);
    assert!(picture.starts_with("<svg") && picture.contains("gbench/BM_b"), "{picture}");
    let refused = home.refusal(["show", "mine", "gbench/BM_b", "--format", "md"]);
    assert!(refused.contains("--format md has all rows"), "{refused}");
}

#[test]
fn what_a_changed_bench_asks_of_the_kernel_is_explained() {
    let home = Home::new();
    // A bench that opens a file in each iteration.
    let loops = "n=${*##*-test.benchtime=}; n=${n%%x*}\n\
        while [ $n -gt 0 ]; do n=$((n-1)); [ $name = b ] && : < /dev/null; done\nfor time";
    let opens = GO.replace("for time", loops);
    let (old, new) = (build(&home, "old", GO, 100_000), build(&home, "new", &opens, 104_000));
    let missing = home.refusal(["explain", "go/Benchmarkb"]);
    assert!(missing.contains("no kept session has a figure of the bench go/Benchmarkb"), "{missing}");
    home.output(versus(&[&old, &new, "--runs", "24", "--label", "mine", "-n", "before", "-n", "after"]));
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(home.output(["explain", "go/Benchmarkb"]));
    assert!(text.contains("Compared after: 1.040 ×") && text.contains(" slower"), "{text}");
    assert!(text.contains("an iteration before after") && text.contains(" openat 0 1 "), "{text}");
    assert!(text.contains("Different: ") && text.contains("what 64 iterations have more than 32"), "{text}");
    let text = words(home.output(["explain", "go/BenchmarkSum/a", "mine"]));
    assert!(text.contains("No iteration makes a system call or a page fault"), "{text}");
    let other = home.refusal(["explain", "go/Benchmarkx", "mine"]);
    assert!(other.contains("mine has no figure of the bench go/Benchmarkx"), "{other}");
    fs::remove_file(&new).expect("it was there");
    let gone = home.refusal(["explain", "go/Benchmarkb"]);
    assert!(gone.contains("(in after)"), "{gone}");
}

#[test]
fn a_harness_that_chooses_its_iterations_is_not_explained() {
    let home = Home::new();
    let (old, new) = (build(&home, "old", CRITERION, 1000), build(&home, "new", CRITERION, 1030));
    home.output(versus(&[&old, &new, "--runs", "16", "--label", "mine"]));
    let why = home.refusal(["explain", "criterion/b"]);
    assert!(why.contains("b is of criterion, which cannot be told how many iterations to make"), "{why}");
}

/// A loop of the iterations that `$n` has, each of so many steps.
fn loops(steps: u32) -> String {
    format!("while [ $n -gt 0 ]; do n=$((n-1)); i={steps}; while [ $i -gt 0 ]; do i=$((i-1)); done; done\n")
}

#[test]
#[ignore = "a guest for minutes: by hand"]
fn benches_are_counted_in_a_guest_and_a_planted_change_is_found() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    // An iteration takes long by its own figures, so that few are enough.
    let go = |steps| {
        let iterations = format!("n=${{*##*-test.benchtime=}}; n=${{n%%x*}}\n{}for time", loops(steps));
        GO.replace("for time", &iterations).replace("$(ns $name)", "300000.")
    };
    let of = |name: &str, steps| build(&home, name, &go(steps), 0);
    let (old, same, new) = (of("old", 33), of("same", 33), of("new", 34));
    let words = [&old, &same, &new, "Benchmarkb", "--in", "vm:exact", "--runs", "5", "--label", "mine"];
    let mut failing = home.tollgate(versus(&[&words[..], &["--fail-on", "more"]].concat()));
    let output = failing.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("go/Benchmarkb{of=total} is more"), "{said}");
    let text = home.output(["show", "mine"]);
    assert!(text.contains("same compared with old: 0 more, 0 fewer"), "{text}");
    assert!(text.contains("new compared with old: 1 more, 0 fewer"), "{text}");
    assert!(text.contains("1 bench of go") && !text.contains("linker"), "{text}");
    let row = &home.json(["show", "mine", "--format", "json"])["comparison"]["rows"][1];
    let ratio = row["ratio"].as_f64().unwrap_or_else(|| panic!("no ratio: {row}"));
    assert!((1.025..1.031).contains(&ratio), "{ratio}");
}

#[test]
#[ignore = "a guest for minutes: by hand"]
fn the_program_s_instructions_are_told_from_the_kernel_s_to_the_last_one() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    // Of two benches one opens a file in each iteration, in one build.
    let custom = |opens: &str| {
        let iterations = format!("n=$3; {}", loops(9)).replace("i=9;", &format!("i=9; {opens};"));
        CUSTOM.replace("*) ", &format!("*) {iterations}")).replace("$(ns \"$2\")", "100000")
    };
    let (old, new) =
        (build(&home, "old", &custom(":"), 0), build(&home, "new", &custom("[ $2 = b ] && : < /"), 0));
    let described =
        ["--list", "{binary} list", "--one", "{binary} one {bench} {iterations}", "--read", "took {ns} ns"];
    let words = [&old, &old, "a", "--in", "vm:exact", "--format", "json"];
    let equal = home.json(versus(&[&words[..], &described].concat()));
    let rows = equal["comparison"]["rows"].as_array().expect("rows");
    assert_eq!(
        (rows.len(), &rows[0]["benchmark"], &rows[0]["params"]),
        (1, &"custom/a".into(), &serde_json::json!({}))
    );
    assert_eq!(rows[0]["base"], rows[0]["other"], "{rows:?}");
    let words = [&old, &new, "b", "--in", "vm:exact", "--format", "json"];
    let opening = home.json(versus(&[&words[..], &described].concat()));
    let rows = opening["comparison"]["rows"].as_array().expect("rows");
    let kernel = rows.iter().find(|row| row["params"]["of"] == "kernel").expect("a row of the kernel");
    assert_eq!(kernel["verdict"], "slower", "{kernel}");
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let home = Home::new();
    let build = |script| build(&home, "build", script, 1000);
    let criterion = build(CRITERION);
    let refused = |more: &[&str]| {
        home.refusal(versus(&[&[criterion.as_str(), &criterion, "--in", "vm:exact"], more].concat()))
    };
    let why = refused(&[]);
    assert!(
        why.contains("criterion chooses how many iterations") && why.contains("--one has {iterations}"),
        "{why}"
    );
    let described = ["--list", "{binary} list", "--one", "{binary} {bench}"];
    assert!(refused(&described).contains("--one has no {iterations}"));
    assert!(refused(&["--time", "3s"]).contains("--time is for times"));
    assert!(refused(&["--control", &criterion]).contains("--control is for times"));
    assert!(refused(&["--in", "vm:exact"]).contains("name one --in"));
    let host = home.refusal(versus(&[&criterion, &criterion, "--in", "host"]));
    assert!(host.contains("--bench times benches on this machine"), "{host}");
}

#[test]
fn ctrl_c_keeps_what_was_timed_and_leaves_nothing() {
    let home = Home::new();
    let place = home.path().join("temporary");
    fs::create_dir(&place).expect("a directory");
    let log = home.file("log", "");
    let script = GBENCH.replace("cat <<", &format!("echo x >> '{log}'; sleep 0.05; cat <<"));
    let build = build(&home, "build", &script, 1000);
    let mut command = std::process::Command::new(common::program());
    command.args(versus(&[&build, &build, "--time", "1h"])).env("TMPDIR", &place);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("some executions", || (fs::read_to_string(&log).ok()?.lines().count() > 30).then_some(()));
    assert_eq!(common::entries(&place).len(), 1);
    // SAFETY: the child was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let status = wait_for("its end", || child.try_wait().expect("its child"));
    assert_eq!(status.signal(), Some(libc::SIGINT), "{status}");
    assert_eq!(common::entries(&place).len(), 0);
    let output = child.wait_with_output().expect("its output");
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 benches of gbench"), "{output:?}");
    std::thread::sleep(Duration::from_millis(100));
    let executions = || fs::read_to_string(&log).expect("the log").len();
    let before = executions();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(before, executions(), "nothing goes on");
}
