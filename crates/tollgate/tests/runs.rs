//! Kept runs: listed by kind, renamed, deleted; the meaning of `last`; and the candidates that shells offer.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::path::Path;
use std::time::SystemTime;

use crate::common;
use common::{Home, document, measured};
use serde_json::{Value, json};

const RUN: &str = "20261121-015427-00000001";
const LAB: &str = "20261121-015428-00000002";
const TRACE: &str = "20261121-015429-00000003";

/// A run, a lab's run and a trace, in this order.
fn kept() -> Home {
    let home = Home::new();
    let mut run = document(RUN, Some("mine"), 1.0);
    let patterns = json!({"status": "known", "value": ["entry", "traps/*"], "source": "the command line"});
    run["facts"]["run.patterns"] = patterns;
    home.keep(&run);
    let mut lab = document(LAB, None, 1.0);
    lab["measurements"] = json!([measured("lab/int", 100.0, &[])]);
    home.keep(&lab);
    let mut trace = document(TRACE, Some("traced"), 1.0);
    let mut row = measured("trace/command", 1e6, &[]);
    row["samples"] = json!([1e6]);
    row["processes"] = json!([{"rounds": 1, "discarded": []}]);
    row["discarded"] = 0.into();
    row["traced"] = json!([{
        "command": ["make", "-j4"], "backend": "rusage", "ended": {"exit": 0}, "processors": 2, "wall_ns": 1_000_000,
        "user_ns": 1, "sys_ns": 1, "processes": 1, "threads": 1, "calls": [],
    }]);
    trace["measurements"] = json!([row]);
    home.keep(&trace);
    for (seconds, id) in (0..).zip([RUN, LAB, TRACE]) {
        set_written(&home, id, seconds);
    }
    home
}

fn file(home: &Home, id: &str) -> std::path::PathBuf {
    home.runs().join(format!("{id}.json"))
}

fn set_written(home: &Home, id: &str, seconds: u64) {
    let file = std::fs::File::options().append(true).open(file(home, id)).expect("kept");
    let written = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000 + seconds);
    file.set_modified(written).expect("a time");
}

