//! Bad input: one clear line, exit status 2, and no damage to what is kept.

mod common;

use std::process::Stdio;

use common::{Home, document, one_line};

#[test]
fn an_unknown_pattern_suggests_a_similar_name() {
    let home = Home::new();
    let line = home.refusal(["run", "entry/sysall", "--time", "1"]);
    assert!(line.contains("\"entry/sysall\"") && line.contains("entry/syscall"), "{line}");
    let line = home.refusal(["list", "entry/sysall"]);
    assert!(line.contains("entry/syscall"), "{line}");
    assert!(home.files().is_empty());
}

#[test]
fn a_label_that_would_be_a_path_is_refused() {
    let home = Home::new();
    for label in ["a/b", "..", "../x", "a..b", "", "last", "-x", "a\u{1b}[2Jb", &"x".repeat(65)] {
        let line = home.refusal(["run", "entry/call", "--time", "1", &format!("--label={label}")]);
        assert!(line.contains("--label"), "{line}");
    }
    assert!(home.files().is_empty());
}

#[test]
fn a_time_that_is_none_is_refused() {
    let home = Home::new();
    for time in ["nonsense", "0", "-1", "0.5", "25h", "inf", "nan", "1e9", "", "3 fortnights"] {
        let line = home.refusal(["run", "entry/call", &format!("--time={time}")]);
        assert!(line.contains("--time"), "{line}");
    }
    for both in [["--quick", "--thorough"], ["--quick", "--time=3"], ["--thorough", "--time=3"]] {
        let line = home.refusal(["run", "entry/call", both[0], both[1]]);
        assert!(line.contains("cannot be used with"), "{line}");
    }
    assert!(home.files().is_empty());
}

#[test]
fn a_processor_that_is_none_is_refused() {
    let home = Home::new();
    let line = home.refusal(["run", "entry/call", "--time", "1", "--cpu", "100000"]);
    assert!(line.contains("processor 100000 does not exist"), "{line}");
    let line = home.refusal(["run", "entry/call", "--time", "1", "--cpu", "first"]);
    assert!(line.contains("not the number of a processor"), "{line}");
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
    assert!(one_line(&output.stderr).contains("is not allowed"), "{output:?}");
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
    let cases = [
        (home.file("cut.json", &whole[..whole.len() / 2]), "cut off"),
        (home.file("empty.json", ""), "cut off"),
        (home.file("older.json", r#"{"schema": 1, "all": "else"}"#), "schema 1"),
        (home.file("newer.json", r#"{"schema": 3, "all": "else"}"#), "schema 3"),
        (home.file("nan.json", &nan), "not a run document"),
        (home.file("huge.json", &huge), "not a run document"),
        (home.file("text.json", "some text"), "not a run document"),
        (home.file("bytes.json", [0xff, 0xfe, 0x00]), "not a run document"),
        (home.path().join("absent.json").display().to_string(), "does not exist"),
        (home.path().display().to_string() + "/", "is a directory"),
        (large, "larger than"),
    ];
    for (file, reason) in &cases {
        for arguments in [vec!["show", file], vec!["compare", file, file]] {
            let line = home.refusal(arguments);
            assert!(line.contains(reason) && line.contains(file.as_str()), "{line}");
        }
    }
}

#[test]
fn a_run_that_is_not_kept_is_refused() {
    let home = Home::new();
    assert!(home.refusal(["show", "last"]).contains("no run is kept yet"));
    home.keep(&document("20261121-015427-0001", None, 1.0));
    home.keep(&document("20261121-015427-0002", None, 1.0));
    let line = home.refusal(["show", "mine"]);
    assert!(line.contains("\"mine\"") && line.contains("tollgate runs"), "{line}");
    let line = home.refusal(["compare", "20261121", "last"]);
    assert!(line.contains("2 kept runs"), "{line}");
    assert!(home.refusal(["compare", "last"]).contains("name another"));
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let home = Home::new();
    let file = home.file("file", "");
    let directory = home.path().display().to_string();
    for (out, reason) in [
        (directory, "is a directory"),
        (format!("{file}/run.json"), "Not a directory"),
        (home.path().join("absent/run.json").display().to_string(), "there is no directory"),
    ] {
        // One that measured first would run into the limit of its time.
        let line = home.refusal(["run", "entry/call", "--time", "900", "--out", &out]);
        assert!(line.contains(reason) && line.contains(&out), "{line}");
    }
    let mut named = home.tollgate(["run", "entry/call", "--time", "20"]);
    let line =
        one_line(&named.env("XDG_DATA_HOME", &file).assert().code(2).stdout("").get_output().stderr.clone());
    assert!(line.contains("XDG_DATA_HOME") && line.contains("Not a directory"), "{line}");
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
            assert!(one_line(&output.stderr).contains("No space left on device"), "{output:?}");
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
    let nowhere = run().assert().success();
    let nowhere = nowhere.get_output();
    assert!(String::from_utf8_lossy(&nowhere.stdout).contains("\n  call "));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("will not be kept"));
    // A home that cannot be written is as none.
    let unwritable = run().env("HOME", &file).assert().success();
    let unwritable = unwritable.get_output();
    assert!(String::from_utf8_lossy(&unwritable.stdout).contains("\n  call "));
    let stderr = String::from_utf8_lossy(&unwritable.stderr);
    assert!(
        stderr.starts_with("tollgate: warning: this run will not be kept: runs cannot be kept in"),
        "{stderr}"
    );
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
    assert!(one_line(&output.stderr).contains("No space left"));
}

#[test]
fn wrong_usage_is_one_line_too() {
    let home = Home::new();
    for arguments in
        [vec![], vec!["rnu"], vec!["run", "--tmie=3"], vec!["show"], vec!["show", "x", "--format", "yaml"]]
    {
        assert!(!home.refusal(arguments).is_empty());
    }
    let typos: [(&[&str], _); 3] =
        [(&["lst"], "list"), (&["list", "--fromat"], "--format"), (&["run", "--format", "jsn"], "json")];
    for (typo, meant) in typos {
        let line = home.refusal(typo.iter().copied());
        assert!(line.contains(&format!("did you mean '{meant}'?")), "{line}");
    }
}
