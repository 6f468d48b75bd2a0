//! The output of the verbs: text, JSON, and terminals of every width.

use crate::common;
use common::{Home, document};
use serde_json::Value;

const MEASUREMENT: [&str; 33] = [
    "exact",
    "counters",
    "events",
    "traced",
    "p99",
    "max",
    "bytes_per_op",
    "bytes_per_second",
    "counted",
    "benchmark",
    "params",
    "status",
    "unit",
    "median",
    "median_cycles",
    "ci_low",
    "ci_high",
    "min",
    "samples",
    "discarded",
    "detection_limit",
    "multiple_of_syscall",
    "modes",
    "processes",
    "spread",
    "baseline",
    "noisy",
    "why",
    "error",
    "notes",
    "provenance",
    "ops_per_sample",
    "group",
];
const ROW: [&str; 38] = [
    "cpu_base",
    "cpu_other",
    "cpu_ratio",
    "cpu_ratio_high",
    "cpu_ratio_low",
    "cpu_verdict",
    "cpu_why",
    "base_run",
    "base_name",
    "other_run",
    "other_name",
    "benchmark",
    "params",
    "unit",
    "base",
    "other",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "threshold",
    "why",
    "causes",
    "more_time",
    "adds",
    "adds_low",
    "adds_high",
    "correlation",
    "pairs",
    "turns",
    "total_ratio",
    "total_low",
    "total_high",
    "layouts",
    "layouts_apart_base",
    "layouts_apart_other",
    "by_one_layout_low",
    "by_one_layout_high",
];

fn kept() -> Home {
    let home = Home::new();
    home.keep(&document("20261121-015427-0001", Some("native"), 1.0));
    home.keep(&document("20261121-015428-0002", Some("vm"), 1.5));
    home
}

fn steady() -> Home {
    let home = kept();
    home.keep_others_like(&document("20261121-015427-0001", Some("native"), 1.0));
    home
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn sorted(names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn measurement<'a>(document: &'a Value, benchmark: &str) -> &'a Value {
    let all = document["measurements"].as_array().expect("measurements");
    all.iter()
        .find(|measurement| measurement["benchmark"] == benchmark)
        .expect("a measurement of the benchmark")
}

#[test]
fn a_run_measures_keeps_and_can_be_shown_again() {
    let home = Home::new();
    let patterns = ["entry/call", "entry/user-dispatch"];
    let ran = home.json(["run", patterns[0], patterns[1], "--processes=8", "--label=mine", "--format=json"]);
    let names: Vec<&Value> =
        ran["measurements"].as_array().expect("rows").iter().map(|row| &row["benchmark"]).collect();
    assert_eq!(names, ["entry/call", "entry/syscall", "entry/user-dispatch"]);
    for measurement in
        ran["measurements"].as_array().expect("rows").iter().chain(ran["bench"].as_array().expect("own"))
    {
        assert_eq!(keys(measurement), sorted(&MEASUREMENT));
    }
    let syscall = measurement(&ran, "entry/syscall");
    let figure = |name: &str| syscall[name].as_f64().unwrap_or_else(|| panic!("{name} of {syscall}"));
    assert!(figure("ci_low") <= figure("median") && figure("median") <= figure("ci_high"));
    assert!(figure("min") > 0.0 && figure("min") <= figure("median"));
    assert!(figure("samples") >= 8.0 && figure("ops_per_sample") >= 1.0);
    assert_eq!(syscall["multiple_of_syscall"], 1.0);
    assert_eq!(syscall["unit"], "ns");
    assert_eq!(ran["label"], "mine");
    assert_eq!(home.files(), [format!("tollgate/runs/{}.json", ran["id"].as_str().expect("an id"))]);
    assert_eq!(ran["kept"], home.path().join(&home.files()[0]).display().to_string());

    let mut shown = home.json(["show", "mine", "--format=json"]);
    shown["kept"] = ran["kept"].clone();
    assert_eq!(shown, ran);
    let verdicts = home.json(["compare", "mine", "last", "--format=json"]);
    for row in verdicts["rows"].as_array().expect("rows") {
        assert!(["same", "inconclusive"].contains(&row["verdict"].as_str().expect("a verdict")), "{row}");
    }
}