fn id_of(home: &Home, arguments: &[&str]) -> String {
    let shown = home.json(arguments.iter().copied().chain(["--format=json"]));
    shown["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_list_says_the_kind_and_what_was_measured() {
    let home = kept();
    let listed = home.json(["runs", "--format=json"]);
    let runs = listed["runs"].as_array().expect("runs");
    let field = |name: &str| runs.iter().map(|run| run[name].clone()).collect::<Vec<Value>>();
    assert_eq!(field("kind"), ["run", "lab", "trace"]);
    assert_eq!(field("patterns"), [json!(["entry", "traps/*"]), Value::Null, Value::Null]);
    assert_eq!(field("command"), [Value::Null, Value::Null, json!(["make", "-j4"])]);
    assert_eq!(field("duration_s"), [60.0, 60.0, 60.0]);
    insta::assert_snapshot!("list", home.output(["runs"]));
}

#[test]
fn a_run_writes_its_patterns() {
    let home = Home::new();
    home.output(["run", "entry/call", "--processes", "1", "--quiet"]);
    let run = home.json(["runs", "--format=json"])["runs"][0].clone();
    assert_eq!((&run["kind"], &run["patterns"]), (&json!("run"), &json!(["entry/call"])));
}

#[test]
fn last_is_the_newest_of_the_kind_that_the_verb_takes() {
    let home = kept();
    assert_eq!(id_of(&home, &["show", "last"]), RUN, "the lab measured another machine");
    assert_eq!(id_of(&home, &["show", "last", "--by", "call"]), TRACE);
    let compared = |base: &str, other: &str| {
        let document = home.json(["compare", base, other, "--format=json"]);
        [&document["base"], &document["others"][0]].map(|run| run["id"].as_str().expect("an id").to_owned())
    };
    assert_eq!(compared("mine", "last"), [RUN, RUN]);
    assert_eq!(compared("last", "mine"), [RUN, RUN]);
    assert_eq!(compared("traced", "last"), [TRACE, TRACE]);
    assert_eq!(compared("last", "last"), [RUN, RUN]);
    home.output(["runs", "delete", "last"]);
    assert!(!file(&home, TRACE).exists(), "of any kind");
    let said = home.refusal(["show", "last", "--tree"]);
    assert_eq!(said, "no run of the kind trace is kept; `tollgate runs` shows what is kept");
}

#[test]
fn a_renamed_run_keeps_its_place_and_its_samples() {
    let home = kept();
    let order = || {
        let listed = home.json(["runs", "--format=json"]);
        let ids = listed["runs"].as_array().expect("runs").iter().map(|run| run["id"].clone());
        ids.collect::<Vec<_>>()
    };
    let (before, order_before) = (home.json(["show", RUN, "--format=json"]), order());
    assert_eq!(home.output(["runs", "rename", "mine", "before"]), format!("{RUN} is now labelled before.\n"));
    let mut after = home.json(["show", "before", "--format=json"]);
    assert_eq!(after["label"], "before");
    after["label"] = "mine".into();
    assert_eq!(after, before);
    assert_eq!(order(), order_before, "renaming makes no run the newest");
    assert_eq!(home.files().len(), 3, "nothing is left: {:?}", home.files());
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(file(&home, RUN)).expect("kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        home.refusal(["runs", "rename", "before", "../x"]),
        "invalid value '../x' for '<LABEL>': the label \"../x\" would be a path; use 1 to 64 of A-Z a-z 0-9 . _ + - and begin \
         with a letter or digit"
    );
}

#[test]
fn runs_are_deleted_all_or_none() {
    let home = kept();
    let said = home.refusal(["runs", "delete", "mine", "unknown"]);
    assert_eq!(said, "\"unknown\" is not a kept run; `tollgate runs` shows what is kept");
    assert_eq!(home.files().len(), 3);
    let said = home.refusal(["runs", "delete", "2026"]);
    let several = format!(
        "3 kept runs have an id that begins with \"2026\", from {RUN} to {TRACE}; give more of the id"
    );
    assert_eq!(said, several);
    let printed = home.output(["runs", "delete", "mine", RUN, LAB]);
    assert_eq!(printed, format!("{RUN} is deleted.\n{LAB} is deleted.\n"));
    assert_eq!(home.files(), [format!("tollgate/runs/{TRACE}.json")]);
    let none = Home::new();
    let refused = none.refusal(["runs", "delete", "last"]);
    assert_eq!(refused, "no run is kept yet; `tollgate run` makes one");
}

#[test]
fn nothing_but_kept_runs_is_deleted_or_renamed() {
    let home = kept();
    let outside = home.file("outside.json", document(RUN, None, 1.0).to_string());
    home.file("tollgate/runs/notes.txt", "notes");
    const BROKEN: &str = "20261121-015430-00000004";
    const LINK: &str = "20261121-015431-00000005";
    const OTHERS: &str = "20261121-015432-00000006";
    home.file(&format!("tollgate/runs/{BROKEN}.json"), "{\"mine\": true}");
    home.file(&format!("tollgate/runs/{OTHERS}.json"), document(RUN, None, 1.0).to_string());
    std::os::unix::fs::symlink(&outside, file(&home, LINK)).expect("linked");
    let before = home.files();
    for meant in [
        outside.as_str(),
        "./outside.json",
        "outside.json",
        "notes",
        "notes.txt",
        "../runs",
        BROKEN,
        LINK,
        OTHERS,
    ] {
        for arguments in [vec!["runs", "delete", meant], vec!["runs", "rename", meant, "x"]] {
            let said = home.refusal(arguments);
            assert!(!said.is_empty(), "{meant}");
        }
    }
    assert_eq!(home.files(), before);
    assert!(Path::new(&outside).exists());
    // A run of another version can be deleted.
    let mut newer = document("20261121-015433-00000007", None, 1.0);
    newer["schema"] = 3.into();
    home.keep(&newer);
    home.output(["runs", "delete", "20261121-015433-00000007"]);
    assert_eq!(home.files(), before);
}

#[test]
fn root_changes_no_runs_in_the_directory_of_another_user() {
    if !common::is_root() {
        println!("skipped: needs root (to give a directory to another user)");
        return;
    }
    let home = kept();
    for directory in [home.path().join("tollgate"), home.runs()] {
        std::os::unix::fs::chown(directory, Some(54_321), Some(54_321)).expect("given away");
    }
    for arguments in [vec!["runs", "delete", "mine"], vec!["runs", "rename", "mine", "x"]] {
        let runs = home.runs().display().to_string();
        assert_eq!(
            home.refusal(arguments),
            format!(
                "kept runs cannot be changed: {runs} is in a directory of uid 54321, but tollgate runs as root"
            )
        );
    }
    assert_eq!(home.files().len(), 3);
}

#[test]
fn a_trace_is_kept_where_it_is_asked_for() {
    let home = Home::new();
    let trace = |more: &[&'static str]| {
        let arguments = ["trace"].into_iter().chain(more.iter().copied()).chain(["--", "true"]);
        home.tollgate(arguments).assert().success().get_output().clone()
    };
    let said = trace(&[]);
    assert!(!String::from_utf8_lossy(&said.stderr).contains("kept as"), "{said:?}");
    let json: Value = serde_json::from_slice(&trace(&["--format", "json"]).stdout).expect("JSON");
    assert_eq!(json["kept"], Value::Null);
    assert!(home.files().is_empty(), "{:?}", home.files());
    trace(&["--quiet", "--out", "file"]);
    assert_eq!(home.files(), ["file"]);
    trace(&["--quiet", "--label", "mine"]);
    assert_eq!(home.files().len(), 2);
    assert_eq!(home.json(["runs", "--format=json"])["runs"][0]["command"], json!(["true"]));
}

/// The candidates that the program gives a shell's script after these words.
fn offered(home: &Home, shell: &str, words: &[&str]) -> Vec<String> {
    let arguments = ["--", "tollgate"].into_iter().chain(words.iter().copied());
    let mut command = home.tollgate(arguments);
    command.env("TOLLGATE_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "false").env("_CLAP_IFS", "\n");
    let output = command.env("IFS", "\n").assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).expect("text");
    // Descriptions follow after a tab or a colon.
    text.lines().map(|line| line.split(['\t', ':']).next().unwrap_or(line).trim().to_owned()).collect()
}

#[test]
fn shells_offer_benchmarks_and_runs() {
    let home = kept();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.output(["completions", shell]);
        assert!(script.contains("TOLLGATE_COMPLETE"), "{script}");
        let offered = |words: &[&str]| offered(&home, shell, words);
        let verbs = offered(&[""]);
        assert!(["run", "runs", "compare"].iter().all(|verb| verbs.iter().any(|it| it == verb)), "{verbs:?}");
        let benchmarks = offered(&["run", "entry/sys"]);
        assert!(benchmarks.contains(&"entry/syscall".to_owned()), "{shell}: {benchmarks:?}");
        assert!(benchmarks.iter().all(|name| name.starts_with("entry/sys")), "{shell}: {benchmarks:?}");
        for words in
            [vec!["show", ""], vec!["compare", ""], vec!["compare", "last", ""], vec!["runs", "delete", ""]]
        {
            let runs = offered(&words);
            for name in ["last", "traced", "mine", RUN] {
                assert!(runs.contains(&name.to_owned()), "{shell} {words:?}: {runs:?}");
            }
        }
        assert_eq!(offered(&["show", "tra"]), ["traced"], "{shell}");
    }
}

