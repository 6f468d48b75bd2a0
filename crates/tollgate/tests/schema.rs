//! The JSON output of each verb agrees with docs/schema: no field is missing, and none is undeclared.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common;
use common::{Home, document};
use jsonschema::Validator;
use serde_json::Value;

/// A schema, and what makes documents of it; none if this machine cannot, which is reported.
type Check = (&'static str, fn() -> Vec<Value>);

const CHECKS: &[Check] = &[
    ("run-document", kept_runs),
    ("show", shown_runs),
    ("session", sessions),
    ("compare", compared),
    ("list", || vec![Home::new().json(["list", "--format", "json"])]),
    ("same-file", crate::revisions::same_file),
    ("bisect", crate::revisions::bisected),
    ("versus", commands),
    ("runs", runs),
    ("schedules", schedules),
    ("inspect", || vec![Home::new().json(["inspect", "--format", "json"])]),
    ("inspect-capture", || vec![Home::new().json(["inspect", "--capture", "tree", "--format", "json"])]),
    ("inspect-aslr", || vec![Home::new().json(["inspect", "aslr", "--format", "json"])]),
    ("inspect-kernel", kernels),
    ("inspect-config", configurations),
    ("decode-item", items),
    ("decode-bytes", || vec![Home::new().json(["decode", "--format", "json", "ffff0000009bcf00"])]),
    ("decode-text", texts),
    ("decode-live", || vec![Home::new().json(["decode", "--live", "--format", "json"])]),
    ("lab", || vec![interpreted(&["int", "syscall-path"])]),
    ("lab-explain", || vec![Home::new().json(["lab", "--explain", "boot", "int", "--format", "json"])]),
    ("lab-program", programs),
    ("lab-locks", || vec![interpreted(&["locks"])]),
    ("lab-prove", proofs),
    ("trace", traces),
    ("trace-interval", intervals),
    ("trace-keys", keys),
    ("trace-calibrate", || vec![Home::new().json(["trace", "--calibrate", "--format", "json"])]),
    ("store-list", stored),
    ("bill", || vec![Home::new().json(["bill", "--format", "json"])]),
    ("doctor", || vec![Home::new().json(["doctor", "--format", "json"])]),
    ("claims", || vec![Home::new().json(["claims", "--format", "json"])]),
    ("claims-as-published", published),
    ("environments", || vec![Home::new().json(["environments", "--format", "json"])]),
    ("config", configured),
];

/// Without a file, and with a project's that has a value of each kind, one of which is refused.
fn configured() -> Vec<Value> {
    let home = Home::new();
    let without = home.json(["config", "--json"]);
    home.file("tollgate.toml", "[run]\nthreshold = \"2%\"\ntime = 10\nverbose = true\ndir = \"/tmp\"\n");
    vec![without, home.json(["config", "--json"])]
}

/// Locks, and an entry of one's own.
fn proofs() -> Vec<Value> {
    let entry = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/entry.s");
    let of = |name| Home::new().json(["lab", name, "--prove", "--format", "json"]);
    vec![of("locks"), of(entry.to_str().expect("text"))]
}

/// A program that needs no second processor, compiled and executed.
fn published() -> Vec<Value> {
    let words = ["claims", "invalid-opcode", "--as-published", "--quiet", "--format", "json"];
    vec![Home::new().json(words)]
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

fn validator(name: &str) -> Validator {
    let text = std::fs::read_to_string(directory().join(format!("{name}.json"))).expect("a schema");
    let schema = serde_json::from_str(&text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

fn errors(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Two runs of different speed, with labels.
fn kept() -> Home {
    let home = Home::new();
    home.keep(&document("20261121-015427-00000001", Some("one"), 1.0));
    home.keep(&document("20261121-015527-00000002", Some("two"), 1.5));
    home
}

/// A run of benchmarks that count events, move bytes or are compared with others, and a traced command.
fn measured() -> Home {
    let home = Home::new();
    let cases = ["entry/syscall", "entry/user-dispatch", "traps/minor-fault", "memory/home", "files/open"];
    home.output(["run", "--processes", "2", "--quiet", "--label", "cases"].into_iter().chain(cases));
    home.tollgate(["trace", "--quiet", "--label", "traced", "--", "true"]).assert().success();
    home
}

fn kept_runs() -> Vec<Value> {
    let home = measured();
    let read = |path: PathBuf| serde_json::from_slice(&std::fs::read(path).expect("a run")).expect("JSON");
    common::entries(&home.runs())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(read)
        .collect()
}

fn shown_runs() -> Vec<Value> {
    let home = measured();
    let shown = ["cases", "traced"].map(|label| home.json(["show", label, "--format", "json"]));
    shown.into_iter().chain([kept().json(["show", "two", "--format", "json"])]).collect()
}

fn sessions() -> Vec<Value> {
    let home = Home::new();
    let run = [
        "run",
        "entry/syscall",
        "--in",
        "host",
        "--in",
        "host",
        "--processes",
        "2",
        "--quiet",
        "--format",
        "json",
    ];
    let made = home.json(run);
    assert!(!made["comparison"]["rows"].as_array().expect("rows").is_empty(), "{made}");
    vec![made, home.json(["show", "last", "--format", "json"])]
}

fn compared() -> Vec<Value> {
    let mut documents = vec![kept().json(["compare", "one", "two", "--format", "json"])];
    let home = Home::new();
    for label in ["a", "b"] {
        home.tollgate(["trace", "--quiet", "--label", label, "--", "true"]).assert().success();
    }
    documents.push(home.json(["compare", "a", "b", "--format", "json"]));
    for (document, list) in documents.iter().zip(["rows", "traces"]) {
        assert!(!document[list].as_array().expect(list).is_empty(), "{document}");
    }
    documents
}

fn commands() -> Vec<Value> {
    let home = Home::new();
    let versus = ["versus", "-r", "6", "-w0", "--quiet", "--label", "mine", "--format", "json"];
    let made = home.json(versus.into_iter().chain(["true", "sleep 0.001", "false", "-i"]));
    vec![made, home.json(["show", "mine", "--format", "json"])]
}

fn runs() -> Vec<Value> {
    let home = kept();
    home.file("tollgate/runs/20261121-015627-00000003.json", "no run");
    home.tollgate(["trace", "--quiet", "--label", "traced", "--", "true"]).assert().success();
    vec![home.json(["runs", "--format", "json"])]
}

fn schedules() -> Vec<Value> {
    let home = Home::new();
    vec![
        home.json(["schedules", "figure-3", "figure-6", "--format", "json"]),
        home.json(["schedules", "figure-3", "--preempt", "all", "--format", "json"]),
    ]
}

fn kernels() -> Vec<Value> {
    let home = Home::new();
    let named = ["inspect", "kernel", "_text", "do_nothing_at_all", "--format", "json"];
    vec![home.json(["inspect", "kernel", "--format", "json"]), home.json(named)]
}

fn configurations() -> Vec<Value> {
    let home = Home::new();
    let old = home
        .file("old", "CONFIG_HZ=250\nCONFIG_PREEMPT=y\n# CONFIG_KVM is not set\nCONFIG_HZ=100\nforeign\n");
    let new = home.file("new", "CONFIG_HZ=1000\nCONFIG_KVM=m\n");
    vec![
        home.json(["inspect", "config", &old, &new, "--format", "json"]),
        home.json(["inspect", "config", &old, "--all", "--format", "json"]),
    ]
}

fn items() -> Vec<Value> {
    let home = Home::new();
    [["gdt8", "ffff0000009bcf00"], ["gate32", "00108f0008008e00"]]
        .map(|[kind, bytes]| home.json(["decode", "--as", kind, "--format", "json", bytes]))
        .into_iter()
        .chain([home.json(["decode", "--as", "msr", "--format", "json", "c0000081", "0023001000000000"])])
        .collect()
}

fn texts() -> Vec<Value> {
    let home = Home::new();
    let examples =
        common::entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tollgate-dump/tests/dumps"));
    let texts = examples.iter().filter(|path| path.is_file()).filter_map(|path| path.to_str());
    let shown = texts.filter_map(|path| {
        let output =
            home.tollgate(["decode", "--as", "session", "--format", "json", path]).output().expect("started");
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    });
    let shown: Vec<Value> = shown.collect();
    assert!(!shown.is_empty(), "no example is read");
    shown
}

fn interpreted(arguments: &[&str]) -> Value {
    let first = ["lab"].into_iter().chain(arguments.iter().copied());
    Home::new().json(first.chain(["--on", "interpreter", "--format", "json"]))
}

fn programs() -> Vec<Value> {
    let home = Home::new();
    let ends = home.file("ends", b"\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05");
    let faults = home.file("faults", b"\x0f\x0b");
    let run = ["lab", "--on", "interpreter", "--program", &ends, "--program", &faults, "--format", "json"];
    let output = home.tollgate(run).output().expect("started");
    vec![serde_json::from_slice(&output.stdout).expect("JSON")]
}

fn keys() -> Vec<Value> {
    let home = Home::new();
    let keys = home.file("keys", "a\n\u{4}");
    vec![home.json(["trace", "--format", "json", "--keys", &keys, "cat"])]
}

fn traces() -> Vec<Value> {
    let home = Home::new();
    let all = [
        "trace",
        "--quiet",
        "--blocked",
        "--tree",
        "--by",
        "file",
        "--format",
        "json",
        "--",
        "sh",
        "-c",
        "cat /proc/version",
    ];
    let printed = home.output(all);
    let line = printed.lines().last().expect("a line");
    let logs = common::entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/strace"));
    let logs = logs.iter().filter_map(|path| path.to_str());
    let read = logs.map(|path| home.json(["trace", "--from", path, "--format", "json"]));
    [serde_json::from_str(line).expect("JSON")].into_iter().chain(read).collect()
}

fn intervals() -> Vec<Value> {
    let home = Home::new();
    let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep");
    let process = child.id().to_string();
    let output = home
        .tollgate(["trace", "-p", &process, "--for", "2s", "--every", "500ms", "--quiet", "--format", "json"])
        .output()
        .expect("started");
    child.kill().expect("ours");
    child.wait().expect("ours");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line.get("interval").is_some()).collect()
}

fn stored() -> Vec<Value> {
    let home = Home::new();
    let run = home.file("made.json", document("20200121-015427-00000001", Some("old"), 1.0).to_string());
    home.tollgate(["store", "add", "fleet", &run]).assert().success();
    home.file("fleet/schema=1/runs/damaged", "no lines");
    vec![home.json(["store", "list", "fleet", "--format", "json"])]
}

#[test]
fn documents_are_as_their_schemas_say() {
    let mut wrong = Vec::new();
    for (name, make) in CHECKS {
        let validator = validator(name);
        // A failure of one does not hide the others' results.
        let Ok(documents) = std::thread::spawn(make).join() else {
            wrong.push(format!("{name}: not made"));
            continue;
        };
        if documents.is_empty() {
            println!("skipped: this machine makes no document of {name}");
        }
        for document in documents {
            wrong.extend(errors(&validator, &document).into_iter().map(|error| format!("{name}: {error}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_schema_is_checked() {
    let named = |path: &PathBuf| path.file_stem().and_then(|name| Some(name.to_str()?.to_owned()));
    let files: BTreeSet<String> = common::entries(&directory()).iter().filter_map(named).collect();
    assert_eq!(CHECKS.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>(), files);
}

#[test]
fn a_field_that_is_added_or_taken_away_is_an_error() {
    for (name, document, within) in [
        ("compare", kept().json(["compare", "one", "two", "--format", "json"]), "/rows/0"),
        ("show", kept().json(["show", "one", "--format", "json"]), "/measurements/0"),
        ("run-document", document("a", None, 1.0), "/measurements/0"),
    ] {
        let validator = validator(name);
        assert_eq!(errors(&validator, &document), [""; 0]);
        for place in ["", within] {
            let mut more = document.clone();
            more.pointer_mut(place).expect("there")["new"] = 1.into();
            assert!(!errors(&validator, &more).is_empty(), "{name}{place}: a new field");
            let mut fewer = document.clone();
            let object = fewer.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
            object.remove("benchmark").or_else(|| object.remove("facts"));
            assert!(!errors(&validator, &fewer).is_empty(), "{name}{place}: no such field");
        }
    }
}
