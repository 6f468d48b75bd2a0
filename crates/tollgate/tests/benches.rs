//! `versus --bench`: the builds' harnesses are scripts that answer as criterion, divan, Go's testing and Google Benchmark do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use crate::common;
use common::{Home, wait_for};
use serde_json::Value;

/// The beginning of all scripts: `ns NAME` prints the time of a bench in every execution.
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

fn build(home: &Home, name: &str, script: &str, b: u32) -> String {
    let path = home.file(name, format!("{COMMON}B={b}\n{script}"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

fn versus<'a>(arguments: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    ["versus", "--bench", "--quiet"].into_iter().chain(arguments.iter().copied())
}

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
    assert_eq!(
        home.refusal(versus(&[&old, &new])),
        format!(
            "{old} has no benches of criterion, divan, Go (`go test -c`) or Google Benchmark; name its harness with --harness, or describe another one with --list and --one"
        )
    );
    let described = ["--list", "{binary} list", "--one", "{binary} one {bench}", "--read", "took {ns} ns"];
    let arguments = [&[old.as_str(), &new, "--runs", "24", "--format", "json"], &described[..]].concat();
    assert_eq!(
        verdicts(&home.json(versus(&arguments))),
        named(&[("custom/a", "same"), ("custom/b", "faster")])
    );
    let wrong = [&[old.as_str(), &new, "--list", "x", "--one", "y"][..]].concat();
    assert_eq!(home.refusal(versus(&wrong)), "--list x: it lacks {binary}");
}

#[test]
fn patterns_and_builds_are_told_apart_and_wrong_ones_said() {
    let home = Home::new();
    let (old, new) = (build(&home, "old", GBENCH, 1000), build(&home, "new", GBENCH, 1000));
    let third = build(&home, "third", GBENCH, 1030);
    let all = home.json(versus(&[&old, &new, &third, "gbench/BM_b", "--runs", "24", "--format", "json"]));
    assert_eq!(verdicts(&all), named(&[("gbench/BM_b", "same"), ("gbench/BM_b", "slower")]));
    let go = build(&home, "go", GO, 1000);
    let asked: [&[&str]; 4] =
        [&[&old, &new, "sort"], &[&old, &go], &[&old], &[&old, &new, "--prepare", "true"]];
    assert_eq!(
        asked.map(|arguments| home.refusal(versus(arguments))),
        [
            "no bench matches sort; there are BM_a and BM_b",
            &format!("{old} has benches of gbench, {go} of go; builds of one harness can be compared"),
            "--bench compares builds, but only one is named; name the old and the new one",
            "the argument '--bench' cannot be used with '--prepare <CMD>'",
        ]
    );
    let mut asked = home.tollgate(versus(&[&old, &new, "--harness", "criterion"]));
    assert_eq!(
        String::from_utf8(asked.output().expect("it runs").stderr).expect("text"),
        "unknown: --bench --list --format terse\n\
         tollgate: old, asked for its benches with --bench --list --format terse, ended with exit status 2\n"
    );
    assert_eq!(home.refusal(versus(&[".", "."])), ". cannot be read: Is a directory");
    let text = home.file("text", "CRITERION_HOME");
    let why = home.refusal(versus(&[&text, &text]));
    // A copy of the path stands between the two backticks.
    let [before, _, after] = why.split('`').collect::<Vec<_>>()[..] else { panic!("{why}") };
    let asked =
        format!("{text}, asked for its benches with --bench --list --format terse, was not started: ");
    let needs = " may not be executed: the file needs execute permission (chmod +x), and its file system must allow it";
    assert_eq!([before, after], [&asked, needs]);
}

#[test]
fn what_fails_or_is_in_one_build_only_is_said() {
    let home = Home::new();
    let old = build(&home, "old", &GBENCH.replace("BM_a\\n", "BM_a\\nBM_gone\\n"), 1000);
    let new = build(&home, "new", &GBENCH.replace("name=b;;", "echo cannot open x >&2; exit 9;;"), 1000);
    let text = home.output(versus(&[&old, &new, "--runs", "8"]));
    let left_out: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("Left out: ")).collect();
    assert_eq!(
        left_out,
        ["gbench/BM_gone: is in old only.", "gbench/BM_b: ended with exit status 9: cannot open x (in new)."]
    );
    let both = home.refusal(versus(&[&new, &new, "BM_b", "--runs", "8"]));
    assert_eq!(
        both,
        format!("nothing was timed: gbench/BM_b ended with exit status 9: cannot open x (in {new})")
    );
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
    assert_eq!(common::one_line(&output.stderr), "gbench/BM_b is slower");
    let shown = ["show", "mine", "--all"];
    let texts = [&shown[..2], &shown].map(|verb| home.output(verb.iter().copied()));
    // The session and its machine stand above the first empty line.
    let texts = texts.each_ref().map(|text| text.split_once("\n\n").expect("a head").1);
    insta::assert_snapshot!("show", texts.join("\n"));
    let written = home.output(["export", "mine", "--format", "csv"]);
    let exported: Vec<&str> =
        written.lines().filter_map(|line| line.split_once(",gbench,")?.1.split(',').next()).collect();
    assert_eq!(exported, ["gbench/BM_a", "gbench/BM_b", "gbench/BM_a", "gbench/BM_b"]);
    let reported = home.output(["report", "mine", "--format", "md"]);
    let reported: Vec<&str> = reported.lines().filter(|line| line.starts_with("| gbench/")).collect();
    assert_eq!(
        reported,
        [
            "| gbench/BM_b | 1.00 µs | 1.03 µs | 1.030 | 1.030–1.030 | +30.0 ns | **slower** | – |",
            "| gbench/BM_a | 1.00 µs | 1.00 µs | 1.000 | 1.000–1.000 | +0.0 ns | same | – |",
        ]
    );
    let kinds = home.json(["runs", "--format", "json"]);
    assert_eq!([&kinds["runs"][0]["kind"], &kinds["runs"][1]["kind"]], ["versus"; 2]);
    let passing = [&arguments[..4], &["--fail-on", "slower", "--threshold", "5%"]].concat();
    home.output(versus(&passing));
    let out = home.path().join("kept");
    home.output(versus(&[&arguments[..4], &["--out", out.to_str().expect("text")]].concat()));
    let files: Vec<String> = common::entries(&out).iter().map(|file| file.display().to_string()).collect();
    let compared = home.json(["compare", &files[0], &files[1], "--format", "json"]);
    let both = named(&[("gbench/BM_a", "same"), ("gbench/BM_b", "slower")]);
    assert_eq!(verdicts(&serde_json::json!({"comparison": compared})), both);
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
    let column = |name: &str| {
        let at = lines[0].split(',').position(|head| head == name).expect("its column");
        lines[1..].iter().filter_map(|line| line.split(',').nth(at)).collect::<Vec<_>>()
    };
    assert_eq!(column("benchmark"), ["gbench/BM_a", "gbench/BM_b"]);
    assert_eq!(column("verdict"), ["same", "slower"]);
    assert_eq!(home.output(["show", "mine", "--format", "csv"]), csv);
    let compared = home.output(["compare", "mine", "--format", "csv"]);
    assert_eq!(compared.lines().next(), csv.lines().next(), "{compared}");
    // The machine stands above the first section.
    let markdown = [shown("md", &[]), shown("md", &["--threshold", "5%"])];
    let sections = markdown.each_ref().map(|text| text.split_once("\n## ").expect("a section").1);
    insta::assert_snapshot!("markdown", sections.join("\n"));
    let picture = shown("svg", &[]);
    assert!(picture.starts_with("<svg"), "{picture}");
    let names =
        picture.lines().filter_map(|line| line.strip_prefix("<text x=\"10\" ")?.split(['>', '<']).nth(1));
    assert_eq!(names.collect::<Vec<_>>(), ["gbench/BM_b", "gbench/BM_a"]);
    assert_eq!(
        home.refusal(["show", "mine", "gbench/BM_b", "--format", "md"]),
        "--format md has all rows; omit the patterns, or use --format csv"
    );
}