/// Completion through a real shell, if there is one.
#[test]
fn bash_completes_a_label() {
    let home = kept();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).expect("made");
    std::os::unix::fs::symlink(common::program(), bin.join("tollgate")).expect("linked");
    let script = "source <(tollgate completions bash) || exit 9
        COMP_WORDS=(tollgate show tra); COMP_CWORD=2; COMP_TYPE=9; COMP_LINE='tollgate show tra'; COMP_POINT=17
        function_name=$(complete -p tollgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        \"$function_name\" tollgate tra show; echo \"${COMPREPLY[@]}\"";
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let ran = std::process::Command::new("bash")
        .args(["--norc", "-c", script])
        .env("PATH", path)
        .env("XDG_DATA_HOME", home.path())
        .current_dir(home.path())
        .output();
    match ran {
        Err(why) => println!("skipped: bash does not start: {why}"),
        Ok(ran) => {
            let said = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "traced", "{said}");
        }
    }
}

const SESSION: &str = "20261121-015430-5e551011";
const MEMBERS: [&str; 2] = ["20261121-015430-00000004", "20261121-015430-00000005"];

/// Likewise with a session of two environments after them; its base is written last.
fn with_session() -> Home {
    let home = kept();
    for (place, id) in MEMBERS.iter().rev().enumerate() {
        let mut run = document(id, Some("two"), 1.0 + place as f64);
        let environment = ["container:seccomp=none", "host"][place];
        run["session"] = json!({
            "id": SESSION, "environment": environment, "place": 1 - place, "of": 2, "paired": true,
        });
        // As the program writes it: the session comes before the samples.
        let text = format!(
            r#"{{"id":{},"label":"two","session":{},{}"#,
            run["id"],
            run["session"],
            &without(&run, &["id", "label", "session"]).to_string()[1..]
        );
        home.file(&format!("tollgate/runs/{id}.json"), text);
        set_written(&home, id, 10 + place as u64);
    }
    home
}

