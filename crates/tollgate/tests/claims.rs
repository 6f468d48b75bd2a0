//! `tollgate claims`: published experiments beside the kept runs, as text and JSON, and the measurement of missing figures.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common;
use common::{Home, document, entries, measured};
use serde_json::{Value, json};

const ONE: &str = "syscall-vs-interrupt-2021";
const CLAIM: &str = "syscall-twice-as-fast";

/// Keeps a run in which int 80h takes this multiple of syscall.
fn keep(home: &Home, id: &str, label: Option<&str>, ratio: f64) {
    let mut run = document(id, label, 1.0);
    run["facts"]["cpu.model"] = json!({"status": "known", "value": "A processor", "source": "CPUID"});
    run["measurements"] = json!([
        measured("entry/syscall", 80.0, &[]),
        measured("entry/syscall-getpid", 90.0, &[]),
        measured("entry/int80-getpid", 90.0 * ratio, &[]),
    ]);
    home.keep(&run);
}

fn rows(document: &Value, table: usize) -> &Value {
    &document["experiments"][0]["tables"][table]["rows"]
}

fn verdict(document: &Value) -> String {
    let all = document["experiments"].as_array().expect("experiments").iter();
    let claims = all.flat_map(|one| one["claims"].as_array().expect("claims"));
    let claim = claims.into_iter().find(|claim| claim["id"] == CLAIM).expect("the claim");
    claim["verdict"].as_str().expect("text").to_owned()
}