#[test]
fn what_a_changed_bench_asks_of_the_kernel_is_explained() {
    let home = Home::new();
    let loops = "n=${*##*-test.benchtime=}; n=${n%%x*}\n\
        while [ $n -gt 0 ]; do n=$((n-1)); [ $name = b ] && : < /dev/null; done\nfor time";
    let opens = GO.replace("for time", loops);
    let (old, new) = (build(&home, "old", GO, 100_000), build(&home, "new", &opens, 104_000));
    let keeps = "`tollgate versus --bench OLD NEW --label NAME` keeps one";
    let missing = format!("no kept session has a figure of the bench go/Benchmarkb; {keeps}");
    assert_eq!(home.refusal(["explain", "go/Benchmarkb"]), missing);
    home.output(versus(&[&old, &new, "--runs", "24", "--label", "mine", "-n", "before", "-n", "after"]));
    let session =
        home.json(["runs", "--json"])["runs"][0]["session"]["id"].as_str().expect("an id").to_owned();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = home.output(["explain", "go/Benchmarkb"]);
    let lines: Vec<String> = text.lines().map(words).collect();
    assert_eq!(lines[0], "go/Benchmarkb");
    assert_eq!(lines[1], "Compared after: 1.040 × (1.040–1.040), +4.00 µs, slower");
    assert_eq!(lines[2], format!("session {session}"));
    assert_eq!(lines[3], "an iteration before after");
    // All other calls of a shell that opens a file are its own.
    assert!(lines.iter().any(|line| line == "openat 0 1"), "{text}");
    let text = lines.join(" ");
    let (calls, traced) =
        text.split_once(" Different: ").and_then(|(_, all)| all.split_once(". ")).expect("two sentences");
    assert!(calls.split([',', ' ']).any(|call| call == "openat"), "{text}");
    let last = "Traced now, with the present files: 64 iterations less 32, the median of three.";
    assert_eq!(traced, last);
    let equal = home.output(["explain", "go/BenchmarkSum/a", "mine"]);
    insta::assert_snapshot!("explained-equal", equal.replace(&session, "SESSION"));
    let other = home.refusal(["explain", "go/Benchmarkx", "mine"]);
    assert_eq!(other, format!("mine has no figure of the bench go/Benchmarkx; {keeps}"));
    fs::remove_file(&new).expect("it was there");
    let gone = home.refusal(["explain", "go/Benchmarkb"]);
    let [before, _, after] = gone.split('`').collect::<Vec<_>>()[..] else { panic!("{gone}") };
    assert_eq!([before, after], ["Benchmarkb was not started: there is no file ", " (in after)"]);
}