#[test]
fn out_writes_the_document_and_keeps_nothing_else() {
    let home = Home::new();
    let file = home.file("mine.json", "an older one");
    let arguments = ["run", "entry/call", "--processes=1", "--out", &file, "--quiet"];
    let output = home.tollgate(arguments).assert().success();
    assert!(!String::from_utf8_lossy(&output.get_output().stdout).is_empty());
    assert_eq!(home.files(), ["mine.json"]);
    let document: Value = serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("JSON");
    let names =
        ["schema", "tool", "id", "label", "environment", "started", "finished", "facts", "measurements"];
    assert_eq!(keys(&document), sorted(&names));
    assert_eq!(home.json(["show", &file, "--format=json"])["id"], document["id"]);
}

#[test]
fn every_measurement_has_the_same_fields() {
    let shown = kept().json(["show", "native", "--format=json"]);
    for measurement in shown["measurements"].as_array().expect("rows") {
        assert_eq!(keys(measurement), sorted(&MEASUREMENT));
    }
    let (skipped, failed) = (measurement(&shown, "entry/int80"), measurement(&shown, "entry/seccomp"));
    assert_eq!((&skipped["status"], &skipped["why"]), (&"skipped".into(), &"no IA-32 emulation".into()));
    assert_eq!((&failed["status"], &failed["error"]), (&"failed".into(), &"it hung".into()));
    assert_eq!(skipped["median"], Value::Null);
    let syscall = measurement(&shown, "entry/syscall");
    assert_eq!((syscall["samples"].as_u64(), syscall["discarded"].as_u64()), (Some(480), Some(8)));
    let (median, cycles) = (syscall["median"].as_f64().expect("a figure"), &syscall["median_cycles"]);
    assert!((median / 80.2 - 1.0).abs() < 0.01, "{median}");
    assert!(
        (cycles.as_f64().expect("a figure") / median - 2.0).abs() < 1e-9,
        "2 GHz: two cycles a nanosecond"
    );
    let baseline = &measurement(&shown, "entry/user-dispatch")["baseline"];
    assert_eq!(baseline["benchmark"], "entry/syscall");
    assert_eq!(baseline["verdict"], "slower");
    assert!((baseline["ratio"].as_f64().expect("a figure") - 1.25).abs() < 0.01, "{baseline}");
}

#[test]

fn no_line_is_wider_than_the_terminal() {
    let home = kept();
    let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/show.in");
    let [storage, rates] = ["storage", "rates"].map(|name| format!("{documents}/{name}.json"));
    for width in [40_usize, 54, 60, 80, 120] {
        for arguments in [
            vec!["show", &storage, "--all"],
            vec!["show", &rates, "--all", &format!("--width={width}")],
            vec!["show", "native"],
            vec!["show", "native", "--all"],
            vec!["compare", "native", "vm"],
            vec!["list"],
            vec!["runs"],
        ] {
            let mut command = home.tollgate(arguments.clone());
            let output =
                command.env("COLUMNS", width.to_string()).assert().success().get_output().stdout.clone();
            for line in String::from_utf8(output).expect("text").lines() {
                assert!(line.chars().count() <= width, "{arguments:?} at {width}: {line}");
            }
        }
    }
}

#[test]
fn a_comparison_has_ratios_verdicts_and_what_differs() {
    let home = steady();
    let comparison = home.json(["compare", "native", "vm", "--format=json"]);
    let rows = comparison["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(keys(row), sorted(&ROW));
        let verdict = if row["benchmark"] == "entry/call" { "same" } else { "slower" };
        assert_eq!(row["verdict"], verdict, "{row}");
    }
    let ratio = rows[1]["ratio"].as_f64().expect("a figure");
    assert!((ratio - 1.5).abs() < 0.01, "{ratio}");
    // Its screen is in the snapshot of the tables.
    let names: Vec<&Value> =
        comparison["facts"].as_array().expect("facts").iter().map(|fact| &fact["name"]).collect();
    assert_eq!(names, ["kernel.release"]);
}

