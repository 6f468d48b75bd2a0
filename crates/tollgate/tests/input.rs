//! Bad input: one clear line, exit status 2, and no damage to kept runs.

mod common;

use std::process::Stdio;

use common::{Home, document, one_line};

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
fn a_file_that_is_too_large_is_refused() {
    let home = Home::new();
    let large = home.file("large.json", "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&large)
        .and_then(|file| file.set_len(1 << 30))
        .expect("sparse");
    let said = format!("{large} is larger than 256 MiB, the limit for a run document");
    assert_eq!(home.refusal(["show", &large]), said);
}

#[test]
fn words_that_were_typed_and_a_home_that_is_none_are_refused_before_anything_is_measured() {
    let home = Home::new();
    let run = ["run", "entry/call", "--time", "900", "--label=a\u{1b}[2Jb"];
    assert!(home.refusal(run).contains(r#"the label "a\u{1b}[2Jb" has a character"#));
    let file = home.file("file", "");
    let mut named = home.tollgate(run.into_iter().take(4));
    let line =
        one_line(&named.env("XDG_DATA_HOME", &file).assert().code(2).stdout("").get_output().stderr.clone());
    let runs = format!("{file}/tollgate/runs (XDG_DATA_HOME)");
    let said = format!("runs cannot be kept in {runs}: Not a directory; name a file with --out FILE");
    assert_eq!(line, said);
    assert_eq!(home.files(), ["file"]);
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