#[test]
fn a_harness_that_chooses_its_iterations_is_not_explained() {
    let home = Home::new();
    let (old, new) = (build(&home, "old", CRITERION, 1000), build(&home, "new", CRITERION, 1030));
    home.output(versus(&[&old, &new, "--runs", "16", "--label", "mine"]));
    assert_eq!(
        home.refusal(["explain", "criterion/b"]),
        "b belongs to criterion, which takes no number of iterations (in old)"
    );
}

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
    // An iteration takes long by its own figures, so a few are enough.
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
    assert_eq!(common::one_line(&output.stderr), "go/Benchmarkb{of=total} is more");
    let text = home.output(["show", "mine"]);
    let headings: Vec<&str> = text.lines().filter(|line| line.contains(" compared with ")).collect();
    assert_eq!(
        headings,
        ["same compared with old: 0 more, 0 fewer", "new compared with old: 1 more, 0 fewer"]
    );
    assert!(
        text.lines().next().is_some_and(|head| head.split("  ").any(|part| part == "1 bench of go")),
        "{text}"
    );
    assert!(!text.contains("linker"), "{text}");
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
    // One of two benches opens a file in each iteration, in only one build.
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
    let refused = |asked: &[&str]| home.refusal(versus(&[&[criterion.as_str(), &criterion], asked].concat()));
    let exact = ["--in", "vm:exact"];
    let whys = [
        refused(&exact),
        refused(&[&exact[..], &["--list", "{binary} list", "--one", "{binary} {bench}"]].concat()),
        refused(&[&exact[..], &["--time", "3s"]].concat()),
        refused(&[&exact[..], &["--control", &criterion]].concat()),
        refused(&[exact, exact].concat()),
        refused(&["--in", "host"]),
    ];
    insta::assert_snapshot!("not-counted", whys.join("\n"));
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
    assert_eq!(common::one_line(&output.stderr), "interrupted");
    let text = String::from_utf8_lossy(&output.stdout);
    let head: Vec<&str> = text.lines().next().expect("a head").split("  ").skip(2).collect();
    assert_eq!(head, ["2 benches of gbench", "2 builds"]);
    std::thread::sleep(Duration::from_millis(100));
    let executions = || fs::read_to_string(&log).expect("the log").len();
    let before = executions();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(before, executions(), "nothing goes on");
}