fn without(document: &Value, fields: &[&str]) -> Value {
    let mut document = document.clone();
    let object = document.as_object_mut().expect("an object");
    fields.iter().for_each(|field| drop(object.remove(*field)));
    document
}

#[test]
fn a_session_is_compared_whole_and_its_runs_one_by_one() {
    let home = with_session();
    let compared = |words: &[&str]| {
        let document = home.json(["compare"].iter().chain(words).copied().chain(["--format=json"]));
        let others = document["others"].as_array().expect("others").iter();
        let runs = std::iter::once(&document["base"]).chain(others);
        runs.map(|run| run["id"].as_str().expect("an id").to_owned()).collect::<Vec<String>>()
    };
    for meant in [SESSION, "20261121-015430", "two", "last"] {
        assert_eq!(compared(&[meant]), MEMBERS, "{meant}");
    }
    assert_eq!(compared(&[RUN, SESSION]), [RUN, MEMBERS[0], MEMBERS[1]]);
    assert_eq!(compared(&[MEMBERS[1], RUN]), [MEMBERS[1], RUN]);
    assert_eq!(
        home.refusal(["compare", RUN]),
        format!(
            "{RUN} is a single run; name another run to compare with it, or a session of several environments"
        )
    );
    let page = home.path().join("page.html").display().to_string();
    home.output(["report", SESSION, "--out", &page]);
    let page = std::fs::read_to_string(page).expect("written");
    assert!(MEMBERS.iter().all(|id| page.contains(id)));
    assert_eq!(id_of(&home, &["show", MEMBERS[1]]), MEMBERS[1]);
    home.output(["explain", "entry/syscall", SESSION]);
}

#[test]
fn a_run_of_no_session_is_explained_beside_the_newest_session() {
    let home = with_session();
    set_written(&home, RUN, 100);
    let text = home.output(["explain", "entry/syscall"]);
    insta::assert_snapshot!("explained", text);
    let (before, costs) = text.split_once("Costs here").expect("what an environment costs");
    let (_, after) = costs.split_once("To avoid it").expect("what comes next");
    let named = home.output(["explain", "entry/syscall", RUN]);
    assert_eq!(named, format!("{before}To avoid it{after}"), "a run that is named is explained alone");
}

#[test]
fn the_runs_of_a_session_are_listed_renamed_and_deleted_together() {
    let home = with_session();
    let listed = home.json(["runs", "--format=json"]);
    let parts: Vec<&Value> =
        listed["runs"].as_array().expect("runs").iter().map(|run| &run["session"]).collect();
    assert!(parts[..3].iter().all(|part| part.is_null()));
    assert_eq!(parts[3]["environment"], "container:seccomp=none");
    assert_eq!((&parts[4]["id"], &parts[4]["place"]), (&json!(SESSION), &json!(0)));
    let wide = home.tollgate(["runs"]).env("COLUMNS", "160").assert().success().get_output().stdout.clone();
    let wide = String::from_utf8(wide).expect("text");
    let rows: Vec<Vec<&str>> = wide.lines().map(|line| line.split_whitespace().collect()).collect();
    let base = [MEMBERS[0], "run", "two", "60", "s", "1/2", "host", "2026-11-21T01:54:27Z", "5"];
    let other =
        [MEMBERS[1], "run", "two", "60", "s", "2/2", "container:seccomp=none", "2026-11-21T01:54:27Z", "5"];
    assert_eq!(rows[4..6], [other, base]);
    home.output(["runs", "rename", "last", "renamed"]);
    let labels = |label: &str| {
        let listed = home.json(["runs", "--format=json"]);
        listed["runs"].as_array().expect("runs").iter().filter(|run| run["label"] == label).count()
    };
    assert_eq!((labels("renamed"), labels("two")), (2, 0));
    home.output(["runs", "rename", MEMBERS[0], "one"]);
    assert_eq!((labels("renamed"), labels("one")), (1, 1));
    home.output(["runs", "delete", SESSION]);
    assert!(MEMBERS.iter().all(|id| !file(&home, id).exists()) && file(&home, LAB).exists());
}
