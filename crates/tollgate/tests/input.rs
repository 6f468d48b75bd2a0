//! Bad input: one clear line, exit status 2, and no damage to kept runs.

mod common;

use std::process::Stdio;

use common::{Home, document, one_line};

#[test]
fn an_unknown_pattern_suggests_a_similar_name() {
    let home = Home::new();
    let line = "no benchmark matches \"entry/sysall\"; did you mean entry/syscall?";
    assert_eq!(home.refusal(["run", "entry/sysall", "--time", "1"]), line);
    assert_eq!(home.refusal(["list", "entry/sysall"]), line);
    assert!(home.files().is_empty());
}

#[test]
fn a_label_that_would_be_a_path_is_refused() {
    let home = Home::new();
    for (label, why) in [
        ("a/b", "would be a path"),
        ("..", "would be a path"),
        ("../x", "would be a path"),
        ("a..b", "would be a path"),
        ("", "is empty"),
        ("last", "means the newest run and cannot be a name"),
        ("-x", "has a character that is not allowed"),
        ("a\u{1b}[2Jb", "has a character that is not allowed"),
        (&"x".repeat(65), "is too long"),
    ] {
        let line = home.refusal(["run", "entry/call", "--time", "1", &format!("--label={label}")]);
        // The word as it was typed comes before it, without characters that control the terminal.
        let said = line.split_once(" for '--label <LABEL>': ").expect("the option").1;
        let rule = "use 1 to 64 of A-Z a-z 0-9 . _ + - and begin with a letter or digit";
        assert_eq!(said, format!("the label {label:?} {why}; {rule}"));
    }
    assert!(home.files().is_empty());
}

#[test]
fn a_time_that_is_none_is_refused() {
    let home = Home::new();
    let none = "it is not a time such as 3, 2.5, 90s or 2m";
    for (time, why) in [
        ("nonsense", none),
        ("0", "a run takes at least 1 s"),
        ("-1", none),
        ("0.5", "a run takes at least 1 s"),
        ("25h", "a run takes at most 24 h"),
        ("inf", none),
        ("nan", none),
        ("1e9", none),
        ("", none),
        ("3 fortnights", none),
    ] {
        let line = home.refusal(["run", "entry/call", &format!("--time={time}")]);
        assert_eq!(line, format!("invalid value '{time}' for '--time <DURATION>': {why}"));
    }
    for (one, other, named) in [
        ("--quick", "--thorough", "--thorough"),
        ("--quick", "--time=3", "--time <DURATION>"),
        ("--thorough", "--time=3", "--time <DURATION>"),
    ] {
        let line = home.refusal(["run", "entry/call", one, other]);
        assert_eq!(line, format!("the argument '{one}' cannot be used with '{named}'"));
    }
    assert!(home.files().is_empty());
}

#[test]
fn a_processor_that_is_none_is_refused() {
    let home = Home::new();
    let line = home.refusal(["run", "entry/call", "--time", "1", "--cpu", "100000"]);
    assert!(line.starts_with("--cpu: processor 100000 does not exist here; there are "), "{line}");
    let line = home.refusal(["run", "entry/call", "--time", "1", "--cpu", "first"]);
    let said = "invalid value 'first' for '--cpu <N>': it is not the number of a processor, such as 0";
    assert_eq!(line, said);
    assert!(home.files().is_empty());
}

#[test]
fn a_processor_that_is_not_allowed_is_refused() {
    let home = Home::new();
    let allowed = rustix::thread::sched_getaffinity(None).expect("affinity");
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let [first, .., last] = cpus.as_slice() else {
        eprintln!("skipped: only one processor is allowed here");
        return;
    };
    let output = std::process::Command::new("taskset")
        .args(["-c", &first.to_string()])
        .arg(common::program())
        .args(["run", "entry/call", "--processes", "1", "--cpu", &last.to_string()])
        .env("XDG_DATA_HOME", home.path())
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no taskset(1) here");
        return;
    };
    assert_eq!(output.status.code(), Some(2));
    let said = format!("--cpu: processor {last} is not allowed for this process; allowed are {first}");
    assert_eq!(one_line(&output.stderr), said);
    assert!(home.files().is_empty());
}