/// Another user's file of that name contains this line of a script.
fn planted(directory: &std::path::Path, name: &str) {
    let path = directory.join(name);
    fs::write(&path, "#!/bin/sh\n# test.benchtime\n> \"$(dirname \"$0\")/planted\"\n> planted\n")
        .expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
}

#[test]
fn a_kept_build_is_executed_where_it_was_and_nowhere_else() {
    let home = Home::new();
    for name in ["old", "new"] {
        build(&home, name, GO, 1000);
    }
    home.output(versus(&["./old", "./new", "--runs", "16", "--label", "mine"]));
    let elsewhere = tempfile::tempdir().expect("a directory");
    ["old", "new"].iter().for_each(|name| planted(elsewhere.path(), name));
    let explain = || {
        let mut explain = home.tollgate(["explain", "go/Benchmarkb", "mine"]);
        explain.current_dir(elsewhere.path()).output().expect("started")
    };
    let output = explain();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A run that an earlier version kept.
    for file in home.files().into_iter().filter(|file| file.starts_with("tollgate/runs/")) {
        let path = home.path().join(file);
        let kept = fs::read_to_string(&path).expect("text");
        let home = home.path().to_str().expect("text");
        fs::write(&path, kept.replace(&format!("{home}/./"), "./").replace(&format!("{home}/"), "./"))
            .expect("written");
    }
    let output = explain();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("by a relative path and may have been made elsewhere"), "{said}");
    let names = fs::read_dir(elsewhere.path()).expect("it is there").count();
    assert_eq!(names, 2, "something was executed there");
}

#[test]
fn a_build_without_end_is_ended_and_too_many_benches_are_refused() {
    let home = Home::new();
    let described = ["--list", "{binary} list", "--one", "{binary} one {bench}", "--read", "took {ns} ns"];
    let refused = |script: &str, rest: &[&str]| {
        let script = format!("case $1 in {script}; esac\n");
        let builds = ["old", "new"].map(|name| build(&home, name, &script, 1000));
        let all = [&[builds[0].as_str(), &builds[1]][..], rest, &described].concat();
        let output = home.tollgate(versus(&all)).output().expect("started");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).lines().next_back().unwrap_or_default().to_owned()
    };
    assert_eq!(
        refused("*) yes", &[]),
        "tollgate: old, asked for its benches with list, was ended: it wrote more than 16 MiB to standard output"
    );
    assert_eq!(
        refused("*) seq 70000", &[]),
        "tollgate: old lists 70000 benches; asked with list, it may list at most 65536"
    );
    assert_eq!(
        refused("list) seq 5000", &[]),
        "tollgate: 5000 benches are too many for one comparison; select at most 4096 with a pattern"
    );
    let endless = refused("list) echo a;; *) yes", &["--runs", "6"]);
    assert!(endless.contains("was ended: it wrote more than 16 MiB to standard output"), "{endless}");
}

#[test]
fn names_of_benches_are_executed_by_no_shell_and_command_no_terminal() {
    let home = Home::new();
    let script = "case $1 in\n  list) printf 'a\\n$(> planted)\\nb;c\\n\\342\\200\\256d\\n';;\n  *) echo \"took 1000 ns\";;\nesac\n";
    let (old, new) = (build(&home, "old", script, 1000), build(&home, "new", script, 1000));
    let described = ["--list", "{binary} list", "--read", "took {ns} ns", "--runs", "16", "--format", "json"];
    let compared = |one: &str| {
        let all = [&[old.as_str(), &new, "--one", one][..], &described].concat();
        let output = home.tollgate(versus(&all)).output().expect("started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains(['\u{1b}', '\u{202e}']) && !home.path().join("planted").exists(), "{said}");
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {said}"));
        verdicts(&document).len()
    };
    assert_eq!(compared("sh -c '{binary} {bench}'"), 1);
    assert_eq!(compared("sh -c '\"$0\" \"$1\"' {binary} {bench}"), 3);
}