#[test]
fn several_others_are_compared_each() {
    let home = steady();
    let comparison = home.json(["compare", "native", "native", "vm", "--format=json"]);
    let rows = comparison["rows"].as_array().expect("rows");
    let of_run = |id: &str| rows.iter().filter(|row| row["other_run"] == id).count();
    assert_eq!((of_run("20261121-015427-0001"), of_run("20261121-015428-0002")), (3, 3));
    assert_eq!(rows.len(), 6);
    assert_eq!(comparison["others"][1]["label"], "vm");
    assert!(comparison.get("comparisons").is_none());
}

#[test]
fn a_condition_decides_the_exit_status() {
    let home_of = |base: &str, label: &str, scale: f64| {
        let home = kept();
        home.keep_others_like(&document(base, Some(label), scale));
        home
    };
    let homes = [home_of("20261121-015427-0001", "native", 1.0), home_of("20261121-015428-0002", "vm", 1.5)];
    let status = |base: &str, other: &str, condition: &str| {
        let home = &homes[usize::from(base == "vm")];
        let arguments = ["compare", base, other, "--fail-on", condition];
        home.tollgate(arguments).assert().get_output().status.code()
    };
    assert_eq!(status("native", "vm", "slower"), Some(1));
    assert_eq!(status("native", "vm", "different"), Some(1));
    assert_eq!(status("native", "vm", "faster"), Some(0));
    assert_eq!(status("vm", "native", "faster"), Some(1));
    assert_eq!(status("vm", "native", "slower"), Some(0));
    assert_eq!(status("native", "native", "different"), Some(0));
}

#[test]
fn a_run_is_found_by_file_label_id_beginning_and_last() {
    let home = kept();
    let id =
        |meant: &str| home.json(["show", meant, "--format=json"])["id"].as_str().expect("an id").to_owned();
    let file = home.runs().join("20261121-015427-0001.json").display().to_string();
    for meant in ["native", "20261121-015427-0001", "20261121-015427", &file] {
        assert_eq!(id(meant), "20261121-015427-0001", "{meant}");
    }
    assert_eq!(id("last"), "20261121-015428-0002");
    // The newest run with a label counts; a file that was being written when the program was killed is not a run.
    home.keep(&document("20261121-015429-0003", Some("native"), 1.0));
    home.file("tollgate/runs/.20261121-015430-0004.json.00c0ffee.tmp", "{");
    assert_eq!(id("native"), "20261121-015429-0003");
    assert_eq!(id("last"), "20261121-015429-0003");
    // A label may look like a file's name.
    home.keep(&document("20261121-015430-0005", Some("x.json"), 1.0));
    assert_eq!(id("x.json"), "20261121-015430-0005");
}

#[test]
fn the_list_is_made_from_the_registry() {
    let home = kept();
    let listed = home.json(["list", "--format=json"]);
    let listed = listed["benchmarks"].as_array().expect("benchmarks");
    let registered: Vec<_> = tollgate_suites::SUITES.iter().flat_map(|suite| suite.benchmarks).collect();
    assert_eq!(listed.len(), registered.len());
    let table: String = home.output(["list"]).split_whitespace().collect();
    let machine = tollgate_engine::Topology::here();
    for (listed, benchmark) in listed.iter().zip(registered) {
        let fields = [
            "absent",
            "baseline",
            "counters",
            "counts",
            "crosses",
            "instruction",
            "interface",
            "name",
            "operation",
            "over",
            "params",
            "share",
            "suite",
            "thorough_params",
            "unit",
        ];
        assert_eq!(keys(listed), fields);
        let known =
            ["instruction", "interface", "absent"].iter().filter(|name| !listed[**name].is_null()).count();
        assert_eq!(known, 1, "{listed}");
        assert_eq!(listed["name"], benchmark.name);
        assert_eq!(listed["operation"], benchmark.operation);
        let crossed: Vec<&str> = benchmark.crosses.iter().map(|boundary| boundary.name()).collect();
        assert_eq!(listed["crosses"], serde_json::json!(crossed));
        assert_eq!(listed["params"], serde_json::json!((benchmark.cases)(&machine)));
        let sentence: String = benchmark.operation.split_whitespace().collect();
        assert!(table.contains(&sentence), "{} is not listed with its operation", benchmark.name);
    }
    let one = home.json(["list", "entry/int80*", "--format=json"]);
    assert_eq!(one["benchmarks"].as_array().map(Vec::len), Some(2));
}