#[test]
fn a_file_that_is_no_run_is_refused_with_the_reason() {
    let home = Home::new();
    let whole = document("20261121-015427-0001", None, 1.0).to_string();
    let large = home.file("large.json", "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&large)
        .and_then(|file| file.set_len(1 << 30))
        .expect("sparse");
    let nan = whole.replacen("\"samples\":[", "\"samples\":[NaN,", 1);
    let huge = whole.replacen("\"samples\":[", "\"samples\":[1e999,", 1);
    let half = whole.len() / 2;
    let cut =
        |column| format!("is cut off: the document ends at line 1, column {column}, before it is whole");
    let of_schema =
        |schema, advice| format!("has schema {schema}, but this tollgate reads schema 2: {advice}");
    let no_run = |why: &str| format!("is not a run document: {why} at line 1 column ");
    let cases = [
        (home.file("cut.json", &whole[..half]), cut(half)),
        (home.file("empty.json", ""), cut(0)),
        (home.file("older.json", r#"{"schema": 1, "all": "else"}"#), of_schema(1, "measure again")),
        (home.file("newer.json", r#"{"schema": 3, "all": "else"}"#), of_schema(3, "use a newer tollgate")),
        (home.file("nan.json", &nan), no_run("expected value")),
        (home.file("huge.json", &huge), no_run("number out of range")),
        (home.file("text.json", "some text"), no_run("expected value")),
        (home.file("bytes.json", [0xff, 0xfe, 0x00]), no_run("expected value")),
        (home.path().join("absent.json").display().to_string(), "does not exist".to_owned()),
        (home.path().display().to_string() + "/", "is a directory; a run document is a file".to_owned()),
        (
            home.file(
                "shown.json",
                r#"{"schema": 2, "id": "x", "kept": null, "quality": {}, "measurements": []}"#,
            ),
            "is the output of --format json, which has no samples; --out FILE writes the run".to_owned(),
        ),
        (
            home.file("kept.json", r#"{"schema": 2, "kept": "/runs/a.json", "quality": {}}"#),
            "is the output of --format json, which has no samples; the run is /runs/a.json".to_owned(),
        ),
        (
            home.file("session.json", r#"{"session": {}, "runs": [], "comparison": {}}"#),
            "is the output of --format json".to_owned(),
        ),
        (large, "is larger than 256 MiB, the limit for a run document".to_owned()),
    ];
    for (file, reason) in &cases {
        for arguments in [vec!["show", file], vec!["compare", file, file]] {
            let line = home.refusal(arguments);
            assert!(line.starts_with(&format!("{file} {reason}")), "{line}");
        }
    }
}

#[test]
fn a_run_that_measured_nothing_says_why_and_fails() {
    let home = Home::new();
    let mut run = std::process::Command::new("taskset");
    let run =
        run.args(["-c", "0"]).arg(common::program()).args(["run", "memory/pingpong", "--out", "run.json"]);
    let Ok(output) = run.current_dir(home.path()).env("HOME", home.path()).output() else {
        return println!("skipped: no taskset here");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("failed to set pid") {
        return println!("skipped: processor 0 is not allowed here");
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains("nothing was measured: memory/pingpong"), "{said}");
    assert!(home.path().join("run.json").exists(), "what was found is kept");
}

#[test]
fn a_run_that_is_not_kept_is_refused() {
    let home = Home::new();
    assert_eq!(home.refusal(["show", "last"]), "no run is kept yet; `tollgate run` makes one");
    home.keep(&document("20261121-015427-0001", None, 1.0));
    home.keep(&document("20261121-015427-0002", None, 1.0));
    let line = "no kept run has the label or id \"mine\", and there is no such file; `tollgate runs` shows what is kept";
    assert_eq!(home.refusal(["show", "mine"]), line);
    let line = "2 kept runs have an id that begins with \"20261121\", from 20261121-015427-0001 to 20261121-015427-0002; \
                give more of the id";
    assert_eq!(home.refusal(["compare", "20261121", "last"]), line);
    let line =
        "last is a single run; name another run to compare with it, or a session of several environments";
    assert_eq!(home.refusal(["compare", "last"]), line);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let home = Home::new();
    let file = home.file("file", "");
    let directory = home.path().display().to_string();
    let absent = home.path().join("absent");
    for (out, reason) in [
        (directory, "is a directory; name a file in it".to_owned()),
        (format!("{file}/run.json"), "Not a directory".to_owned()),
        (
            absent.join("run.json").display().to_string(),
            format!("there is no directory {}", absent.display()),
        ),
    ] {
        // A run that measured first would exceed the time limit.
        let line = home.refusal(["run", "entry/call", "--time", "900", "--out", &out]);
        assert_eq!(line, format!("--out {out}: {reason}"));
    }
    let mut named = home.tollgate(["run", "entry/call", "--time", "20"]);
    let line =
        one_line(&named.env("XDG_DATA_HOME", &file).assert().code(2).stdout("").get_output().stderr.clone());
    let runs = format!("{file}/tollgate/runs (XDG_DATA_HOME)");
    let said = format!("runs cannot be kept in {runs}: Not a directory; name a file with --out FILE");
    assert_eq!(line, said);
    assert_eq!(home.files(), ["file"]);
}

#[test]
fn a_full_disk_is_noticed_before_anything_is_measured() {
    let home = Home::new();
    let mount = home.path().join("full");
    std::fs::create_dir(&mount).expect("made");
    let script = "mount -t tmpfs -o size=16k none \"$1\" || exit 99; \"$2\" run entry/call --time 20 --out \"$1/run.json\"; \
                  status=$?; ls -A \"$1\"; exit $status";
    let output = std::process::Command::new("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(&mount)
        .arg(common::program())
        .output();
    match output {
        Ok(output) if output.status.code() == Some(2) && !output.stderr.starts_with(b"unshare") => {
            let mount = mount.display();
            let why = format!("{mount} is not writable: No space left on device");
            assert_eq!(one_line(&output.stderr), format!("--out {mount}/run.json: {why}"));
            assert_eq!(String::from_utf8_lossy(&output.stdout), "", "something was left behind");
        }
        Ok(output) if output.status.code() == Some(0) => panic!("a full disk went unnoticed: {output:?}"),
        other => eprintln!("skipped: no small file system can be mounted here: {other:?}"),
    }
}

#[test]
fn a_run_that_cannot_be_kept_is_shown_all_the_same() {
    let home = Home::new();
    let file = home.file("file", "");
    let run = || {
        let mut command = home.tollgate(["run", "entry/call", "--processes", "1"]);
        command.env_remove("XDG_DATA_HOME").env_remove("HOME");
        command
    };
    for (at, why) in [
        (None, "neither XDG_DATA_HOME nor HOME is set".to_owned()),
        // A home that cannot be written to is like none.
        (Some(&file), format!("runs cannot be kept in {file}/.local/share/tollgate/runs: Not a directory")),
    ] {
        let ended = run().envs(at.map(|at| ("HOME", at))).assert().success();
        let [shown, said] = [&ended.get_output().stdout, &ended.get_output().stderr];
        let rows = |line: &&str| line.starts_with("  call ");
        assert_eq!(String::from_utf8_lossy(shown).lines().filter(rows).count(), 1, "{ended}");
        let warning =
            format!("tollgate: warning: this run will not be kept: {why}; name a file with --out to keep it");
        assert_eq!(String::from_utf8_lossy(said).lines().next(), Some(warning.as_str()));
    }
    assert_eq!(home.files(), ["file"]);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let home = Home::new();
    home.keep(&document("20261121-015427-0001", None, 1.0));
    for arguments in [
        vec!["list"],
        vec!["list", "--format=json"],
        vec!["runs"],
        vec!["show", "last"],
        vec!["show", "last", "--format=csv"],
        vec!["compare", "last", "last"],
        vec!["completions", "bash"],
        vec!["man"],
        vec!["--help"],
        vec!["--version"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = std::process::Command::new(common::program())
            .args(&arguments)
            .env("XDG_DATA_HOME", home.path())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("started");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn a_full_standard_output_is_an_error() {
    let home = Home::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = std::process::Command::new(common::program())
        .arg("list")
        .env("XDG_DATA_HOME", home.path())
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("started");
    assert_eq!(output.status.code(), Some(2));
    let said = "standard output cannot be written: No space left on device";
    assert_eq!(one_line(&output.stderr), said);
}

#[test]
fn wrong_usage_is_one_line_too() {
    let home = Home::new();
    for arguments in
        [vec![], vec!["rnu"], vec!["run", "--tmie=3"], vec!["show"], vec!["show", "x", "--format", "yaml"]]
    {
        assert!(!home.refusal(arguments).is_empty());
    }
    let typos: [(&[&str], _); 3] = [
        (&["lst"], "unrecognized subcommand 'lst'; did you mean 'list'?"),
        (&["list", "--fromat"], "unexpected argument '--fromat' found; did you mean '--format'?"),
        (
            &["run", "--format", "jsn"],
            "invalid value 'jsn' for '--format <FORMAT>' [possible values: text, json, svg]; did you mean 'json'?",
        ),
    ];
    for (typo, said) in typos {
        assert_eq!(home.refusal(typo.iter().copied()), said);
    }
}