#[test]
fn all_experiments_are_shown_without_a_run() {
    let home = Home::new();
    let text = home.output(["claims"]);
    assert!(text.starts_with("No run is kept yet"), "{text}");
    let document = home.json(["claims", "--format", "json"]);
    assert_eq!(document["experiments"].as_array().map(Vec::len), Some(11));
    assert_eq!(document["runs"], json!([]));
    assert_eq!(verdict(&document), "cannot be told here");
    // Every fact and every program that an experiment names must exist.
    for wrong in ["there is no fact", "there is no program", "nothing is named"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    assert_eq!(home.files(), Vec::<String>::new());
}

#[test]
fn verdicts_are_those_of_the_newest_run_or_of_the_named_one() {
    let home = Home::new();
    keep(&home, "20261121-015427-00000001", Some("before"), 2.0);
    keep(&home, "20261121-015428-00000002", None, 20.0);
    // The figure is the newest one's, and the verdict takes both times.
    let both = home.json(["claims", ONE, "--format", "json"]);
    assert_eq!((verdict(&both).as_str(), &rows(&both, 1)[1][2]), ("holds", &json!("20.0")));
    let newest = home.json(["claims", ONE, "20261121-015428-00000002", "--format", "json"]);
    assert_eq!(verdict(&newest), "holds, and more");
    assert_eq!(verdict(&home.json(["claims", ONE, "before", "--format", "json"])), "holds");
    // The first word is a run if no experiment has that name.
    let all = home.json(["claims", "before", "--format", "json"]);
    assert_eq!((verdict(&all).as_str(), &all["runs"]), ("holds", &json!(["20261121-015427-00000001"])));
    insta::assert_snapshot!("one", home.output(["claims", ONE]));
}

#[test]
fn older_runs_give_what_the_newest_has_not() {
    let home = Home::new();
    keep(&home, "20261121-015427-00000001", None, 2.0);
    let mut other = document("20261121-015428-00000002", None, 1.0);
    other["facts"]["cpu.model"] = json!({"status": "known", "value": "A processor", "source": "CPUID"});
    other["measurements"] = json!([measured("entry/syscall", 80.0, &[])]);
    home.keep(&other);
    let told = home.json(["claims", ONE, "--format", "json"]);
    assert_eq!(verdict(&told), "holds");
    assert_eq!(rows(&told, 1)[1], json!(["the same getpid", "none", "2.00 [1]"]));
    assert_eq!(told["experiments"][0]["tables"][1]["notes"][0], "run 20261121-015427-00000001");
    // Figures of another machine do not count for this one.
    other["id"] = json!("20261121-015429-00000003");
    other["facts"]["cpu.model"]["value"] = json!("Another processor");
    home.keep(&other);
    assert_eq!(verdict(&home.json(["claims", ONE, "--format", "json"])), "cannot be told here");
}

#[test]
fn runs_of_two_machines_are_not_mixed_behind_a_guest_s() {
    let home = Home::new();
    let keep = |id: &str, processor: &str, cases: &[(&str, f64)], environment: Option<&str>| {
        let mut run = document(id, None, 1.0);
        run["facts"]["cpu.model"] = json!({"status": "known", "value": processor, "source": "CPUID"});
        let cases = cases.iter().map(|(case, at)| measured(case, *at, &[]));
        run["measurements"] = cases.collect();
        if let Some(environment) = environment {
            run["session"] = json!({
                "id": "20261121-015427-00000000", "environment": environment, "place": 0, "of": 2, "paired": true,
                "command": {"line": "true"},
            });
        }
        home.keep(&run);
    };
    let getpid = [("entry/syscall-getpid", 90.0), ("entry/int80-getpid", 180.0)];
    keep("20261121-015427-00000001", "Another processor", &getpid, None);
    keep("20261121-015428-00000002", "A processor", &[("entry/syscall", 80.0)], None);
    keep("20261121-015429-00000003", "A guest's processor", &[("entry/call", 1.0)], Some("vm"));
    let told = || home.json(["claims", ONE, "--format", "json"]);
    assert_eq!(verdict(&told()), "cannot be told here");
    // The same machine's older runs, and the guest's, stay.
    keep("20261121-015426-00000004", "A processor", &getpid, None);
    assert_eq!(verdict(&told()), "holds");
}

#[test]
fn what_is_measured_on_request_is_taken_from_older_runs_too() {
    let home = Home::new();
    keep(&home, "20261121-015428-00000002", None, 2.0);
    let mut other = document("20261121-015427-00000001", None, 1.0);
    other["facts"]["cpu.model"] = json!({"status": "known", "value": "A processor", "source": "CPUID"});
    let mut start = measured("environments/start", 2e9, &[]);
    start["group"] = json!("environments");
    other["measurements"] = json!([start]);
    home.keep(&other);
    let document = home.json(["claims", "wsl-vs-vm-development-2017", "--format", "json"]);
    assert_eq!(rows(&document, 0)[1], json!(["start, s", "1", "15", "2.01 [1]"]));
}

#[test]
fn a_run_without_cases_has_no_figures() {
    let home = Home::new();
    let mut run = document("20261121-015427-00000001", None, 1.0);
    run["measurements"] = json!([]);
    home.keep(&run);
    let told = home.json(["claims", ONE, "--format", "json"]);
    assert_eq!(rows(&told, 1)[1], json!(["the same getpid", "none", "– [1]"]));
    let notes = &told["experiments"][0]["tables"][1]["notes"];
    assert_eq!(*notes, json!(["not in the given runs; --check measures it"]));
}

#[test]
fn check_measures_what_is_missing_once() {
    let home = Home::new();
    let check = ["claims", ONE, "--check", "--processes", "6", "--quiet", "--format", "json"];
    let document = home.json(check);
    let told = document["experiments"][0]["tables"].to_string();
    assert!(!told.contains("--check"), "{told}");
    assert_eq!(entries(&home.runs()).len(), 1, "the run is kept");
    let run = home.json(["show", "last", "--format", "json"]);
    let cases = run["measurements"].as_array().expect("cases");
    assert!(cases.iter().any(|case| case["benchmark"] == "entry/int80-getpid"), "{run}");
    assert!(
        cases.iter().all(|case| case["benchmark"].as_str().expect("text").starts_with("entry/")),
        "{run}"
    );
    let again = home.json(check);
    assert_eq!(entries(&home.runs()).len(), 1);
    assert_eq!(verdict(&again), verdict(&document));
}

/// A figure that misses its claim by less than the run-to-run spread is measured again.
#[test]
fn check_measures_again_what_another_time_decides() {
    let home = Home::new();
    keep(&home, "20261121-015427-00000001", None, 1.2);
    assert_eq!(verdict(&home.json(["claims", ONE, "--json"])), "cannot be told here");
    let check = home.tollgate(["claims", ONE, "--check", "--processes", "6", "--json"]).output();
    let said = String::from_utf8(check.expect("started").stderr).expect("text");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let takes = " and their baselines, in 6 processes each: some seconds for each of ";
    assert!(said.contains(takes), "{said}");
    let run = home.json(["show", "last", "--json"]);
    let cases = run["measurements"].as_array().expect("cases");
    for getpid in ["entry/syscall-getpid", "entry/int80-getpid"] {
        assert!(cases.iter().any(|case| case["benchmark"] == getpid), "{run}");
    }
}

#[test]
fn check_asks_other_verbs_and_keeps_why_one_has_no_answer() {
    let home = Home::new();
    // Without a kernel there is no guest.
    let asked = || {
        let mut command =
            home.tollgate(["claims", "aslr-kaslr-2017", "--check", "--processes", "6", "--quiet", "--json"]);
        let output = command.env("TOLLGATE_KERNELS", home.path()).output().expect("started");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let document = asked();
    let claims = document["experiments"][0]["claims"].as_array().expect("claims");
    let claim = |id: &str| claims.iter().find(|claim| claim["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    let code = "a program at a fixed address: bits of its code: 0.0, and it holds with at most 0";
    assert_eq!(claim("non-pie-code-stays")["because"][0], code);
    let moved = claim("kaslr-by-address");
    if moved["verdict"] != "cannot be told here" {
        return println!("skipped: the kernel in /boot of this machine starts as a guest");
    }
    let begins = "a guest's kernel that may move was moved, by its /proc/kallsyms: `tollgate run entry/call --processes 1 --in \
                 vm:exact,append=kaslr --quiet --json --out /dev/null`: nothing was measured: vm:exact,append=kaslr: ";
    assert!(moved["because"][0].as_str().is_some_and(|why| why.starts_with(begins)), "{moved}");
    // A failed question is asked again; an answered one is not.
    let fact = |name: &str| home.json(["show", "last", "--json"])["facts"][name].take();
    assert_eq!(fact("claims.fixed.code")["value"], 0.0);
    asked();
    assert_eq!(fact("claims.fixed.code"), Value::Null);
    assert_eq!(fact("claims.kaslr.moved")["status"], "unknown");
}

/// A machine for tests need not have a C compiler.
fn has_cc() -> bool {
    let found =
        std::process::Command::new("cc").arg("--version").output().is_ok_and(|said| said.status.success());
    if !found {
        println!("skipped: there is no cc");
    }
    found
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn a_published_program_is_executed_with_each_of_its_corrections() {
    if !has_cc() {
        return;
    }
    let home = Home::new();
    let shown = home.json(["claims", ONE, "--as-published", "--quiet", "--json"]);
    let program = &shown["programs"][0];
    assert_eq!((&program["program"], &program["missing"]), (&json!("calls"), &Value::Null));
    assert!(program["command"].as_str().is_some_and(|line| line.starts_with("cc -O3 ")), "{program}");
    assert!(program["compiler"].as_str().is_some_and(|line| !line.is_empty()), "{program}");
    let variants = program["variants"].as_array().expect("variants");
    assert_eq!(variants.len(), 4);
    assert_eq!(variants[1]["options"], json!(["-DGETPID"]));
    // A kernel without 32-bit programs kills the process at int 80h, and each variant reports that.
    if let Some(why) = variants[0]["failed"].as_str() {
        assert!(why.contains("SIGSEGV"), "{why}");
        return println!("skipped: {why}");
    }
    let figure = |variant: &Value, at: usize| variant["figures"][at]["median"].as_f64().expect("a figure");
    for variant in variants {
        let rounds = variant["figures"][0]["samples"].as_array().map_or(0, Vec::len);
        assert!((6..=20).contains(&rounds) && program["rounds"] == json!(rounds), "{variant}");
        assert!(figure(variant, 0) > 0.0 && figure(variant, 1) > 0.0, "{variant}");
    }
    assert_eq!(program["steps"].as_array().map(Vec::len), Some(9), "three corrections of three figures");
    let text = home.output(["claims", "calls", "--as-published", "--quiet"]);
    let lines = text.lines().skip_while(|line| !line.starts_with("program "));
    // Figures, and their meaning, depend on this machine.
    let heads = lines
        .clone()
        .take_while(|line| !line.starts_with("Medians "))
        .filter_map(|line| line.split("  ").next());
    assert_eq!(
        heads.collect::<Vec<_>>(),
        [
            "program",
            "there",
            "as published",
            "+ int 80h is getpid too",
            "+ pinned to a processor",
            "+ after calls without a clock"
        ]
    );
    let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines.clone().nth(1).map(words), Some(words("there 62.7 132 2.1")));
    // Other remarks depend on its figures.
    let corrected = lines.filter_map(|line| line.strip_prefix("- ")?.split(':').next()).take(3);
    assert_eq!(
        corrected.collect::<Vec<_>>(),
        ["mkdir in the place of getpid", "no pinning", "a cold beginning"]
    );
    assert_eq!(home.files(), Vec::<String>::new(), "nothing is kept");
}

#[test]
fn a_program_that_cannot_be_compiled_says_so() {
    let home = Home::new();
    // A compiler that refuses everything, first along PATH.
    let path = home.file("cc", "#!/bin/sh\necho 'it is no compiler, error: none' >&2\nexit 1\n");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("our own file");
    let mut command = home.tollgate(["claims", "calls", "--as-published", "--quiet"]);
    let output = command.env("PATH", home.path()).output().expect("started");
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!("no-compiler", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn an_interrupted_program_leaves_nothing() {
    let home = Home::new();
    let own = home.path().join("temporary");
    std::fs::create_dir(&own).expect("a directory");
    let own = own.canonicalize().expect("it is there");
    // The compiled program has a child that does not end by itself.
    let script = "#!/bin/sh\nout=\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n\
        [ -n \"$out\" ] || { echo no compiler; exit 0; }\n\
        printf '#!/bin/sh\\nsleep 600 & wait\\n' > \"$out\"\nchmod +x \"$out\"\n";
    let cc = home.file("bin/cc", script);
    std::fs::set_permissions(&cc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("our own file");
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = std::process::Command::new(common::program());
    command
        .args(["claims", "population", "--as-published"])
        .env("TMPDIR", &own)
        .env("PATH", path)
        .env("XDG_CONFIG_HOME", home.path().join("config"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("started");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    assert_eq!(line, "tollgate: population: compiled; 4 variants of it are executed 6 to 20 times each\n");
    let works =
        |pid: &&std::path::PathBuf| std::fs::read_link(pid.join("cwd")).is_ok_and(|at| at.starts_with(&own));
    let alive = || entries("/proc".as_ref()).iter().filter(works).count();
    common::wait_for("the program and its child", || (alive() >= 2).then_some(()));
    let asked = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(asked, rustix::process::Signal::TERM).expect("it is there");
    let status = child.wait().expect("our child");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15), "{status}");
    assert_eq!(entries(&own), [""; 0].map(std::path::PathBuf::from));
    common::wait_for("the end of all", || (alive() == 0).then_some(()));
}