#[test]
fn kept_runs_are_listed() {
    let home = kept();
    home.file("tollgate/runs/20261121-015430-0004.json", "{");
    let mut newer = document("20261121-015431-0005", None, 1.0);
    newer["schema"] = 3.into();
    home.keep(&newer);
    let runs = home.json(["runs", "--format=json"]);
    let runs = runs["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    assert_eq!((&runs[0]["label"], &runs[0]["rows"]), (&"native".into(), &5.into()));
    assert!(runs[2]["fault"].is_string(), "a broken one is named, not hidden");
    assert_eq!(runs[3]["fault"], "has schema 3, but this tollgate reads schema 2: use a newer tollgate");
    insta::assert_snapshot!("runs", home.output(["runs"]));
}

#[test]
fn completions_and_manual_pages_know_every_verb() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.output(["completions", shell]).contains("tollgate"), "{shell}");
    }
    assert!(home.output(["man"]).lines().any(|line| line == ".TH tollgate 1  \"tollgate 0.2.0\" "));
    let pages = home.path().join("pages");
    std::fs::create_dir(&pages).expect("made");
    home.output(["man", pages.to_str().expect("text")]);
    let run = std::fs::read_to_string(pages.join("tollgate-run.1")).expect("a page per verb");
    let sections: Vec<&str> = run.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    assert_eq!(sections, ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENTS", "EXAMPLES"]);
    assert!(run.lines().any(|line| line == "\\fB\\-\\-thorough\\fR"), "{run}");
    // One page for the program and one for each verb in the help.
    assert_eq!(std::fs::read_dir(&pages).expect("a directory").count(), 24);
    assert!(!pages.join("tollgate-agent.1").exists());
}

#[test]

fn the_doctor_judges_every_check_and_says_what_would_help() {
    let home = Home::new();
    let diagnosis = home.json(["doctor", "--format=json"]);
    let checks = diagnosis["checks"].as_array().expect("checks");
    let states = ["good", "fair", "poor", "absent", "refused", "unreadable"];
    for check in checks {
        assert_eq!(keys(check), ["fix", "found", "given", "name", "remedy", "root", "state"]);
        assert!(states.contains(&check["state"].as_str().expect("a state")), "{check}");
        assert!(!check["found"].as_str().expect("words").is_empty(), "{check}");
        assert!(check["state"] != "poor" || check["remedy"].is_string(), "no remedy: {check}");
    }
    let poor = checks.iter().filter(|check| check["state"] == "poor").count();
    assert_eq!(diagnosis["fit"], poor == 0);
    for fix in checks.iter().map(|check| &check["fix"]).filter(|fix| !fix.is_null()) {
        assert!(
            fix["command"].is_string() && fix["undo"].is_string() && fix["command"] != fix["undo"],
            "{fix}"
        );
    }
    let failed = home.tollgate(["doctor", "--fail-on", "poor"]).output().expect("started");
    let is_fit =
        String::from_utf8_lossy(&failed.stdout).lines().any(|line| line.starts_with("Fit for measuring"));
    assert_eq!(failed.status.code(), Some(i32::from(!is_fit)), "{failed:?}");
    let state = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        check["state"].as_str().expect("a state")
    };
    for name in ["load", "pressure", "governor", "turbo", "smt", "steal", "isolation", "hypervisor"] {
        // A fact that is not recorded is a defect of the program.
        let check = checks.iter().find(|check| check["name"] == name).expect(name);
        assert!(!check["found"].as_str().expect("words").contains("not recorded"), "{check}");
    }
    assert_ne!(state("clock"), "absent");
    assert!(home.files().is_empty(), "the doctor keeps nothing");
}

#[test]
fn the_document_itself_goes_to_standard_output_where_it_is_asked_for() {
    let home = Home::new();
    let document = home.json(["run", "entry/call", "--processes", "1", "--out", "-", "--quiet"]);
    assert!(document["measurements"][0]["samples"].is_array(), "{document}");
    assert!(home.files().is_empty(), "{:?}", home.files());
}
